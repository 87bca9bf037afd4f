use std::collections::HashMap;
use std::path::Path;

use super::super::values::HostVariables;
use super::*;
use crate::project::tool_use::ToolUse;

fn with(own: &[(&str, RecordKind)]) -> RecordPatterns {
    let attributes = HashMap::new();
    let mut values = Values::new(&attributes, HostVariables::NotAsked);
    let RecordPatterns(mut all) = patterns(&mut values, &LISTS);
    for (text, recorded) in own {
        all.push((RecordPattern::parse(text).unwrap(), *recorded));
    }
    RecordPatterns(all)
}

fn recorded<'p>(
    patterns: &'p RecordPatterns,
    command: &str,
    variables: &[(&str, &str)],
) -> Option<RecognizedCommand<'p>> {
    patterns.recognize(&words(command), |name| value_of(variables, name))
}

fn words(command: &str) -> Vec<OsString> {
    let command = shell_words::split(command).unwrap();
    command.into_iter().map(OsString::from).collect()
}

fn value_of(variables: &[(&str, &str)], name: &str) -> Option<String> {
    let mut variables = variables.iter();
    let found = variables.find(|(known, _)| *known == name);
    found.map(|(_, value)| (*value).to_owned())
}

/// Returns the option with which a command does only a part of what it is recorded as.
fn partial(
    found: &RecognizedCommand<'_>,
    command: &str,
    variables: &[(&str, &str)],
) -> Option<&'static str> {
    let uses = ToolUse::all(&words(command), |name| value_of(variables, name));
    let is_expected = |option: &str| found.options.iter().any(|it| it == option);
    let mut found = uses.iter();
    found.find_map(|it| it.partial(Path::new("/app"), is_expected))
}

#[test]
fn recorded_without_configuration_are_commands_of_terraform() {
    use RecordKind::{Apply, Destroy};
    let patterns = with(&[]);
    let table = [
        ("terraform apply", Some((Apply, None))),
        (
            "/opt/bin/terraform apply -auto-approve",
            Some((Apply, None)),
        ),
        ("terraform.exe apply", Some((Apply, None))),
        ("tofu -chdir=x apply", Some((Apply, None))),
        ("terragrunt --non-interactive apply", Some((Apply, None))),
        ("terraform destroy", Some((Destroy, None))),
        ("terraform apply -destroy", Some((Destroy, None))),
        ("terraform apply -destroy=true", Some((Destroy, None))),
        ("terraform apply -destroy=false", Some((Apply, None))),
        ("tofu apply --destroy=0 -destroy", Some((Destroy, None))),
        ("terraform apply -refresh-only=false", Some((Apply, None))),
        ("tofu apply --destroy -auto-approve", Some((Destroy, None))),
        ("terraform apply -target=x", Some((Apply, Some("target")))),
        ("terraform apply -target x", Some((Apply, Some("target")))),
        (
            "terraform apply --refresh-only",
            Some((Apply, Some("refresh-only"))),
        ),
        ("tofu apply -exclude=x", Some((Apply, Some("exclude")))),
        (
            "tofu apply -target-file=x",
            Some((Apply, Some("target-file"))),
        ),
        ("terraform apply -help", Some((Apply, Some("help")))),
        ("terraform apply -v", Some((Apply, Some("v")))),
        (
            "terraform apply -destroy -target=x",
            Some((Destroy, Some("target"))),
        ),
        (
            "terraform destroy -target=x",
            Some((Destroy, Some("target"))),
        ),
        ("terraform destroy --help", Some((Destroy, Some("help")))),
        ("terraform plan", None),
        ("terraform plan apply", None),
        ("terraform -help", None),
        ("terraform", None),
        ("sh -c 'terraform apply'", None),
        ("terraformer apply", None),
    ];
    for (command, wanted) in table {
        let found =
            recorded(&patterns, command, &[]).map(|it| (it.recorded, partial(&it, command, &[])));
        assert_eq!(found, wanted, "{command}");
    }
}

#[test]
fn recorded_variables_of_terraform_count_as_if_written() {
    use RecordKind::{Apply, Destroy};
    let table = [
        ("terraform apply", "TF_CLI_ARGS", "-no-color", Apply, None),
        (
            "terraform apply",
            "TF_CLI_ARGS_apply",
            "-target=x -no-color",
            Apply,
            Some("target"),
        ),
        (
            "terraform destroy",
            "TF_CLI_ARGS_destroy",
            "-target=x",
            Destroy,
            Some("target"),
        ),
        (
            "terraform destroy",
            "TF_CLI_ARGS_apply",
            "-target=x",
            Destroy,
            None,
        ),
        ("terraform apply", "TF_CLI_ARGS", "-destroy", Destroy, None),
        (
            "terraform apply",
            "TF_CLI_ARGS_plan",
            "-destroy",
            Apply,
            None,
        ),
        (
            "make apply",
            "TF_CLI_ARGS",
            "-destroy -target=x",
            Apply,
            None,
        ),
    ];
    let patterns = with(&[("make apply", Apply)]);
    for (command, name, value, wanted, option) in table {
        let found = recorded(&patterns, command, &[(name, value)]);
        let variables = &[(name, value)];
        let found = found.map(|it| (it.recorded, partial(&it, command, variables)));
        assert_eq!(found, Some((wanted, option)), "{command} {name}={value}");
    }
}

#[test]
fn recorded_as_partial_is_no_command_whose_pattern_names_the_option() {
    let patterns = with(&[
        ("terraform apply -target", RecordKind::Apply),
        ("tofu apply -help", RecordKind::Never),
    ]);
    for (command, wanted, option) in [
        ("terraform apply -target=x", RecordKind::Apply, None),
        ("tofu apply -help", RecordKind::Never, None),
        ("tofu apply -target=x", RecordKind::Apply, Some("target")),
    ] {
        let found =
            recorded(&patterns, command, &[]).map(|it| (it.recorded, partial(&it, command, &[])));
        assert_eq!(found, Some((wanted, option)), "{command}");
    }
}

#[test]
fn the_pattern_with_the_most_words_decides() {
    let patterns = with(&[
        ("make deploy", RecordKind::Apply),
        ("make deploy -n", RecordKind::Never),
        ("make  deploy   down", RecordKind::Destroy),
    ]);
    for (command, wanted) in [
        ("make deploy", Some((RecordKind::Apply, "make deploy"))),
        (
            "make -j deploy all",
            Some((RecordKind::Apply, "make deploy")),
        ),
        (
            "make deploy -n",
            Some((RecordKind::Never, "make deploy -n")),
        ),
        (
            "make -n=1 deploy",
            Some((RecordKind::Never, "make deploy -n")),
        ),
        (
            "make deploy down",
            Some((RecordKind::Destroy, "make deploy down")),
        ),
        ("make all deploy", None),
        ("make", None),
    ] {
        let found = recorded(&patterns, command, &[]).map(|it| (it.recorded, it.pattern));
        assert_eq!(found, wanted, "{command}");
    }
}

#[test]
fn what_can_never_match_is_no_pattern() {
    for text in [
        "",
        "  ",
        "./make deploy",
        "-make",
        "make deploy -x=y",
        "make -",
    ] {
        assert!(RecordPattern::parse(text).is_err(), "{text}");
    }
}
