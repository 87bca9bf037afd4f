//! What `orch run` refuses to destroy: a stack before, or without, those that run after it.

use insta::assert_snapshot;

use crate::support::{Repository, Sandbox};

const STATE: &str = "orch {\n  config {\n    state {\n      project = \"acme\"\n      record {\n        destroy = [\"teardown\"]\n      }\n    }\n  }\n}\n";

const DESTROY: &str = "../terraform destroy -auto-approve";

/// Stacks, and tools that note where they run, and fail where there is a file `fail`.
fn with_tools(stacks: &str, state: bool) -> Repository {
    let sandbox = Sandbox::layout(stacks);
    for tool in ["terraform", "tofu", "terragrunt", "teardown"] {
        let script =
            "#!/bin/sh\necho \"$ORCH_STACK_NAME\" >> \"$ORCH_ROOT/.orch/ran\"\n[ ! -e fail ]\n";
        sandbox.write_program(&format!("/{tool}"), script);
    }
    if state {
        sandbox.write("/state.orch.hcl", STATE);
    }
    let repository = Repository::of(sandbox);
    if state {
        done(&repository, "state init");
    }
    repository
}

/// net, then db, then app; web is by itself.
const TEAM: &str = "
    net
    db after /net
    app after /db
    web";

#[track_caller]
fn done(repository: &Repository, line: &str) {
    let output = repository.orch(line);
    assert_eq!(output.code(), 0, "{line}: {output}");
}

/// Where tools have run since this was asked last.
fn ran(repository: &Repository) -> String {
    let place = repository.path("/.orch/ran");
    let ran = std::fs::read_to_string(&place).unwrap_or_default();
    _ = std::fs::remove_file(place);
    ran.trim_end().replace('\n', " ")
}

/// The lines of a refusal that name stacks; nothing ran.
#[track_caller]
fn refused(repository: &Repository, line: &str) -> Vec<String> {
    let output = repository.orch(line);
    assert_eq!(output.code(), 4, "{line}: {output}");
    assert_eq!(ran(repository), "", "{line}: {output}");
    assert!(
        output.stderr.contains("(safeguard `destroy-order`)"),
        "{output}"
    );
    let lines = output
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("    "));
    lines.map(str::to_owned).collect()
}

