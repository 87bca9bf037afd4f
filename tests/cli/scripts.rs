//! `orch script`: the blocks, which stacks have them, and their commands.

use insta::assert_snapshot;

use crate::support::Sandbox;

/// `deploy` is defined at the root, and again in `prod`; `check` only in `prod/db`.
const PROJECT: &str = r#"
//- /scripts.tm
terramate {
  config {
    experiments = ["scripts"]
  }
}
script "deploy" {
  name        = "Deployment"
  description = "deploys ${terramate.stack.name}"
  job {
    name     = "build"
    commands = [
      ["echo", "init"],
      ["echo", "plan", { sync_preview = true, terraform_plan_file = "out.tfplan" }],
    ]
  }
  job {
    command = ["echo", "apply", terramate.stack.path.absolute]
  }
}
//- /dev/stack.tm
stack {}
//- /prod/stack.tm
stack {}
//- /prod/script.tm
script "deploy" {
  lets {
    greeting = "hello ${let.who}"
  }
  lets {
    who = "${global.who}${env.SUFFIX}"
  }
  job {
    command = tm_concat(["echo"], [let.greeting])
  }
}
globals {
  who = "prod"
}
//- /prod/db/stack.tm
stack {}
//- /prod/db/script.tm
script "check" "all it has" {
  job {
    command = ["echo", "checked"]
  }
}
//- /lib/readme.tm
"#;

