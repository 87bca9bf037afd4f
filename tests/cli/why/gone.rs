//! Stacks that are recorded and not in the project: what a plan would do with them, as far as the record tells.

use std::fmt::Write as _;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Output, Repository};

const ROOT: &str = r#"orch {
  config {
    driver = "fake"
    state {
      project = "acme"
    }
  }
}
driver "fake" {
  apply   = ["true"]
  destroy = ["true", "${terramate.stack.name}"]
}
"#;

const DOCUMENT: &str = "/.orch/state/default.json";

/// A repository with these stacks, all of which are recorded as applied at HEAD.
fn adopted(stacks: &str) -> Repository {
    let sandbox = Repository::prepare(stacks);
    sandbox.write("/root.orch.hcl", ROOT);
    let repository = Repository::of(sandbox);
    for command in ["state init", "state adopt --no-verify"] {
        assert_eq!(repository.orch(command).code(), 0);
    }
    repository
}

/// Removes directories in one commit.
#[track_caller]
fn remove(repository: &Repository, directories: &str) {
    repository.git(&format!("rm -q -r {directories}"));
    repository.commit();
    let head = repository.git("rev-parse --short=7 HEAD");
    repository.learn(head.trim(), "[commit]");
}

#[track_caller]
fn done(repository: &Repository, arguments: &str) -> Output {
    let output = repository.orch(arguments);
    assert_eq!(output.code(), 0, "{output}");
    output
}

/// What the text says from the status on.
#[track_caller]
fn told(repository: &Repository, stack: &str) -> String {
    let why = done(repository, &format!("why {stack}")).stdout;
    let lines = why.lines().skip_while(|line| !line.starts_with("status"));
    lines.collect::<Vec<&str>>().join("\n")
}

/// What the document says about the only stack of that name.
#[track_caller]
fn data(repository: &Repository, stack: &str) -> Value {
    let why = done(repository, &format!("why {stack} --format json")).json();
    assert_eq!(why["missing"].as_array().unwrap().len(), 1, "{why}");
    why["missing"][0].clone()
}

