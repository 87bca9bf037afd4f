//! `orch script`: the blocks, which stacks have them, and their commands.

use insta::assert_snapshot;

use serde_json::{Value, json};

use crate::support::{Repository, Sandbox, journal, journal_of, run_ids, said};

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
    assert_eq!(json["scripts"][1]["labels"], json!(["deploy"]));
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
    assert_eq!(json["scripts"][0]["stacks"], json!([]));
    assert_eq!(json["scripts"][1]["stacks"], json!(["/prod/db"]));
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
#[expect(clippy::too_many_lines, reason = "the messages are long")]
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

#[test]
fn script_run_runs_the_commands_of_each_stack_in_order() {
    let sandbox = Sandbox::new(PROJECT);
    let with = |arguments: &str, suffix: &str| {
        sandbox.orch_with(arguments, |orch| _ = orch.env("SUFFIX", suffix))
    };
    assert_snapshot!(with("script run deploy", "!"), @r"
    init
    plan
    apply /dev
    hello prod!
    hello prod!
    [stderr]
    orch: /dev: echo init
    orch: /dev: echo plan
    orch: /dev: echo apply /dev
    orch: /prod: echo 'hello prod!'
    orch: /prod/db: echo 'hello prod!'
    orch: 3 succeeded in [time]
    ");
    assert_snapshot!(with("script run --dry-run --reverse deploy", "?"), @r"
    /prod/db: echo 'hello prod?'
    /prod: echo 'hello prod?'
    /dev: echo init
    /dev: echo plan
    /dev: echo apply /dev
    ");
    assert_snapshot!(sandbox.orch("script run -q check 'all it has'"), @r"checked");
    assert_snapshot!(with("script run -j 4 deploy --match /dev", ""), @r"
    init
    plan
    apply /dev
    [stderr]
    orch: /dev: succeeded in [time]
    orch: 1 succeeded in [time]
    ");
}

#[test]
#[expect(clippy::too_many_lines, reason = "the messages are long")]
fn script_run_evaluates_all_stacks_before_the_first_command() {
    let sandbox = Sandbox::new(PROJECT);
    let output = sandbox.orch("script run deploy");
    assert_snapshot!(output, @r#"
    [stderr]
    error: the environment has no variable `SUFFIX`
     --> prod/script.tm:6:31
      |
    6 |     who = "${global.who}${env.SUFFIX}"
      |                               ^^^^^^ `env` is the environment that orch was started in
    ...
    9 |     command = tm_concat(["echo"], [let.greeting])
      |               ----------------------------------- needed here
      |
      = note: evaluated for stack `/prod` and 1 more
      = help: set `SUFFIX` before running orch

    [exit status 3]
    "#);
    sandbox.write(
        "/bad.tm",
        r#"script "empty" {
  name = 1
  job {
    command = []
  }
  job {
    commands = []
  }
  job {
    command = ["", "x"]
  }
  job {
    commands = [["ok"], "no", ["a", 1, "b"], ["a", 1]]
  }
  job {
    command = let.nothing
  }
}
script "options" {
  job {
    commands = [
      ["a", { sync_deploymnt = true }],
      ["a", { layer = 1, terraform_plan_file = "a", tofu_plan_file = "b" }],
      ["a", { sync_deployment = true }],
      ["a", { cloud_sync_deployment = true, sync_preview = false }],
    ]
  }
}
"#,
    );
    assert_snapshot!(sandbox.orch("script run empty --match /dev"), @r#"
    [stderr]
    error: `name` must be a string
     --> bad.tm:2:10
      |
    2 |   name = 1
      |          ^ this is a number
      |
      = note: evaluated for stack `/dev`

    error: a command needs at least the name of a program
     --> bad.tm:4:15
      |
    4 |     command = []
      |               ^^ this names none
      |
      = note: evaluated for stack `/dev`
      = help: write it as in `command = ["terraform", "apply"]` or `commands = [["terraform", "init"], ["terraform", "apply"]]`

    error: `commands` must be a list of commands
     --> bad.tm:7:16
      |
    7 |     commands = []
      |                ^^ there is none
      |
      = note: evaluated for stack `/dev`
      = help: write it as in `command = ["terraform", "apply"]` or `commands = [["terraform", "init"], ["terraform", "apply"]]`

    error: the name of the program is empty
      --> bad.tm:10:15
       |
    10 |     command = ["", "x"]
       |               ^^^^^^^^^ this is an empty string
       |
       = note: evaluated for stack `/dev`
       = help: write it as in `command = ["terraform", "apply"]` or `commands = [["terraform", "init"], ["terraform", "apply"]]`

    error: a command must be a list of strings
      --> bad.tm:13:25
       |
    13 |     commands = [["ok"], "no", ["a", 1, "b"], ["a", 1]]
       |                         ^^^^ this is a string
       |
       = note: evaluated for stack `/dev`
       = help: write it as in `command = ["terraform", "apply"]` or `commands = [["terraform", "init"], ["terraform", "apply"]]`

    error: a command must be a list of strings
      --> bad.tm:13:37
       |
    13 |     commands = [["ok"], "no", ["a", 1, "b"], ["a", 1]]
       |                                     ^ this is a number
       |
       = note: evaluated for stack `/dev`
       = help: write it as in `command = ["terraform", "apply"]` or `commands = [["terraform", "init"], ["terraform", "apply"]]`

    error: a command must be a list of strings
      --> bad.tm:13:52
       |
    13 |     commands = [["ok"], "no", ["a", 1, "b"], ["a", 1]]
       |                                                    ^ this is a number
       |
       = note: evaluated for stack `/dev`
       = help: write it as in `command = ["terraform", "apply"]` or `commands = [["terraform", "init"], ["terraform", "apply"]]`

    error: no `let.nothing`
      --> bad.tm:16:19
       |
    16 |     command = let.nothing
       |                   ^^^^^^^ not in the `lets` of this script
       |
       = note: evaluated for stack `/dev`

    [exit status 3]
    "#);
    assert_snapshot!(sandbox.orch("script run options --match /dev"), @r#"
    [stderr]
    error: unknown option `sync_deploymnt` of a command
      --> bad.tm:22:13
       |
    22 |       ["a", { sync_deploymnt = true }],
       |             ^^^^^^^^^^^^^^^^^^^^^^^^^ not an option
       |
       = note: evaluated for stack `/dev`
       = help: did you mean `sync_deployment`?

    error: a command cannot have both `terraform_plan_file` and `tofu_plan_file`
      --> bad.tm:23:13
       |
    23 |       ["a", { layer = 1, terraform_plan_file = "a", tofu_plan_file = "b" }],
       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ both are here
       |
       = note: evaluated for stack `/dev`

    error: the option `layer` must be a string
      --> bad.tm:23:13
       |
    23 |       ["a", { layer = 1, terraform_plan_file = "a", tofu_plan_file = "b" }],
       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ this is a number
       |
       = note: evaluated for stack `/dev`

    error: only one command of a script can have `sync_deployment`
      --> bad.tm:25:13
       |
    24 |       ["a", { sync_deployment = true }],
       |             -------------------------- the first one
    25 |       ["a", { cloud_sync_deployment = true, sync_preview = false }],
       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a second one
       |
       = note: evaluated for stack `/dev`

    [exit status 3]
    "#);
}

#[test]
fn script_run_of_no_script_is_an_error_and_of_no_stack_a_note() {
    let sandbox = Sandbox::new(PROJECT);
    assert_snapshot!(sandbox.orch("script run deplyo"), @r"
    [stderr]
    error: no script `deplyo`
      = help: did you mean `deploy`?
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch_in("/dev", "script run check 'all it has'"), @r"
    [stderr]
    note: no selected stack has the script `check 'all it has'`, which is defined in prod/db/script.tm:1
    ");
    assert_eq!(
        sandbox
            .orch_in("/dev", "script run --fail-if-empty check 'all it has'")
            .code(),
        4
    );
    assert_snapshot!(sandbox.orch("script run"), @r"
    [stderr]
    error: the following required arguments were not provided:
      <LABEL>...

    Usage: orch script run [OPTIONS] LABEL…
           orch script run [OPTIONS] --resume [RUN]

    For more information, try '--help'.
    [exit status 64]
    ");
}

/// A script of three commands, of which the second fails in `b` if there is a file `fail`.
const FAILING: &str = r#"
//- /script.tm
script "up" {
  job {
    command = ["sh", "-c", "echo one-$ORCH_STACK_NAME >> ../ran"]
  }
  job {
    name     = "rest"
    commands = [
      ["sh", "-c", "[ ! -e fail ]"],
      ["sh", "-c", "echo three-$ORCH_STACK_NAME >> ../ran"],
    ]
  }
}
//- /a/stack.tm
stack {}
//- /b/stack.tm
stack {}
//- /b/fail
//- /c/stack.tm
stack {}
"#;

fn ran(sandbox: &Sandbox) -> String {
    let ran = sandbox.read("/ran").replace('\n', " ");
    sandbox.write("/ran", "");
    ran.trim_end().to_owned()
}

#[test]
fn script_run_records_commands_as_steps_and_is_resumed() {
    let sandbox = Sandbox::new(FAILING);
    let failed = sandbox.orch("script run up");
    assert_snapshot!(failed, @r"
    [stderr]
    orch: /a: sh -c 'echo one-$ORCH_STACK_NAME >> ../ran'
    orch: /a: sh -c '[ ! -e fail ]'
    orch: /a: sh -c 'echo three-$ORCH_STACK_NAME >> ../ran'
    orch: /b: sh -c 'echo one-$ORCH_STACK_NAME >> ../ran'
    orch: /b: sh -c '[ ! -e fail ]'
    orch: cancelled /c: the run stopped when /b failed
    orch: failed /b: exit status 1 after [time]
    orch: 1 succeeded, 1 failed, 1 cancelled in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
    assert_eq!(ran(&sandbox), "one-a three-a one-b");
    let lines = journal(&sandbox);
    assert_eq!(lines[0]["script"], json!(["up"]));
    assert_eq!(lines[0]["command"], json!(["orch", "script", "run", "up"]));
    let steps = lines.iter().filter(|line| line["event"] == "step-started");
    let steps: Vec<(&Value, &Value)> = steps.map(|it| (&it["stack"], &it["step"])).collect();
    assert_eq!(
        steps,
        [
            (&json!("/a"), &json!(2)),
            (&json!("/a"), &json!(3)),
            (&json!("/b"), &json!(2))
        ]
    );
    let show = sandbox.orch("runs show");
    assert!(show.stdout.contains("orch script run up"), "{show}");
    sandbox.remove("/b/fail");
    let resumed = sandbox.orch("script run --resume");
    assert_snapshot!(resumed, @r"
    [stderr]
    orch: /b: sh -c 'echo one-$ORCH_STACK_NAME >> ../ran'
    orch: /b: sh -c '[ ! -e fail ]'
    orch: /b: sh -c 'echo three-$ORCH_STACK_NAME >> ../ran'
    orch: /c: sh -c 'echo one-$ORCH_STACK_NAME >> ../ran'
    orch: /c: sh -c '[ ! -e fail ]'
    orch: /c: sh -c 'echo three-$ORCH_STACK_NAME >> ../ran'
    orch: 2 succeeded in [time]
    ");
    assert_eq!(ran(&sandbox), "one-b three-b one-c three-c");
    let newest = run_ids(&sandbox).pop().unwrap();
    let text = sandbox.read(&journal_of(&newest));
    assert!(text.contains(r#""resumes":""#), "{text}");
}

#[test]
fn script_run_continues_in_other_stacks_if_asked_and_keeps_output() {
    let sandbox = Sandbox::new(FAILING);
    let output = sandbox.orch("script run up --continue-on-error -j 2 --report out.xml");
    assert_eq!(output.code(), 1, "{output}");
    assert!(!ran(&sandbox).contains("three-b"));
    assert!(sandbox.read("/out.xml").contains("orch script run up"));
}

#[test]
fn script_run_finds_programs_first_unless_a_command_makes_them() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/script.tm",
        r#"script "make" {
  job {
    commands = [
      ["sh", "-c", "printf '#!/bin/sh\\necho made\\n' > made; chmod +x made"],
      ["./made"],
    ]
  }
}
script "none" {
  job {
    commands = [["echo", "hello"], ["no-such-program"]]
  }
}
"#,
    );
    assert_snapshot!(sandbox.orch("script run -q make"), @r"made");
    assert_snapshot!(sandbox.orch("script run none"), @r"
    [stderr]
    error: program `no-such-program` was not found in the PATH
    note: needed in stack `/a`; nothing was run
    [exit status 5]
    ");
}

#[test]
fn script_run_inside_of_a_script_is_like_a_run_inside_of_a_run() {
    let sandbox = Sandbox::layout("a");
    let script = |command: &str| {
        format!(
            "script \"outer\" {{\n  job {{\n    command = [{command}]\n  }}\n}}\nscript \"inner\" {{\n  job {{\n    command = [\"echo\", \"inner\"]\n  }}\n}}\n"
        )
    };
    let orch = crate::support::orch_program().to_str().unwrap();
    sandbox.write(
        "/script.tm",
        script(&format!("\"{orch}\", \"script\", \"run\", \"inner\"")),
    );
    let nested = sandbox.orch("script run -q outer");
    let plain = sandbox.orch(&format!("run -q -- {orch} run echo inner"));
    assert_eq!(nested.code(), plain.code(), "{nested}\n{plain}");
    assert_eq!(nested.stdout, plain.stdout);
}

#[test]
fn script_options_of_the_cloud_mean_nothing() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/script.tm",
        "script \"up\" {\n  job {\n    command = [\"echo\", \"up\", { enable_sharing = true, mock_on_fail = true, sync_deployment = true, plan_render_timeout = 5 }]\n  }\n}\n",
    );
    assert_snapshot!(sandbox.orch("script run up"), @r"
    up
    [stderr]
    orch: /a: echo up
    orch: 1 succeeded in [time]
    ");
}

#[test]
fn script_run_records_the_command_that_applies() {
    let repository = Repository::new(
        r#"
//- /state.orch.hcl
orch {
  config {
    state {
      project = "acme"
      record {
        apply   = ["deploy up"]
        destroy = ["deploy down"]
      }
    }
  }
}
script "up" {
  job {
    commands = [["sh", "-c", "echo $ORCH_STACK_NAME"], ["../../deploy", "up"], ["sh", "-c", "[ ! -e fail ]"]]
  }
}
script "down" {
  job {
    commands = [["echo", "bye"], ["../../deploy", "down"]]
  }
}
//- /a/stack.tm
stack {}
//- /b/stack.tm
stack {
  after = ["/a"]
}
//- /b/fail
"#,
    );
    repository.write_program("/../deploy", "#!/bin/sh\n");
    assert_eq!(repository.orch("state init").code(), 0);
    let up = repository.orch("script run -q -X up");
    assert_snapshot!(said(&repository, &up), @r"
    a
    b
    [stderr]
    orch: failed /b: exit status 1 after [time]
    orch: 1 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
    let document: Value =
        serde_json::from_str(&repository.read("/.orch/state/default.json")).unwrap();
    assert_eq!(document["stacks"]["/a"]["last"]["outcome"], "succeeded");
    assert_eq!(document["stacks"]["/b"]["applied"], Value::Null);
    assert_eq!(document["stacks"]["/b"]["last"]["outcome"], "failed");
    let steps = journal(&repository);
    let steps = steps.iter().filter(|line| line["event"] == "step-started");
    assert_eq!(steps.count(), 6);
    let down = repository.orch("script run -q -X down");
    assert_snapshot!(said(&repository, &down), @r"
    bye
    bye
    ");
    assert_eq!(repository.orch("script run -q -X --reverse down").code(), 0);
    let document: Value =
        serde_json::from_str(&repository.read("/.orch/state/default.json")).unwrap();
    assert_eq!(document["stacks"]["/a"], Value::Null);
}

#[test]
fn script_run_is_followed_by_policies() {
    let sandbox = Sandbox::new(
        r#"
//- /one/stack.tm
stack {
  id = "one"
}
//- /two/stack.tm
stack {
  id = "two"
}
//- /three/stack.tm
stack {
  id = "three"
}
//- /one/script.tm
script "up" {
  job {
    commands = [["sh", "-c", "echo 1 $ORCH_STACK_NAME >> ../ran"], ["sh", "-c", "echo 2 $ORCH_STACK_NAME >> ../ran"]]
  }
}
//- /two/script.tm
script "up" {
  job {
    command = ["sh", "-c", "echo other $ORCH_STACK_NAME $ORCH_POLICY >> ../ran"]
  }
}
//- /list.rego
package list
trigger["two"] { input.stack.id == "one" }
//- /list.orch.hcl
policy "trigger" "list" { file = "list.rego" }
"#,
    );
    let output = sandbox.orch("script run -q --policies --match /one up");
    assert_eq!(ran(&sandbox), "1 one 2 one other two list");
    assert_eq!(output.code(), 0, "{output}");
}