#[test]
fn script_list_shows_what_a_directory_knows() {
    let sandbox = Sandbox::new(PROJECT);
    assert_snapshot!(sandbox.orch("script list"), @r#"
    check 'all it has'
      Defined at /prod/db

    deploy
      Name: "Deployment"
      Description: "deploys ${terramate.stack.name}"
      Defined at /
        (+1 more)
    "#);
    assert_snapshot!(sandbox.orch_in("/dev", "script list"), @r#"
    deploy
      Name: "Deployment"
      Description: "deploys ${terramate.stack.name}"
      Defined at /
    "#);
    let json = sandbox.orch_in("/prod", "script list --format json").json();
    assert_eq!(json["format"], 1);
    assert_eq!(json["scripts"][1]["labels"], serde_json::json!(["deploy"]));
    assert_eq!(json["scripts"][1]["name"], "Deployment");
    assert_eq!(json["scripts"][1]["directory"], "/");
    assert_eq!(json["scripts"][1]["others"], 1);
}

#[test]
fn script_info_shows_each_definition_with_its_stacks() {
    let sandbox = Sandbox::new(PROJECT);
    assert_snapshot!(sandbox.orch("script info deploy"), @r#"
    Definition: /scripts.tm:6,1-19,2
    Name: "Deployment"
    Description: "deploys ${terramate.stack.name}"
    Stacks:
      /dev
    Jobs:
      Name: "build"
      * ["echo","init"]
        ["echo","plan",{ sync_preview = true, terraform_plan_file = "out.tfplan" }]
      * ["echo","apply",terramate.stack.path.absolute]

    Definition: /prod/script.tm:1,1-11,2
    Stacks:
      /prod
      /prod/db
    Jobs:
      * tm_concat(["echo"], [let.greeting])
    "#);
    let json = sandbox.orch_in("/prod/db", "script info --format json deploy");
    let json = json.json();
    assert_eq!(json["scripts"][0]["stacks"], serde_json::json!([]));
    assert_eq!(
        json["scripts"][1]["stacks"],
        serde_json::json!(["/prod/db"])
    );
    assert_eq!(json["scripts"][1]["line"], 1);
}

#[test]
fn script_tree_draws_stacks_with_their_own_and_inherited_scripts() {
    let sandbox = Sandbox::new(PROJECT);
    assert_snapshot!(sandbox.orch("script tree"), @r#"
    /
    │ * deploy:
    │     Name: "Deployment"
    │     Description: "deploys ${terramate.stack.name}"
    ├── #dev
    │     ~ deploy
    └── #prod
        │ * deploy:
        └── #db
              * check 'all it has':
              ~ deploy
    "#);
    assert_snapshot!(sandbox.orch_in("/prod/db", "script tree"), @r#"
    /
    │ * deploy:
    │     Name: "Deployment"
    │     Description: "deploys ${terramate.stack.name}"
    └── #prod
        │ * deploy:
        └── #db
              * check 'all it has':
              ~ deploy
    "#);
}

#[test]
fn script_that_is_defined_nowhere_is_an_error_with_a_suggestion() {
    let sandbox = Sandbox::new(PROJECT);
    assert_snapshot!(sandbox.orch("script info deplo"), @r"
    [stderr]
    error: no script `deplo`
      = help: did you mean `deploy`?
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("script info deploy it"), @r"
    [stderr]
    error: no script `deploy it`
      = help: did you mean `deploy`?
    [exit status 64]
    ");
    let none = Sandbox::layout("a");
    assert_snapshot!(none.orch("script info deploy"), @r"
    [stderr]
    error: no script `deploy`
      = help: no directory of the project has a `script` block
    [exit status 64]
    ");
    assert_snapshot!(none.orch("script list"), @r#""#);
}

#[test]
fn script_blocks_are_checked_with_their_places() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/scripts.tm",
        r#"script {
  nam = "x"
  jobs {
  }
}
script "a" "b" {
  job {
    command  = ["x"]
    commands = [["x"]]
  }
  job "label" {
    comand = ["x"]
    retry {
    }
  }
}
script "twice" {
  job {
    command = ["x"]
  }
  lets {
    a = 1
  }
  lets {
    a = 2
  }
}
script "same" {
  job {
    command = ["x"]
  }
}
script "same" {
  job {
    command = ["y"]
  }
}
script "" {
}
"#,
    );
    assert_snapshot!(sandbox.orch("script list"), @r#"
    [stderr]
    error: a script needs at least one `job`
     --> scripts.tm:1:1
      |
    1 | script {
      | ^^^^^^ in this block
      |
      = help: add `job { command = ["echo", "hello"] }`

    error: a script needs at least one label
     --> scripts.tm:1:1
      |
    1 | script {
      | ^^^^^^ there is none
      |
      = help: write it as in `script "deploy" { … }`

    error: unknown attribute `nam` in `script`
     --> scripts.tm:2:3
      |
    1 | script {
      | ------ in this block
    2 |   nam = "x"
      |   ^^^ not an attribute of `script`
      |
      = help: did you mean `name`?

    error: unknown block `jobs` in `script`
     --> scripts.tm:3:3
      |
    1 | script {
      | ------ in this block
    2 |   nam = "x"
    3 |   jobs {
      |   ^^^^ not a block of `script`
      |
      = help: did you mean `job`?

    error: a job has either `command` or `commands`
     --> scripts.tm:9:5
      |
    8 |     command  = ["x"]
      |     ------- here is the other
    9 |     commands = [["x"]]
      |     ^^^^^^^^ both are set
      |
      = help: remove one of them

    error: a job needs `command` or `commands`
      --> scripts.tm:11:3
       |
    11 |   job "label" {
       |   ^^^ in this block
       |
       = help: write `command = ["echo", "hello"]`

    error: a `job` block has no labels
      --> scripts.tm:11:7
       |
    11 |   job "label" {
       |       ^^^^^^^ unexpected label
       |
       = help: remove the label

    error: unknown attribute `comand` in `job`
      --> scripts.tm:12:5
       |
    11 |   job "label" {
       |   --- in this block
    12 |     comand = ["x"]
       |     ^^^^^^ not an attribute of `job`
       |
       = help: did you mean `command`?

    error: unknown block `retry` in `job`
      --> scripts.tm:13:5
       |
    13 |     retry {
       |     ^^^^^ `job` has only attributes

    error: `let.a` is set twice in one script
      --> scripts.tm:25:5
       |
    22 |     a = 1
       |     - first here
    ...
    25 |     a = 2
       |     ^ again here
       |
       = help: remove one of them

    error: the script `same` is defined twice in this directory
      --> scripts.tm:33:1
       |
    28 | script "same" {
       | ------ first here
    ...
    33 | script "same" {
       | ^^^^^^ again here
       |
       = help: rename one of them, or merge their jobs

    error: a script needs at least one `job`
      --> scripts.tm:38:1
       |
    38 | script "" {
       | ^^^^^^ in this block
       |
       = help: add `job { command = ["echo", "hello"] }`

    error: a label of a script cannot be empty
      --> scripts.tm:38:8
       |
    38 | script "" {
       |        ^^ this one is

    [exit status 3]
    "#);
}
