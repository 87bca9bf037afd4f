//! `--released`: which stacks policies name when a module has a new version.

use serde_json::{Value, json};

use crate::support::{Output, Repository, Sandbox};

/// Names everything that it is given.
const ALL: &str = "package spacelift\n\ntrigger contains stack.id if some stack in input.stacks\n";

/// A state, and a driver that notes when it is asked.
const CONFIGURATION: &str = r#"
orch {
  config {
    driver = "echo"
    state {
      project = "acme"
    }
  }
}
driver "echo" {
  plan            = ["sh", "-c", "echo asked >> asked; exit 2"]
  apply           = ["true"]
  changes_on_exit = [2]
}
"#;

/// A module of a registry whose versions 1.2.0, 1.3.0, 1.4.0 and 2.0.0 have tags, and stacks that call it.
const FILES: &str = r#"
//- /modules.orch.hcl
module "vpc" {
  source = "acme/vpc/aws"
  tag    = "modules/vpc/v*"
  labels = ["network", "slow"]
}
policy "trigger" "consumers" {
  file   = "consumers.rego"
  attach = ["module:vpc"]
}
//- /exact/stack.orch.hcl
stack {
  id         = "Exact"
  tags       = ["data"]
  labels     = ["depends-on:a,b", "data"]
  autodeploy = true
}
//- /exact/main.tf
module "net" {
  source  = "acme/vpc/aws"
  version = "1.3.0"
}
//- /loose/stack.orch.hcl
stack {
}
//- /loose/main.tf
module "net" {
  source  = "registry.terraform.io/acme/vpc/aws//modules/small"
  version = "~> 1.3"
}
//- /local/stack.tm
stack {
}
//- /local/main.tf
module "wrapped" {
  source = "../wrapper"
}
//- /wrapper/main.tf
module "inner" {
  source = "./inner"
}
//- /wrapper/inner/main.tf
# The module itself.
module "net" {
  source  = "acme/vpc/aws"
  version = ">= 1.2, < 2.0"
}
//- /json/stack.tm
stack {
}
//- /json/main.tf.json
{"module": {"net": {"source": "acme/vpc/aws", "version": "~> 1.3.0"}}}
//- /old/stack.tm
stack {
}
//- /old/main.tf
module "net" {
  source  = "acme/vpc/aws"
  version = "~> 1.2.0"
}
//- /new/stack.tm
stack {
}
//- /new/main.tf
module "net" {
  source  = "acme/vpc/aws"
  version = "1.4.0"
}
//- /other/stack.tm
stack {
}
//- /other/main.tf
module "net" {
  source  = "acme/vpc/google"
  version = "1.3.0"
}
"#;

/// Commits a project and releases versions of its module.
fn released(sandbox: Sandbox, tags: &[&str]) -> Repository {
    let repository = Repository::of(sandbox);
    for tag in tags {
        repository.git(&format!("tag {tag}"));
    }
    repository
}

const TAGS: [&str; 4] = [
    "modules/vpc/v1.2.0",
    "modules/vpc/v1.3.0",
    "modules/vpc/v1.4.0",
    "modules/vpc/v2.0.0",
];

/// The project of [`FILES`] with this policy.
fn project(policy: &str) -> Repository {
    let sandbox = Sandbox::new(FILES);
    sandbox.write("/consumers.rego", policy);
    released(sandbox, &TAGS)
}

#[track_caller]
fn list(repository: &Repository, flags: &str) -> Output {
    repository.orch(&format!("list --released vpc@1.3.0..1.4.0 {flags}"))
}

/// The names of the selected stacks, of an `orch` that has nothing to say.
#[track_caller]
fn stacks(output: &Output) -> Vec<&str> {
    assert_eq!((output.code(), &*output.stderr), (0, ""), "{output}");
    output.stdout.lines().collect()
}

