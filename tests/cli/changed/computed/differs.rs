//! Values that differ.

use insta::assert_snapshot;

use super::{env, globals};
use crate::support::Repository;

/// Two stacks three directories below a global that a variable uses through another global.
fn regions() -> Repository {
    let sandbox = Repository::prepare("org/team/eu/app\norg/team/us/app\nother");
    sandbox.write("/env.tm", env("REGION = tm_try(global.place, \"none\")"));
    sandbox.write("/org/globals.tm", globals("region = \"a\""));
    sandbox.write(
        "/org/team/globals.tm",
        globals("place = \"in ${global.region}\""),
    );
    sandbox.write("/org/team/us/globals.tm", globals("region = \"b\""));
    Repository::of(sandbox)
}

#[test]
fn changed_follows_a_global_of_a_directory_above() {
    let repository = regions();
    repository.write("/org/globals.tm", globals("region = \"secret\""));
    repository.commit();
    assert_snapshot!(repository.changed(), @"org/team/eu/app  # changed: org/globals.tm, environment variable REGION (env.tm:5), global.place (org/team/globals.tm:2), global.region (org/globals.tm:2); at or below /");
}

#[test]
fn changed_json_names_the_rule_the_variable_and_the_chain() {
    let repository = regions();
    repository.write("/org/globals.tm", globals("region = \"secret\""));
    let output = repository.orch("list --changed --base base --format json");
    assert!(!output.to_string().contains("secret"), "{output}");
    let reason = &output.json()["stacks"][0]["reasons"][0];
    assert_snapshot!(format!("{reason:#}"), @r#"
    {
      "change": "modified",
      "detail": "changed: org/globals.tm (uncommitted), environment variable REGION (env.tm:5), global.place (org/team/globals.tm:2), global.region (org/globals.tm:2)",
      "file": "org/globals.tm",
      "kind": "changed",
      "rule": "environment",
      "state": "uncommitted",
      "via": [
        {
          "detail": "environment variable REGION (env.tm:5)",
          "file": "env.tm",
          "kind": "environment",
          "line": 5,
          "name": "REGION"
        },
        {
          "detail": "global.place (org/team/globals.tm:2)",
          "file": "org/team/globals.tm",
          "kind": "global",
          "line": 2,
          "name": "global.place"
        },
        {
          "detail": "global.region (org/globals.tm:2)",
          "file": "org/globals.tm",
          "kind": "global",
          "line": 2,
          "name": "global.region"
        }
      ]
    }
    "#);
}

#[test]
fn changed_environment_is_traced_by_why() {
    let repository = regions();
    repository.write("/org/globals.tm", globals("region = \"c\""));
    assert_snapshot!(repository.orch("why org/team/eu/app --changed --base base"), @"
    /org/team/eu/app is selected
      changed: org/globals.tm (uncommitted), environment variable REGION (env.tm:5), global.place (org/team/globals.tm:2), global.region (org/globals.tm:2)
      at or below /

    its inputs, 1 of 4 changed since 7ede09e
      /org/globals.tm, environment variable REGION (env.tm:5), global.place (org/team/globals.tm:2), global.region (org/globals.tm:2)
        changed: org/globals.tm (uncommitted)
      /org/team/eu/app, its own directory
      /env.tm, environment variable REGION (env.tm:5)
      /org/team/globals.tm, environment variable REGION (env.tm:5), global.place (org/team/globals.tm:2)

    nothing runs before it

    nothing runs after it
    [stderr]
    base 7ede09e: --base base, which is HEAD itself
    ");
    assert_snapshot!(repository.orch("why org/team/us/app --changed --base base"), @"
    /org/team/us/app is not selected
      has not changed since 7ede09e

    its inputs, 0 of 4 changed since 7ede09e
      /org/team/us/app, its own directory
      /env.tm, environment variable REGION (env.tm:5)
      /org/team/globals.tm, environment variable REGION (env.tm:5), global.place (org/team/globals.tm:2)
      /org/team/us/globals.tm, environment variable REGION (env.tm:5), global.place (org/team/globals.tm:2), global.region (org/team/us/globals.tm:2)

    nothing runs before it

    nothing runs after it

    what would select it
      a change of one of its inputs, or `orch trigger /org/team/us/app`
    [stderr]
    base 7ede09e: --base base, which is HEAD itself
    ");
}

#[test]
fn changed_follows_a_root_variable_unless_overridden() {
    let sandbox = Repository::prepare("a\nb/c\nd");
    sandbox.write("/env.tm", env("A = \"1\""));
    sandbox.write("/b/env.tm", env("A = \"own\""));
    let repository = Repository::of(sandbox);
    repository.write("/env.tm", env("A = \"2\""));
    assert_snapshot!(repository.changed(), @"
    a  # changed: env.tm (uncommitted), environment variable A (env.tm:5); at or below /
    d  # changed: env.tm (uncommitted), environment variable A (env.tm:5); at or below /
    ");
    // The definition that overrides it is removed.
    repository.write("/env.tm", env("A = \"1\""));
    repository.remove("/b/env.tm");
    assert_snapshot!(repository.changed(), @"b/c  # changed: b/env.tm (uncommitted, deleted), environment variable A at the base (b/env.tm:5); at or below /");
}

#[test]
fn changed_counts_added_and_removed_variables() {
    let sandbox = Repository::prepare("a\nb");
    sandbox.write("/env.tm", env("A = \"1\""));
    let repository = Repository::of(sandbox);
    for text in ["A = \"1\"\nB = \"2\"", "", "A = unset", "A = null"] {
        repository.write("/env.tm", env(text));
        let found = repository.changed();
        assert_eq!(found.stdout.lines().count(), 2, "{text}: {found}");
    }
    repository.write("/env.tm", env(""));
    assert_snapshot!(repository.changed(), @"
    a  # changed: env.tm (uncommitted), environment variable A at the base (env.tm:5); at or below /
    b  # changed: env.tm (uncommitted), environment variable A at the base (env.tm:5); at or below /
    ");
    repository.remove("/env.tm");
    assert_snapshot!(repository.changed(), @"
    a  # changed: env.tm (uncommitted, deleted), environment variable A at the base (env.tm:5); at or below /
    b  # changed: env.tm (uncommitted, deleted), environment variable A at the base (env.tm:5); at or below /
    ");
}

#[test]
fn changed_names_a_deleted_file_of_globals() {
    let repository = regions();
    repository.remove("/org/globals.tm");
    assert_snapshot!(repository.changed(), @"org/team/eu/app  # changed: org/globals.tm (uncommitted, deleted), environment variable REGION (env.tm:5), global.place (org/team/globals.tm:2), global.region at the base (org/globals.tm:2); at or below /");
    repository.commit();
    assert_snapshot!(repository.changed(), @"org/team/eu/app  # changed: org/globals.tm (deleted), environment variable REGION (env.tm:5), global.place (org/team/globals.tm:2), global.region at the base (org/globals.tm:2); at or below /");
}

#[test]
fn changed_traces_labels_maps_and_objects() {
    let sandbox = Repository::prepare("a\nb");
    sandbox.write(
        "/env.tm",
        env("CIDR = global.network.cidr\nNAMES = tm_try(global.by_name.x.zone, \"\")"),
    );
    sandbox.write("/globals.tm", "globals \"network\" {\n  cidr = \"10\"\n}\n");
    sandbox.write(
        "/list.tm",
        globals("zones = [{ name = \"x\", zone = \"1\" }]"),
    );
    sandbox.write(
        "/map.tm",
        "globals {\n  map \"by_name\" {\n    for_each = global.zones\n    key = element.new.name\n    value = element.new\n  }\n}\n",
    );
    let repository = Repository::of(sandbox);
    repository.write("/b/more.tm", "globals \"network\" {\n  cidr = \"11\"\n}\n");
    repository.write("/globals.tm", "globals \"network\" {\n  cidr = \"12\"\n}\n");
    assert_snapshot!(repository.changed(), @"
    a  # changed: globals.tm (uncommitted), environment variable CIDR (env.tm:5), global.network.cidr (globals.tm:2); at or below /
    b  # changed: b/more.tm (untracked); at or below /
    ");
    repository.write("/globals.tm", "globals \"network\" {\n  cidr = \"10\"\n}\n");
    repository.write(
        "/list.tm",
        globals("zones = [{ name = \"x\", zone = \"2\" }]"),
    );
    assert_snapshot!(repository.changed(), @"
    a  # changed: list.tm (uncommitted), environment variable NAMES (env.tm:6), global.by_name (map.tm:2), global.zones (list.tm:2); at or below /
    b  # changed: b/more.tm (untracked); at or below /
    ");
}

#[test]
fn changed_counts_an_unset_global() {
    let sandbox = Repository::prepare("x/a\nb");
    sandbox.write("/env.tm", env("A = tm_try(global.a, \"none\")"));
    sandbox.write("/globals.tm", globals("a = \"1\""));
    let repository = Repository::of(sandbox);
    repository.write("/x/globals.tm", globals("a = unset"));
    assert_snapshot!(repository.changed(), @"x/a  # changed: x/globals.tm (untracked), environment variable A (env.tm:5), global.a (x/globals.tm:2); at or below /");
}

#[test]
fn changed_follows_an_imported_file_below_the_importing_directory() {
    let sandbox = Repository::prepare("x/a\nx/b\nc\nd");
    sandbox.write("/env.tm", env("A = tm_try(global.a, \"none\")"));
    sandbox.write("/shared/globals.hcl", globals("a = \"1\""));
    sandbox.write(
        "/x/import.tm",
        "import {\n  source = \"/shared/globals.hcl\"\n}\n",
    );
    sandbox.write(
        "/c/import.tm",
        "import {\n  source = \"/shared/globals.hcl\"\n}\n",
    );
    let repository = Repository::of(sandbox);
    repository.write("/shared/globals.hcl", globals("a = \"2\""));
    // The stack that imports the file itself is found by the rule for imports.
    assert_snapshot!(repository.changed(), @"
    c  # changed: shared/globals.hcl (uncommitted), imported (c/import.tm:2); at or below /
    x/a  # changed: shared/globals.hcl (uncommitted), environment variable A (env.tm:5), global.a (shared/globals.hcl:2); at or below /
    x/b  # changed: shared/globals.hcl (uncommitted), environment variable A (env.tm:5), global.a (shared/globals.hcl:2); at or below /
    ");
}

#[test]
fn changed_compares_errors_of_variables() {
    let sandbox = Repository::prepare("a");
    sandbox.write("/env.tm", env("A = global.missing"));
    let repository = Repository::of(sandbox);
    repository.write("/other.tm", globals("b = 1"));
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since b4eca0c
    ");
    repository.write("/other.tm", globals("missing = \"x\""));
    assert_snapshot!(repository.changed(), @"a  # changed: other.tm (untracked), environment variable A (env.tm:5), global.missing (other.tm:2); at or below /");
}

#[test]
fn changed_follows_tags_of_the_enclosing_stack() {
    let sandbox = Repository::prepare("p\np/a\np/b");
    sandbox.write(
        "/env.tm",
        env("TAGS = \"${tm_try(terramate.stack.parent.tags[0], \"\")}\""),
    );
    sandbox.write("/p/stack.tm", "stack {\n  tags = [\"x\"]\n}\n");
    let repository = Repository::of(sandbox);
    repository.write("/p/stack.tm", "stack {\n  tags = [\"y\"]\n}\n");
    assert_snapshot!(repository.changed(), @"
    p/a  # changed: p/stack.tm (uncommitted), environment variable TAGS (env.tm:5); at or below /
    p/b  # changed: p/stack.tm (uncommitted), environment variable TAGS (env.tm:5); at or below /
    ");
}

#[test]
fn changed_compares_hundreds_of_stacks() {
    let stacks: Vec<String> = (0..300)
        .map(|number| format!("s/{}/{number}", number % 7))
        .collect();
    let sandbox = Repository::prepare(&stacks.join("\n"));
    sandbox.write(
        "/env.tm",
        env("A = \"${global.a} ${terramate.stack.name}\""),
    );
    sandbox.write("/globals.tm", globals("a = \"1\""));
    sandbox.write("/s/3/globals.tm", globals("a = \"own\""));
    let repository = Repository::of(sandbox);
    repository.write("/globals.tm", globals("a = \"2\""));
    let found = repository.list("");
    let expected = (0..300).filter(|number| number % 7 != 3).count();
    assert_eq!(found.stdout.lines().count(), expected);
}

#[cfg(unix)]
#[test]
fn changed_follows_imports_through_a_link() {
    for (source, target, link) in [
        ("/cfg/l.hcl", "g.hcl", "/cfg/l.hcl"),
        ("/cfg/chain.hcl", "g.hcl", "/cfg/l.hcl"),
        ("/dir/g.hcl", "cfg", "/dir"),
    ] {
        let sandbox = Repository::prepare("a");
        sandbox.write("/i.tm", format!("import {{\n  source = \"{source}\"\n}}\n"));
        sandbox.write("/env.tm", env("V = global.v"));
        sandbox.write("/cfg/g.hcl", globals("v = \"1\""));
        sandbox.write("/cfg/chain.hcl", "import {\n  source = \"l.hcl\"\n}\n");
        sandbox.symlink(target, link);
        let repository = Repository::of(sandbox);
        repository.write("/cfg/g.hcl", globals("v = \"1\"\nw = \"1\""));
        let unchanged = repository.changed().to_string();
        assert!(unchanged.contains("no stack has changed"), "{unchanged}");
        repository.write("/cfg/g.hcl", globals("v = \"2\""));
        let place = if link == "/dir" {
            "dir/g.hcl"
        } else {
            "cfg/l.hcl"
        };
        assert_eq!(
            repository.changed().stdout.trim_end(),
            format!(
                "a  # changed: cfg/g.hcl (uncommitted), environment variable V (env.tm:5), global.v ({place}:2); at or below /"
            ),
        );
    }
}
