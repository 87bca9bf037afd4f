//! Which inputs `ignore_changes` leaves out.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::Sandbox;

fn ignoring(list: &str) -> Sandbox {
    let sandbox = Sandbox::new(
        r#"
//- /env.orch.hcl
orch {
  config {
    run {
      env {
        BUILD  = "1"
        REGION = "eu"
      }
    }
  }
}
//- /app/main.tf
module "tags" {
  source = "../modules/tags"
}
module "net" {
  source = "../modules/net"
}
//- /modules/tags/main.tf
# nothing
//- /modules/net/main.tf
locals {
  text = file("${path.module}/README.md")
}
//- /modules/net/README.md
hello
//- /policy.json
{}
//- /policies/a.json
{}
"#,
    );
    let block = format!(
        "stack {{\n  watch = [\"/policy.json\", \"/policies/*.json\"]\n\n  lifecycle {{\n    ignore_changes = {list}\n  }}\n}}\n"
    );
    sandbox.write("/app/stack.orch.hcl", block);
    sandbox
}

fn story(list: &str) -> Value {
    ignoring(list).orch("why app --format json").json()
}

/// What is left out of each input, by its place.
fn ignored(list: &str) -> Vec<(String, Value)> {
    let story = story(list);
    let inputs = story["inputs"].as_array().unwrap().iter();
    let ignored = inputs.filter(|input| !input["ignored"].is_null());
    let ignored = ignored.map(|input| {
        let place = input["place"].as_str().unwrap();
        (place.to_owned(), input["ignored"].clone())
    });
    ignored.collect()
}

#[test]
fn why_shows_the_ignored_inputs() {
    let list = "[\"**/*.md\", \"/modules/tags/**\", \"/policy.json\", env.BUILD, env.UNSET]";
    let sandbox = ignoring(list);
    assert_snapshot!(sandbox.orch("why app").stdout, @r"
    /app is selected
      at or below /

    its inputs (add --changed to see which have changed)
      /app, its own directory
        `ignore_changes` leaves out files that `**/*.md` matches
      /policy.json, watched (app/stack.orch.hcl:2)
        left out by `ignore_changes`
      /policies/*.json, watched (app/stack.orch.hcl:2)
      /modules/tags, module ../modules/tags (app/main.tf:2)
        left out by `ignore_changes`
      /modules/net, module ../modules/net (app/main.tf:5)
      /modules/net/README.md, module ../modules/net (app/main.tf:5), read by file (modules/net/main.tf:2)
      /env.orch.hcl, environment variable BUILD (env.orch.hcl:5)
      environment variable BUILD (env.orch.hcl:5)
        left out by `ignore_changes`

    its lifecycle rules
      ignore_changes: **/*.md, /modules/tags/**, /policy.json, env.BUILD, env.UNSET, app/stack.orch.hcl:5

    nothing runs before it

    nothing runs after it
    ");
}

#[test]
fn why_shows_inputs_ignored_entirely_or_by_entry() {
    let table = [
        ("[\"*.txt\"]", json!([["/app", ["*.txt"]]])),
        ("[\"docs/**\"]", json!([["/app", ["docs/**"]]])),
        (
            "[\"**\"]",
            json!([
                ["/app", true],
                ["/modules/tags", true],
                ["/modules/net", true],
                ["/modules/net/README.md", true]
            ]),
        ),
        (
            "[\"main.tf\"]",
            json!([
                ["/app", ["main.tf"]],
                ["/modules/tags", true],
                ["/modules/net", true],
                ["/modules/net/README.md", true]
            ]),
        ),
        ("[\"/policy.json\"]", json!([["/policy.json", true]])),
        ("[\"../policy.json\"]", json!([["/policy.json", true]])),
        (
            "[\"/policies/*.json\"]",
            json!([["/policies/*.json", true]]),
        ),
        (
            "[\"/policies/a.json\"]",
            json!([["/policies/*.json", ["/policies/a.json"]]]),
        ),
        (
            "[\"/modules/net/*.md\"]",
            json!([
                ["/modules/net", ["/modules/net/*.md"]],
                ["/modules/net/README.md", true]
            ]),
        ),
        ("[\"/modules/tags/**\"]", json!([["/modules/tags", true]])),
        (
            "[\"/modules/*/x/*.md\"]",
            json!([
                ["/modules/tags", ["/modules/*/x/*.md"]],
                ["/modules/net", ["/modules/*/x/*.md"]]
            ]),
        ),
        ("[\"/elsewhere/**\"]", json!([])),
        ("[env.BUILD]", json!([])),
        ("[]", json!([])),
    ];
    for (list, mut expected) in table {
        let mut expected: Vec<Value> = expected.as_array_mut().unwrap().drain(..).collect();
        let found = ignored(list).into_iter();
        let mut found: Vec<Value> = found.map(|(place, what)| json!([place, what])).collect();
        expected.sort_by_key(ToString::to_string);
        found.sort_by_key(ToString::to_string);
        assert_eq!(found, expected, "{list}");
    }
}

#[test]
fn why_shows_that_all_ignores_every_input() {
    let story = story("all");
    let inputs = story["inputs"].as_array().unwrap();
    assert!(inputs.len() > 5, "{story}");
    assert!(
        inputs.iter().all(|input| input["ignored"] == true),
        "{story}"
    );
    let variables = story["ignored_variables"].as_array().unwrap().iter();
    let names: Vec<&Value> = variables.map(|it| &it["name"]).collect();
    assert_eq!(names, ["BUILD", "REGION"]);
}

#[test]
fn why_shows_where_an_ignored_variable_is_set() {
    let story = |sandbox: &Sandbox| sandbox.orch("why app --format json").json();
    let sandbox = ignoring("[env.BUILD, env.UNSET]");
    let variables = &story(&sandbox)["ignored_variables"];
    assert_eq!(variables.as_array().unwrap().len(), 1, "{variables}");
    assert_eq!(
        (&variables[0]["name"], &variables[0]["file"]),
        (&json!("BUILD"), &json!("env.orch.hcl"))
    );
    assert_eq!(variables[0]["line"], 5);
    let env = "orch {\n  config {\n    run {\n      env {\n        BUILD = \"2\"\n      }\n    }\n  }\n}\n";
    sandbox.write("/app/env.orch.hcl", env);
    let variables = &story(&sandbox)["ignored_variables"];
    assert_eq!(variables[0]["file"], "app/env.orch.hcl");
    assert_eq!(variables.as_array().unwrap().len(), 1);
    assert!(story(&ignoring("[\"*.md\"]"))["ignored_variables"].is_null());
}
