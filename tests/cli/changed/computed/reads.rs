//! Files that functions read.

use insta::assert_snapshot;

use super::{env, globals};
use crate::support::Repository;

/// Two stacks that read a file through a global, and one that does not.
fn reading() -> Repository {
    let sandbox = Repository::prepare("x/a\nx/b\nc");
    sandbox.write("/x/env.tm", env("VERSION = global.version"));
    sandbox.write(
        "/x/globals.tm",
        globals("version = tm_trimspace(tm_file(\"${terramate.root.path.fs.absolute}/versions/app.txt\"))"),
    );
    sandbox.write("/versions/app.txt", "1\n");
    sandbox.write("/versions/other.txt", "1\n");
    Repository::of(sandbox)
}

#[test]
fn changed_follows_a_file_read_by_a_global() {
    let repository = reading();
    repository.write("/versions/other.txt", "2\n");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 13e8e57
    ");
    repository.write("/versions/app.txt", "2\n");
    assert_snapshot!(repository.changed(), @"
    x/a  # changed: versions/app.txt (uncommitted), environment variable VERSION (x/env.tm:5), global.version (x/globals.tm:2), read by tm_file (x/globals.tm:2); at or below /
    x/b  # changed: versions/app.txt (uncommitted), environment variable VERSION (x/env.tm:5), global.version (x/globals.tm:2), read by tm_file (x/globals.tm:2); at or below /
    ");
    // Even if the value is the same.
    repository.write("/versions/app.txt", "1\n\n");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    x/a  # changed: versions/app.txt, environment variable VERSION (x/env.tm:5), global.version (x/globals.tm:2), read by tm_file (x/globals.tm:2); at or below /
    x/b  # changed: versions/app.txt, environment variable VERSION (x/env.tm:5), global.version (x/globals.tm:2), read by tm_file (x/globals.tm:2); at or below /
    ");
    assert_snapshot!(repository.orch("why x/a --changed --base base"), @"
    /x/a is selected
      changed: versions/app.txt, environment variable VERSION (x/env.tm:5), global.version (x/globals.tm:2), read by tm_file (x/globals.tm:2)
      at or below /

    its inputs, 1 of 4 changed since 13e8e57
      /versions/app.txt, environment variable VERSION (x/env.tm:5), global.version (x/globals.tm:2), read by tm_file (x/globals.tm:2)
        changed: versions/app.txt
      /x/a, its own directory
      /x/env.tm, environment variable VERSION (x/env.tm:5)
      /x/globals.tm, environment variable VERSION (x/env.tm:5), global.version (x/globals.tm:2)

    nothing runs before it

    nothing runs after it
    [stderr]
    base 13e8e57: --base base
    ");
    assert_snapshot!(repository.orch("why x/a"), @"
    /x/a is selected
      at or below /

    its inputs (add --changed to see which have changed)
      /x/a, its own directory
      /versions/app.txt, environment variable VERSION (x/env.tm:5), global.version (x/globals.tm:2), read by tm_file (x/globals.tm:2)
      /x/env.tm, environment variable VERSION (x/env.tm:5)
      /x/globals.tm, environment variable VERSION (x/env.tm:5), global.version (x/globals.tm:2)

    nothing runs before it

    nothing runs after it
    ");
}

#[test]
fn changed_follows_the_file_that_each_stack_reads() {
    let sandbox = Repository::prepare("a\nb");
    sandbox.write("/env.tm", env("A = global.a"));
    sandbox.write(
        "/globals.tm",
        globals("a = tm_file(\"../texts/${terramate.stack.name}.txt\")"),
    );
    sandbox.write("/texts/a.txt", "1");
    sandbox.write("/texts/b.txt", "1");
    let repository = Repository::of(sandbox);
    repository.write("/texts/b.txt", "2");
    assert_snapshot!(repository.changed(), @"b  # changed: texts/b.txt (uncommitted), environment variable A (env.tm:5), global.a (globals.tm:2), read by tm_file (globals.tm:2); at or below /");
}

#[test]
fn changed_follows_file_sets_and_existence_checks() {
    let sandbox = Repository::prepare("a");
    sandbox.write(
        "/env.tm",
        env("N = \"${tm_length(tm_fileset(\"../data\", \"*.json\"))}\"\nIS = \"${tm_fileexists(\"../flag\")}\""),
    );
    sandbox.write("/data/1.json", "{}");
    let repository = Repository::of(sandbox);
    repository.write("/data/1.txt", "");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 7056c90
    ");
    repository.write("/data/2.json", "{}");
    assert_snapshot!(repository.changed(), @"a  # changed: data/2.json (untracked), environment variable N (env.tm:5), read by tm_fileset (env.tm:5); at or below /");
    repository.commit();
    repository.git("update-ref refs/tags/base HEAD");
    repository.remove("/data/2.json");
    repository.write("/flag", "");
    assert_snapshot!(repository.changed(), @"a  # changed: flag (untracked), environment variable IS (env.tm:6), read by tm_fileexists (env.tm:6); at or below /");
    repository.git("checkout -q -- data");
    assert_snapshot!(repository.changed(), @"a  # changed: flag (untracked), environment variable IS (env.tm:6), read by tm_fileexists (env.tm:6); at or below /");
}

#[test]
fn changed_reads_files_of_the_base() {
    // The path of the file changes. The value may change with it, or not.
    let sandbox = Repository::prepare("a\nb");
    let at = |name: &str| {
        globals(&format!(
            "path = \"${{terramate.root.path.fs.absolute}}/texts/{name}\""
        ))
    };
    sandbox.write(
        "/env.tm",
        env("A = tm_file(global.path)\nN = \"${tm_length(tm_fileset(\"../gone\", \"*\"))}\""),
    );
    sandbox.write("/globals.tm", at("1"));
    sandbox.write("/texts/1", "same");
    sandbox.write("/texts/2", "same");
    sandbox.write("/texts/3", "other");
    sandbox.write("/gone/x", "");
    let repository = Repository::of(sandbox);
    repository.write("/globals.tm", at("2"));
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 5834185
    ");
    repository.write("/globals.tm", at("3"));
    assert_snapshot!(repository.changed(), @"
    a  # changed: globals.tm (uncommitted), environment variable A (env.tm:5), global.path (globals.tm:2); at or below /
    b  # changed: globals.tm (uncommitted), environment variable A (env.tm:5), global.path (globals.tm:2); at or below /
    ");
    repository.write("/globals.tm", at("1"));
    repository.remove("/gone/x");
    std::fs::remove_dir(repository.path("/gone")).unwrap();
    assert_snapshot!(repository.changed(), @"
    a  # changed: gone/x (uncommitted, deleted), environment variable N (env.tm:6), read by tm_fileset (env.tm:6); at or below /
    b  # changed: gone/x (uncommitted, deleted), environment variable N (env.tm:6), read by tm_fileset (env.tm:6); at or below /
    ");
}

#[test]
fn changed_follows_a_template_and_its_reads() {
    let sandbox = Repository::prepare("a");
    sandbox.write(
        "/env.tm",
        env("A = tm_templatefile(\"../t.tpl\", { who = \"x\" })"),
    );
    sandbox.write("/t.tpl", "hello ${who}");
    let repository = Repository::of(sandbox);
    repository.write("/t.tpl", "bye ${who}");
    assert_snapshot!(repository.changed(), @"a  # changed: t.tpl (uncommitted), environment variable A (env.tm:5), read by tm_templatefile (env.tm:5); at or below /");
}

#[test]
fn changed_skips_ignored_reads() {
    let repository = reading();
    let ignore =
        "orch {\n  config {\n    change_detection {\n      ignore = [\"*.txt\"]\n    }\n  }\n}\n";
    repository.write("/ignore.orch.hcl", ignore);
    repository.write("/versions/app.txt", "2\n");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 13e8e57; 1 file differs that does not count
    ");
    assert_snapshot!(repository.orch("why x/a --changed --base base"), @"
    /x/a is not selected
      has not changed since 13e8e57

    its inputs, 0 of 4 changed since 13e8e57
      /versions/app.txt, environment variable VERSION (x/env.tm:5), global.version (x/globals.tm:2), read by tm_file (x/globals.tm:2)
        differs, but does not count: versions/app.txt (uncommitted), ignored by `*.txt` (ignore.orch.hcl:4)
      /x/a, its own directory
      /x/env.tm, environment variable VERSION (x/env.tm:5)
      /x/globals.tm, environment variable VERSION (x/env.tm:5), global.version (x/globals.tm:2)

    nothing runs before it

    nothing runs after it

    what would select it
      a change of one of its inputs, or `orch trigger /x/a`
    [stderr]
    base 13e8e57: --base base, which is HEAD itself
    ");
}

#[test]
fn changed_uses_one_time_on_both_sides() {
    let sandbox = Repository::prepare("a");
    sandbox.write("/env.tm", env("A = tm_timestamp()\nB = global.b"));
    sandbox.write("/globals.tm", globals("b = \"1\""));
    let repository = Repository::of(sandbox);
    repository.write("/globals.tm", globals("b = \"1\"\nc = 1"));
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 8b30f45
    ");
}

#[test]
fn changed_ignores_files_outside_of_the_project() {
    let sandbox = Repository::prepare("a");
    sandbox.write(
        "/env.tm",
        env("A = tm_try(tm_file(\"../../../etc/hostname\"), \"none\")"),
    );
    let repository = Repository::of(sandbox);
    repository.write("/x.txt", "");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 56d8f52
    ");
}

#[cfg(unix)]
#[test]
fn changed_follows_reads_through_a_link() {
    let sandbox = Repository::prepare("a");
    sandbox.write("/env.tm", env("A = tm_file(\"../link\")"));
    sandbox.write("/data/text", "1");
    sandbox.symlink("data/text", "/link");
    let repository = Repository::of(sandbox);
    repository.write("/data/text", "2");
    assert_snapshot!(repository.changed(), @"a  # changed: data/text (uncommitted), environment variable A (env.tm:5), read by tm_file (env.tm:5), target of the link link; at or below /");
}

#[test]
fn changed_follows_files_read_by_attributes() {
    let sandbox = Repository::prepare("b");
    sandbox.write(
        "/a/stack.tm",
        r#"stack {
  watch = tm_split("\n", tm_trimspace(tm_file("../lists/watched.txt")))
  tags  = [for file in tm_fileset("../teams", "*.txt") : tm_trimsuffix(file, ".txt")]
}
"#,
    );
    sandbox.write("/b/main.tf", "# old\n");
    sandbox.write("/c", "");
    sandbox.write("/lists/watched.txt", "/b/main.tf\n");
    sandbox.write("/teams/core.txt", "");
    let repository = Repository::of(sandbox);
    repository.write("/b/main.tf", "# new\n");
    assert_snapshot!(repository.changed(), @"
    a  # changed: b/main.tf (uncommitted), watched (a/stack.tm:2); at or below /
    b  # changed: b/main.tf (uncommitted); at or below /
    ");
    repository.write("/b/main.tf", "# old\n");
    repository.write("/lists/watched.txt", "/b/main.tf\n/c\n");
    assert_snapshot!(repository.changed(), @"a  # changed: lists/watched.txt (uncommitted), attribute watch (a/stack.tm:2), read by tm_file (a/stack.tm:2); at or below /");
    assert_snapshot!(repository.orch("why a"), @"
    /a is selected
      at or below /

    its inputs (add --changed to see which have changed)
      /a, its own directory
      /b/main.tf, watched (a/stack.tm:2)
      /c, watched (a/stack.tm:2)
      /lists/watched.txt, attribute watch (a/stack.tm:2), read by tm_file (a/stack.tm:2)

    nothing runs before it

    nothing runs after it
    ");
    repository.write("/lists/watched.txt", "/b/main.tf\n");
    // Tags are no inputs.
    repository.write("/teams/edge.txt", "");
    assert_snapshot!(repository.changed().stdout, @"");
}

#[test]
fn changed_follows_reads_of_a_string_template() {
    let sandbox = Repository::prepare("a\nb");
    let template = "tm_templatestring(\"$${file(\\\"../d/f\\\")}\", {})";
    sandbox.write("/a/env.tm", env(&format!("A = {template}")));
    sandbox.write("/b/env.tm", env("B = global.b"));
    sandbox.write("/b/globals.tm", globals(&format!("b = {template}")));
    sandbox.write("/d/f", "1");
    let repository = Repository::of(sandbox);
    repository.write("/d/f", "2");
    assert_snapshot!(repository.changed(), @"
    a  # changed: d/f (uncommitted), environment variable A (a/env.tm:5), read by tm_templatestring (a/env.tm:5); at or below /
    b  # changed: d/f (uncommitted), environment variable B (b/env.tm:5), global.b (b/globals.tm:2), read by tm_templatestring (b/globals.tm:2); at or below /
    ");
}
