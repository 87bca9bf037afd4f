//! Options with which a tool plans something other than its whole stack, and the variables they can hide in:
//! Terraform adds the words of some variables to those of its commands.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::Tool;
use super::command::StepRole;

/// Options with which a plan leaves something out.
const PARTIAL: [&str; 4] = ["target", "target-file", "exclude", "exclude-file"];

/// Options of other modes.
const MODES: [&str; 2] = ["destroy", "refresh-only"];

/// Options with which a command only prints something, and succeeds.
const IDLE: [&str; 4] = ["help", "h", "version", "v"];

/// Options of `plan` that `orch` gives itself, or that change what is printed.
const STEERING: [&str; 4] = ["out", "destroy", "refresh-only", "json"];

/// The variable whose words Terraform adds to those of every command.
const EVERY: &str = "TF_CLI_ARGS";

/// Returns whether a `plan` of Terraform or its kin with these words leaves something out.
pub fn leaves_out(words: &[OsString]) -> bool {
    let mut words = words.iter().map(|word| word.to_string_lossy());
    words.any(|word| option(&word).is_some_and(|(name, _)| PARTIAL.contains(&name)))
}

/// Returns the option that a word for `plan` gives, without its dashes, if `orch` has to decide on it: what is
/// planned, and where to.
pub fn steering(word: &OsStr) -> Option<&'static str> {
    let word = word.to_string_lossy();
    let (name, _) = option(&word)?;
    STEERING.into_iter().find(|&it| it == name)
}

/// Returns whether a program is one of the tools, by its name.
pub fn is_tool(program: &OsString) -> bool {
    let name = Path::new(program).file_stem();
    name.is_some_and(|name| Tool::ALL.iter().any(|tool| name == tool.program()))
}

/// Returns the variables whose words reach a command, as far as that is for this.
pub fn variables_with_words(role: StepRole) -> &'static [&'static str] {
    match role {
        StepRole::Init => &[EVERY, "TF_CLI_ARGS_init"],
        StepRole::Plan => &[EVERY, "TF_CLI_ARGS_plan"],
        StepRole::Show => &[EVERY, "TF_CLI_ARGS_show"],
        StepRole::Validate => &[EVERY, "TF_CLI_ARGS_validate"],
        StepRole::Act => &[EVERY, "TF_CLI_ARGS_apply", "TF_CLI_ARGS_destroy"],
        StepRole::Outputs => &[EVERY, "TF_CLI_ARGS_output"],
    }
}

/// Returns the first option in the value of such a variable, without its dashes, that makes the tool do something
/// else than `orch` asks for.
pub fn hidden_option(value: &str) -> Option<&'static str> {
    // Terraform refuses words with open quotes.
    let words = shell_words::split(value)
        .unwrap_or_else(|_| value.split_whitespace().map(str::to_owned).collect());
    words.iter().find_map(|word| {
        let (name, value) = option(word)?;
        let is_off = matches!(value, Some("false" | "0" | "f" | "F" | "FALSE" | "False"));
        let mut switches = MODES.into_iter().chain(IDLE).filter(|_| !is_off);
        switches
            .find(|it| *it == name)
            .or_else(|| PARTIAL.into_iter().find(|it| *it == name))
    })
}

/// Returns the name and the value of an option.
fn option(word: &str) -> Option<(&str, Option<&str>)> {
    let option = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    Some(match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_or_an_exclusion_leaves_something_out() {
        let cases = [
            ("plan -input=false -out=x", false),
            ("plan -target=a.b", true),
            ("plan --target a.b", true),
            ("plan -exclude=a.b", true),
            ("plan -var target=x -targets", false),
            ("plan -var=x=-target", false),
        ];
        for (line, expected) in cases {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(leaves_out(&words), expected, "{line}");
        }
    }

    #[test]
    fn an_option_that_changes_what_is_asked_is_found_in_a_variable() {
        let cases = [
            ("-destroy", Some("destroy")),
            ("-lock=false --destroy=true", Some("destroy")),
            ("-destroy=false -refresh-only=0", None),
            ("-refresh-only", Some("refresh-only")),
            ("-lock=false '-target=a[\"b\"]'", Some("target")),
            ("-target=false", Some("target")),
            ("--exclude a.b", Some("exclude")),
            ("-exclude-file=x", Some("exclude-file")),
            ("-help", Some("help")),
            ("-v", Some("v")),
            ("-destroy 'open", Some("destroy")),
            ("-parallelism=3 -lock-timeout=5m", None),
            ("-var=x=-destroy -var-file=target", None),
            ("-refresh=false -no-color -input=false", None),
            ("destroy", None),
            ("", None),
        ];
        for (value, expected) in cases {
            assert_eq!(hidden_option(value), expected, "{value}");
        }
    }

    #[test]
    fn a_program_is_a_tool_by_its_name() {
        for (program, expected) in [
            ("terraform", true),
            ("/opt/bin/tofu", true),
            ("terragrunt", true),
            ("sh", false),
            ("/opt/terraform-docs", false),
        ] {
            assert_eq!(is_tool(&program.into()), expected, "{program}");
        }
    }

    #[test]
    fn only_orch_says_what_is_planned_and_where_to() {
        let cases = [
            ("-out=x", Some("out")),
            ("--out", Some("out")),
            ("-destroy", Some("destroy")),
            ("--destroy=true", Some("destroy")),
            ("-refresh-only", Some("refresh-only")),
            ("-json", Some("json")),
            ("-refresh=false", None),
            ("-target=-destroy", None),
            ("-var=out=1", None),
            ("destroy", None),
            ("-", None),
            ("", None),
        ];
        for (word, expected) in cases {
            assert_eq!(steering(OsStr::new(word)), expected, "{word}");
        }
    }
}