#[test]
fn released_selects_callers_of_the_old_version_with_reasons() {
    let repository = project(ALL);
    let output = list(&repository, "--why");
    assert_eq!((output.code(), &*output.stderr), (0, ""), "{output}");
    let release = "policy consumers, release of vpc 1.3.0..1.4.0: its call in";
    assert_eq!(
        output.stdout,
        format!(
            "\
exact  # {release} exact/main.tf:2 (1.3.0) resolves to 1.3.0 and does not allow 1.4.0; at or below /
json  # {release} json/main.tf.json (~> 1.3.0) resolves to 1.3.0 and does not allow 1.4.0; at or below /
local  # {release} wrapper/inner/main.tf:3 (>= 1.2, < 2.0, module ../wrapper (local/main.tf:2), module ./inner (wrapper/main.tf:2)) resolves to 1.3.0 and allows 1.4.0; at or below /
loose  # {release} loose/main.tf:2 (~> 1.3) resolves to 1.3.0 and allows 1.4.0; at or below /
"
        )
    );
}

#[test]
fn released_selects_by_the_version_step() {
    let repository = project(ALL);
    let released = |release: &str| repository.orch(&format!("list --released vpc@{release}"));
    assert_eq!(stacks(&released("1.2.0..1.3.0")), ["local", "old"]);
    assert_eq!(stacks(&released("1.4.0..2.0.0")), ["local", "loose", "new"]);
    assert_eq!(
        stacks(&released("v1.3..v1.4")),
        ["exact", "json", "local", "loose"]
    );
    // 1.3.0 is newer than 1.2.0, and older than 1.4.0.
    assert_eq!(stacks(&released("1.2.0..1.4.0")), ["old"]);
}

#[test]
fn released_works_in_run_and_with_other_filters() {
    let repository = project(ALL);
    let listed = list(&repository, "--order");
    let run = repository.orch("run --released vpc@1.3.0..1.4.0 -q sh -c 'basename $PWD'");
    assert_eq!(run.code(), 0, "{run}");
    assert_eq!(run.stdout, listed.stdout);
    assert_eq!(stacks(&list(&repository, "--tags data")), ["exact"]);
    assert_eq!(
        stacks(&list(&repository, "--exclude exact --match '*o*'")),
        ["json", "local", "loose"]
    );
    let below = repository.orch("-C loose list --released vpc@1.3.0..1.4.0");
    assert_eq!(stacks(&below), ["."]);
}

