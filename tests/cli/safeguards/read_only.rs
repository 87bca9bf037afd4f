//! Safeguards do not apply to commands that only read.

use std::env;

use insta::assert_snapshot;

use super::objections;
use crate::support::Repository;

/// A repository with a file that is not committed; `terraform`, `tofu` and `make` do nothing there.
fn dirty(config: &str) -> Repository {
    let repository = Repository::layout("a");
    repository.write("/.gitignore", "bin\n");
    repository.write("/config.orch.hcl", config);
    repository.commit();
    for program in ["terraform", "tofu", "make"] {
        repository.write_program(&format!("/bin/{program}"), "#!/bin/sh\n");
    }
    repository.write("/a/main.tf", "# changed\n");
    repository
}

#[track_caller]
fn is_refused(repository: &Repository, arguments: &str) -> bool {
    let path = env::var_os("PATH").unwrap();
    let directories = [repository.path("/bin")];
    let directories = directories.into_iter().chain(env::split_paths(&path));
    let path = env::join_paths(directories).unwrap();
    let output = repository.orch_with(&format!("run -q {arguments}"), |orch| {
        orch.env("PATH", path);
    });
    let is_refused = output.code() == 4;
    assert_eq!(!objections(&output).is_empty(), is_refused, "{output}");
    assert!(is_refused || output.code() == 0, "{output}");
    is_refused
}

#[test]
fn run_allows_read_only_commands_on_a_dirty_tree() {
    let repository = dirty("");
    assert!(!is_refused(&repository, "terraform plan"));
    assert!(!is_refused(&repository, "terraform plan -out=plan.tfplan"));
    assert!(!is_refused(&repository, "tofu -chdir=. validate"));
    assert!(!is_refused(
        &repository,
        "--changed --base base terraform plan"
    ));
    assert!(is_refused(&repository, "terraform apply"));
    assert!(is_refused(&repository, "terraform apply plan"));
    assert!(is_refused(&repository, "make plan"));
    assert!(is_refused(&repository, "-- sh -c 'terraform plan'"));
}

#[test]
fn none_guards_everything() {
    let repository = dirty("");
    assert!(is_refused(
        &repository,
        "--disable-safeguards=none,git-out-of-sync terraform plan"
    ));
}

#[test]
fn config_adds_read_only_commands() {
    let config =
        "orch {\n  config {\n    run {\n      read_only = [\"make diff\"]\n    }\n  }\n}\n";
    let repository = dirty(config);
    assert!(!is_refused(&repository, "make diff"));
    assert!(!is_refused(&repository, "make --silent=true diff all"));
    assert!(!is_refused(&repository, "terraform plan"));
    assert!(is_refused(&repository, "make"));
    assert!(is_refused(&repository, "make apply"));
}

#[test]
fn resume_checks_safeguards_by_the_command_of_the_earlier_run() {
    let repository = dirty("");
    repository.write_program("/bin/terraform", "#!/bin/sh\nexit 1\n");
    let path = repository.path("/bin/terraform");
    let path = path.display();
    let output = repository.orch(&format!("run -q {path} plan"));
    assert_eq!(output.code(), 1, "{output}");
    let output = repository.orch("run -q --resume");
    assert_eq!(output.code(), 1, "it runs again: {output}");
}

#[test]
fn wrong_patterns_are_explained() {
    let repository = dirty(
        "orch {\n  config {\n    run {\n      read_only = [\"make -n\", \"./diff\", \"\"]\n    }\n  }\n}\n",
    );
    assert_snapshot!(repository.orch("list"), @r#"
    [stderr]
    error: `make -n` in `read_only` matches no command
     --> config.orch.hcl:4:20
      |
    4 |       read_only = ["make -n", "./diff", ""]
      |                    ^^^^^^^^^ options are not part of a pattern
      |
      = help: write the program's file name and its first arguments, without options: `"make diff"`

    error: `./diff` in `read_only` matches no command
     --> config.orch.hcl:4:31
      |
    4 |       read_only = ["make -n", "./diff", ""]
      |                               ^^^^^^^^ the program is named without its directory
      |
      = help: write the program's file name and its first arguments, without options: `"make diff"`

    error: `` in `read_only` matches no command
     --> config.orch.hcl:4:41
      |
    4 |       read_only = ["make -n", "./diff", ""]
      |                                         ^^ it is empty
      |
      = help: write the program's file name and its first arguments, without options: `"make diff"`

    [exit status 3]
    "#);
}
