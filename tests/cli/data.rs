//! The data that stacks use of each other: the order that follows from it, and how it is shown.

use insta::assert_snapshot;

use crate::support::Sandbox;

/// `app` has an input of `vpc`, and `aaa` one of `app`.
const INPUTS: &str = r#"
//- /vpc/stack.tm
stack {
  id = "vpc-id"
}
//- /app/stack.tm
stack {
  id = "app-id"
}
//- /app/inputs.tm
input "vpc_id" {
  backend       = "default"
  from_stack_id = "VPC-id"
  value         = outputs.vpc_id.value
}
//- /aaa/stack.tm
stack {}
globals {
  from = "app-id"
}
//- /aaa/inputs.tm
input "url" {
  backend       = "default"
  from_stack_id = global.from
  value         = outputs.url.value
  mock          = "http://localhost"
}
"#;

#[test]
fn input_orders_its_stack_after_the_named_one() {
    let sandbox = Sandbox::new(INPUTS);
    assert_snapshot!(sandbox.orch("list --order"), @"
    vpc
    app
    aaa
    ");
    assert_snapshot!(sandbox.orch("why aaa --after vpc"), @"
    /aaa runs after /vpc
      /aaa runs after /app, input aaa/inputs.tm:1
      /app runs after /vpc, input app/inputs.tm:1
    ");
}

#[test]
fn stacks_named_in_conditions_and_variables_are_data() {
    let sandbox = Sandbox::new(
        r#"
//- /net/stack.tm
stack {}
//- /db/stack.tm
stack {
  after = ["/net"]
}
//- /app/stack.tm
stack {
  after = ["/net", "/db"]
  lifecycle {
    precondition {
      condition     = stacks["/net"].outputs.ready
      error_message = "wait"
    }
  }
}
//- /app/env.tm
terramate {
  config {
    run {
      env {
        EPOCH = tm_tostring(stacks["../db"].generation)
      }
    }
  }
}
"#,
    );
    assert_snapshot!(sandbox.orch("graph --data --format mermaid"), @r#"
    flowchart LR
      n0["/app"]
      n1["/db"]
      n2["/net"]
      n1 -->|"stacks app/env.tm:5"| n0
      n2 -->|"stacks app/stack.tm:5"| n0
    "#);
    let with_data = sandbox.orch("list --match app --include-all-dependencies");
    assert_snapshot!(with_data, @"
    app
    db
    net
    ");
}

#[test]
fn input_of_an_unknown_id_is_a_warning() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/a/in.tm",
        "input \"x\" {\n  backend = \"b\"\n  from_stack_id = \"nobody\"\n  value = 1\n}\n",
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    a
    [stderr]
    warning: the input `x` comes from no stack
     --> a/in.tm:3:19
      |
    3 |   from_stack_id = "nobody"
      |                   ^^^^^^^^ no stack has the id `nobody`
    "#);
    sandbox.write(
        "/strict.tm",
        "terramate {\n  config {\n    references = \"strict\"\n  }\n}\n",
    );
    assert_eq!(sandbox.orch("list").code(), 3);
}

#[test]
fn input_blocks_are_checked() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/a/in.tm",
        "input {\n  backend = \"b\"\n  from_stack_id = \"x\"\n  value = 1\n}\n\
         input \"x\" {\n  bakend = \"b\"\n  from_stack_id = 1\n  value = 1\n}\n\
         sharing_backend \"b\" {\n  type = \"terraform\"\n  filename = \"f\"\n  command = []\n}\n\
         output \"o\" {\n  backend = \"b\"\n}\n",
    );
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3, "{output}");
    for said in [
        "`input` has one label, its name",
        "unknown attribute `bakend` in `input`",
        "`input` needs `backend`",
        "the `type` of a backend must be `terraform`",
        "`command` must name a program",
        "`output` needs `value`",
    ] {
        assert!(output.stderr.contains(said), "{said}: {output}");
    }
}

