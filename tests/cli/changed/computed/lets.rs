//! Values that `lets` names.

use insta::assert_snapshot;

use super::globals;
use crate::support::Repository;

fn run(lets: &str, env: &str) -> String {
    format!(
        "orch {{\n  config {{\n    run {{\n      lets {{\n        {lets}\n      }}\n      env {{\n        {env}\n      }}\n    }}\n  }}\n}}\n"
    )
}

fn project() -> Repository {
    let sandbox = Repository::prepare("a\nb\nc");
    sandbox.write(
        "/run.orch.hcl",
        run(
            "place = \"in ${let.region}\"\n        region = global.region",
            "REGION = let.place",
        ),
    );
    sandbox.write("/g.tm", globals("region = \"eu\""));
    sandbox.write(
        "/b/run.orch.hcl",
        run("place = \"b\"", "REGION = let.place"),
    );
    Repository::of(sandbox)
}

#[test]
fn changed_follows_lets_into_the_environment() {
    let repository = project();
    repository.write(
        "/run.orch.hcl",
        run(
            "place = \"at ${let.region}\"\n        region = global.region",
            "REGION = let.place",
        ),
    );
    assert_snapshot!(repository.changed(), @"
    a  # changed: run.orch.hcl (uncommitted), environment variable REGION (run.orch.hcl:9), let.place (run.orch.hcl:5); at or below /
    c  # changed: run.orch.hcl (uncommitted), environment variable REGION (run.orch.hcl:9), let.place (run.orch.hcl:5); at or below /
    ");
    // Lets that reach no variable make no difference.
    repository.write(
        "/run.orch.hcl",
        run(
            "place = \"in ${let.region}\"\n        unused = 1\n        region = global.region",
            "REGION = let.place",
        ),
    );
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 5194126
    ");
    // Neither does another way to the same value.
    repository.write(
        "/run.orch.hcl",
        run("place = \"in eu\"", "REGION = let.place"),
    );
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 5194126
    ");
}

#[test]
fn changed_traces_a_change_through_lets() {
    let repository = project();
    repository.write("/g.tm", globals("region = \"us\""));
    assert_snapshot!(repository.changed(), @"
    a  # changed: g.tm (uncommitted), environment variable REGION (run.orch.hcl:9), let.place (run.orch.hcl:5), let.region (run.orch.hcl:6), global.region (g.tm:2); at or below /
    c  # changed: g.tm (uncommitted), environment variable REGION (run.orch.hcl:9), let.place (run.orch.hcl:5), let.region (run.orch.hcl:6), global.region (g.tm:2); at or below /
    ");
    let reason = &repository
        .orch("list --changed --base base --format json")
        .json()["stacks"][0]["reasons"][0];
    assert_eq!(reason["rule"], "environment");
    assert_eq!(reason["via"][1]["kind"], "let");
    assert_eq!(reason["via"][1]["name"], "let.place");
    assert_snapshot!(repository.orch("why a --changed --base base"), @"
    /a is selected
      changed: g.tm (uncommitted), environment variable REGION (run.orch.hcl:9), let.place (run.orch.hcl:5), let.region (run.orch.hcl:6), global.region (g.tm:2)
      at or below /

    its inputs, 1 of 3 changed since 5194126
      /g.tm, environment variable REGION (run.orch.hcl:9), let.place (run.orch.hcl:5), let.region (run.orch.hcl:6), global.region (g.tm:2)
        changed: g.tm (uncommitted)
      /a, its own directory
      /run.orch.hcl, environment variable REGION (run.orch.hcl:9)

    nothing runs before it

    nothing runs after it
    [stderr]
    base 5194126: --base base, which is HEAD itself
    ");
}

#[test]
fn changed_names_a_removed_let_of_the_base() {
    let repository = project();
    repository.write(
        "/run.orch.hcl",
        run(
            "place = \"in ${tm_try(let.region, \"none\")}\"",
            "REGION = let.place",
        ),
    );
    repository.commit();
    repository.git("update-ref refs/tags/base HEAD");
    repository.write("/z.orch.hcl", "orch {\n  config {\n    run {\n      lets {\n        region = \"us\"\n      }\n    }\n  }\n}\n");
    assert_snapshot!(repository.changed(), @"
    a  # changed: z.orch.hcl (untracked), environment variable REGION (run.orch.hcl:8), let.place (run.orch.hcl:5), let.region (z.orch.hcl:5); at or below /
    c  # changed: z.orch.hcl (untracked), environment variable REGION (run.orch.hcl:8), let.place (run.orch.hcl:5), let.region (z.orch.hcl:5); at or below /
    ");
    repository.commit();
    repository.git("update-ref refs/tags/base HEAD");
    repository.remove("/z.orch.hcl");
    assert_snapshot!(repository.changed(), @"
    a  # changed: z.orch.hcl (uncommitted, deleted), environment variable REGION (run.orch.hcl:8), let.place (run.orch.hcl:5), let.region at the base (z.orch.hcl:5); at or below /
    c  # changed: z.orch.hcl (uncommitted, deleted), environment variable REGION (run.orch.hcl:8), let.place (run.orch.hcl:5), let.region at the base (z.orch.hcl:5); at or below /
    ");
}

#[test]
fn changed_follows_a_file_read_by_a_let() {
    let sandbox = Repository::prepare("a\nb");
    sandbox.write("/text", "1");
    sandbox.write(
        "/run.orch.hcl",
        run("text = tm_file(\"../text\")", "TEXT = let.text"),
    );
    let repository = Repository::of(sandbox);
    repository.write("/text", "2");
    assert_snapshot!(repository.changed(), @"
    a  # changed: text (uncommitted), environment variable TEXT (run.orch.hcl:8), let.text (run.orch.hcl:5), read by tm_file (run.orch.hcl:5); at or below /
    b  # changed: text (uncommitted), environment variable TEXT (run.orch.hcl:8), let.text (run.orch.hcl:5), read by tm_file (run.orch.hcl:5); at or below /
    ");
}

#[test]
fn changed_follows_a_let_with_the_list_of_stacks() {
    let sandbox = Repository::prepare("a");
    sandbox.write(
        "/a/run.orch.hcl",
        run("all = tm_join(\" \", orch.stacks.list)", "ALL = let.all"),
    );
    let repository = Repository::of(sandbox);
    repository.write("/z/stack.tm", "stack {\n}\n");
    assert_snapshot!(repository.changed(), @"
    a  # changed: z/stack.tm (untracked), environment variable ALL (a/run.orch.hcl:8), let.all (a/run.orch.hcl:5), the list of all stacks (a/run.orch.hcl:5); at or below /
    z  # changed: z/stack.tm (untracked); at or below /
    ");
}