#[test]
fn released_policy_decides_which_callers_are_selected() {
    let policy = r#"package spacelift

trigger[stack.id] {
	input.module.current_version == "1.4.0"
	input.module.labels[_] == "slow"
	stack := input.stacks[_]
	stack.labels[_] == "data"
}

trigger["/other"] { true }
"#;
    let repository = project(policy);
    let output = list(&repository, "--format json");
    let document = output.json();
    let reasons: Vec<(&Value, &Value)> = document["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stack| (&stack["path"], &stack["reasons"][0]))
        .collect();
    let exact = json!({
        "kind": "policy",
        "detail": "policy consumers, release of vpc 1.3.0..1.4.0: its call in exact/main.tf:2 (1.3.0) resolves to 1.3.0 and does not allow 1.4.0",
        "module": "vpc",
        "from": "1.3.0",
        "to": "1.4.0",
        "policies": ["consumers"],
        "call": {
            "name": "net",
            "file": "exact/main.tf",
            "line": 2,
            "via": [],
            "version": "1.3.0",
            "ref": null,
            "allows": false,
        },
    });
    let other = json!({
        "kind": "policy",
        "detail": "policy consumers, release of vpc 1.3.0..1.4.0: none of its calls resolves to 1.3.0",
        "module": "vpc",
        "from": "1.3.0",
        "to": "1.4.0",
        "policies": ["consumers"],
        "call": null,
    });
    assert_eq!(
        reasons,
        [(&json!("/exact"), &exact), (&json!("/other"), &other)]
    );
    let why = repository.orch("why loose --released vpc@1.3.0..1.4.0");
    assert_eq!((why.code(), &*why.stderr), (0, ""), "{why}");
    let start = "/loose is not selected\n  no policy names it at the release of vpc 1.3.0..1.4.0: its call in loose/main.tf:2 (~> 1.3) resolves to 1.3.0 and allows 1.4.0\n";
    assert!(why.stdout.starts_with(start), "{why}");
    let would = "\nwhat would select it\n  a policy for module:vpc that names it";
    assert!(why.stdout.contains(would), "{why}");
    let why = repository.orch("why loose --released vpc@1.3.0..1.4.0 --format json");
    let left_out = &why.json()["left_out"][0];
    assert_eq!(
        (&left_out["kind"], &left_out["call"]["allows"]),
        (&json!("policy"), &json!(true))
    );
}

#[test]
fn released_policy_input_has_the_keys_of_a_module_release() {
    let policy = r#"package spacelift

worker_pool := {"id": "", "labels": [], "name": "", "public": true}

trigger contains "/old" if {
	count(input) == 2
	input.module == {
		"administrative": false,
		"branch": "main",
		"labels": ["network", "slow"],
		"current_version": "1.4.0",
		"id": "vpc",
		"name": "vpc",
		"namespace": "teams/acme",
		"repository": "infra",
		"space": {"id": "", "labels": [], "name": ""},
		"terraform_version": null,
		"worker_pool": worker_pool,
	}
}

trigger contains "/new" if {
	[stack.id | some stack in input.stacks] == ["Exact", "/json", "/local", "/loose"]
	object.remove(input.stacks[0], ["tracked_commit", "state"]) == {
		"administrative": false,
		"autodeploy": true,
		"branch": "main",
		"id": "Exact",
		"labels": ["depends-on:a,b", "data"],
		"name": "exact",
		"namespace": "teams/acme",
		"project_root": "exact",
		"repository": "infra",
		"terraform_version": null,
		"worker_pool": worker_pool,
	}
	is_string(input.stacks[0].state)
}

trigger contains "/other" if {
	commit := input.stacks[3].tracked_commit
	object.remove(commit, ["hash"]) == {
		"author": "Ada",
		"branch": "main",
		"created_at": 1700000000000000000,
		"message": "change",
	}
	count(commit.hash) == 40
}
"#;
    let repository = project(policy);
    repository.git("remote add a git@git.example.org:teams/fork/infra.git");
    repository.git("remote add origin https://ada:secret@git.example.org/teams/acme/infra.git");
    assert_eq!(stacks(&list(&repository, "")), ["new", "old", "other"]);
    // libgit2 does not open such a repository, and the `git` program answers.
    repository.git("config core.repositoryFormatVersion 1");
    repository.git("config extensions.partialClone nowhere");
    assert_eq!(stacks(&list(&repository, "")), ["new", "old", "other"]);
}

#[test]
fn released_policy_naming_no_stack_is_a_warning() {
    let policy = "package spacelift\n\ntrigger contains \"nobody\" if true\n\ntrigger contains \"EXACT\" if true\n";
    let output = list(&project(policy), "");
    assert_eq!((output.code(), &*output.stdout), (0, "exact\n"), "{output}");
    let expected = "\
warning: the policy `consumers` names `nobody`, but no stack has that id or path
 --> modules.orch.hcl:6:18
  |
6 | policy \"trigger\" \"consumers\" {
  |                  ^^^^^^^^^^^ this policy
  |
  = help: a policy names stacks by their `id`, or by their path: `/prod/network`

";
    assert_eq!(output.stderr, expected);
}

#[test]
fn released_policy_naming_nothing_selects_nothing() {
    let output = list(&project("package spacelift\n\ntrigger := []\n"), "");
    assert_eq!((output.code(), &*output.stdout), (0, ""), "{output}");
    let expected = "note: no policy names a stack at the release of vpc 1.3.0..1.4.0\n";
    assert_eq!(output.stderr, expected);
    let refused = list(
        &project("package spacelift\n\ntrigger := []\n"),
        "--fail-if-empty",
    );
    assert_eq!(refused.code(), 4, "{refused}");
}

#[test]
fn released_says_that_no_stack_calls_the_old_version() {
    let sandbox = Sandbox::new(FILES);
    sandbox.write("/consumers.rego", ALL);
    let repository = released(sandbox, &["modules/vpc/v0.1.0", "modules/vpc/v0.2.0"]);
    let output = repository.orch("list --released vpc@0.1.0..0.2.0");
    assert_eq!((output.code(), &*output.stdout), (0, ""), "{output}");
    let said = "note: no call of `vpc` resolves to 0.1.0\n";
    assert!(output.stderr.starts_with(said), "{output}");
}

#[test]
fn released_requires_a_policy_for_the_module() {
    let sandbox = Sandbox::new(FILES);
    let modules = sandbox.read("/modules.orch.hcl");
    sandbox.write("/consumers.rego", ALL);
    // That of all stacks is none of the module.
    sandbox.write(
        "/modules.orch.hcl",
        modules.replace("[\"module:vpc\"]", "[\"/\"]"),
    );
    let output = list(&released(sandbox, &TAGS), "");
    assert_eq!((output.code(), &*output.stdout), (3, ""), "{output}");
    let expected = "\
error: no policy is attached to the module `vpc`
 --> modules.orch.hcl:1:8
  |
1 | module \"vpc\" {
  |        ^^^^^ so no stacks follow its release
  |
  = help: attach one: add `attach = [\"module:vpc\"]` to a block `policy \"trigger\" \"…\"`

";
    assert_eq!(output.stderr, expected);
}

#[test]
fn released_refuses_an_unknown_release() {
    let repository = project(ALL);
    let table = [
        (
            "vpc",
            64,
            "error: invalid value 'vpc' for '--released <MODULE@OLD..NEW>'",
        ),
        ("vpc@1.3.0", 64, "error: invalid value"),
        ("vpc@1.4.0..1.3.0", 64, "error: invalid value"),
        (
            "vcp@1.3.0..1.4.0",
            64,
            "error: no module `vcp`\n  = help: did you mean `vpc`?\n",
        ),
        (
            "database@1.3.0..1.4.0",
            64,
            "error: no module `database`\n  = help: the modules are `vpc`\n",
        ),
        (
            "vpc@1.3.0..1.5.0",
            4,
            "error: the module `vpc` has no version 1.5.0: no tag `modules/vpc/v1.5.0`\n  = help: if the tag exists elsewhere, run `git fetch --tags`\n  = help: its newest versions here are 2.0.0, 1.4.0, 1.3.0, 1.2.0\n",
        ),
        (
            "vpc@1.2.5..1.3.0",
            4,
            "error: the module `vpc` has no version 1.2.5",
        ),
    ];
    for (release, status, expected) in table {
        let output = repository.orch(&format!("list --released {release}"));
        assert_eq!((output.code(), &*output.stdout), (status, ""), "{output}");
        assert!(output.stderr.starts_with(expected), "{output}");
    }
    let output = repository.orch("list --released vpc@1.3.0..1.5.0 --format json");
    assert_eq!(output.code(), 4, "{output}");
    assert_eq!(output.data()["refused"]["command"], "git fetch --tags");
}

#[test]
fn released_policy_for_an_undeclared_module_is_a_warning() {
    let repository = project(ALL);
    let modules = repository.read("/modules.orch.hcl");
    repository.write(
        "/modules.orch.hcl",
        modules.replace("[\"module:vpc\"]", "[\"module:vpc\", \"module:vcp\"]"),
    );
    let output = list(&repository, "");
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(output.stdout.lines().count(), 4, "{output}");
    let start = "warning: `module:vcp` in `attach` names no module\n";
    assert!(output.stderr.starts_with(start), "{output}");
    assert!(output.stderr.contains("did you mean `vpc`?"), "{output}");
    let validated = repository.orch("policy validate");
    assert!(validated.stderr.starts_with(start), "{validated}");
}

#[test]
fn released_plan_runs_the_tools_of_unchanged_callers() {
    let sandbox = Sandbox::new(FILES);
    sandbox.write("/consumers.rego", ALL);
    sandbox.write("/state.orch.hcl", CONFIGURATION);
    sandbox.write("/.gitignore", "asked\n");
    let repository = released(sandbox, &TAGS);
    assert_eq!(repository.orch("state init").code(), 0);
    let adopted = repository.orch("state adopt --no-verify");
    assert_eq!(adopted.code(), 0, "{adopted}");
    let planned = |flags: &str| {
        let plan = repository.orch(&format!("plan {flags} --format json"));
        let document = plan.json();
        let stacks = document["stacks"].as_array().unwrap().iter();
        let shown = stacks.map(|stack| format!("{} {}", stack["path"], stack["actions"][0]));
        shown.collect::<Vec<String>>().join(", ")
    };
    assert_eq!(planned("--tags data"), r#""/exact" "no-op""#);
    assert_eq!(repository.read("/exact/asked"), "");
    let released = "--released vpc@1.3.0..1.4.0 --tags data";
    assert_eq!(planned(released), r#""/exact" "update""#);
    assert_eq!(repository.read("/exact/asked"), "asked\n");
    let applied = repository.orch(&format!("apply --auto-approve {released}"));
    assert_eq!(applied.code(), 0, "{applied}");
    assert!(applied.stderr.contains("1 succeeded"), "{applied}");
}

#[test]
fn released_requires_git() {
    let sandbox = Sandbox::new(FILES);
    sandbox.write("/consumers.rego", ALL);
    let output = sandbox.orch("list --released vpc@1.3.0..1.4.0");
    assert_eq!((output.code(), &*output.stdout), (4, ""), "{output}");
    assert!(
        output.stderr.contains("run `orch` in its git repository"),
        "{output}"
    );
}

#[test]
fn released_policy_may_sample_its_input() {
    let sandbox = Sandbox::new(FILES);
    sandbox.write("/consumers.rego", format!("{ALL}\nsample := true\n"));
    sandbox.write("/state.orch.hcl", CONFIGURATION);
    sandbox.write("/.gitignore", "asked\n");
    let repository = released(sandbox, &TAGS);
    assert_eq!(repository.orch("state init").code(), 0);
    assert_eq!(repository.orch("state adopt --no-verify").code(), 0);
    for command in [
        "run --released vpc@1.3.0..1.4.0 true",
        "apply --released vpc@1.3.0..1.4.0 --auto-approve",
    ] {
        let output = repository.orch(command);
        assert_eq!(output.code(), 0, "{output}");
        let kept = repository.orch("policy samples").stdout;
        let id = kept.trim_end();
        assert!(id.ends_with(".0.consumers"), "{command}: {kept}");
        let again = repository.orch(&format!("policy eval consumers --sample {id}"));
        assert!(again.stdout.contains("Exact"), "{again}");
    }
}

#[test]
fn released_conflicts_with_change_flags() {
    let repository = project(ALL);
    for line in [
        "list --changed --released vpc@1.3.0..1.4.0",
        "list --released vpc@1.3.0..1.4.0 --base main",
        "list --removed --released vpc@1.3.0..1.4.0",
        "why exact --after old --released vpc@1.3.0..1.4.0",
        "run --resume --released vpc@1.3.0..1.4.0",
        "apply some.plan --released vpc@1.3.0..1.4.0",
    ] {
        let output = repository.orch(line);
        assert_eq!(output.code(), 64, "{line}: {output}");
    }
    for line in [
        "graph --released vpc@1.3.0..1.4.0",
        "env --released vpc@1.3.0..1.4.0",
        "run --dry-run --released vpc@1.3.0..1.4.0 true",
    ] {
        let output = repository.orch(line);
        assert_eq!(
            (output.code(), &*output.stderr),
            (0, ""),
            "{line}: {output}"
        );
        assert!(output.stdout.contains("exact"), "{output}");
        assert!(!output.stdout.contains("other"), "{output}");
    }
    let globals = repository.orch("globals --released vpc@1.3.0..1.4.0 --format json");
    assert_eq!(
        globals.json()["stacks"].as_array().unwrap().len(),
        4,
        "{globals}"
    );
}

#[test]
fn released_policy_that_fails_ends_the_command() {
    let repository = project("package spacelift\n\ntrigger := 1\n");
    let output = list(&repository, "");
    assert_eq!((output.code(), &*output.stdout), (4, ""), "{output}");
    let start = "error: failed to find the stacks that follow the release";
    assert!(output.stderr.starts_with(start), "{output}");
    assert!(
        output
            .stderr
            .contains("the policy `consumers` failed: consumers.rego"),
        "{output}"
    );
    let modules = repository.read("/modules.orch.hcl");
    repository.write(
        "/modules.orch.hcl",
        modules.replace("  attach", "  on_error = \"ignore\"\n  attach"),
    );
    let output = list(&repository, "");
    assert_eq!((output.code(), &*output.stdout), (0, ""), "{output}");
    let start = "warning: the policy `consumers` failed: consumers.rego";
    assert!(output.stderr.starts_with(start), "{output}");
}

#[test]
fn released_policy_that_cannot_be_loaded_ends_the_command() {
    let output = list(&project("package spacelift\n\ntrigger {{\n"), "");
    assert_eq!((output.code(), &*output.stdout), (3, ""), "{output}");
    let start = "error: the policy `consumers` cannot be loaded\n";
    assert!(output.stderr.starts_with(start), "{output}");
}

#[test]
fn released_selects_the_union_of_several_policies() {
    let repository = project(ALL);
    let modules = repository.read("/modules.orch.hcl");
    let more = "policy \"trigger\" \"another\" {\n  file   = \"another.rego\"\n  attach = [\"module:vpc\", \"module:vpc\"]\n}\n";
    repository.write("/modules.orch.hcl", format!("{modules}{more}"));
    repository.write(
        "/another.rego",
        "package another\n\ntrigger contains name if some name in {\"exact\", \"/new\"}\n",
    );
    let output = list(&repository, "--why");
    let of = |stack: &str| {
        let mut lines = output.stdout.lines();
        lines
            .find(|line| line.starts_with(stack))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        of("exact ").starts_with("exact  # policies another, consumers, release"),
        "{output}"
    );
    assert!(
        of("new ").starts_with("new  # policy another, release"),
        "{output}"
    );
    assert!(
        of("loose ").starts_with("loose  # policy consumers, release"),
        "{output}"
    );
}

#[test]
fn released_warns_of_a_call_that_only_terraform_can_resolve() {
    let repository = project(ALL);
    let call = "module \"net\" {\n  source  = \"acme/vpc/aws\"\n  version = var.version\n}\n";
    repository.write("/wrapper/inner/main.tf", call);
    let output = list(&repository, "");
    assert_eq!(
        (output.code(), &*output.stdout),
        (0, "exact\njson\nloose\n"),
        "{output}"
    );
    let expected = "\
warning: the call `net` in `wrapper/inner/main.tf:2` has a `version` that only Terraform can compute
  = note: it may resolve to 1.3.0 of `vpc`, but does not count

";
    assert_eq!(output.stderr, expected);
    let call = call.replace("var.version", "\"1.3\\n\\u001b[31m\"");
    repository.write("/wrapper/inner/main.tf", call);
    let output = list(&repository, "");
    assert!(!output.stderr.contains('\u{1b}'), "{output}");
}

#[test]
fn released_selects_only_applied_stacks_with_a_state() {
    let sandbox = Sandbox::new(FILES);
    let policy = "package spacelift\n\ntrigger contains stack.id if {\n\tsome stack in input.stacks\n\tstack.state == \"FINISHED\"\n}\n";
    sandbox.write("/consumers.rego", policy);
    let state = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";
    sandbox.write("/state.orch.hcl", state);
    let repository = released(sandbox, &TAGS);
    assert_eq!(repository.orch("state init").code(), 0);
    let adopted =
        repository.orch("state adopt --no-verify --match exact --match local --match old");
    assert_eq!(adopted.code(), 0, "{adopted}");
    let output = list(&repository, "");
    assert_eq!(
        (output.code(), &*output.stdout),
        (0, "exact\nlocal\n"),
        "{output}"
    );
    let expected = "note: of 4 stacks whose calls of `vpc` resolve to 1.3.0, 2 have never been applied and do not count\n";
    assert_eq!(output.stderr, expected);
}

/// Stacks that call a directory of this project through git, in Terraform and in Terragrunt.
const THROUGH_GIT: &str = r#"
//- /live/root.orch.hcl
orch { root = true }
module "vpc" {
  source = "./modules/vpc"
  tag    = "vpc-*"
}
policy "trigger" "consumers" {
  file   = "consumers.rego"
  attach = ["module:vpc"]
}
//- /live/modules/vpc/main.tf
# vpc
//- /live/consumers.rego
package spacelift

trigger[stack.id] { input.module.project_root == "modules/vpc"; stack := input.stacks[_] }
//- /live/a/stack.tm
stack {
}
//- /live/a/main.tf
module "net" {
  source = "git::ssh://git@git.example.org/acme/infra.git//live/modules/vpc?ref=vpc-1.3.0"
}
//- /live/b/stack.tm
stack {
}
//- /live/b/main.tf
module "net" {
  source = "git::https://git.example.org/fork/infra.git//live/modules/vpc?ref=vpc-1.3.0"
}
//- /live/c/stack.tm
stack {
}
//- /live/c/main.tf
module "net" {
  source = "../modules/vpc"
}
//- /live/d/stack.tm
stack {
}
//- /live/d/terragrunt.hcl
include "root" {
  path = find_in_parent_folders("common.hcl")
}
//- /live/common.hcl
locals {
  base = "git::https://git.example.org/acme/infra.git"
}
terraform {
  source = "${local.base}//live/modules/vpc?ref=vpc-1.3.0"
}
//- /live/e/stack.tm
stack {
}
//- /live/e/terragrunt.hcl
include "root" {
  path = find_in_parent_folders("common.hcl")
}
terraform {
  source = "git::https://git.example.org/acme/infra.git//live/modules/vpc?ref=vpc-1.2.0"
}
"#;

#[test]
fn released_finds_calls_of_a_project_directory_through_git() {
    let repository = released(Sandbox::unmarked(THROUGH_GIT), &["vpc-1.2.0", "vpc-1.4.0"]);
    // As `git tag -a` makes them, a tag may be an object of its own.
    repository.git("tag -a -m release vpc-1.3.0");
    let released = || repository.orch("-C live list --released vpc@1.3.0..1.4.0");
    assert_eq!(stacks(&released()), ["a", "b", "d"]);
    repository.git("remote add origin git@git.example.org:acme/infra.git");
    assert_eq!(stacks(&released()), ["a", "d"]);
    let commit = repository.git("rev-parse HEAD");
    let source = format!(
        "module \"net\" {{\n  source = \"git@git.example.org:acme/infra.git//live/modules/vpc?ref={}\"\n}}\n",
        commit.trim()
    );
    repository.write("/live/c/main.tf", source);
    assert_eq!(stacks(&released()), ["a", "c", "d"]);
    let why = repository.orch("-C live list --why --released vpc@1.3.0..1.4.0");
    let expected = "a  # policy consumers, release of vpc 1.3.0..1.4.0: its call in a/main.tf:2 (?ref=vpc-1.3.0) resolves to 1.3.0 and keeps 1.3.0; at or below /\n";
    assert!(why.stdout.starts_with(expected), "{why}");
}
