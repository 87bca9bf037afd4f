//! Flags that a resumed run takes from the earlier run, and flags that contradict it.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::program::commands::neighbour_flags::NEIGHBOURS;
use crate::program::error::ProgramError;

/// Flags whose values a resumed run takes from the earlier run, besides the command and
/// [`SELECTION`]. They cannot be overridden.
pub(super) const RECORDED: [&str; 2] = ["reverse", "eval"];

/// Flags that select stacks. (Clap leaves the group of `SelectArgs` empty, since it contains
/// another group.)
pub(in crate::program::commands) const SELECTION: [&str; 13] = [
    "changed",
    "base",
    "released",
    "status",
    "enable_change_detection",
    "disable_change_detection",
    "tags",
    "no_tags",
    "no_recursive",
    "globs",
    "exclude",
    "stacks_from",
    NEIGHBOURS,
];

/// Returns the error if a flag contradicts the resumed run, given clap's error and the typed
/// arguments. Clap's own usage line would ask for a command.
pub(crate) fn contradicting_flag(
    error: &clap::Error,
    typed: impl Iterator<Item = OsString>,
) -> Option<ProgramError> {
    if error.kind() != ErrorKind::ArgumentConflict {
        return None;
    }
    let mut flags = Vec::new();
    for kind in [ContextKind::InvalidArg, ContextKind::PriorArg] {
        match error.get(kind) {
            Some(ContextValue::String(flag)) => flags.push(flag.as_str()),
            Some(ContextValue::Strings(more)) => flags.extend(more.iter().map(String::as_str)),
            _ => {}
        }
    }
    // Without their values: `--match <GLOB>`, `--resume [<RUN>]`.
    let end = |flag: &str| flag.find([' ', '[', '=']).unwrap_or(flag.len());
    let names = flags.iter().map(|flag| &flag[..end(flag)]);
    let is_resuming = |name: &&str| ["--resume", "--only-failed"].contains(name);
    let resuming = names.clone().find(is_resuming)?;
    // Of a group, clap names all members.
    let typed: Vec<String> = typed
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let is_typed = |name: &str| {
        let mut words = typed.iter().map(|word| word.split('=').next());
        words.any(|word| word == Some(name))
    };
    let others: Vec<&str> = names.filter(|name| !is_resuming(name)).collect();
    let mut given = others.iter().filter(|name| is_typed(name));
    let flag = *given.next().or(others.first())?;
    let what = match flag {
        "--reverse" => "the direction",
        "--eval" => "the command",
        _ => "the selection",
    };
    Some(ProgramError::usage(format!(
        "with `{resuming}`, {what} is that of the earlier run: remove `{flag}`"
    )))
}