#[test]
fn input_of_the_stack_itself_is_an_error() {
    let sandbox = Sandbox::new(
        "
//- /a/stack.tm
stack {
  id = \"a\"
}
input \"x\" {
  backend       = \"b\"
  from_stack_id = terramate.stack.id
  value         = 1
}
",
    );
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3, "{output}");
    assert!(
        output
            .stderr
            .contains("the input `x` comes from the stack itself"),
        "{output}"
    );
}

#[test]
fn inputs_in_a_circle_are_a_cycle_with_the_place_of_each() {
    let sandbox = Sandbox::new(INPUTS);
    sandbox.write(
        "/vpc/inputs.tm",
        "input \"x\" {\n  backend = \"default\"\n  from_stack_id = \"app-id\"\n  value = 1\n}\n",
    );
    assert_snapshot!(sandbox.orch("run true"), @r#"
    [stderr]
    error: stacks wait for each other in a cycle: `/app` → `/vpc`
     --> vpc/inputs.tm:1:1
      |
    1 | input "x" {
      | ^^^^^ `/app` runs before `/vpc` (input)
      |
     ::: app/inputs.tm:1:1
      |
    1 | input "vpc_id" {
      | ----- `/vpc` runs before `/app` (input)
      |
      = help: remove one of these references

    [exit status 3]
    "#);
}

/// `app` depends on `vpc` and `db`, as Terragrunt says, and reads the remote state of `net`.
const CODE: &str = r#"
//- /app/stack.tm
stack {}
//- /app/terragrunt.hcl
locals {
  up = ".."
}
dependency "vpc" {
  config_path = "${local.up}/vpc"
}
dependencies {
  paths = ["../zdb"]
}
dependency "off" {
  config_path = "../off"
  enabled     = false
}
//- /app/main.tf
locals {
  bucket = "states"
}
data "terraform_remote_state" "net" {
  backend = "s3"
  config = {
    bucket = local.bucket
    key    = "net/${"x"}.tfstate"
    region = var.region
  }
}
//- /net/stack.tm
stack {}
//- /net/backend.tf
terraform {
  backend "s3" {
    bucket = "states"
    key    = "net/x.tfstate"
  }
}
//- /off/stack.tm
stack {}
//- /vpc/stack.tm
stack {}
//- /zdb/stack.tm
stack {}
"#;

fn order_from(kinds: &str) -> String {
    format!("orch {{\n  config {{\n    order_from = [{kinds}]\n  }}\n}}\n")
}

#[test]
fn order_from_makes_the_data_of_code_order_stacks() {
    let sandbox = Sandbox::new(CODE);
    let order = |sandbox: &Sandbox| {
        let output = sandbox.orch("list --order");
        assert_eq!((output.code(), &*output.stderr), (0, ""), "{output}");
        output.stdout.replace('\n', " ")
    };
    assert_eq!(order(&sandbox), "app net off vpc zdb ");
    sandbox.write("/order.orch.hcl", order_from("\"terragrunt\""));
    assert_eq!(order(&sandbox), "net off vpc zdb app ");
    sandbox.write("/order.orch.hcl", order_from("\"remote_state\""));
    assert_eq!(order(&sandbox), "net app off vpc zdb ");
    assert_snapshot!(sandbox.orch("why app --after net"), @"
    /app runs after /net
      /app runs after /net, terraform_remote_state app/main.tf:4
    ");
    sandbox.write(
        "/order.orch.hcl",
        order_from("\"input\", \"terragrunt\", \"remote_state\""),
    );
    assert_eq!(order(&sandbox), "net off vpc zdb app ");
    sandbox.write("/order.orch.hcl", order_from("\"inputs\""));
    assert_eq!(sandbox.orch("list").code(), 3);
}

#[test]
fn dependencies_in_json_order_stacks() {
    let sandbox = Sandbox::layout("app\nvpc\nzdb");
    sandbox.write(
        "/app/terragrunt.hcl.json",
        "{\n  \"dependency\": {\n    \"vpc\": [{\"config_path\": \"../vpc\"}]\n  },\n  \"dependencies\": {\"paths\": [\"../zdb\"]}\n}\n",
    );
    sandbox.write("/order.orch.hcl", order_from("\"terragrunt\""));
    assert_snapshot!(sandbox.orch("why app"), @"
    /app is selected
      at or below /

    its inputs (add --changed to see which have changed)
      /app, its own directory

    it uses data of
      /vpc, dependency app/terragrunt.hcl.json:3

    it runs after
      /vpc, dependency app/terragrunt.hcl.json:3, selected
      /zdb, dependencies app/terragrunt.hcl.json:5, selected

    nothing runs after it
    ");
}

#[test]
fn dependency_whose_path_is_unknown_is_a_warning_if_it_orders() {
    let sandbox = Sandbox::layout("app");
    sandbox.write(
        "/app/terragrunt.hcl",
        "dependency \"x\" {\n  config_path = get_env(\"X\")\n}\n",
    );
    assert_eq!(sandbox.orch("list").stderr, "");
    sandbox.write("/order.orch.hcl", order_from("\"terragrunt\""));
    assert_snapshot!(sandbox.orch("list"), @r#"
    app
    [stderr]
    warning: the stack of this `dependency` cannot be determined
     --> app/terragrunt.hcl:1:1
      |
    1 | dependency "x" {
      | ^^^^^^^^^^ more than text, locals and functions of paths
      |
      = note: it does not order stacks
      = help: write the order as `after` in the `stack` block
    "#);
}

#[test]
fn graph_suggests_the_order_that_the_code_asks_for() {
    let sandbox = Sandbox::new(CODE);
    assert_snapshot!(sandbox.orch("graph suggest"), @r#"
    # /app, in app/stack.tm:1
    after = [
      "/net", # terraform_remote_state app/main.tf:4
      "/vpc", # dependency app/terragrunt.hcl:4
      "/zdb", # dependencies app/terragrunt.hcl:7
    ]
    "#);
    sandbox.write("/vpc/stack.tm", "stack {\n  after = [\"/app\"]\n}\n");
    let json = sandbox.orch("graph suggest --format json");
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let app = &json["stacks"][0];
    assert_eq!(app["path"], "/app");
    assert_eq!(app["after"][1]["path"], "/vpc");
    assert_eq!(app["after"][1]["cycle"], true);
    assert_eq!(app["after"][0]["uses"][0]["kind"], "terraform_remote_state");
    sandbox.write("/vpc/stack.tm", "stack {}\n");
    sandbox.write(
        "/app/stack.tm",
        "stack {\n  after = [\"/net\", \"/vpc\", \"/zdb\"]\n}\n",
    );
    assert_snapshot!(sandbox.orch("graph suggest"), @"
    [stderr]
    note: the order covers all data that stacks use of each other
    ");
}

#[test]
fn graph_draws_data() {
    let sandbox = Sandbox::new(CODE);
    assert_snapshot!(sandbox.orch("graph --data --format mermaid"), @r#"
    flowchart LR
      n0["/app"]
      n1["/net"]
      n2["/off"]
      n3["/vpc"]
      n4["/zdb"]
      n1 -->|"terraform_remote_state app/main.tf:4"| n0
      n3 -->|"dependency app/terragrunt.hcl:4"| n0
    "#);
}

#[test]
fn why_names_the_data_of_a_stack() {
    let sandbox = Sandbox::new(CODE);
    assert_snapshot!(sandbox.orch("why app"), @"
    /app is selected
      at or below /

    its inputs (add --changed to see which have changed)
      /app, its own directory

    it uses data of
      /net, terraform_remote_state app/main.tf:4
      /vpc, dependency app/terragrunt.hcl:4

    nothing runs before it

    nothing runs after it
    ");
}

/// `app` reads the remote states of `net` and `dns`, all in Terraform's JSON syntax.
const JSON: &str = r#"
//- /app/stack.tm
stack {}
//- /app/main.tf.json
[
  {
    "locals": {"bucket": "states"},
    "variable": {"key": {"default": "net/x"}}
  },
  {
    "//": "read first",
    "data": {
      "aws_region": {"here": {}},
      "terraform_remote_state": {
        "net": {
          "backend": "s3",
          "config": {
            "bucket": "${local.bucket}",
            "key": "${var.key}.tfstate",
            "region": "${var.region}"
          }
        },
        "dns": [{"backend": "remote", "config": {"organization": "acme", "workspaces": {"name": "dns"}}}]
      }
    }
  }
]
//- /dns/stack.tm
stack {}
//- /dns/cloud.tf.json
{"terraform": [{"required_version": ">= 1.5"}, {"cloud": {"organization": "acme", "workspaces": {"name": "dns"}}}]}
//- /net/stack.tm
stack {}
//- /net/backend.tf.json
{"terraform": {"backend": {"s3": {"bucket": "${local.bucket}", "key": "net/x.tfstate"}}}}
//- /net/locals.tf
locals {
  bucket = "states"
}
"#;

#[test]
fn remote_states_in_json_are_data() {
    let sandbox = Sandbox::new(JSON);
    assert_snapshot!(sandbox.orch("graph --data --format mermaid"), @r#"
    flowchart LR
      n0["/app"]
      n1["/dns"]
      n2["/net"]
      n1 -->|"terraform_remote_state app/main.tf.json:19"| n0
      n2 -->|"terraform_remote_state app/main.tf.json:11"| n0
    "#);
    assert_snapshot!(sandbox.orch("graph suggest"), @r#"
    # /app, in app/stack.tm:1
    after = [
      "/dns", # terraform_remote_state app/main.tf.json:19
      "/net", # terraform_remote_state app/main.tf.json:11
    ]
    "#);
    assert_snapshot!(sandbox.orch("why app"), @"
    /app is selected
      at or below /

    its inputs (add --changed to see which have changed)
      /app, its own directory

    it uses data of
      /net, terraform_remote_state app/main.tf.json:11
      /dns, terraform_remote_state app/main.tf.json:19

    nothing runs before it

    nothing runs after it
    ");
    sandbox.write("/order.orch.hcl", order_from("\"remote_state\""));
    assert_snapshot!(sandbox.orch("why app --after net"), @"
    /app runs after /net
      /app runs after /net, terraform_remote_state app/main.tf.json:11
    ");
    sandbox.write(
        "/app/more.tf.json",
        "{\n  \"data\": {\n    \"terraform_remote_state\": {\n      \"x\": {\"backend\": \"s3\"}\n    }\n  }\n}\n",
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    app
    dns
    net
    [stderr]
    warning: the stack of this `terraform_remote_state` cannot be determined
     --> app/more.tf.json:4:7
      |
    4 |       "x": {"backend": "s3"}
      |       ^^^ more than text, locals and functions of paths
      |
      = note: it does not order stacks
      = help: write the order as `after` in the `stack` block
    "#);
    sandbox.write("/net/backend.tf.json", "{\"terraform\": {\"backend\": }}");
    let output = sandbox.orch("list");
    assert!(
        output.stderr.contains(" --> net/backend.tf.json:1:27"),
        "{output}"
    );
}

#[test]
fn remote_states_are_read_with_the_files_that_override_others() {
    let sandbox = Sandbox::new(CODE);
    let uses = || {
        let json = sandbox.orch("why app --format json").json();
        let uses = json["uses"].as_array().unwrap().iter();
        let paths = uses.filter(|it| it["kind"] == "terraform_remote_state");
        paths.map(|it| it["stack"].to_string()).collect::<String>()
    };
    assert_eq!(uses(), "\"/net\"");
    // The backend is another one, whatever the name of the file that has it.
    let backend = |key: &str| {
        format!(
            "terraform {{\n  backend \"s3\" {{\n    bucket = \"states\"\n    key = \"{key}\"\n  }}\n}}\n"
        )
    };
    sandbox.write("/net/a_override.tf", backend("net/y.tfstate"));
    assert_eq!(uses(), "");
    sandbox.write("/net/override.tf.json", "{\"terraform\": {\"backend\": {\"s3\": {\"bucket\": \"states\", \"key\": \"net/x.tfstate\"}}}}");
    assert_eq!(uses(), "\"/net\"");
    sandbox.write("/off/backend.tofu", backend("off.tfstate"));
    sandbox.write("/app/a_override.tf", "locals {\n  bucket = \"others\"\n}\n");
    assert_eq!(uses(), "");
    sandbox.write(
        "/app/a_override.tf",
        "data \"terraform_remote_state\" \"net\" {\n  config = {\n    bucket = \"states\"\n    key = \"off.tfstate\"\n  }\n}\n",
    );
    assert_eq!(uses(), "\"/off\"");
}

#[test]
fn remote_states_are_those_that_tfvars_files_select() {
    let sandbox = Sandbox::layout("app\ndev\nprod");
    sandbox.write(
        "/app/main.tf",
        "variable \"env\" {\n  default = \"dev\"\n}\ndata \"terraform_remote_state\" \"net\" {\n  backend = \"local\"\n  config = {\n    path = \"../${var.env}/terraform.tfstate\"\n  }\n}\n",
    );
    for stack in ["dev", "prod"] {
        sandbox.write(&format!("/{stack}/main.tf"), "");
    }
    sandbox.write("/order.orch.hcl", order_from("\"remote_state\""));
    assert_eq!(sandbox.orch("list --order").stdout, "dev\napp\nprod\n");
    sandbox.write("/app/terraform.tfvars", "env = \"prod\"\n");
    assert_eq!(sandbox.orch("list --order").stdout, "dev\nprod\napp\n");
    assert_snapshot!(sandbox.orch("why app --after prod"), @"
    /app runs after /prod
      /app runs after /prod, terraform_remote_state app/main.tf:4
    ");
    // The default is not used, so nothing orders it after that.
    assert_snapshot!(sandbox.orch("why app --after dev"), @"/app does not run after /dev: nothing orders the two");
}

#[test]
fn stacks_without_a_backend_keep_their_state_in_their_directory() {
    let sandbox = Sandbox::layout("app\nnet\ndns");
    sandbox.write("/net/main.tf", "");
    sandbox.write(
        "/dns/main.tf",
        "terraform {\n  backend \"local\" {\n    path = \"dns.tfstate\"\n  }\n}\n",
    );
    let state = |name: &str, path: &str| {
        format!(
            "data \"terraform_remote_state\" \"{name}\" {{\n  backend = \"local\"\n  config = {{\n    path = \"${{path.module}}/{path}\"\n  }}\n}}\n"
        )
    };
    sandbox.write(
        "/app/main.tf",
        state("net", "../net/terraform.tfstate") + &state("dns", "../dns/terraform.tfstate"),
    );
    assert_snapshot!(sandbox.orch("graph suggest"), @r#"
    # /app, in app/stack.tm:1
    after = [
      "/net", # terraform_remote_state app/main.tf:1
    ]
    "#);
}

#[test]
fn neighbour_flags_of_terramate_follow_data() {
    let sandbox = Sandbox::new(INPUTS);
    sandbox.write("/vpc/sub/stack.tm", "stack {}\n");
    for (flags, expected) in [
        ("-C app --include-all-dependencies", ". ../vpc "),
        ("-C app --include-output-dependencies", ". ../vpc "),
        ("-C app --only-all-dependents", "../aaa "),
        ("-C aaa --include-direct-dependencies", ". ../app "),
        ("-C aaa --include-all-dependencies", ". ../app ../vpc "),
        ("-C aaa --only-direct-dependents", ""),
        ("-C vpc --only-all-dependents", "../aaa ../app "),
        ("-C vpc --include-dependents", "../aaa ../app . sub "),
        ("--exclude-all-dependents", "vpc vpc/sub "),
    ] {
        let output = sandbox.orch(&format!("list {flags}"));
        assert_eq!(output.stdout.replace('\n', " "), expected, "{flags}");
    }
    let sandbox = Sandbox::new(CODE);
    assert_snapshot!(sandbox.orch("list -C vpc --why --include-all-dependents"), @"
    ../app  # uses data of /vpc, dependency app/terragrunt.hcl:4 (--include-all-dependents)
    .  # at or below /vpc
    ");
}
