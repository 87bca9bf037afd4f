//! Safeguards: states of the repository in which `orch` refuses to run.
//!
//! Decides which safeguards are on, which are violated, and how to fix that. It never asks git; the caller does.
//! [`crate::project::config`] knows the list of safeguards.

#[cfg(test)]
mod tests;
mod violation;

pub use self::violation::{EarlyDestroy, HeadRelation, OutdatedHead, Violation};
use std::ffi::OsString;

use crate::git::{ChangedFile, FileState};
use crate::project::config::{CommandPattern, Safeguard, SafeguardKeyword, SafeguardSettings};
use crate::run::terraform;

/// Returns whether a list of disabled safeguards turns one on or off; `None` if it does neither.
fn switch(disabled: &[SafeguardKeyword], safeguard: Safeguard) -> Option<bool> {
    if disabled.iter().any(|keyword| keyword.includes(safeguard)) {
        Some(false)
    } else {
        disabled.contains(&SafeguardKeyword::None).then_some(true)
    }
}

/// A list names both `all` and `none`.
#[derive(Debug, thiserror::Error)]
#[error("`all` and `none` cannot be combined")]
pub struct Contradiction;

/// The safeguards that the user disables for one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disabled {
    listed: Vec<SafeguardKeyword>,
    /// Whether the command lacks `--disable-safeguards`.
    lacks_flag: bool,
}

impl Disabled {
    /// Checks the user's list. Fails if it contradicts itself.
    pub fn new(listed: Vec<SafeguardKeyword>) -> Result<Self, Contradiction> {
        if listed.contains(&SafeguardKeyword::All) && listed.contains(&SafeguardKeyword::None) {
            return Err(Contradiction);
        }
        Ok(Disabled {
            listed,
            lacks_flag: false,
        })
    }

    /// Makes hints name the variable instead of the flag.
    #[must_use]
    pub fn of_job(self) -> Self {
        Disabled {
            lacks_flag: true,
            ..self
        }
    }

    /// Returns how to disable safeguards with these names.
    fn fix(&self, names: &str) -> String {
        let disable = if self.lacks_flag {
            "ORCH_DISABLE_SAFEGUARDS"
        } else {
            "--disable-safeguards"
        };
        format!("`{disable}={names}`")
    }

    pub fn is_off(&self, safeguard: Safeguard) -> bool {
        switch(&self.listed, safeguard) == Some(false)
    }

    /// Returns whether the user turns every safeguard on, for every command.
    pub fn is_none(&self) -> bool {
        self.listed.contains(&SafeguardKeyword::None)
    }

    pub fn is_on(&self, safeguard: Safeguard) -> bool {
        switch(&self.listed, safeguard) == Some(true)
    }
}

/// Returns whether safeguards apply to a command: not to a read-only one, by `orch`'s knowledge or the configuration,
/// unless the user wants all safeguards.
pub fn guards(command: &[OsString], disabled: &Disabled, read_only: &[CommandPattern]) -> bool {
    let is_known =
        || terraform::reads_only(command) || read_only.iter().any(|it| it.matches(command, &[]));
    disabled.is_none() || !is_known()
}

/// Returns whether a safeguard is on: the user decides, then the configuration.
pub fn is_on(safeguard: Safeguard, disabled: &Disabled, configured: &SafeguardSettings) -> bool {
    let switched = switched(safeguard, disabled, configured);
    // A safeguard that needs the network is opt-in.
    switched.unwrap_or(safeguard != Safeguard::GitOutOfSync)
}

/// Returns whether the user or the configuration turns a safeguard on or off; `None` if neither does.
pub fn switched(
    safeguard: Safeguard,
    disabled: &Disabled,
    configured: &SafeguardSettings,
) -> Option<bool> {
    let switched = || {
        let mut switched = configured.switched.iter();
        let (_, is_on) = switched.find(|(which, _)| *which == safeguard)?;
        Some(*is_on)
    };
    switch(&disabled.listed, safeguard)
        .or_else(|| switch(&configured.disabled, safeguard))
        .or_else(switched)
}

pub fn violations(on: &[Safeguard], status: &[ChangedFile]) -> Vec<Violation> {
    let of = |state| {
        let mut files: Vec<ChangedFile> = status
            .iter()
            .filter(|file| file.state == state)
            .cloned()
            .collect();
        files.sort_unstable();
        files
    };
    let mut violations = Vec::new();
    if on.contains(&Safeguard::GitUntracked) {
        violations.push(Violation::Untracked(of(FileState::Untracked)));
    }
    if on.contains(&Safeguard::GitUncommitted) {
        violations.push(Violation::Uncommitted(of(FileState::Uncommitted)));
    }
    violations.retain(|violation| match violation {
        Violation::Untracked(files) | Violation::Uncommitted(files) => !files.is_empty(),
        _ => true,
    });
    violations
}
