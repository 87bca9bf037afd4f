//! Configuration files count by what they say: comments, and settings that are no inputs, change nothing.

use insta::assert_snapshot;

use crate::support::Repository;

fn repository() -> Repository {
    let sandbox = Repository::prepare("a\nb\nm");
    sandbox.write("/b/main.tf", "module \"m\" {\n  source = \"../m\"\n}\n");
    Repository::of(sandbox)
}

#[test]
fn changed_ignores_comments_tags_order_and_descriptions() {
    let repository = repository();
    for text in [
        "# why\nstack {}\n",
        "stack {\n}\n",
        "stack {\n  tags = [\"t\"]\n}\n",
        "stack {\n  description = \"d\"\n  after = [\"/b\"]\n}\n",
        "stack {\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n",
    ] {
        repository.write("/a/stack.tm", text);
        let found = repository.changed();
        assert_eq!(found.stdout, "", "{text}: {found}");
    }
    repository.commit();
    let found = repository.changed();
    assert_eq!(found.stdout, "", "{found}");
    repository.write("/a/stack.tm", "stack {\n  name = \"other\"\n}\n");
    assert_snapshot!(repository.changed(), @"a  # changed: a/stack.tm; at or below /");
}

#[test]
fn changed_ignores_a_new_file_without_effect() {
    let repository = repository();
    repository.write("/a/more.tm.hcl", "# nothing yet\n");
    let found = repository.changed();
    assert_eq!(found.stdout, "", "{found}");
}

#[test]
fn changed_compares_modules_by_bytes() {
    let repository = repository();
    repository.write("/m/stack.tm", "# why\nstack {}\n");
    assert_snapshot!(repository.changed(), @"b  # changed: m/stack.tm (uncommitted), module ../m (b/main.tf:2); at or below /");
}

#[test]
fn changed_ignores_permissions_of_configuration_files() {
    let repository = repository();
    for text in [
        repository.read("/a/stack.tm"),
        "# why\nstack {}\n".to_owned(),
    ] {
        repository.write_program("/a/stack.tm", &text);
        let found = repository.changed();
        assert_eq!(found.stdout, "", "{text}: {found}");
    }
}

#[test]
fn changed_without_effect_is_shown_by_why() {
    let repository = repository();
    repository.write("/a/stack.tm", "stack {\n  tags = [\"t\"]\n}\n");
    assert_snapshot!(repository.orch("why a --changed --base base"), @"
    /a is not selected
      has not changed since e35570d

    its inputs, 0 of 1 changed since e35570d
      /a, its own directory
        differs, but does not count: a/stack.tm (uncommitted), only in comments, layout or settings that are no inputs

    nothing runs before it

    nothing runs after it

    what would select it
      a change of one of its inputs, or `orch trigger /a`
    [stderr]
    base e35570d: --base base, which is HEAD itself
    ");
    assert_snapshot!(repository.list(""), @"
    [stderr]
    note: no stack has changed since e35570d; 1 file differs that does not count
    ");
}

#[test]
fn changed_finds_a_committed_change_behind_an_uncounted_one() {
    let repository = repository();
    repository.write("/a/stack.tm", "stack {\n  name = \"other\"\n}\n");
    repository.commit();
    repository.write("/a/stack.tm", "# why\nstack {}\n");
    let found = repository.list("--disable-change-detection=git-uncommitted");
    assert_snapshot!(found, @"a  # changed: a/stack.tm; at or below /");
}

#[test]
fn changed_counts_a_variable_computed_from_a_tag() {
    let sandbox = Repository::prepare("a");
    sandbox.write(
        "/env.tm",
        "terramate {\n  config {\n    run {\n      env {\n        TAGS = tm_join(\",\", terramate.stack.tags)\n      }\n    }\n  }\n}\n",
    );
    sandbox.write("/tags", "x");
    sandbox.write(
        "/a/stack.tm",
        "stack {\n  tags = [tm_file(\"../tags\")]\n}\n",
    );
    let repository = Repository::of(sandbox);
    repository.write("/tags", "y");
    assert_snapshot!(repository.changed(), @"a  # changed: tags (uncommitted), environment variable TAGS (env.tm:5); at or below /");
}
