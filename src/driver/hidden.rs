//! Options of `plan` that only `orch` may set, and the places where others can hide: the commands of a driver, and
//! variables with arguments for Terraform's commands.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::Tool;
use super::command::StepRole;
use crate::project::tool_options::{option, steers};

/// Options of `plan` that `orch` sets itself, or that change the output.
const STEERING: [&str; 4] = ["out", "destroy", "refresh-only", "json"];

/// The variable whose words Terraform adds to those of every command.
const EVERY: &str = "TF_CLI_ARGS";

/// Returns the option of an argument for `plan`, without its dashes, if `orch` must control it: the subject of the
/// plan, and the plan file.
pub fn steering(word: &OsStr) -> Option<&'static str> {
    let word = word.to_string_lossy();
    let (name, _) = option(&word)?;
    STEERING.into_iter().find(|&it| it == name)
}

pub fn is_tool(program: &OsString) -> bool {
    let name = Path::new(program).file_stem();
    name.is_some_and(|name| Tool::ALL.iter().any(|tool| name == tool.program()))
}

/// Returns the variables whose words reach a command, as far as that is for this.
pub fn variables_with_words(role: StepRole) -> &'static [&'static str] {
    match role {
        StepRole::Init => &[EVERY, "TF_CLI_ARGS_init"],
        StepRole::Plan => &[EVERY, "TF_CLI_ARGS_plan"],
        StepRole::Show | StepRole::State => &[EVERY, "TF_CLI_ARGS_show"],
        StepRole::Validate => &[EVERY, "TF_CLI_ARGS_validate"],
        StepRole::Act => &[EVERY, "TF_CLI_ARGS_apply", "TF_CLI_ARGS_destroy"],
        StepRole::Outputs => &[EVERY, "TF_CLI_ARGS_output"],
    }
}

/// Returns the first option, without its dashes, that keeps a driver's command from applying or destroying the whole
/// stack, if it calls one of the tools.
pub fn hidden_option_of(command: &[OsString], destroys: bool) -> Option<&'static str> {
    let (program, words) = command.split_first()?;
    let mut words = words.iter().filter(|_| is_tool(program));
    words.find_map(|word| {
        steers(&word.to_string_lossy()).filter(|&option| !(destroys && option == "destroy"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_changes_what_is_applied_is_found_in_the_command_of_a_driver() {
        for (line, applies, destroys) in [
            ("terraform apply -auto-approve", None, None),
            ("terraform apply -destroy", Some("destroy"), None),
            ("tofu apply -target=x", Some("target"), Some("target")),
            ("sh -c -destroy", None, None),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(hidden_option_of(&words, false), applies, "{line}");
            assert_eq!(hidden_option_of(&words, true), destroys, "{line}");
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
