//! Flags of `orch run` after the command, which receives them: `orch run make deploy --changed`.

use std::ffi::{OsStr, OsString};
use std::ops::Range;

use clap::{Arg, Args as _, Command};
use orch::printable::command_line;

use super::RunArgs;
use crate::program::commands::selection_flags::SelectArgs;
use crate::program::console;

/// The longest command line that is shown whole.
const MOST_SHOWN: usize = 120;

/// Notes arguments of the command that are flags of `orch run`, unless a `--` before the command
/// shows that this is intended.
pub(super) fn note(args: &RunArgs) {
    if args.quiet {
        return;
    }
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some(before) = typed.strip_suffix(&args.command[..]) else {
        return;
    };
    if let Some(text) = text(before, &args.command) {
        console::note(&text);
    }
}

/// Returns the note, given the arguments before the command.
fn text(before: &[OsString], command: &[OsString]) -> Option<String> {
    if before.last().is_some_and(|word| word == "--") {
        return None;
    }
    let own = steering();
    let mut flags: Vec<Range<usize>> = Vec::new();
    for (place, word) in command.iter().enumerate().skip(1) {
        if word == "--" {
            break;
        }
        let is_value = flags.last().is_some_and(|flag| flag.contains(&place));
        if !is_value && let Some(length) = own.iter().find_map(|arg| length(arg, word)) {
            flags.push(place..(place + length).min(command.len()));
        }
    }
    let first = flags.first()?.start;
    let name = command[first].to_string_lossy().into_owned();
    let name = name.split('=').next().unwrap_or_default();
    let is_moved = |place: &usize| flags.iter().any(|flag| flag.contains(place));
    let (moved, rest): (Vec<usize>, Vec<usize>) = (0..command.len()).partition(is_moved);
    let words = |places: &[usize]| -> Vec<OsString> {
        places.iter().map(|place| command[*place].clone()).collect()
    };
    let line = |command: &[OsString]| {
        let orch = [OsString::from("orch")];
        let dashes = [OsString::from("--")];
        let line = [&orch[..], before, &words(&moved), &dashes, command].concat();
        command_line(&line)
    };
    let mut instead = line(&words(&rest));
    if instead.chars().count() > MOST_SHOWN {
        instead = format!("{} …", line(&command[..1]));
    }
    let program = command_line(&command[..1]);
    Some(format!(
        "`{name}` after the command is passed to `{program}`; to pass it to orch, write `{instead}`"
    ))
}

/// Returns the flags that control in which stacks a command runs and how. Tools rarely have flags
/// with these names, unlike those for output, attempts and reports.
fn steering() -> Vec<Arg> {
    let selecting = SelectArgs::augment_args(Command::new("select"));
    let all = RunArgs::augment_args(Command::new("run"));
    let own = all.get_arguments().filter(|arg| {
        let is_selecting = || {
            selecting
                .get_arguments()
                .any(|it| it.get_id() == arg.get_id())
        };
        arg.get_help_heading().is_none() || is_selecting()
    });
    own.filter(|arg| !arg.is_positional()).cloned().collect()
}

/// Returns how many words a flag takes, including its value, if a word is this flag.
fn length(arg: &Arg, word: &OsStr) -> Option<usize> {
    let word = word.to_str()?.strip_prefix("--")?;
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let mut names = arg.get_long_and_visible_aliases()?.into_iter();
    names.find(|own| *own == name)?;
    let takes_value = arg.get_action().takes_values();
    let needs_word = arg
        .get_num_args()
        .is_none_or(|values| values.min_values() > 0);
    match (takes_value, value) {
        (false, Some(_)) => None,
        (true, None) if needs_word => Some(2),
        _ => Some(1),
    }
}
