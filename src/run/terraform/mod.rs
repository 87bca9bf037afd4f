//! What is known of Terraform, `OpenTofu` and Terragrunt, the usual guests of a run: what their command
//! lines mean, and what their output says.
//!
//! Whatever runs something else does without.

pub mod summary;

use std::ffi::OsString;
use std::path::Path;

/// The programs, without the suffix that Windows gives them.
const PROGRAMS: [&str; 3] = ["terraform", "tofu", "terragrunt"];

/// Returns whether the command is a plan that exits with 2 if there are changes.
pub fn has_detailed_exit_code(command: &[OsString]) -> bool {
    let is_flag = |word: &OsString| {
        let flag = word.to_str().and_then(|word| word.strip_prefix('-'));
        let flag = flag.map(|flag| flag.strip_prefix('-').unwrap_or(flag));
        matches!(flag, Some("detailed-exitcode" | "detailed-exitcode=true"))
    };
    is_of(command, "plan") && command.iter().any(is_flag)
}

/// Returns whether one of the programs is to carry out a command of this name.
fn is_of(command: &[OsString], name: &str) -> bool {
    let Some((program, arguments)) = command.split_first() else {
        return false;
    };
    let program = Path::new(program).file_stem();
    let is_known = program.is_some_and(|program| PROGRAMS.iter().any(|known| program == *known));
    is_known && arguments.iter().any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
