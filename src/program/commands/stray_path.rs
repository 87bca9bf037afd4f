//! A path instead of a flag: `orch list envs/dev`, `orch apply envs/dev`.

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use orch::printable::{command_line, printable};

use super::command_line::WholeCli;
use super::{find_project, working_directory};
use crate::program::error::{ProgramError, Result};

/// Returns the error for a path that the command does not take, given clap's error. Commands that
/// take a stack have their own error.
pub(crate) fn stray_path(error: &clap::Error) -> Option<ProgramError> {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::StyledStr(text)) => Some(text.to_string()),
        _ => None,
    };
    if error.kind() == ErrorKind::ArgumentConflict {
        let both = [ContextKind::InvalidArg, ContextKind::PriorArg];
        let is_beside_file = both
            .into_iter()
            .any(|kind| text(kind).as_deref() == Some("[FILE]"));
        return is_beside_file.then(stray_beside_flags).flatten();
    }
    let word = match error.kind() {
        ErrorKind::UnknownArgument => text(ContextKind::InvalidArg)?,
        // A command with flags that also has commands of its own.
        ErrorKind::InvalidSubcommand => text(ContextKind::InvalidSubcommand)?,
        _ => return None,
    };
    if word.starts_with('-') {
        return None;
    }
    let root = WholeCli::command();
    let usage = text(ContextKind::Usage)?;
    let mut words = usage.split_whitespace();
    words.find(|word| *word == root.get_name())?;
    let command = words
        .try_fold(&root, |command, word| {
            let nested = command.find_subcommand(word);
            nested.ok_or(command)
        })
        .unwrap_or_else(|last| last);
    let has_match = command
        .get_arguments()
        .any(|arg| arg.get_long() == Some("match"));
    let takes_path = command.get_positionals().any(clap::Arg::is_required_set);
    (has_match && !takes_path).then(|| {
        let message = format!("unexpected argument `{}`", printable(&word));
        ProgramError::usage(message).hint(flags_for(Path::new(&word)))
    })
}

/// Returns the error of `orch apply envs/dev --changed`, where clap only reports that `[FILE]`
/// excludes the flag.
fn stray_beside_flags() -> Option<ProgramError> {
    let matches = WholeCli::command().ignore_errors(true).get_matches();
    let chdir: Vec<PathBuf> = matches
        .get_many("chdir")
        .unwrap_or_default()
        .cloned()
        .collect();
    let (_, matches) = matches.subcommand()?;
    let file: &PathBuf = matches.get_one("file")?;
    directory_as_file(&chdir, file).ok()?
}

/// Returns the error if the given file is a directory, on disk or of the project.
pub(super) fn directory_as_file(chdir: &[PathBuf], file: &Path) -> Result<Option<ProgramError>> {
    let there = working_directory(chdir)?.join(file);
    let is_in_project = || {
        let inside = file.strip_prefix("/").ok().filter(|_| !there.exists());
        let root = find_project(chdir).ok().map(|found| found.root);
        inside
            .zip(root)
            .is_some_and(|(inside, root)| root.join(inside).is_dir())
    };
    let is_directory = there.is_dir() || is_in_project();
    Ok(is_directory.then(|| {
        let shown = file.display().to_string();
        let message = format!("`{}` is a directory, not a plan file", printable(&shown));
        ProgramError::usage(message).hint(flags_for(file))
    }))
}

/// Returns the flags to use instead of a path.
fn flags_for(path: &Path) -> String {
    let flag = |flag: &str| command_line(&[flag.into(), path.into()]);
    let select = format!(
        "to select the stacks at and below it, write `{}`",
        flag("--match")
    );
    if path.has_root() && !path.is_dir() {
        // It is the path of a stack: no such directory exists on disk.
        return select;
    }
    format!(
        "{select}; to work in that directory, write `{}`",
        flag("-C")
    )
}
