//! What is wrong with the settings of a run, in the words of the flags.

use std::collections::HashSet;

use orch::diagnostic::closest;
use orch::project::config::TagLimit;
use orch::run::settings::SettingsError;

use crate::program::commands::Loaded;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Explains why settings cannot be applied.
pub(super) fn explained(loaded: &Loaded, error: SettingsError) -> ProgramError {
    ProgramError::usage(match error {
        SettingsError::Pattern { pattern, problem } => {
            format!("in --retry-on-output: `{pattern}`: {problem}")
        }
        SettingsError::NoRetryCondition { retries, stacks } => format!(
            "--retries {retries} does not say after which failures to try {} again; add --retry-on-exit STATUS or --retry-on-output REGEX, or a `retry` block to the configuration",
            loaded.names(&stacks),
        ),
        SettingsError::NothingIsRetried { setting } => format!(
            "--{setting} without --retries N changes nothing: no selected stack is configured to be tried again"
        ),
    })
}

/// Checks that no tag is limited twice, and notes limits that limit nothing.
pub(super) fn check_limits(loaded: &Loaded, limits: &[TagLimit]) -> Result<()> {
    let stacks = &loaded.project.stacks;
    let mut seen = HashSet::new();
    for TagLimit { tag, at_once } in limits {
        if !seen.insert(tag.as_str()) {
            let message = format!("in --limit: `{tag}` is limited twice; remove one of them");
            return Err(ProgramError::usage(message));
        }
        if !stacks.has_tag(tag) {
            let meant = closest(tag, stacks.tags());
            let meant = meant.map_or(String::new(), |tag| format!("; did you mean `{tag}`?"));
            console::note(&format!(
                "`--limit {tag}={at_once}` limits nothing: no stack carries the tag{meant}"
            ));
        }
    }
    Ok(())
}
