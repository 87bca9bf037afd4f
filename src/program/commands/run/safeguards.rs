//! The disabled safeguards of `orch run`.

use std::env::VarError;

use orch::project::config::SafeguardKeyword;
use orch::run::safeguard::Disabled;

use super::RunArgs;
use super::flags::SafeguardArgs;
use crate::program::error::{ProgramError, Result};

/// Variables that disable safeguards if no flag does; the first that is set counts.
const VARIABLES: [&str; 2] = ["ORCH_DISABLE_SAFEGUARDS", "TM_DISABLE_SAFEGUARDS"];

/// Terramate's older variables, each for one safeguard.
const OLD_VARIABLES: [(&str, SafeguardKeyword); 4] = [
    (
        "TM_DISABLE_CHECK_GIT_UNTRACKED",
        SafeguardKeyword::GitUntracked,
    ),
    (
        "TM_DISABLE_CHECK_GIT_UNCOMMITTED",
        SafeguardKeyword::GitUncommitted,
    ),
    (
        "TM_DISABLE_CHECK_GIT_REMOTE",
        SafeguardKeyword::GitOutOfSync,
    ),
    ("TM_DISABLE_CHECK_GEN_CODE", SafeguardKeyword::OutdatedCode),
];

/// Returns the disabled safeguards of a run.
pub(super) fn of_run(args: &RunArgs) -> Result<Disabled> {
    let old_names = args.disable_checks.keywords();
    disabled(&args.safeguards, old_names, args.dry_run)
}

/// Returns the disabled safeguards of the run that a dry run describes.
pub(super) fn in_force(args: &RunArgs) -> Result<Disabled> {
    disabled(&args.safeguards, args.disable_checks.keywords(), false)
}

/// Returns the disabled safeguards, including those that old flags and variables disable.
pub(in crate::program::commands) fn disabled(
    args: &SafeguardArgs,
    others: impl Iterator<Item = SafeguardKeyword>,
    is_dry_run: bool,
) -> Result<Disabled> {
    let mut listed = args.disable_safeguards.clone();
    listed.extend(others);
    if args.disable_all_safeguards {
        if listed.contains(&SafeguardKeyword::None) {
            let message = "`-X` and `--disable-safeguards=none` exclude each other";
            return Err(ProgramError::usage(message));
        }
        listed.push(SafeguardKeyword::All);
    }
    if !listed.is_empty() {
        let disabled = Disabled::new(listed);
        return disabled
            .map_err(|bad| ProgramError::usage(format!("in --disable-safeguards: {bad}")));
    }
    if is_dry_run {
        // The run uses no safeguards, so the variables do not matter.
        return Ok(Disabled::default());
    }
    let set = VARIABLES.into_iter().find_map(|name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some((name, value.to_string_lossy().into_owned()))
    });
    let Some((name, value)) = set else {
        return of_old_variables();
    };
    let mut listed = Vec::new();
    for word in value.split(',').map(str::trim) {
        let Some(keyword) = SafeguardKeyword::parse(word) else {
            let message = format!(
                "in {name}: `{word}` is not a safeguard; possible values: {}",
                SafeguardKeyword::NAMES.join(", ")
            );
            return Err(ProgramError::usage(message));
        };
        listed.push(keyword);
    }
    Disabled::new(listed).map_err(|bad| ProgramError::usage(format!("in {name}: {bad}")))
}

fn of_old_variables() -> Result<Disabled> {
    let mut listed = Vec::new();
    for (name, keyword) in OLD_VARIABLES {
        match std::env::var(name).as_deref() {
            Ok("1" | "true") => listed.push(keyword),
            Ok("" | "0" | "false") | Err(VarError::NotPresent) => {}
            Ok(_) | Err(VarError::NotUnicode(_)) => {
                let message = format!("{name} is neither `true` nor `false`");
                return Err(ProgramError::usage(message));
            }
        }
    }
    Disabled::new(listed).map_err(|bad| ProgramError::usage(bad.to_string()))
}