/// The stacks that a plan over all stacks destroys, in its order.
#[track_caller]
fn destroyed(repository: &Repository) -> Vec<String> {
    let plan = done(repository, "plan --format json").json();
    let operations = plan["operations"].as_array().unwrap().iter();
    let destroyed = operations.filter(|operation| operation["operation"] == "destroy");
    destroyed
        .map(|operation| operation["path"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn why_lists_stacks_destroyed_together_in_plan_order() {
    let repository = adopted("a\nb after /a\nc after /b\nd after /a\ne\nkept");
    remove(&repository, "a b c d e");
    assert_snapshot!(told(&repository, "/b"), @"
    status   removed in [commit]
    plan     destroyed first: /c
             then: this stack
             then: /a
    ");
    assert_snapshot!(told(&repository, "/e"), @"
    status   removed in [commit]
    plan     destroyed
    ");
    let plan = destroyed(&repository);
    assert_eq!(plan.len(), 5);
    for (stack, with) in [
        ("/a", &["/a", "/b", "/c", "/d"][..]),
        ("/b", &["/a", "/b", "/c"]),
        ("/c", &["/a", "/b", "/c"]),
        ("/d", &["/a", "/d"]),
        ("/e", &["/e"]),
    ] {
        let mut order = plan.clone();
        order.retain(|path| with.contains(&path.as_str()));
        let data = data(&repository, stack);
        assert_eq!(data["order"], json!(order), "{stack}");
        assert_eq!(data["actions"], json!(["delete"]));
        assert_eq!(
            (&data["blocked"], &data["used_by"]),
            (&json!(null), &json!([]))
        );
    }
}

#[test]
fn why_names_dependents_that_block_a_removal() {
    let repository = adopted("a\nb after /a\nweb after /b\napp after /b\nlast after /web");
    remove(&repository, "a b");
    assert_snapshot!(told(&repository, "/b"), @"
    status   removed in [commit]
    plan     destroyed first: this stack
             then: /a
    used by  /app, which is kept
             /web, which is kept
    ");
    assert_eq!(data(&repository, "/b")["used_by"], json!(["/app", "/web"]));
    // What goes before it tells of its own users.
    assert_eq!(data(&repository, "/a")["used_by"], json!([]));
    assert_eq!(data(&repository, "/a")["order"], json!(["/b", "/a"]));
    assert_eq!(destroyed(&repository), ["/b", "/a"]);
}

#[test]
fn why_shows_that_an_absent_dependent_blocks_a_removal() {
    let repository = adopted("a\nb after /a\nc after /b\nkept");
    remove(&repository, "a b");
    repository.git("rm -q -r c");
    assert_snapshot!(told(&repository, "/b"), @"
    status   removed in [commit]
    blocked  /c runs after it, and is kept
    fix      `orch why /c` shows why that stack is kept
    used by  /c, which is kept
    ");
    assert_snapshot!(told(&repository, "/a"), @"
    status   removed in [commit]
    blocked  /b runs after it, and is kept
    fix      `orch why /b` shows why that stack is kept
    used by  /b, which is kept
    ");
    assert_snapshot!(told(&repository, "/c"), @"
    status   absent: its deletion is not committed
    fix      commit the deletion, or restore the files
    ");
    for (stack, user) in [
        ("/a", json!(["/b"])),
        ("/b", json!(["/c"])),
        ("/c", json!([])),
    ] {
        let data = data(&repository, stack);
        assert_eq!(data["used_by"], user, "{stack}");
        assert_eq!(
            (&data["actions"], &data["order"]),
            (&json!(["no-op"]), &json!([]))
        );
        assert_eq!(data["blocked"].is_null(), stack == "/c", "{stack}");
    }
    assert!(destroyed(&repository).is_empty());
    repository.commit();
    assert_eq!(data(&repository, "/b")["order"], json!(["/c", "/b", "/a"]));
    assert_eq!(destroyed(&repository), ["/c", "/b", "/a"]);
}

#[test]
fn why_shows_that_a_stack_without_resources_is_only_forgotten() {
    let repository = adopted("a\nb after /a\nc after /a\nkept");
    let mut document: Value = serde_json::from_str(&repository.read(DOCUMENT)).unwrap();
    document["stacks"]["/b"]["driver"] = json!("none");
    document["stacks"]["/c"]["mode"] = json!("read");
    repository.write(DOCUMENT, document.to_string());
    remove(&repository, "a b c");
    assert_snapshot!(told(&repository, "/b"), @"
    status   removed in [commit]
    plan     removed from the state; nothing is destroyed
    ");
    assert_eq!(data(&repository, "/b")["actions"], json!(["forget"]));
    assert_eq!(data(&repository, "/c")["actions"], json!(["forget"]));
    assert_eq!(data(&repository, "/a")["order"], json!(["/a"]));
    assert_eq!(data(&repository, "/a")["used_by"], json!([]));
}

#[test]
fn why_cuts_a_long_destroy_order_around_the_stack() {
    let mut stacks = "kept\ns00\n".to_owned();
    for number in 1..30 {
        _ = writeln!(stacks, "s{number:02} after /s{:02}", number - 1);
    }
    let repository = adopted(stacks.trim_end());
    let names: Vec<String> = (0..30).map(|number| format!("s{number:02}")).collect();
    remove(&repository, &names.join(" "));
    assert_snapshot!(told(&repository, "/s14"), @"
    status   removed in [commit]
    plan     destroyed after 5 more, listed by --format json
             then: /s24
             then: /s23
             then: /s22
             then: /s21
             then: /s20
             then: /s19
             then: /s18
             then: /s17
             then: /s16
             then: /s15
             then: this stack
             then: /s13
             then: /s12
             then: /s11
             then: /s10
             then: /s09
             then: /s08
             then: /s07
             then: /s06
             then: /s05
             then: /s04
             then: 4 more, listed by --format json
    ");
    let order: Vec<String> = names.iter().rev().map(|name| format!("/{name}")).collect();
    assert_eq!(data(&repository, "/s14")["order"], json!(order));
    assert_eq!(told(&repository, "/s29").lines().count(), 13);
    assert_eq!(told(&repository, "/s00").lines().count(), 13);
}

#[test]
fn why_does_not_list_kept_stacks_as_destroyed() {
    let drivers = ROOT.to_owned()
        + "driver \"lasting\" {\n  apply = [\"true\"]\n}\n"
        + "driver \"nameless\" {\n  apply = [\"true\"]\n  destroy = [\"true\"]\n}\n"
        + "driver \"placed\" {\n  apply = [\"true\"]\n  destroy = [\"true\"]\n  backend = \"place ${terramate.stack.name}\"\n}\n";
    let sandbox = Repository::prepare("gone");
    sandbox.write("/root.orch.hcl", drivers);
    for (path, driver) in [
        ("/kept", "nameless"),
        ("/lasting", "lasting"),
        ("/other", "placed"),
        ("/placed", "placed"),
        ("/same", "nameless"),
    ] {
        let block = format!("stack {{\n  driver = \"{driver}\"\n}}\n");
        sandbox.write(&format!("{path}/stack.orch.hcl"), block);
    }
    let repository = Repository::of(sandbox);
    for command in ["state init", "state adopt"] {
        assert_eq!(repository.orch(command).code(), 0);
    }
    let mut document: Value = serde_json::from_str(&repository.read(DOCUMENT)).unwrap();
    document["stacks"]["/placed"]["backend"] = json!("place other");
    repository.write(DOCUMENT, document.to_string());
    remove(&repository, "gone lasting placed same");
    let plan = done(&repository, "plan --format json").json();
    let blocked = |path: &str| {
        let mut entries = plan["stacks"].as_array().unwrap().iter();
        let entry = entries.find(|entry| entry["path"] == path);
        entry.unwrap()["blocked"].clone()
    };
    assert_eq!(blocked("/gone"), Value::Null);
    for path in ["/gone", "/lasting", "/placed", "/same"] {
        let why = data(&repository, path);
        assert_eq!(why["blocked"]["detail"], blocked(path), "{path}");
        assert_eq!(why["order"] == json!([]), path != "/gone", "{path}");
    }
    assert_snapshot!(told(&repository, "/placed"), @"
    status   removed in [commit]
    blocked  it has the same backend as /other, which is in the project
    fix      if its resources belong to that stack now, run `orch state forget`
    ");
}
