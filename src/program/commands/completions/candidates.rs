//! The candidates at the cursor: flags and values of the command line, and names from the project.
//!
//! The value name in the help decides the kind: each `STACK` completes stacks, each `RUN` runs.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Arg, Args as _, Command, CommandFactory as _, ValueHint};
use clap_complete::ArgValueCompleter;
use clap_complete::engine::{CompletionCandidate, complete};
use clap_complete::env::EnvCompleter;

use super::values::{CompletionValue, TypedPlace};
use crate::program::commands::command_line::WholeCli;
use crate::program::commands::selection_flags::SelectArgs;
use crate::program::help::TOPICS;

type Values = fn(&TypedPlace, &str) -> Vec<CompletionValue>;

/// The value names in the help, with their kinds.
const VALUES: [(&str, Values); 11] = [
    ("STACK", TypedPlace::stacks),
    ("PATH", TypedPlace::stacks),
    ("GLOB", TypedPlace::globs),
    ("FILTER", TypedPlace::tag_filters),
    ("TAG,…", TypedPlace::tag_lists),
    ("TAG=N", TypedPlace::tag_limits),
    ("RUN", TypedPlace::runs),
    ("NAME|FILE", TypedPlace::policies),
    ("MODULE@OLD..NEW", TypedPlace::releases),
    ("REV|applied", TypedPlace::bases),
    ("COMMAND|TOPIC", |_, typed| subjects(typed)),
];

/// The value name of directories in the help.
const DIRECTORY: &str = "DIR";

/// A command line to complete at the end of its last word.
pub(super) struct Completion {
    command: Command,
    words: Vec<OsString>,
    directory: Option<PathBuf>,
}

impl Completion {
    pub(super) fn new(words: &[String]) -> Self {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        Self::of_words(&words)
    }

    /// Like [`Self::new`], for words that may not be UTF-8.
    pub(super) fn of_words(words: &[OsString]) -> Self {
        let command = with_early_flags(WholeCli::command());
        let before = &words[..words.len().saturating_sub(1)];
        let surroundings = Arc::new(TypedPlace::new(directories(&command, before)));
        Completion {
            directory: surroundings.working_directory(),
            command: with_values(command, &surroundings),
            words: words.to_vec(),
        }
    }

    /// Returns the candidates. Flags are included only if the user began to type one, or if nothing
    /// else fits.
    pub(super) fn candidates(mut self) -> Vec<CompletionCandidate> {
        let index = self.words.len().saturating_sub(1);
        let is_flag = |text: &OsStr| text.as_encoded_bytes().starts_with(b"-");
        let wants_flag = self.words.last().is_some_and(|word| is_flag(word));
        let directory = self.directory.as_deref();
        let mut candidates =
            complete(&mut self.command, self.words, index, directory).unwrap_or_default();
        if !wants_flag && candidates.iter().any(|found| !is_flag(found.get_value())) {
            candidates.retain(|found| !is_flag(found.get_value()));
        }
        candidates
    }

    /// Writes the candidates in the format of a shell.
    pub(super) fn write(
        mut self,
        shell: &dyn EnvCompleter,
        words: Vec<OsString>,
        out: &mut Vec<u8>,
    ) {
        let directory = self.directory.as_deref();
        let begun = out.len();
        if shell
            .write_complete(&mut self.command, words, directory, out)
            .is_err()
        {
            out.truncate(begun);
        }
    }
}

/// Adds the selection flags that may precede the command, if no other flag fits.
fn with_early_flags(mut command: Command) -> Command {
    let select = SelectArgs::augment_args(Command::new("select"));
    for flag in select.get_arguments() {
        command = command.arg(flag.clone().hide(true));
    }
    command
}

fn with_values(command: Command, surroundings: &Arc<TypedPlace>) -> Command {
    let with = |arg: Arg| {
        let name = arg
            .get_value_names()
            .and_then(<[_]>::first)
            .map(ToString::to_string)
            .unwrap_or_default();
        if name == DIRECTORY {
            return arg.value_hint(ValueHint::DirPath);
        }
        let Some((_, values)) = VALUES.iter().find(|(known, _)| *known == name) else {
            return arg;
        };
        let surroundings = surroundings.clone();
        arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
            let found = typed
                .to_str()
                .map(|typed| values(&surroundings, typed))
                .unwrap_or_default()
                .into_iter();
            found
                .map(CompletionValue::into_candidate)
                .collect::<Vec<_>>()
        }))
    };
    command
        .mut_args(with)
        .mut_subcommands(|command| with_values(command, surroundings))
}

/// Returns the directories of `-C`, and whether the words include `--root`.
fn directories(command: &Command, words: &[OsString]) -> (Vec<PathBuf>, bool) {
    let command = command.clone().ignore_errors(true);
    let Ok(matches) = command.try_get_matches_from(words) else {
        return (Vec::new(), false);
    };
    let chdir = matches.get_many::<PathBuf>("chdir").into_iter().flatten();
    (chdir.cloned().collect(), matches.get_flag("root"))
}

/// Returns the topics and commands of `orch help` that begin with the typed text.
fn subjects(typed: &str) -> Vec<CompletionValue> {
    let command = WholeCli::command();
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    let commands = shown.map(|command| {
        let about = command.get_about().map(ToString::to_string);
        (command.get_name(), about)
    });
    let topics = TOPICS
        .iter()
        .map(|topic| (topic.name, Some(topic.summary.to_owned())));
    let all = commands.chain(topics);
    all.filter(|(name, _)| name.starts_with(typed))
        .map(|(name, help)| CompletionValue::new(name).help(help))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn value_names(command: &Command) -> BTreeSet<String> {
        let args = command.get_arguments();
        let own = args.filter_map(|arg| Some(arg.get_value_names()?.first()?.to_string()));
        let below = command.get_subcommands().flat_map(value_names);
        own.chain(below).collect()
    }

    #[test]
    fn every_completed_value_is_one_of_an_argument() {
        let names = value_names(&WholeCli::command());
        for (name, _) in VALUES {
            assert!(names.contains(name), "no argument has a value {name}");
        }
        assert!(names.contains(DIRECTORY));
    }

    #[test]
    fn the_directory_is_that_of_the_words_before() {
        let command = with_early_flags(WholeCli::command());
        let table = [
            ("orch -C a why", "a", false),
            ("orch why -C a --chdir=b", "a b", false),
            ("orch --changed -Ca why --tags", "a", false),
            ("orch --tags x -C a", "a", false),
            ("orch why --after", "", false),
            ("orch --root list -C", "", true),
            ("orch run make -C a", "", false),
            ("orch nonsense --of --any=kind", "", false),
            ("orch", "", false),
        ];
        for (line, expected, is_root) in table {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let (chdir, root) = directories(&command, &words);
            let expected: Vec<PathBuf> = expected.split_whitespace().map(PathBuf::from).collect();
            assert_eq!((chdir, root), (expected, is_root), "{line}");
        }
    }
}
