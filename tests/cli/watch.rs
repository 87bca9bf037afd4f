//! Files outside of a stack that belong to it, and files that never count.

use insta::assert_snapshot;

use crate::support::{Repository, Sandbox};

/// A project with a stack `s` that watches, and a directory `lib`.
fn watching(entries: &str) -> Repository {
    let sandbox = Sandbox::layout("other");
    sandbox.write(
        "/s/stack.tm",
        format!("stack {{\n  watch = [{entries}]\n}}\n"),
    );
    for file in [
        "/lib/x.tf",
        "/lib/deep/er/y.json",
        "/s-lib/x.tf",
        "/root.tf",
    ] {
        sandbox.write(file, "");
    }
    Repository::of(sandbox)
}

#[test]
fn watch_counts_a_file() {
    for entry in ["/lib/x.tf", "../lib/x.tf", "../lib/./x.tf"] {
        let repository = watching(&format!("{entry:?}"));
        repository.write("/lib/deep/er/y.json", "# changed\n");
        repository.write("/lib/x.tf2", "# changed\n");
        assert_eq!(repository.changed().stdout, "");
        repository.write("/lib/x.tf", "# changed\n");
        let output = repository.changed().to_string();
        assert_eq!(
            output,
            "s  # changed: lib/x.tf (uncommitted), watched (s/stack.tm:2); at or below /\n"
        );
    }
}

#[cfg(unix)]
#[test]
fn watch_of_an_unreadable_file_is_an_error() {
    let repository = watching("\"/circle/x\"");
    repository.symlink("circle", "/circle");
    let output = repository.orch("list");
    assert_eq!(output.code(), 3, "{output}");
    let error = "error: `watch` names `/circle/x`, which cannot be read";
    assert!(output.stderr.starts_with(error), "{output}");
}

#[test]
fn watch_counts_a_file_that_matches_a_pattern() {
    for (entry, file) in [
        ("/lib/*.tf", "lib/new.tf"),
        ("../lib/*", "lib/new"),
        ("/lib/**", "lib/deep/new"),
        ("../**/*.json", "lib/deep/er/new.json"),
        ("/**/er/*", "lib/deep/er/new"),
        ("/lib/{x,new}.tf", "lib/new.tf"),
        ("/lib/{,deep/}new.tf", "lib/new.tf"),
        ("/lib/[a-z].tf", "lib/n.tf"),
        ("/?oot.tf", "foot.tf"),
        ("/lib/**", "lib/.hidden/new"),
    ] {
        let repository = watching(&format!("{entry:?}"));
        repository.write("/elsewhere/new.yml", "");
        assert_eq!(repository.changed().stdout, "", "{entry}");
        repository.write(&format!("/{file}"), "");
        let output = repository.changed().stdout;
        let expected =
            format!("s  # changed: {file} (untracked), watched (s/stack.tm:2); at or below /\n");
        assert_eq!(output, expected, "{entry}");
    }
}

#[test]
fn watch_ignores_a_file_that_matches_no_pattern() {
    for (entry, file) in [
        ("/lib/*.tf", "lib/deep/new.tf"),
        ("/lib/*.tf", "lib/new.tfvars"),
        ("/lib/**", "lib-other/new"),
        ("/lib/?.tf", "lib/xy.tf"),
    ] {
        let repository = watching(&format!("{entry:?}"));
        repository.write(&format!("/{file}"), "");
        assert_eq!(repository.changed().stdout, "", "{entry}");
    }
}