#[test]
fn run_refuses_to_destroy_in_forward_order() {
    let forward = format!("run -q -- {DESTROY}");
    let repository = with_tools(TEAM, false);
    assert_snapshot!(repository.orch(&forward), @"
    [stderr]
    error: refused: the run destroys stacks before others that run after them (safeguard `destroy-order`)
        /app runs after /db
        /db runs after /net
      = help: add `--reverse`, or disable this safeguard with `--disable-safeguards=destroy-order`
    [exit status 4]
    ");
    assert_eq!(ran(&repository), "");
    let recorded = with_tools(TEAM, true);
    assert_eq!(refused(&recorded, &forward).len(), 2);
    for repository in [repository, recorded] {
        done(&repository, &format!("run -q --reverse -- {DESTROY}"));
        assert_eq!(ran(&repository), "web app db net");
    }
}

#[test]
fn run_refuses_to_destroy_what_others_run_after() {
    let repository = with_tools(TEAM, false);
    let line = |flags: &str| format!("run -q {flags} -- {DESTROY}");
    assert_snapshot!(repository.orch(&line("--reverse --match net")), @"
    [stderr]
    error: refused: the run destroys stacks and keeps others that run after them (safeguard `destroy-order`)
        /db runs after /net
      = help: add `--include-dependents` to destroy these too, or disable this safeguard with `--disable-safeguards=destroy-order`
    [exit status 4]
    ");
    assert_eq!(
        refused(&repository, &line("--reverse --match net --match db")),
        ["/app runs after /db"]
    );
    // Through a stack that is not selected.
    assert_eq!(
        refused(&repository, &line("--match net --match app --exclude db")).len(),
        2
    );
    done(
        &repository,
        &line("--reverse --match net --include-dependents"),
    );
    assert_eq!(ran(&repository), "app db net");
}

#[test]
fn run_destroys_forward_what_has_no_order() {
    let repository = with_tools("a\nb\nc after /b", false);
    done(
        &repository,
        &format!("run -q --match a --match c -- {DESTROY}"),
    );
    assert_eq!(ran(&repository), "a c");
    done(&repository, &format!("run -q --match c -- {DESTROY}"));
    assert_eq!(ran(&repository), "c");
    // Other commands run as they always did.
    done(
        &repository,
        "run -q --match b -- ../terraform plan -destroy",
    );
    done(&repository, "run -q --match b -- ../teardown");
}

#[test]
fn run_refuses_each_command_that_destroys() {
    let repository = with_tools(TEAM, false);
    for command in [
        "terraform apply -destroy",
        "terraform apply -auto-approve --destroy=true",
        "tofu destroy",
        "terragrunt destroy",
        "terragrunt run --all destroy",
    ] {
        let line = format!("run -q -- ../{command}");
        assert_eq!(refused(&repository, &line).len(), 2, "{line}");
    }
    let by_variable = repository.orch_with("run -q -- ../terraform apply", |command| {
        command.env("TF_CLI_ARGS_apply", "-destroy");
    });
    assert_eq!(by_variable.code(), 4, "{by_variable}");
    assert_eq!(ran(&repository), "");
}

#[test]
fn run_ignores_a_host_variable_that_run_env_unsets() {
    let repository = with_tools(TEAM, false);
    let removed = "orch {\n  config {\n    run {\n      env {\n        TF_CLI_ARGS_apply = unset\n      }\n    }\n  }\n}\n";
    repository.write("/env.orch.hcl", removed);
    repository.commit();
    let output = repository.orch_with("run -q -- ../terraform apply", |command| {
        command.env("TF_CLI_ARGS_apply", "-destroy");
    });
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(ran(&repository), "net db app web");
}

#[test]
fn run_knows_by_the_state_what_exists() {
    let repository = with_tools(TEAM, true);
    done(&repository, "run -q --match net -- ../terraform apply");
    ran(&repository);
    // Nobody has applied db, so nothing runs after net.
    done(&repository, &format!("run -q --match net -- {DESTROY}"));
    done(&repository, "run -q -- ../terraform apply");
    ran(&repository);
    let net = format!("run -q --match net -- {DESTROY}");
    assert_eq!(refused(&repository, &net), ["/db runs after /net"]);
    // Commands that the configuration names are known, too.
    assert_eq!(
        refused(&repository, "run -q --match db -- ../teardown"),
        ["/app runs after /db"]
    );
    assert_eq!(
        refused(
            &repository,
            "run -q --record=destroy --match db -- ../terraform version"
        ),
        ["/app runs after /db"]
    );
    done(&repository, &format!("run -q --match app -- {DESTROY}"));
    done(&repository, &format!("run -q --match db -- {DESTROY}"));
    ran(&repository);
    // A run that is not recorded does not read the state, so everything counts as existing.
    let unrecorded = format!("run -q --no-record --match net -- {DESTROY}");
    assert_eq!(refused(&repository, &unrecorded), ["/db runs after /net"]);
    done(&repository, &net);
}

#[test]
fn run_counts_stacks_that_were_removed_and_are_recorded() {
    let repository = with_tools(TEAM, true);
    done(&repository, "run -q -- ../terraform apply");
    ran(&repository);
    repository.remove("/app/stack.tm");
    repository.commit();
    let line = format!("run -q --match db -- {DESTROY}");
    assert_eq!(refused(&repository, &line), ["/app runs after /db"]);
    let help = "help: first destroy removed stacks with `orch apply`, add `--include-dependents`";
    assert!(repository.orch(&line).stderr.contains(help));
}

#[test]
fn run_checks_each_command_of_eval() {
    let repository = with_tools(TEAM, false);
    let eval = |on: &str| {
        format!(
            "run -q --reverse --eval -- ../terraform '${{terramate.stack.name == \"{on}\" ? \"destroy\" : \"apply\"}}'"
        )
    };
    assert_eq!(refused(&repository, &eval("net")), ["/db runs after /net"]);
    done(&repository, &eval("app"));
}

#[test]
fn resume_goes_on_with_a_destroy_in_reverse() {
    for state in [false, true] {
        let repository = with_tools(TEAM, state);
        if state {
            done(&repository, "run -q -- ../terraform apply");
            ran(&repository);
        }
        repository.write("/db/fail", "");
        repository.commit();
        let failed = repository.orch(&format!("run -q --reverse -- {DESTROY}"));
        assert_eq!(failed.code(), 1, "{failed}");
        assert_eq!(ran(&repository), "web app db");
        repository.remove("/db/fail");
        repository.commit();
        done(&repository, "run -q --resume");
        assert_eq!(ran(&repository), "db net");
    }
}

#[test]
fn resume_refuses_a_destroy_in_forward_order() {
    let repository = with_tools(TEAM, false);
    repository.write("/db/fail", "");
    repository.commit();
    let failed = repository.orch(&format!(
        "run -q --disable-safeguards=destroy-order -- {DESTROY}"
    ));
    assert_eq!(failed.code(), 1, "{failed}");
    assert_eq!(ran(&repository), "net db");
    let output = repository.orch("run -q --resume");
    assert_eq!(output.code(), 4, "{output}");
    assert!(
        output
            .stderr
            .contains("help: start a new run: add `--reverse`"),
        "{output}"
    );
}

#[test]
fn destroy_order_is_lifted_by_flags_and_configuration() {
    let repository = with_tools(TEAM, false);
    let forward = |flags: &str| format!("run -q {flags} -- {DESTROY}");
    for flags in [
        "-X",
        "--disable-safeguards=destroy-order",
        "--disable-safeguards=all",
    ] {
        done(&repository, &forward(flags));
        assert_eq!(ran(&repository), "net db app web", "{flags}");
    }
    // It has nothing to do with git.
    assert_eq!(
        refused(&repository, &forward("--disable-safeguards=git")).len(),
        2
    );
    let set = "orch {\n  config {\n    disable_safeguards = [\"destroy-order\"]\n  }\n}\n";
    repository.write("/settings.orch.hcl", set);
    repository.commit();
    done(&repository, &forward(""));
    ran(&repository);
    let none = forward("--disable-safeguards=none,git-out-of-sync");
    assert_eq!(refused(&repository, &none).len(), 2);
}

#[test]
fn run_refuses_to_destroy_in_forward_order_outside_of_git() {
    let sandbox = Sandbox::layout("a\nb after /a");
    sandbox.write_program("/terraform", "#!/bin/sh\nexit 1\n");
    let output = sandbox.orch(&format!("run -q -- {DESTROY}"));
    assert_eq!(output.code(), 4, "{output}");
}

#[test]
fn dry_run_shows_that_a_destroy_would_be_refused() {
    for state in [false, true] {
        let repository = with_tools(TEAM, state);
        if state {
            done(&repository, "run -q -- ../terraform apply");
        }
        let forward = repository.orch(&format!("run --dry-run -- {DESTROY}"));
        assert!(forward.stdout.starts_with("/net: "), "{forward}");
        assert!(forward.stderr.contains("/db runs after /net"), "{forward}");
        assert!(
            forward.stderr.ends_with("note: the run would be refused\n"),
            "{forward}"
        );
        let reverse = repository.orch(&format!("run --dry-run --reverse -- {DESTROY}"));
        assert_eq!(reverse.stderr, "", "{reverse}");
        let line = format!("run --dry-run -- {DESTROY}");
        let lifted = repository.orch_with(&line, |command| {
            command.env("ORCH_DISABLE_SAFEGUARDS", "destroy-order");
        });
        assert_eq!(lifted.stderr, "", "{lifted}");
    }
}

#[test]
fn destroy_order_names_a_bounded_number_of_stacks() {
    let chain: Vec<String> = (10..40)
        .map(|number| match number {
            10 => "s10".to_owned(),
            _ => format!("s{number} after /s{}", number - 1),
        })
        .collect();
    let repository = with_tools(&chain.join("\n"), false);
    let named = refused(&repository, &format!("run -q -- {DESTROY}"));
    assert_eq!(named.len(), 11);
    assert_eq!(named[10], "and 19 more");
}
