//! HEAD and the remote.

use std::fs;

use insta::assert_snapshot;

use super::{Recorder, objections};
use crate::support::{Checkout, Output, Repositories};

const ENABLED: &str = "enable_safeguards = [\"git-out-of-sync\"]";

/// An author who has this in the configuration, and two commits on `main`.
fn configured(config: &str) -> Repositories {
    let repositories = Repositories::new();
    let text = format!("orch {{\n config {{\n{config}\n}}\n}}\n");
    repositories.author().write("config.tm", &text);
    repositories.author().commit("first", "a");
    repositories
}

/// The project is a clone, and the author has published another commit since.
fn behind(config: &str) -> Repositories {
    let repositories = configured(config);
    repositories.clone("");
    repositories.author().commit("newest", "b");
    repositories.publish();
    repositories
}

fn run(project: &Checkout<'_>) -> Output {
    project.orch("run --quiet -- true")
}

#[track_caller]
fn assert_runs(project: &Checkout<'_>, flags: &str) {
    let said = project.orch(&format!("run --quiet {flags} -- true"));
    assert_eq!(said.to_string(), "", "{flags}");
}

/// What mends it, does.
#[track_caller]
fn assert_mends(project: &Checkout<'_>, said: &Output) {
    for command in said.advice().split(" && ") {
        project.run(command);
    }
    assert_eq!(run(project).code(), 0);
}

#[test]
fn up_to_date() {
    let repositories = configured(ENABLED);
    let project = repositories.clone("");
    assert_runs(&project, "");
    project.commit("own", "c");
    assert_runs(&project, "");
    project.git("switch -q -c feature");
    project.commit("more", "c");
    assert_runs(&project, "");
    project.git("checkout -q --detach");
    assert_runs(&project, "");
}