#[test]
fn watch_counts_a_deleted_file() {
    let repository = watching(r#""/lib/x.tf", "/lib/deep/**""#);
    repository.remove("/lib/x.tf");
    assert_snapshot!(repository.changed(), @r#"
    s  # changed: lib/x.tf (uncommitted, deleted), watched (s/stack.tm:2); at or below /
    [stderr]
    warning: `watch` names `/lib/x.tf`, which does not exist
     --> s/stack.tm:2:12
      |
    2 |   watch = ["/lib/x.tf", "/lib/deep/**"]
      |            ^^^^^^^^^^^ no such file
    "#);
    repository.git("checkout -q .");
    repository.remove("/lib/deep/er/y.json");
    repository.commit();
    assert_snapshot!(repository.changed(), @r#"
    s  # changed: lib/deep/er/y.json (deleted), watched (s/stack.tm:2); at or below /
    [stderr]
    warning: no file matches `/lib/deep/**`, which `watch` names
     --> s/stack.tm:2:25
      |
    2 |   watch = ["/lib/x.tf", "/lib/deep/**"]
      |                         ^^^^^^^^^^^^^^ nothing to watch now
    "#);
}

#[test]
fn watch_counts_a_new_file() {
    let repository = watching(r#""/lib/new.tf""#);
    assert_snapshot!(repository.changed(), @r#"
    [stderr]
    note: no stack has changed since 7049a49
    warning: `watch` names `/lib/new.tf`, which does not exist
     --> s/stack.tm:2:12
      |
    2 |   watch = ["/lib/new.tf"]
      |            ^^^^^^^^^^^^^ no such file
    "#);
    repository.write("/lib/new.tf", "");
    assert_snapshot!(repository.changed(), @"s  # changed: lib/new.tf (untracked), watched (s/stack.tm:2); at or below /");
}

#[test]
fn watch_counts_a_renamed_file() {
    let repository = watching(r#""/lib/x.tf""#);
    repository.git("mv lib/x.tf lib/z.tf");
    repository.commit();
    assert_snapshot!(repository.changed(), @r#"
    s  # changed: lib/x.tf (deleted), watched (s/stack.tm:2); at or below /
    [stderr]
    warning: `watch` names `/lib/x.tf`, which does not exist
     --> s/stack.tm:2:12
      |
    2 |   watch = ["/lib/x.tf"]
      |            ^^^^^^^^^^^ no such file
    "#);
    let repository = watching(r#""/lib/z*.tf""#);
    repository.git("mv lib/x.tf lib/z.tf");
    assert_snapshot!(repository.changed(), @"s  # changed: lib/z.tf (uncommitted, added), watched (s/stack.tm:2); at or below /");
}

#[test]
fn watch_pattern_without_a_match_gets_a_warning_with_changed() {
    let repository =
        watching(r#""/lib/*.tfvars", "*.none", "/nowhere/**", "/lib/*.tf", "none.tf""#);
    assert_snapshot!(repository.orch("list"), @"
    other
    s
    ");
    assert_snapshot!(repository.changed(), @r#"
    [stderr]
    note: no stack has changed since bde6f7c
    warning: no file matches `/lib/*.tfvars`, which `watch` names
     --> s/stack.tm:2:12
      |
    2 |   watch = ["/lib/*.tfvars", "*.none", "/nowhere/**", "/lib/*.tf", "none.tf"]
      |            ^^^^^^^^^^^^^^^ nothing to watch now

    warning: no file matches `/s/*.none`, which `watch` names
     --> s/stack.tm:2:29
      |
    2 |   watch = ["/lib/*.tfvars", "*.none", "/nowhere/**", "/lib/*.tf", "none.tf"]
      |                             ^^^^^^^^ nothing to watch now

    warning: no file matches `/nowhere/**`, which `watch` names
     --> s/stack.tm:2:39
      |
    2 |   watch = ["/lib/*.tfvars", "*.none", "/nowhere/**", "/lib/*.tf", "none.tf"]
      |                                       ^^^^^^^^^^^^^ nothing to watch now

    warning: `watch` names `/s/none.tf`, which does not exist
     --> s/stack.tm:2:67
      |
    2 |   watch = ["/lib/*.tfvars", "*.none", "/nowhere/**", "/lib/*.tf", "none.tf"]
      |                                                                   ^^^^^^^^^ no such file
    "#);
    assert_snapshot!(repository.orch("validate"), @r#"
    [stderr]
    error: no file matches `/lib/*.tfvars`, which `watch` names
     --> s/stack.tm:2:12
      |
    2 |   watch = ["/lib/*.tfvars", "*.none", "/nowhere/**", "/lib/*.tf", "none.tf"]
      |            ^^^^^^^^^^^^^^^ nothing to watch now

    error: no file matches `/s/*.none`, which `watch` names
     --> s/stack.tm:2:29
      |
    2 |   watch = ["/lib/*.tfvars", "*.none", "/nowhere/**", "/lib/*.tf", "none.tf"]
      |                             ^^^^^^^^ nothing to watch now

    error: no file matches `/nowhere/**`, which `watch` names
     --> s/stack.tm:2:39
      |
    2 |   watch = ["/lib/*.tfvars", "*.none", "/nowhere/**", "/lib/*.tf", "none.tf"]
      |                                       ^^^^^^^^^^^^^ nothing to watch now

    error: `watch` names `/s/none.tf`, which does not exist
     --> s/stack.tm:2:67
      |
    2 |   watch = ["/lib/*.tfvars", "*.none", "/nowhere/**", "/lib/*.tf", "none.tf"]
      |                                                                   ^^^^^^^^^ no such file

    [exit status 3]
    "#);
}

#[test]
fn watch_refuses_a_directory_with_a_hint() {
    let repository = watching(r#""/lib", "../lib/", "..""#);
    assert_snapshot!(repository.orch("list --changed --base base"), @r#"
    [stderr]
    error: `watch` names files, and `/lib` is not one
     --> s/stack.tm:2:12
      |
    2 |   watch = ["/lib", "../lib/", ".."]
      |            ^^^^^^ not a regular file
      |
      = help: for everything below it, write `/lib/**`

    error: `watch` names files, and `/lib` is not one
     --> s/stack.tm:2:20
      |
    2 |   watch = ["/lib", "../lib/", ".."]
      |                    ^^^^^^^^^ not a regular file
      |
      = help: for everything below it, write `../lib/**`

    error: `watch` names files, and `/` is not one
     --> s/stack.tm:2:31
      |
    2 |   watch = ["/lib", "../lib/", ".."]
      |                               ^^^^ not a regular file
      |
      = help: for everything below it, write `../**`

    [exit status 3]
    "#);
}

#[test]
fn patterns_that_make_no_sense_are_refused() {
    let repository = watching(r#""../../*.tf", "/lib/[a", "*/../x", "/lib/{a""#);
    assert_snapshot!(repository.orch("list"), @r#"
    [stderr]
    error: `../../*.tf` leads out of the project
     --> s/stack.tm:2:12
      |
    2 |   watch = ["../../*.tf", "/lib/[a", "*/../x", "/lib/{a"]
      |            ^^^^^^^^^^^^ climbs above the project root
      |
      = help: watch files inside the project; a leading `/` is the project root

    error: `/lib/[a` is not a pattern of file names
     --> s/stack.tm:2:26
      |
    2 |   watch = ["../../*.tf", "/lib/[a", "*/../x", "/lib/{a"]
      |                          ^^^^^^^^^ unclosed character class; missing ']'
      |
      = help: `*` and `?` match within a name, `**` across directories, `{a,b}` either of two

    error: `*/../x` is not a pattern of file names
     --> s/stack.tm:2:37
      |
    2 |   watch = ["../../*.tf", "/lib/[a", "*/../x", "/lib/{a"]
      |                                     ^^^^^^^^ `.` and `..` must come before the first wildcard
      |
      = help: `*` and `?` match within a name, `**` across directories, `{a,b}` either of two

    error: `/lib/{a` is not a pattern of file names
     --> s/stack.tm:2:47
      |
    2 |   watch = ["../../*.tf", "/lib/[a", "*/../x", "/lib/{a"]
      |                                               ^^^^^^^^^ unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
      |
      = help: `*` and `?` match within a name, `**` across directories, `{a,b}` either of two

    [exit status 3]
    "#);
}

#[test]
fn watch_counts_a_file_in_a_submodule() {
    for entry in [
        "/lib/sub/x.tf",
        "/lib/sub/**",
        "/lib/**/*.tf",
        "/**/x.tf",
        "/lib/*/x.tf",
        "../lib/s*/{x,y}.tf",
    ] {
        let repository = watching(&format!("{entry:?}"));
        repository.write("/lib/sub/x.tf", "");
        repository.git_in("/lib/sub", "init -q -b main");
        repository.git_in("/lib/sub", "add -A");
        repository.git_in("/lib/sub", "commit -q -m one");
        repository.git("-c advice.addEmbeddedRepo=false add -A");
        repository.git("commit -q -m sub");
        repository.git("tag -f base");
        assert_eq!(repository.changed().stdout, "", "{entry}");
        repository.write("/lib/sub/x.tf", "# changed\n");
        let expected = "s  # changed: lib/sub (uncommitted, submodule), watched (s/stack.tm:2); at or below /\n";
        assert_eq!(repository.changed().stdout, expected, "{entry}");
    }
}

#[test]
fn watch_pattern_outside_of_a_submodule_ignores_it() {
    for entry in ["/lib/*.tf", "/l*/*.tf", "/s-lib/**"] {
        let repository = watching(&format!("{entry:?}"));
        repository.write("/lib/sub/x.tf", "");
        repository.git_init_at("/lib/sub");
        assert_eq!(repository.changed().stdout, "", "{entry}");
    }
}

#[test]
fn watch_counts_a_changed_link() {
    let sandbox = Sandbox::layout("other");
    sandbox.write("/lib/x.tf", "");
    sandbox.symlink("lib", "/link");
    sandbox.write("/s/stack.tm", "stack {\n  watch = [\"/link/x.tf\"]\n}\n");
    sandbox.write("/t/stack.tm", "stack {\n  watch = [\"/link/*.tf\"]\n}\n");
    let repository = Repository::of(sandbox);
    repository.remove("/link");
    repository.symlink("other", "/link");
    assert_snapshot!(repository.changed(), @r#"
    s  # changed: link (uncommitted), watched (s/stack.tm:2); at or below /
    t  # changed: link (uncommitted), watched (t/stack.tm:2); at or below /
    [stderr]
    warning: `watch` names `/link/x.tf`, which does not exist
     --> s/stack.tm:2:12
      |
    2 |   watch = ["/link/x.tf"]
      |            ^^^^^^^^^^^^ no such file

    warning: no file matches `/link/*.tf`, which `watch` names
     --> t/stack.tm:2:12
      |
    2 |   watch = ["/link/*.tf"]
      |            ^^^^^^^^^^^^ nothing to watch now
    "#);
}

#[test]
fn watch_counts_a_file_behind_a_link() {
    let sandbox = Sandbox::layout("other");
    sandbox.write("/lib/x.tf", "");
    sandbox.write("/lib/y.tf", "");
    sandbox.symlink("lib", "/link");
    sandbox.symlink("lib/y.tf", "/y.tf");
    sandbox.write("/s/stack.tm", "stack {\n  watch = [\"/link/x.tf\"]\n}\n");
    sandbox.write("/t/stack.tm", "stack {\n  watch = [\"/y.tf\"]\n}\n");
    let repository = Repository::of(sandbox);
    repository.write("/lib/y.tf", "# changed\n");
    repository.remove("/lib/x.tf");
    assert_snapshot!(repository.changed(), @r#"
    s  # changed: lib/x.tf (uncommitted, deleted), watched (s/stack.tm:2), target of the link link; at or below /
    t  # changed: lib/y.tf (uncommitted), watched (t/stack.tm:2), target of the link y.tf; at or below /
    [stderr]
    warning: `watch` names `/link/x.tf`, which does not exist
     --> s/stack.tm:2:12
      |
    2 |   watch = ["/link/x.tf"]
      |            ^^^^^^^^^^^^ no such file
    "#);
}

#[test]
fn watch_counts_a_deleted_file_named_like_a_pattern() {
    let sandbox = Sandbox::layout("other");
    sandbox.write("/lib/[x].tf", "");
    sandbox.write("/s/stack.tm", "stack {\n  watch = [\"/lib/[x].tf\"]\n}\n");
    let repository = Repository::of(sandbox);
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 90581bb
    ");
    repository.remove("/lib/[x].tf");
    assert_snapshot!(repository.changed(), @r#"
    s  # changed: lib/[x].tf (uncommitted, deleted), watched (s/stack.tm:2); at or below /
    [stderr]
    warning: no file matches `/lib/[x].tf`, which `watch` names
     --> s/stack.tm:2:12
      |
    2 |   watch = ["/lib/[x].tf"]
      |            ^^^^^^^^^^^^^ nothing to watch now
    "#);
}

#[test]
fn watch_counts_an_imported_file() {
    let repository = Repository::new(
        r#"
//- /direct/stack.tm
stack {}

import {
  source = "/common/one.tm.hcl"
}
//- /below/config.tm
import {
  source = "/common/one.tm.hcl"
}
//- /below/stack/stack.tm
stack {}
//- /glob/stack.tm
stack {}
import {
  source = "/common/*.tm.hcl"
}
//- /transitive/stack.tm
stack {}
import {
  source = "../more/two.tm.hcl"
}
//- /more/two.tm.hcl
import {
  source = "/common/one.tm.hcl"
}
//- /common/one.tm.hcl
globals {}
//- /other/stack.tm
stack {}
"#,
    );
    repository.write("/common/one.tm.hcl", "globals {\n  a = 1\n}\n");
    assert_snapshot!(repository.changed(), @"
    direct  # changed: common/one.tm.hcl (uncommitted), imported (direct/stack.tm:4); at or below /
    glob  # changed: common/one.tm.hcl (uncommitted), imported (glob/stack.tm:3); at or below /
    transitive  # changed: common/one.tm.hcl (uncommitted), imported (more/two.tm.hcl:2); at or below /
    ");
    repository.git("checkout -q .");
    repository.write("/common/new.tm.hcl", "globals {}\n");
    assert_snapshot!(repository.changed(), @"glob  # changed: common/new.tm.hcl (untracked), imported (glob/stack.tm:3); at or below /");
    repository.commit();
    repository.remove("/common/new.tm.hcl");
    let output = repository.orch("list --changed --why --base HEAD");
    assert_snapshot!(output.stdout, @"glob  # changed: common/new.tm.hcl (uncommitted, deleted), imported (glob/stack.tm:3); at or below /");
}

/// A project with two stacks in which nothing counts that `entries` name, in the files of a directory.
fn ignoring(directory: &str, entries: &str) -> Repository {
    let sandbox = Sandbox::layout("a\na/b\nc");
    let text = format!(
        "orch {{\n  config {{\n    change_detection {{\n      ignore = [{entries}]\n    }}\n  }}\n}}\n"
    );
    sandbox.write(&format!("{directory}/ignore.tm"), text);
    Repository::of(sandbox)
}

#[track_caller]
fn assert_ignored(entry: &str, directory: &str, ignored: &[&str], counted: &[&str]) {
    let repository = ignoring(directory, &format!("{entry:?}"));
    for file in ignored {
        repository.write(file, "");
    }
    let output = repository.changed();
    assert!(
        output.stdout.is_empty(),
        "{entry} does not ignore\n{output}"
    );
    for file in counted {
        repository.write(file, "");
        let output = repository.changed().stdout;
        assert!(
            output.contains(&format!("{} (", &file[1..])),
            "{entry} ignores {file}\n{output}"
        );
        repository.remove(file);
    }
}

#[test]
fn files_are_ignored_by_name_anywhere_below() {
    assert_ignored(
        "*.md",
        "/",
        &["/a/x.md", "/a/b/.x.md", "/a/b/deep/er/x.md"],
        &["/a/x.mdx", "/c/md", "/c/x.md/y"],
    );
    assert_ignored("*.md", "/a", &["/a/x.md", "/a/b/x.md"], &["/c/x.md"]);
    assert_ignored(
        "README",
        "/",
        &["/a/README", "/a/b/docs/README"],
        &["/a/README.x", "/a/README-y/x"],
    );
    assert_ignored("{x,y}.??", "/", &["/a/x.aa", "/c/y.bb"], &["/a/z.aa"]);
}

#[test]
fn whole_directories_are_ignored() {
    assert_ignored(
        "docs/",
        "/",
        &["/a/docs/x", "/c/deep/docs/er/x"],
        &["/a/docs-2/x", "/c/docs"],
    );
    assert_ignored(
        "/a/docs/",
        "/",
        &["/a/docs/x"],
        &["/c/docs/x", "/a/b/docs/x"],
    );
    assert_ignored("/a/**", "/", &["/a/x", "/a/b/x"], &["/c/x"]);
    assert_ignored("b/**", "/a", &["/a/b/x"], &["/a/x", "/c/x"]);
    assert_ignored("./*.md", "/a", &["/a/x.md"], &["/a/b/x.md"]);
    assert_ignored(
        "**/test/**",
        "/",
        &["/a/test/x", "/a/b/deep/test/er/x"],
        &["/a/tests/x"],
    );
    assert_ignored("**", "/a", &["/a/x", "/a/b/x"], &["/c/x"]);
}

#[test]
fn change_detection_ignore_covers_a_repository_in_a_directory() {
    for entry in [
        "vendor/",
        "/a/vendor/**",
        "vendor",
        "/a/vendor/x/",
        "**/x/**",
    ] {
        let repository = ignoring("/", &format!("{entry:?}"));
        repository.git_init_at("/a/vendor/x");
        repository.write("/a/vendor/x/y", "");
        let is_ignored = entry != "vendor";
        assert_eq!(
            repository.changed().stdout.is_empty(),
            is_ignored,
            "{entry}"
        );
    }
}

#[test]
fn ignored_files_do_not_count_where_they_are_watched_or_imported() {
    let repository = Repository::new(
        r#"
//- /ignore.tm
orch {
  config {
    change_detection {
      ignore = ["x.tm.hcl", "*.md"]
    }
  }
}
//- /s/stack.tm
stack {
  watch = ["/lib/x.md", "/lib/**"]
}
import {
  source = "/lib/x.tm.hcl"
}
//- /lib/x.tm.hcl
globals {}
//- /lib/x.md
"#,
    );
    repository.write("/lib/x.tm.hcl", "globals {\n}\n");
    repository.write("/lib/x.md", "# changed\n");
    repository.write("/s/y.md", "# changed\n");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 373e805; 3 files differ that do not count
    ");
    repository.write("/lib/y", "# changed\n");
    assert_snapshot!(repository.changed(), @"s  # changed: lib/y (untracked), watched (s/stack.tm:2); at or below /");
}

#[test]
fn change_detection_ignore_rejects_invalid_globs() {
    let repository = ignoring(
        "/a",
        r#""!x", "../*.md", "/c/**", "/**/x", "[a", "*/../x", "../..", "", "/", ".", "../../../x""#,
    );
    assert_snapshot!(repository.orch("list --changed"), @r#"
    [stderr]
    error: `!x` cannot be ignored
     --> a/ignore.tm:4:17
      |
    4 |       ignore = ["!x", "../*.md", "/c/**", "/**/x", "[a", "*/../x", "../..", "", "/", ".", "../../../x"]
      |                 ^^^^ `!` does not re-include files
      |
      = help: list only globs of files to ignore

    error: `../*.md` cannot be ignored
     --> a/ignore.tm:4:23
      |
    4 |       ignore = ["!x", "../*.md", "/c/**", "/**/x", "[a", "*/../x", "../..", "", "/", ".", "../../../x"]
      |                       ^^^^^^^^^ lies outside `/a`
      |
      = help: write it in a file of that directory, or of one above it

    error: `/c/**` cannot be ignored
     --> a/ignore.tm:4:34
      |
    4 |       ignore = ["!x", "../*.md", "/c/**", "/**/x", "[a", "*/../x", "../..", "", "/", ".", "../../../x"]
      |                                  ^^^^^^^ lies outside `/a`
      |
      = help: write it in a file of that directory, or of one above it

    error: `/**/x` cannot be ignored
     --> a/ignore.tm:4:43
      |
    4 |       ignore = ["!x", "../*.md", "/c/**", "/**/x", "[a", "*/../x", "../..", "", "/", ".", "../../../x"]
      |                                           ^^^^^^^ lies outside `/a`
      |
      = help: write it in a file of that directory, or of one above it

    error: `[a` cannot be ignored
     --> a/ignore.tm:4:52
      |
    4 |       ignore = ["!x", "../*.md", "/c/**", "/**/x", "[a", "*/../x", "../..", "", "/", ".", "../../../x"]
      |                                                    ^^^^ unclosed character class; missing ']'
      |
      = help: `*` and `?` match within a name, `**` across directories, `{a,b}` either of two

    error: `*/../x` cannot be ignored
     --> a/ignore.tm:4:58
      |
    4 |       ignore = ["!x", "../*.md", "/c/**", "/**/x", "[a", "*/../x", "../..", "", "/", ".", "../../../x"]
      |                                                          ^^^^^^^^ `.` and `..` must come before the first wildcard
      |
      = help: `*` and `?` match within a name, `**` across directories, `{a,b}` either of two

    error: `../..` cannot be ignored
     --> a/ignore.tm:4:68
      |
    4 |       ignore = ["!x", "../*.md", "/c/**", "/**/x", "[a", "*/../x", "../..", "", "/", ".", "../../../x"]
      |                                                                    ^^^^^^^ `.` and `..` must come before the first wildcard
      |
      = help: `*` and `?` match within a name, `**` across directories, `{a,b}` either of two

    error: `` cannot be ignored
     --> a/ignore.tm:4:77
      |
    4 |       ignore = ["!x", "../*.md", "/c/**", "/**/x", "[a", "*/../x", "../..", "", "/", ".", "../../../x"]
      |                                                                             ^^ names no file
      |
      = help: for everything in a directory, write `**`

    error: `/` cannot be ignored
     --> a/ignore.tm:4:81
      |
    4 |       ignore = ["!x", "../*.md", "/c/**", "/**/x", "[a", "*/../x", "../..", "", "/", ".", "../../../x"]
      |                                                                                 ^^^ names no file
      |
      = help: for everything in a directory, write `**`

    error: `.` cannot be ignored
     --> a/ignore.tm:4:86
      |
    4 |       ignore = ["!x", "../*.md", "/c/**", "/**/x", "[a", "*/../x", "../..", "", "/", ".", "../../../x"]
      |                                                                                      ^^^ `.` and `..` must come before the first wildcard
      |
      = help: `*` and `?` match within a name, `**` across directories, `{a,b}` either of two

    error: `../../../x` cannot be ignored
     --> a/ignore.tm:4:91
      |
    4 |       ignore = ["!x", "../*.md", "/c/**", "/**/x", "[a", "*/../x", "../..", "", "/", ".", "../../../x"]
      |                                                                                           ^^^^^^^^^^^^ climbs above the project root
      |
      = help: `*` and `?` match within a name, `**` across directories, `{a,b}` either of two

    [exit status 3]
    "#);
}
