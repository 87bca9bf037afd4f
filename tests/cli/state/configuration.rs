//! The block `state`: what is accepted, and what is said of the rest.

use insta::assert_snapshot;

use super::{block, project};
use crate::support::{Output, Sandbox};

fn list(configuration: &str) -> Output {
    project(configuration).orch("state list")
}

#[test]
fn state_block_is_optional() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("state list"), @r#"
    [stderr]
    error: this project keeps no state
      = help: add a block `orch { config { state { project = "…" } } }` to its root; see `orch help state`
    [exit status 4]
    "#);
    assert!(!sandbox.path("/.orch").exists());
}

#[test]
fn state_block_needs_a_project() {
    let sandbox = Sandbox::layout("a");
    sandbox.write(
        "/state.orch.hcl",
        "orch {\n  config {\n    state {}\n  }\n}\n",
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `state` needs a `project`
     --> state.orch.hcl:3:5
      |
    3 |     state {}
      |     ^^^^^ no `project` in this block
      |
      = help: write a name that is unique among the projects in this backend: `project = "acme-infra"`

    [exit status 3]
    "#);
}

#[test]
fn names_are_checked() {
    assert_snapshot!(list("namespace = \"prod/eu\""), @r#"
    [stderr]
    error: `namespace` is not a name
     --> state.orch.hcl:5:13
      |
    5 | namespace = "prod/eu"
      |             ^^^^^^^^^ it has something other than letters, digits, `-` and `_`
      |
      = help: use letters, digits, `-` and `_`, at most 64, the first a letter or a digit

    [exit status 3]
    "#);
}

#[test]
fn state_block_rejects_an_unknown_backend() {
    assert_snapshot!(list("backend \"s4\" {}"), @r#"
    [stderr]
    error: unknown backend `s4`
     --> state.orch.hcl:5:9
      |
    5 | backend "s4" {}
      |         ^^^^ not a kind of backend
      |
      = help: did you mean `s3`?
      = help: kinds are: `"local"`, `"s3"`, `"gcs"`, `"azurerm"`

    [exit status 3]
    "#);
}

#[test]
fn state_block_rejects_an_unknown_attribute_of_a_backend() {
    assert_snapshot!(list("backend \"s3\" {\n  bucket = \"b\"\n  lock = true\n}"), @r#"
    [stderr]
    error: unknown attribute `lock` in `backend`
     --> state.orch.hcl:7:3
      |
    5 | backend "s3" {
      | ------- in this block
    6 |   bucket = "b"
    7 |   lock = true
      |   ^^^^ not an attribute of `backend`
      |
      = help: attributes are: bucket, key, region, endpoint, profile

    [exit status 3]
    "#);
}

#[test]
fn state_block_needs_the_attributes_of_its_backend() {
    assert_snapshot!(list("backend \"azurerm\" {\n  container_name = \"c\"\n}"), @r#"
    [stderr]
    error: the backend `azurerm` needs `storage_account_name`
     --> state.orch.hcl:5:1
      |
    5 | backend "azurerm" {
      | ^^^^^^^ no `storage_account_name` in this block

    [exit status 3]
    "#);
}

#[test]
fn state_block_has_one_backend() {
    assert_snapshot!(list("backend \"local\" {}\nbackend \"gcs\" {\n  bucket = \"b\"\n}"), @r#"
    [stderr]
    error: only one backend is allowed
     --> state.orch.hcl:6:1
      |
    5 | backend "local" {}
      | ------- first backend
    6 | backend "gcs" {
      | ^^^^^^^ second backend
      |
      = help: remove one of them

    [exit status 3]
    "#);
}

#[test]
fn state_block_needs_an_encrypted_endpoint_unless_local() {
    let backend = |endpoint: &str| {
        list(&format!(
            "backend \"s3\" {{\n  bucket = \"b\"\n  endpoint = \"{endpoint}\"\n}}"
        ))
    };
    assert_snapshot!(backend("http://minio.acme.dev:9000"), @r#"
    [stderr]
    error: `endpoint` cannot be used
     --> state.orch.hcl:7:14
      |
    7 |   endpoint = "http://minio.acme.dev:9000"
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ this is not encrypted
      |
      = help: write an address with `https://`; `http://` is allowed only for this machine

    [exit status 3]
    "#);
    for wrong in [
        "minio",
        "ftp://minio",
        "https://",
        "http://127.0.0.1@evil.dev",
        "http://localhost.evil.dev",
    ] {
        assert_eq!(backend(wrong).code(), 3, "{wrong}");
    }
}

#[test]
fn state_block_rejects_a_pattern_in_two_lists() {
    let configuration = "record {\n  apply = [\"make deploy\"]\n  never = [\"make  deploy\"]\n}";
    assert_snapshot!(list(configuration), @r#"
    [stderr]
    error: the pattern `make deploy` is in two lists
     --> state.orch.hcl:7:12
      |
    6 |   apply = ["make deploy"]
      |            ------------- first here
    7 |   never = ["make  deploy"]
      |            ^^^^^^^^^^^^^^ again here
      |
      = help: remove it from one of the lists

    [exit status 3]
    "#);
}

#[test]
fn state_block_rejects_a_pattern_that_matches_nothing() {
    assert_snapshot!(list("record {\n  destroy = [\"./undo.sh\"]\n}"), @r#"
    [stderr]
    error: `./undo.sh` in `destroy` matches no command
     --> state.orch.hcl:6:14
      |
    6 |   destroy = ["./undo.sh"]
      |              ^^^^^^^^^^^ the program is named without its directory
      |
      = help: write the program's file name, its first arguments, and options: `"make deploy"`

    [exit status 3]
    "#);
}

#[test]
fn state_block_belongs_in_the_root() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/a/state.orch.hcl", block(""));
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: `state` belongs in the project root
     --> a/state.orch.hcl:3:5
      |
    3 |     state {
      |     ^^^^^ this directory is not the root
      |
      = help: move it to the root directory of the project, which has one state

    [exit status 3]
    ");
}

#[test]
fn state_block_with_a_missing_variable_fails_only_commands_that_use_the_state() {
    let sandbox = project("namespace = env.STAGE");
    assert_eq!(sandbox.orch("list").code(), 0);
    assert_snapshot!(sandbox.orch("state list"), @"
    [stderr]
    error: the environment has no variable `STAGE`
     --> state.orch.hcl:5:17
      |
    5 | namespace = env.STAGE
      |                 ^^^^^ `env` is the environment that orch was started in
      |
      = help: set `STAGE` before running orch

    [exit status 3]
    ");
    let output = sandbox.orch_with("state init", |orch| {
        orch.env("STAGE", "prod");
    });
    assert_snapshot!(output, @"created .orch/state/prod.json");
}

#[test]
fn state_namespace_can_be_overridden_by_a_variable() {
    let sandbox = project("namespace = \"dev\"");
    let init = |namespace: &str| {
        sandbox.orch_with("state init", |orch| {
            orch.env("ORCH_NAMESPACE", namespace);
        })
    };
    assert_snapshot!(init("prod"), @"created .orch/state/prod.json");
    assert_snapshot!(init(""), @"created .orch/state/dev.json");
    assert_snapshot!(init("../prod"), @"
    [stderr]
    error: `ORCH_NAMESPACE` is not a namespace: it does not begin with a letter or a digit
      = help: use letters, digits, `-` and `_`, at most 64, the first a letter or a digit

    [exit status 3]
    ");
}

#[test]
fn state_path_may_lead_out_of_the_project() {
    let sandbox = project("backend \"local\" {\n  path = \"../shared/acme\"\n}");
    assert_eq!(sandbox.orch("state init").code(), 0);
    assert!(sandbox.outside().join("shared/acme.json").exists());
    assert!(!sandbox.path("/.orch").exists());
}

#[test]
fn expiry_of_the_lock_is_checked() {
    for accepted in ["15m", "1h 30m", "1m"] {
        let output = project(&format!("lock {{\n  expires = \"{accepted}\"\n}}")).orch("list");
        assert_eq!(output.code(), 0, "{output}");
    }
    assert_snapshot!(list("lock {\n  expires = \"30s\"\n}"), @r#"
    [stderr]
    error: `expires` cannot be used
     --> state.orch.hcl:6:13
      |
    6 |   expires = "30s"
      |             ^^^^^ this is less than a minute
      |
      = help: write a duration from `1m` on: `expires = "15m"`

    [exit status 3]
    "#);
    let wrong = list("lock {\n  expires = \"soon\"\n}");
    assert!(
        wrong.stderr.contains("not a duration like `90s`"),
        "{wrong}"
    );
    let wrong = list("lock {\n  expire = \"15m\"\n}\nlock {\n}");
    assert_eq!(wrong.code(), 3);
    assert!(wrong.stderr.contains("did you mean `expires`"), "{wrong}");
}
