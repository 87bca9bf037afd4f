//! Flags before the command, as in `orch --changed run terraform plan`.
//!
//! Users of Terramate write them there. They are moved behind the command and parsed there.
//! Terramate accepts some flags before every command: `orch` drops those that have no effect on the
//! command.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use clap::Command;
use clap::error::{Error, ErrorKind};

/// Flags that are dropped if the command does not take them: without a run, there is no output to
/// silence and no safeguard. Flags that select stacks are never dropped.
const WITHOUT_EFFECT: [&str; 6] = [
    "--quiet",
    "-q",
    "--disable-safeguards",
    "-X",
    "--disable-check-git-untracked",
    "--disable-check-git-uncommitted",
];

/// Moves flags before the command behind it. `None` if there are none, or if no command follows
/// them. Fails if there is no command, or if it does not take one of the flags.
pub(crate) fn move_behind_command(
    mut root: Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Option<Vec<OsString>>, Error> {
    root.build();
    let mut arguments = arguments.into_iter();
    let program = arguments.next();
    let EarlyFlags { flags, mut rest } = EarlyFlags::split(&known_flags(&root), arguments);
    if rest.first().is_some_and(|word| word == "--") {
        rest.remove(0); // it ends the flags, and is not the command
    }
    let own = flags_of(&root);
    let names = || flags.iter().flat_map(|flag| &flag.names);
    let Some(first) = names().find(|name| !own.contains_key(*name)) else {
        return Ok(None);
    };
    if rest.is_empty() {
        if names().any(|name| name == "--help" || name == "-h") {
            return Ok(Some(program.into_iter().chain(["--help".into()]).collect()));
        }
        let message = format!("`{first}` belongs to a command, and no command is given");
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
    if depth == 0 && names().any(|name| !known.contains_key(name)) {
        // The supposed command may be the value of an unknown flag.
        return Ok(None);
    }
    let taken = flags_of(command);
    let is_dropped =
        |name: &str| depth > 0 && WITHOUT_EFFECT.contains(&name) && !taken.contains_key(name);
    let mut others = names().filter(|name| known.contains_key(*name) && !is_dropped(name));
    if depth > 0
        && let Some(name) = others.find(|name| !taken.contains_key(*name))
    {
        let full_name = command.get_bin_name().unwrap_or(command.get_name());
        let message = format!("`{name}` is before the command, and `{full_name}` does not take it");
        return Err(command.clone().error(ErrorKind::UnknownArgument, message));
    }
    let (command, rest) = rest.split_at(depth.max(1));
    let flags: Vec<OsString> = flags
        .iter()
        .flat_map(|flag| flag.without(is_dropped))
        .collect();
    let parts = [command, &flags, rest].concat();
    Ok(Some(program.into_iter().chain(parts).collect()))
}

/// A command line with its first flags split off.
struct EarlyFlags {
    flags: Vec<EarlyFlag>,
    /// The command and its arguments.
    rest: Vec<OsString>,
}

/// A flag, or several letters written together.
struct EarlyFlag {
    /// As `--tags` or `-c`.
    names: Vec<String>,
    /// The flag as it was written, and its value.
    words: Vec<OsString>,
}

impl EarlyFlag {
    fn without(&self, is_dropped: impl Fn(&str) -> bool) -> Vec<OsString> {
        if !self.names.iter().any(|name| is_dropped(name)) {
            return self.words.clone();
        }
        let kept: Vec<_> = self.names.iter().filter(|name| !is_dropped(name)).collect();
        if kept.is_empty() {
            return Vec::new();
        }
        // No dropped letter takes a value, so the value belongs to the last letter.
        let written = self.words[0].to_string_lossy();
        let value: String = written.chars().skip(1 + self.names.len()).collect();
        let letters: String = kept
            .iter()
            .filter_map(|name| name.strip_prefix('-'))
            .collect();
        let mut words = vec![OsString::from(format!("-{letters}{value}"))];
        words.extend(self.words.iter().skip(1).cloned());
        words
    }
}

impl EarlyFlags {
    fn split(
        takes_value: &BTreeMap<String, bool>,
        arguments: impl Iterator<Item = OsString>,
    ) -> Self {
        let mut arguments = arguments.peekable();
        let mut flags = Vec::new();
        while let Some(flag) = arguments.next_if(|argument| is_flag(argument)) {
            let text = flag.to_string_lossy().into_owned();
            let mut names = Vec::new();
            let mut takes_next = false;
            if text.starts_with("--") {
                let (name, has_value) = match text.split_once('=') {
                    Some((name, _)) => (name, true),
                    None => (text.as_str(), false),
                };
                takes_next = !has_value && takes_value.get(name) == Some(&true);
                names.push(name.to_owned());
            } else {
                // Letters can be written together; the rest after one with a value is the value.
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
            let mut words = vec![flag];
            if takes_next {
                words.extend(arguments.next());
            }
            flags.push(EarlyFlag { names, words });
        }
        EarlyFlags {
            flags,
            rest: arguments.collect(),
        }
    }
}

fn is_flag(argument: &OsStr) -> bool {
    let bytes = argument.as_encoded_bytes();
    bytes.starts_with(b"-") && bytes != b"-" && bytes != b"--"
}

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
        let longs = flag
            .get_long()
            .into_iter()
            .chain(aliases)
            .map(|long| format!("--{long}"));
        flags.extend(longs.chain(short).map(|name| (name, takes_value)));
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::commands::command_line::WholeCli;
    use clap::CommandFactory;

    fn moved(line: &str) -> Option<String> {
        let arguments = line.split(' ').map(OsString::from);
        let moved = move_behind_command(WholeCli::command(), arguments);
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
            ("orch --quiet list", "orch list"),
            ("orch -qX --disable-safeguards all list -c", "orch list -c"),
            ("orch -qcXBmain list", "orch list -cBmain"),
            ("orch -XB main list", "orch list -B main"),
            ("orch -q lst", "orch lst -q"),
            ("orch --changed lst", "orch lst --changed"),
        ];
        for (line, expected) in table {
            assert_eq!(moved(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_line_without_command_flags_is_unchanged() {
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
        let mut root = WholeCli::command();
        root.build();
        check(&root, &mut BTreeMap::new());
    }
}
