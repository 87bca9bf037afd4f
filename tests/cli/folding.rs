//! The output of a run in the log of a CI system.

use insta::assert_snapshot;

use crate::support::{Output, Sandbox};

/// Runs a script that prints and fails in the middle stack, where a variable tells the CI system.
fn run(variable: (&str, &str), flags: &str) -> Output {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c",
    );
    sandbox.write_program(
        "/script.sh",
        "#!/bin/sh\necho $ORCH_STACK_NAME\ntest $ORCH_STACK_NAME != b\n",
    );
    let flags = format!("run {flags} --on-error continue -- ../script.sh");
    sandbox.orch_with(&flags, |command| {
        command.env(variable.0, variable.1);
    })
}

#[test]
fn github_folds_successes() {
    assert_snapshot!(run(("GITHUB_ACTIONS", "true"), "--output grouped"), @"
    a
    b
    c
    b
    [stderr]
    ::group::orch: /a: succeeded in [time]
    ::endgroup::
    orch: /b: failed: exit status 1 after [time]
    ::group::orch: /c: succeeded in [time]
    ::endgroup::
    orch: /b: failed: exit status 1 after [time]
    orch: failed /b: exit status 1 after [time]; log: .orch/runs/[run]/logs/0002-b.log
    orch: 2 succeeded, 1 failed in [time]
    ::error file=b/stack.tm,line=1,col=1,title=orch%3A /b failed::exit status 1 after 0.0s
    orch: to run what is left: orch run --resume [run]
    [exit status 1]
    ");
}

#[test]
fn azure_folds_successes() {
    assert_snapshot!(run(("TF_BUILD", "True"), "--output grouped").stderr, @"
    ##[group]orch: /a: succeeded in [time]
    ##[endgroup]
    orch: /b: failed: exit status 1 after [time]
    ##[group]orch: /c: succeeded in [time]
    ##[endgroup]
    orch: /b: failed: exit status 1 after [time]
    orch: failed /b: exit status 1 after [time]; log: .orch/runs/[run]/logs/0002-b.log
    orch: 2 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    ");
}

#[test]
fn teamcity_folds_successes() {
    assert_snapshot!(run(("TEAMCITY_VERSION", "2025.1"), "--output grouped").stderr, @"
    ##teamcity[blockOpened name='orch: /a: succeeded in [time]']
    ##teamcity[blockClosed name='orch: /a: succeeded in [time]']
    orch: /b: failed: exit status 1 after [time]
    ##teamcity[blockOpened name='orch: /c: succeeded in [time]']
    ##teamcity[blockClosed name='orch: /c: succeeded in [time]']
    orch: /b: failed: exit status 1 after [time]
    orch: failed /b: exit status 1 after [time]; log: .orch/runs/[run]/logs/0002-b.log
    orch: 2 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    ");
}

#[test]
fn buildkite_folds_successes_and_opens_the_rest() {
    assert_snapshot!(run(("BUILDKITE", "true"), "--output grouped").stderr, @"
    --- orch: /a: succeeded in [time]
    +++ orch: /b: failed: exit status 1 after [time]
    --- orch: /c: succeeded in [time]
    +++ orch: /b: failed: exit status 1 after [time]
    +++ orch: summary
    orch: failed /b: exit status 1 after [time]; log: .orch/runs/[run]/logs/0002-b.log
    orch: 2 succeeded, 1 failed in [time]
    orch: to run what is left: orch run --resume [run]
    ");
}

#[test]
fn gitlab_has_sections_with_names_of_their_own() {
    let output = run(("GITLAB_CI", "true"), "--output grouped");
    let line = |text: &str| text.contains("section_start:");
    let starts: Vec<&str> = output.stderr.lines().filter(|text| line(text)).collect();
    assert_eq!(starts.len(), 4, "{output}");
    let folded: Vec<bool> = starts
        .iter()
        .map(|start| start.contains("[collapsed=true]\r\u{1b}[0Korch: /"))
        .collect();
    assert_eq!(folded, [true, false, true, false]);
    for number in 1..=4 {
        let end = format!("_{number}\r\u{1b}[0K");
        let ends = output.stderr.lines().filter(|text| text.ends_with(&end));
        assert_eq!(ends.count(), 1, "{output}");
    }
}

#[test]
fn runs_fold_by_themselves_in_ci() {
    for flags in ["-j 2", ""] {
        let output = run(("GITHUB_ACTIONS", "true"), flags);
        assert!(
            output.stderr.contains("::group::orch: /a: succeeded"),
            "{output}"
        );
    }
    let output = run(("GITHUB_ACTIONS", "true"), "--output live");
    assert!(!output.stderr.contains("::group::"), "{output}");
}
