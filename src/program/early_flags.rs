//! Flags that stand before their command, as in `orch --changed run terraform plan`.
//!
//! Users of Terramate write them there. They mean what they mean after the command, so they are moved
//! behind it and parsed as if they had been written there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use clap::Command;
use clap::error::{Error, ErrorKind};

/// Moves the flags that stand before the command behind it. Returns nothing if there are none, or if
/// the command cannot be found behind them.
///
/// # Errors
///
/// If there is no command, or the command does not take one of the flags.
pub(crate) fn move_behind_command(
    mut root: Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Option<Vec<OsString>>, Error> {
    root.build();
    let mut arguments = arguments.into_iter();
    let program = arguments.next();
    let Early {
        flags,
        names,
        mut rest,
    } = Early::split(&known_flags(&root), arguments);
    if rest.first().is_some_and(|word| word == "--") {
        rest.remove(0); // it ends the flags, and is not the command
    }
    let own = flags_of(&root);
    let Some(first) = names.iter().find(|name| !own.contains_key(*name)) else {
        return Ok(None);
    };
    if rest.is_empty() {
        if names.iter().any(|name| name == "--help" || name == "-h") {
            return Ok(Some(program.into_iter().chain(["--help".into()]).collect()));
        }
        let message = format!("`{first}` is a flag of commands, and there is no command");
        return Err(root.error(ErrorKind::MissingSubcommand, message));
    }
    let mut command = &root;
    let mut depth = 0;
    while let Some(nested) = rest
        .get(depth)
        .and_then(|word| command.find_subcommand(word))
    {
        command = nested;
        depth += 1;
    }
    let known = known_flags(&root);
    if depth == 0 && names.iter().any(|name| !known.contains_key(name)) {
        // What seems to be the command may be the value of an unknown flag.
        return Ok(None);
    }
    let taken = flags_of(command);
    let mut others = names.iter().filter(|name| known.contains_key(*name));
    if depth > 0
        && let Some(name) = others.find(|name| !taken.contains_key(*name))
    {
        let full_name = command.get_bin_name().unwrap_or(command.get_name());
        let message =
            format!("`{name}` stands before the command, and `{full_name}` does not take it");
        return Err(command.clone().error(ErrorKind::UnknownArgument, message));
    }
    let (command, rest) = rest.split_at(depth.max(1));
    let parts = [command, &flags, rest].concat();
    Ok(Some(program.into_iter().chain(parts).collect()))
}

/// A command line whose first flags were split off.
struct Early {
    /// The flags, with their values.
    flags: Vec<OsString>,
    /// Their names, as `--tags` or `-c`.
    names: Vec<String>,
    /// The command, and everything behind it.
    rest: Vec<OsString>,
}

impl Early {
    fn split(
        takes_value: &BTreeMap<String, bool>,
        arguments: impl Iterator<Item = OsString>,
    ) -> Self {
        let mut arguments = arguments.peekable();
        let mut flags = Vec::new();
        let mut names = Vec::new();
        while let Some(flag) = arguments.next_if(|argument| is_flag(argument)) {
            let text = flag.to_string_lossy().into_owned();
            flags.push(flag);
            let mut takes_next = false;
            if text.starts_with("--") {
                let (name, has_value) = match text.split_once('=') {
                    Some((name, _)) => (name, true),
                    None => (text.as_str(), false),
                };
                takes_next = !has_value && takes_value.get(name) == Some(&true);
                names.push(name.to_owned());
            } else {
                // Letters can be written together; what follows one that takes a value is the value.
                let mut letters = text.chars().skip(1).peekable();
                while let Some(letter) = letters.next() {
                    let name = format!("-{letter}");
                    let takes = takes_value.get(&name) == Some(&true);
                    names.push(name);
                    if takes {
                        takes_next = letters.peek().is_none();
                        break;
                    }
                }
            }
            if takes_next {
                flags.extend(arguments.next());
            }
        }
        Early {
            flags,
            names,
            rest: arguments.collect(),
        }
    }
}

fn is_flag(argument: &OsStr) -> bool {
    let bytes = argument.as_encoded_bytes();
    bytes.starts_with(b"-") && bytes != b"-" && bytes != b"--"
}

/// Returns the flags of all commands.
fn known_flags(command: &Command) -> BTreeMap<String, bool> {
    let mut known = flags_of(command);
    for nested in command.get_subcommands() {
        known.extend(known_flags(nested));
    }
    known
}

/// Returns the flags of a command by all their names, and whether the next argument is their value.
fn flags_of(command: &Command) -> BTreeMap<String, bool> {
    let mut flags = BTreeMap::new();
    for flag in command.get_arguments().filter(|arg| !arg.is_positional()) {
        let values = flag.get_num_args().unwrap_or_default();
        let takes_value = flag.get_action().takes_values() && values.min_values() > 0;
        let short = flag.get_short().map(|short| format!("-{short}"));
        let aliases = flag.get_all_aliases().unwrap_or_default();
        let longs = flag.get_long().into_iter().chain(aliases);
        let longs = longs.map(|long| format!("--{long}"));
        flags.extend(longs.chain(short).map(|name| (name, takes_value)));
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::commands::command_line::Cli;
    use clap::CommandFactory;

    fn moved(line: &str) -> Option<String> {
        let arguments = line.split(' ').map(OsString::from);
        let moved = move_behind_command(Cli::command(), arguments);
        let words = moved.unwrap_or_else(|error| panic!("{line}: {error}"))?;
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        Some(words.join(" "))
    }

    #[test]
    fn flags_move_with_their_values() {
        let table = [
            ("orch --changed run a", "orch run --changed a"),
            ("orch --tags a list", "orch list --tags a"),
            ("orch --tags=a -B main list", "orch list --tags=a -B main"),
            ("orch -cBmain -C dir run", "orch run -cBmain -C dir"),
            ("orch -cB main run -X b", "orch run -cB main -X b"),
            ("orch -qX run -- a --tags", "orch run -qX -- a --tags"),
            (
                "orch --include-dependents run a",
                "orch run --include-dependents a",
            ),
            (
                "orch --git-change-base x list",
                "orch list --git-change-base x",
            ),
            (
                "orch --format json runs list",
                "orch runs list --format json",
            ),
            ("orch --chagned list", "orch list --chagned"),
            ("orch --changed lst", "orch lst --changed"),
        ];
        for (line, expected) in table {
            assert_eq!(moved(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_line_without_flags_of_commands_stays() {
        for line in [
            "orch list",
            "orch -C dir list --changed",
            "orch -vv",
            "orch",
        ] {
            assert_eq!(moved(line), None, "{line}");
        }
    }

    #[test]
    fn flags_of_one_name_agree_on_whether_they_take_a_value() {
        fn check(command: &Command, known: &mut BTreeMap<String, bool>) {
            for (name, takes_value) in flags_of(command) {
                let before = known.insert(name.clone(), takes_value);
                assert!(before.is_none_or(|before| before == takes_value), "{name}");
            }
            for nested in command.get_subcommands() {
                check(nested, known);
            }
        }
        let mut root = Cli::command();
        root.build();
        check(&root, &mut BTreeMap::new());
    }
}