#[test]
fn behind_on_the_default_branch() {
    let repositories = behind(ENABLED);
    let project = repositories.project();
    let said = run(&project);
    assert_snapshot!(said, @"
    [stderr]
    error: refused: HEAD (<first>) is out of date: it lacks <newest>, the tip of origin/main (safeguard `git-out-of-sync`)
      = help: run `git fetch origin main && git merge --ff-only FETCH_HEAD`, or disable this safeguard with `--disable-safeguards=git-out-of-sync`
    note: nothing was run
    [exit status 4]
    ");
    assert_mends(&project, &said);
}

#[test]
fn behind_with_commits_of_its_own() {
    let repositories = behind(ENABLED);
    let project = repositories.project();
    project.git("switch -q -c feature");
    project.commit("own", "c");
    let said = run(&project);
    assert_snapshot!(said, @"
    [stderr]
    error: refused: HEAD (<own>) is out of date: it lacks <newest>, the tip of origin/main (safeguard `git-out-of-sync`)
      = help: run `git fetch origin main && git rebase FETCH_HEAD`, or disable this safeguard with `--disable-safeguards=git-out-of-sync`
    note: nothing was run
    [exit status 4]
    ");
    assert_mends(&project, &said);
}

#[test]
fn behind_and_fetched() {
    let repositories = behind(ENABLED);
    let project = repositories.project();
    project.git("fetch -q");
    let said = run(&project);
    assert_eq!(
        said.advice(),
        "git fetch origin main && git merge --ff-only FETCH_HEAD"
    );
    project.commit("own", "c");
    let said = run(&project);
    assert_eq!(
        said.advice(),
        "git fetch origin main && git rebase FETCH_HEAD"
    );
    assert_mends(&project, &said);
}

#[test]
fn behind_with_a_detached_head() {
    let repositories = behind(ENABLED);
    let project = repositories.project();
    project.git("checkout -q --detach");
    let said = run(&project);
    assert_eq!(said.code(), 4, "{said}");
    assert_mends(&project, &said);
}

#[test]
fn safeguards_report_all_violations_at_once() {
    let repositories = behind(ENABLED);
    let project = repositories.project();
    project.write("new", "");
    assert_eq!(
        objections(&run(&project)),
        "git-untracked: new\ngit-out-of-sync:\n"
    );
}

#[test]
fn nothing_in_common() {
    let repositories = configured(ENABLED);
    let project = repositories.clone("");
    project.git("checkout -q --orphan other");
    project.commit("unrelated", "");
    assert_snapshot!(run(&project), @"
    [stderr]
    error: refused: HEAD (<unrelated>) and origin/main (<first>) have no common commit (safeguard `git-out-of-sync`)
      = help: set `config.git.default_remote` and `default_branch` to the branch to compare HEAD with, or disable this safeguard with `--disable-safeguards=git-out-of-sync`
    note: nothing was run
    [exit status 4]
    ");
}

#[test]
fn run_refuses_a_branch_without_commits() {
    let repositories = configured(ENABLED);
    let project = repositories.clone("");
    project.git("checkout -q --orphan other");
    let said = project.orch("run -q --disable-safeguards=git-uncommitted -- true");
    assert_snapshot!(said, @"
    [stderr]
    error: refused: HEAD has no commit, and origin/main is at <first> (safeguard `git-out-of-sync`)
      = help: switch to a branch that has commits, or disable this safeguard with `--disable-safeguards=git-out-of-sync`
    note: nothing was run
    [exit status 4]
    ");
}

#[test]
fn run_refuses_an_unreachable_remote() {
    let repositories = configured(ENABLED);
    let project = repositories.clone("");
    project.git("remote set-url origin file:///nowhere/at/all");
    let said = run(&project);
    let lines: Vec<&str> = said.stderr.lines().collect();
    assert_eq!(
        lines[0],
        "error: refused: failed to check whether HEAD is up to date (safeguard `git-out-of-sync`)"
    );
    let cause =
        "  caused by: `git ls-remote -- origin refs/heads/main` failed (exit status: 128): fatal: ";
    assert!(lines[1].starts_with(cause), "{said}");
    let help = "  = help: see git's message above, or disable this safeguard with `--disable-safeguards=git-out-of-sync`";
    assert_eq!(lines[lines.len() - 2..], [help, "note: nothing was run"]);
    assert_eq!(said.code(), 4);
}

#[test]
fn run_refuses_a_branch_that_the_remote_lacks() {
    let repositories = configured(&format!(
        "{ENABLED}\ngit {{\n default_branch = \"trunk\"\n}}"
    ));
    let project = repositories.clone("");
    assert_snapshot!(run(&project), @"
    [stderr]
    error: refused: the remote `origin` has no branch `trunk` (safeguard `git-out-of-sync`)
      = help: set `config.git.default_remote` and `default_branch` to the branch to compare HEAD with, or disable this safeguard with `--disable-safeguards=git-out-of-sync`
    note: nothing was run
    [exit status 4]
    ");
    repositories.author().git("branch other/refs/heads/trunk");
    repositories.publish();
    assert_eq!(objections(&run(&project)), "git-out-of-sync:\n");
    repositories.author().git("branch trunk");
    repositories.publish();
    assert_runs(&project, "");
}

#[test]
fn another_remote() {
    let repositories = configured(&format!(
        "{ENABLED}\ngit {{\n default_remote = \"upstream\"\n}}"
    ));
    let project = repositories.clone("");
    assert_snapshot!(run(&project), @"
    [stderr]
    error: refused: the branch to compare HEAD with is unknown (safeguard `git-out-of-sync`)
      caused by: the repository has no remote `upstream`, which `config.git.default_remote` names
      = help: run `git remote add upstream URL`, or correct the configuration, or disable this safeguard with `--disable-safeguards=git-out-of-sync`
    note: nothing was run
    [exit status 4]
    ");
    project.git("remote add upstream $URL");
    project.git("remote set-url origin file:///nowhere");
    assert_runs(&project, "");
}

#[test]
fn several_remotes() {
    let repositories = configured(ENABLED);
    let project = repositories.clone("--origin one");
    project.git("remote add two $URL");
    project.git("checkout -q --detach");
    assert_snapshot!(run(&project), @"
    [stderr]
    error: refused: the branch to compare HEAD with is unknown (safeguard `git-out-of-sync`)
      caused by: the repository has several remotes, `one`, `two`
      = help: choose one: `config.git.default_remote` in the configuration, or disable this safeguard with `--disable-safeguards=git-out-of-sync`
    note: nothing was run
    [exit status 4]
    ");
}

#[test]
fn without_a_remote() {
    let repositories = configured(ENABLED);
    let project = repositories.clone("");
    project.git("remote remove origin");
    assert_runs(&project, "");
    assert_snapshot!(project.orch("run -q --disable-safeguards=none -- true"), @"
    [stderr]
    error: refused: no remote to compare HEAD with (safeguard `git-out-of-sync`)
      = help: add one with `git remote add origin URL`, or disable this safeguard with `--disable-safeguards=git-out-of-sync`
    note: nothing was run
    [exit status 4]
    ");
}

#[test]
fn flags_and_config_switch_the_sync_check() {
    let is_on = |repositories: &Repositories, flags: &str, variables: &[(&str, &str)]| {
        let said = repositories
            .project()
            .orch_in_ci(&format!("run -q {flags} -- true"), variables);
        !objections(&said).is_empty()
    };
    let enabled = behind(ENABLED);
    assert!(is_on(&enabled, "", &[]));
    assert!(is_on(&enabled, "--changed --base HEAD~1", &[]));
    for flags in ["-X", "--disable-safeguards=git-out-of-sync"] {
        assert!(!is_on(&enabled, flags, &[]), "{flags}");
    }
    let usual = behind("");
    assert!(!is_on(&usual, "", &[]));
    assert!(is_on(&usual, "--disable-safeguards=none", &[]));
    for name in ["ORCH_DISABLE_SAFEGUARDS", "TM_DISABLE_SAFEGUARDS"] {
        assert!(!is_on(&enabled, "", &[(name, "git-out-of-sync")]), "{name}");
        assert!(is_on(&usual, "", &[(name, "none")]), "{name}");
    }
}

#[test]
fn run_asks_the_remote_only_if_the_check_is_on_and_something_runs() {
    let repositories = behind(ENABLED);
    let project = repositories.project();
    let recorder = Recorder::new(&repositories.at("recorder").path(""));
    let is_asked = |arguments: &str| {
        let output = repositories.orch_in(&project, arguments, |orch| recorder.watch(orch));
        drop(output);
        let asked = recorder.asked();
        assert!(!asked.contains(&"fetch".to_owned()));
        asked.contains(&"ls-remote".to_owned())
    };
    assert!(is_asked("run true"));
    assert!(is_asked(
        "run --disable-safeguards=git-untracked,git-uncommitted true"
    ));
    for arguments in [
        "run -X true",
        "run --disable-safeguards=git-out-of-sync true",
        "run --dry-run true",
        "run --tags no true",
        "run no-such-program",
        "list --changed",
        "list",
        "graph",
        "env",
        "validate",
    ] {
        assert!(!is_asked(arguments), "{arguments}");
    }
}

#[test]
fn nobody_is_asked_for_a_password() {
    let repositories = configured(ENABLED);
    let project = repositories.clone("");
    project.git("remote set-url origin ssh://nowhere.invalid/x");
    let recorder = repositories.at("bin");
    recorder.write(
        "ssh",
        "#!/bin/sh\necho \"$GIT_TERMINAL_PROMPT $*\" >> \"$0.log\"\nexit 1\n",
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(recorder.path("ssh"), mode).unwrap();
    let said = |variables: &[(&str, &str)]| {
        let output = repositories.orch_in(&project, "run -q -- true", |orch| {
            let path = format!(
                "{}:{}",
                recorder.path("").display(),
                std::env::var("PATH").unwrap()
            );
            orch.env("PATH", path).envs(variables.iter().copied());
        });
        assert_eq!(output.code(), 4, "{output}");
        let log = fs::read_to_string(recorder.path("ssh.log")).unwrap();
        fs::remove_file(recorder.path("ssh.log")).unwrap();
        log
    };
    let log = said(&[]);
    assert!(log.starts_with("0 "), "{log}");
    assert!(log.contains("-o BatchMode=yes"), "{log}");
    let log = said(&[("GIT_SSH_COMMAND", "ssh -o Own=choice")]);
    assert!(log.contains("-o Own=choice"), "{log}");
    assert!(!log.contains("BatchMode"), "{log}");
    project.git("config core.sshCommand 'ssh -o Other=choice'");
    let log = said(&[]);
    assert!(log.contains("-o Other=choice"), "{log}");
    assert!(!log.contains("BatchMode"), "{log}");
}

#[test]
fn run_refuses_a_shallow_clone_with_too_little_history() {
    let repositories = configured(ENABLED);
    let project = repositories.clone("--depth 1");
    assert!(project.is_shallow());
    assert_runs(&project, "");
    // CI checks out a merge whose parents are not there, and one of them is the tip.
    let author = repositories.author();
    author.git("checkout -q -b feature");
    author.commit("change", "c");
    author.git("checkout -q main");
    author.commit("newest", "b");
    author.git("checkout -q --detach");
    author.merge("merge", "feature");
    author.git("branch merged");
    repositories.publish();
    project.git("fetch -q --depth 1 origin merged");
    project.git("checkout -q --detach FETCH_HEAD");
    project.git("update-ref -d refs/remotes/origin/main");
    assert_runs(&project, "");
    project.git("fetch -q --depth 1 origin feature");
    project.git("checkout -q --detach FETCH_HEAD");
    let said = run(&project);
    assert_snapshot!(said, @"
    [stderr]
    error: refused: HEAD (<change>) is out of date: it lacks <newest>, the tip of origin/main (safeguard `git-out-of-sync`)
      = help: get the history of this shallow clone with `git fetch --unshallow origin main`, or disable this safeguard with `--disable-safeguards=git-out-of-sync`
    note: nothing was run
    [exit status 4]
    ");
}

#[test]
fn run_refuses_a_remote_with_invalid_answers() {
    let repositories = configured(ENABLED);
    let project = repositories.clone("");
    let recorder = repositories.at("bin");
    recorder.write(
        "git",
        "#!/bin/sh\nfor word; do\n[ \"$word\" = ls-remote ] && echo '<html>' && exit\ndone\nexit 0\n",
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(recorder.path("git"), mode).unwrap();
    let output = repositories.orch_in(&project, "run -q -- true", |orch| {
        let path = format!(
            "{}:{}",
            recorder.path("").display(),
            std::env::var("PATH").unwrap()
        );
        orch.env("PATH", path);
    });
    assert_snapshot!(output, @"
        [stderr]
        error: refused: failed to check whether HEAD is up to date (safeguard `git-out-of-sync`)
          caused by: `git ls-remote -- origin refs/heads/main` printed unexpected output: <html>
          = help: see git's message above, or disable this safeguard with `--disable-safeguards=git-out-of-sync`
        note: nothing was run
        [exit status 4]
        ");
}

#[test]
fn apply_warns_if_head_lacks_what_this_clone_knows_of_the_default_branch() {
    let repositories = behind("");
    let project = repositories.project();
    let driver = "orch {\n config {\n  driver = \"d\"\n }\n}\ndriver \"d\" {\n plan = [\"true\"]\n apply = [\"true\"]\n}\n";
    project.write("driver.orch.hcl", driver);
    project.git("add .");
    project.git("commit -q -m own");
    let warning = "the apply may revert newer changes";
    let apply = |flags: &str| project.orch(&format!("apply --auto-approve {flags}"));
    // Nobody asks the remote.
    assert!(!apply("").stderr.contains(warning));
    project.git("fetch -q origin");
    for flags in ["", "--match a"] {
        let said = apply(flags);
        assert_eq!(said.code(), 0, "{said}");
        assert!(
            said.stderr
                .contains("the tip of origin/main as this clone knows it"),
            "{said}"
        );
        assert!(said.stderr.contains(warning), "{said}");
        assert!(
            said.stderr
                .contains("git fetch origin main && git rebase FETCH_HEAD"),
            "{said}"
        );
    }
    assert_eq!(project.orch("plan -o ../saved").code(), 0);
    let said = project.orch("apply ../saved");
    assert_eq!(said.stderr.matches(warning).count(), 1, "{said}");
    for flags in ["-X", "--disable-safeguards=git-out-of-sync"] {
        assert!(!apply(flags).stderr.contains(warning), "{flags}");
    }
    assert_eq!(apply("--disable-safeguards=none").code(), 4);
    project.git("rebase -q origin/main");
    assert!(!apply("").stderr.contains(warning));
}
