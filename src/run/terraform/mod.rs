//! Knowledge about Terraform, `OpenTofu` and Terragrunt: the meaning of their command lines and of their output.
//!
//! Runs of other programs don't need it.

pub mod summary;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

use crate::project::config::CommandPattern;
use crate::project::tool_options::TOOLS;

/// Their commands that change nothing but local files.
const READING: [&str; 8] = [
    "plan",
    "validate",
    "show",
    "output",
    "providers",
    "graph",
    "version",
    "fmt",
];

/// The subcommands between Terragrunt and the command that it runs.
const HANDING_ON: [&str; 2] = ["run", "run-all"];

/// Options without a value that may precede a command.
const FLAGS: [&str; 8] = [
    "--",
    "--all",
    "-a",
    "-no-color",
    "--no-color",
    "--non-interactive",
    "--terragrunt-no-color",
    "--terragrunt-non-interactive",
];

/// Options of Terragrunt whose value is the next word.
const VALUE_OPTIONS: [&str; 9] = [
    "--config",
    "--download-dir",
    "--filter",
    "--log-format",
    "--log-level",
    "--parallelism",
    "--queue-exclude-dir",
    "--queue-include-dir",
    "--working-dir",
];

/// Returns whether the command is known to change nothing but local files.
pub fn reads_only(command: &[OsString]) -> bool {
    let command = without_values(command);
    let matches = |text: String| {
        let pattern = CommandPattern::parse(&text);
        pattern.is_ok_and(|pattern| pattern.matches(&command, &FLAGS))
    };
    let is_read_by = |program: &&str| {
        let mut reading = READING.iter();
        reading.any(|reading| {
            // Terragrunt's own `graph` runs another command in many units.
            let is_direct = (*program, *reading) != ("terragrunt", "graph");
            is_direct && matches(format!("{program} {reading}"))
        })
    };
    let is_handed_on = || {
        let words = HANDING_ON.iter();
        let mut patterns = words.flat_map(|word| {
            let of = move |reading| format!("terragrunt {word} {reading}");
            READING.iter().map(of)
        });
        patterns.any(matches)
    };
    TOOLS.iter().any(is_read_by) || is_handed_on()
}

/// Returns a command of Terragrunt without its own options that have a value. Others are returned as they are.
fn without_values(command: &[OsString]) -> Cow<'_, [OsString]> {
    let program = command
        .first()
        .and_then(|program| Path::new(program).file_stem());
    if program.is_none_or(|program| program != "terragrunt") {
        return command.into();
    }
    let mut words = command.iter();
    let mut left = Vec::new();
    while let Some(word) = words.next() {
        if VALUE_OPTIONS.iter().any(|option| word == option) {
            words.next();
        } else {
            left.push(word.clone());
        }
    }
    left.into()
}

/// Returns whether the command is a plan that exits with 2 if there are changes.
pub fn has_detailed_exit_code(command: &[OsString]) -> bool {
    let is_flag = |word: &OsString| {
        let flag = word.to_str().and_then(|word| word.strip_prefix('-'));
        let flag = flag.map(|flag| flag.strip_prefix('-').unwrap_or(flag));
        matches!(flag, Some("detailed-exitcode" | "detailed-exitcode=true"))
    };
    is_of(command, "plan") && command.iter().any(is_flag)
}

fn is_of(command: &[OsString], name: &str) -> bool {
    let Some((program, arguments)) = command.split_first() else {
        return false;
    };
    let program = Path::new(program).file_stem();
    let is_known = program.is_some_and(|program| TOOLS.iter().any(|known| program == *known));
    is_known && arguments.iter().any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_read_is_said_to() {
        let reads = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            reads_only(&words)
        };
        for line in [
            "terraform plan",
            "terraform plan -out=plan.tfplan -var x=y",
            "terraform -chdir=x plan",
            "tofu validate -json",
            "terragrunt plan",
            "terragrunt run --all plan",
            "terragrunt run-all --terragrunt-non-interactive output",
            "terraform plan -out init",
            "terraform output state",
            "terragrunt run -- graph",
            "terragrunt run -- plan",
            "terragrunt --log-level error plan",
            "terragrunt run --all --log-format bare --filter x -- plan",
            "/opt/tofu fmt -check",
        ] {
            assert!(reads(line), "{line}");
        }
        for line in [
            "terraform apply",
            "terraform apply plan",
            "terraform destroy",
            "terraform state list",
            "terraform",
            "terragrunt --working-dir plan apply",
            "terragrunt --working-dir graph backend delete",
            "terragrunt run --all --queue-include-dir plan -- workspace delete x",
            "terragrunt --log-level show exec aws",
            "terragrunt --log-level error --working-dir plan apply",
            "terragrunt run --log-level -- apply plan",
            "terraform --log-level error plan",
            "terragrunt graph apply",
            "terraform -chdir plan workspace delete",
            "terragrunt run --all apply",
            "make plan",
            "sh -c terraform_plan",
            "terraform init",
        ] {
            assert!(!reads(line), "{line}");
        }
    }

    #[test]
    fn a_plan_has_a_detailed_exit_code_if_it_is_asked_for() {
        let has = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            has_detailed_exit_code(&words)
        };
        assert!(has("terraform plan -detailed-exitcode"));
        assert!(has(
            "/usr/bin/tofu -chdir=x plan -out=p --detailed-exitcode"
        ));
        assert!(has("terragrunt run -- plan -detailed-exitcode=true"));
        assert!(has("terraform.exe plan -detailed-exitcode"));
        assert!(!has("terraform plan"));
        assert!(!has("terraform plan -detailed-exitcode=false"));
        assert!(!has("terraform apply -detailed-exitcode"));
        assert!(!has("plan -detailed-exitcode"));
        assert!(!has_detailed_exit_code(&[]));
    }
}
