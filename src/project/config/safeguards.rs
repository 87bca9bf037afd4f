//! The safeguards, by name, and their configuration. This module doesn't check them.

use std::collections::HashMap;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::value::Value;
use crate::source::Span;

/// A condition that must hold before anything runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Safeguard {
    /// git knows or ignores every file.
    GitUntracked,
    /// Every change to a file that git knows is committed.
    GitUncommitted,
    /// HEAD has everything that the remote's default branch has.
    GitOutOfSync,
    /// No stack is destroyed while a stack that runs after it is kept or destroyed later.
    DestroyOrder,
}

impl Safeguard {
    pub fn name(self) -> &'static str {
        match self {
            Safeguard::GitUntracked => SafeguardKeyword::GitUntracked.name(),
            Safeguard::GitUncommitted => SafeguardKeyword::GitUncommitted.name(),
            Safeguard::GitOutOfSync => SafeguardKeyword::GitOutOfSync.name(),
            Safeguard::DestroyOrder => SafeguardKeyword::DestroyOrder.name(),
        }
    }
}

/// A word of `--disable-safeguards` and `config.disable_safeguards`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SafeguardKeyword {
    /// Every safeguard.
    All,
    /// No safeguard: every safeguard is on that no other keyword of the list names, regardless of the configuration.
    None,
    /// The three safeguards about git.
    Git,
    GitUntracked,
    GitUncommitted,
    GitOutOfSync,
    DestroyOrder,
    /// A safeguard of Terramate's about generated code, which `orch` doesn't have.
    OutdatedCode,
}

impl SafeguardKeyword {
    pub const ALL: [SafeguardKeyword; 8] = [
        SafeguardKeyword::All,
        SafeguardKeyword::None,
        SafeguardKeyword::Git,
        SafeguardKeyword::GitUntracked,
        SafeguardKeyword::GitUncommitted,
        SafeguardKeyword::GitOutOfSync,
        SafeguardKeyword::DestroyOrder,
        SafeguardKeyword::OutdatedCode,
    ];

    pub const NAMES: [&str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = Self::ALL[index].name();
            index += 1;
        }
        names
    };

    /// Returns the keyword as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            SafeguardKeyword::All => "all",
            SafeguardKeyword::None => "none",
            SafeguardKeyword::Git => "git",
            SafeguardKeyword::GitUntracked => "git-untracked",
            SafeguardKeyword::GitUncommitted => "git-uncommitted",
            SafeguardKeyword::GitOutOfSync => "git-out-of-sync",
            SafeguardKeyword::DestroyOrder => "destroy-order",
            SafeguardKeyword::OutdatedCode => "outdated-code",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|keyword| keyword.name() == text)
    }

    pub(crate) fn includes(self, safeguard: Safeguard) -> bool {
        match self {
            SafeguardKeyword::All => true,
            SafeguardKeyword::Git => safeguard != Safeguard::DestroyOrder,
            SafeguardKeyword::None | SafeguardKeyword::OutdatedCode => false,
            single => single.name() == safeguard.name(),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SafeguardSettings {
    pub disabled: Vec<SafeguardKeyword>,
    /// `config.enable_safeguards`, `config.git.check_untracked` and similar settings.
    pub switched: Vec<(Safeguard, bool)>,
}

/// Returns the safeguards and groups of safeguards that a list names.
pub(super) fn keywords(value: &Value) -> Vec<SafeguardKeyword> {
    let Some(items) = value.sequence() else {
        return Vec::new();
    };
    let known = items.iter().filter_map(|item| match item {
        Value::String(text) => SafeguardKeyword::parse(text),
        _ => None,
    });
    known.collect()
}

/// Checks that the old switches for single safeguards are not set beside the list that replaced them,
/// and that no safeguard is both disabled and enabled.
pub(super) fn check(
    configured: &SafeguardSettings,
    seen: &HashMap<String, Span>,
    problems: &mut Vec<Diagnostic>,
) {
    const LIST: &str = "disable_safeguards";
    const ENABLED: &str = "enable_safeguards";
    const REMOTE: &str = "git.check_remote";
    let mut exclude = |one, other, help| problems.extend(exclusion(one, other, help, seen));
    let name_it = "remove the old switch and name the safeguard in the list";
    for name in [
        "git.check_untracked",
        "git.check_uncommitted",
        REMOTE,
        "run.check_gen_code",
    ] {
        exclude((name, "the old switch"), (LIST, "the list"), name_it);
    }
    exclude((REMOTE, "the old switch"), (ENABLED, "the list"), name_it);
    let out_of_sync = Safeguard::GitOutOfSync;
    let SafeguardSettings { disabled, switched } = configured;
    if switched.contains(&(out_of_sync, true))
        && disabled.iter().any(|keyword| keyword.includes(out_of_sync))
    {
        let help = format!("remove `{}` from one of the lists", out_of_sync.name());
        exclude((ENABLED, "enabled here"), (LIST, "disabled here"), &help);
    }
}

/// Returns a diagnostic if two mutually exclusive attributes of `config` are set; each is given with
/// its label.
fn exclusion(
    one: (&str, &str),
    other: (&str, &str),
    help: &str,
    seen: &HashMap<String, Span>,
) -> Option<Diagnostic> {
    let place = |(name, _): (&str, _)| seen.get(&format!("config.{name}")).copied();
    let (first, second) = (place(one)?, place(other)?);
    let message = format!(
        "`config.{}` and `config.{}` cannot both be set",
        one.0, other.0
    );
    let diagnostic = Diagnostic::error(Code::Conflict, message)
        .label(first, one.1)
        .label(second, other.1);
    Some(diagnostic.help(help))
}
