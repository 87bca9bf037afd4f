//! `orch help`

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use anstream::{AutoStream, ColorChoice};
use clap::{Args, CommandFactory};
use console::Term;
use orch::diagnostic::closest;
use orch::exit::ExitStatus;
use orch::printable::printable;

use crate::program::commands::command_line::WholeCli;
use crate::program::console::stdout;
use crate::program::error::{ProgramError, Result};
use crate::program::help::{TOPICS, Topic, TopicStyle};

/// The width of a topic if the terminal's is unknown.
const WIDTH: usize = 80;

/// The greatest width that is easy to read.
const MAX_WIDTH: usize = 100;

/// Show help for a command or a topic
///
/// Without an argument, lists all commands and topics.
#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// A command, as in `run` or `runs list`, or a topic; if both have this name, the topic
    #[arg(value_name = "COMMAND|TOPIC")]
    subject: Vec<String>,
}

pub(super) fn help(args: &HelpArgs) -> Result<ExitStatus> {
    let is_plain = AutoStream::choice(&io::stdout()) == ColorChoice::Never;
    let text = match args.subject.as_slice() {
        [] => overview(),
        // The help of a command of this name is that of its flag `--help`.
        [topic] if let Some(topic) = Topic::find(topic) => {
            let style = if is_plain {
                TopicStyle::Plain
            } else {
                TopicStyle::Terminal
            };
            topic.text(width(), style)
        }
        subject => match command_help(subject, is_plain) {
            Some(text) => text,
            None => return Err(unknown(subject)),
        },
    };
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// A section of the overview: a task of the user, with its commands and topics.
type Group = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const GROUPS: [Group; 9] = [
    (
        "Look",
        &["list", "why", "graph", "env", "globals", "eval", "validate"],
        &[
            "selection",
            "changes",
            "releases",
            "order",
            "instances",
            "configuration",
            "environment",
            "expressions",
            "functions",
            "diagnostics",
        ],
    ),
    ("Write", &["create", "clone", "fmt"], &[]),
    (
        "Run",
        &["run", "script", "runs"],
        &[
            "parallel",
            "output",
            "failures",
            "attempts",
            "resume",
            "signals",
            "safeguards",
            "reports",
            "journal",
            "json",
            "exit-status",
        ],
    ),
    (
        "Plan and apply",
        &["plan", "show", "apply", "destroy"],
        &[
            "plan",
            "apply",
            "drivers",
            "removal",
            "lifecycle",
            "conditions",
            "generations",
        ],
    ),
    ("Remember", &["state"], &["state", "recording"]),
    (
        "React",
        &["trigger", "policy"],
        &["triggers", "policies", "followups"],
    ),
    (
        "In CI",
        &["export", "job", "work", "finish"],
        &["ci", "pipelines", "engines"],
    ),
    (
        "Move here",
        &[],
        &[
            "terraform",
            "terramate",
            "terragrunt",
            "spacelift",
            "cfngin",
        ],
    ),
    ("Help", &["help", "man", "completions", "version"], &[]),
];

/// Lists commands and topics.
fn overview() -> String {
    let command = WholeCli::command();
    let mut text =
        "New here? Read `orch help selection`, `orch help plan` and `orch help state`.\n"
            .to_owned();
    for (title, commands, topics) in GROUPS {
        _ = writeln!(text, "\n{title}:");
        for name in commands {
            let command = command.find_subcommand(name).expect("it is a command");
            let about = command.get_about().map(ToString::to_string);
            entry(&mut text, name, &about.unwrap_or_default());
        }
        for name in topics {
            let topic = Topic::find(name).expect("it is a topic");
            entry(&mut text, &format!("help {name}"), topic.summary);
        }
    }
    text +=
        "\n`orch COMMAND --help` shows all flags; `orch man DIR` writes everything as man pages.\n";
    text
}

fn entry(text: &mut String, name: &str, summary: &str) {
    _ = writeln!(text, "  {name:<18} {summary}");
}

/// Returns the output of `orch COMMAND --help`.
fn command_help(words: &[String], is_plain: bool) -> Option<String> {
    let mut root = WholeCli::command();
    root.build();
    let mut command = &mut root;
    for word in words {
        command = command.find_subcommand_mut(word)?;
    }
    let help = command.render_long_help();
    Some(if is_plain {
        help.to_string()
    } else {
        help.ansi().to_string()
    })
}

fn unknown(subject: &[String]) -> ProgramError {
    let subject = subject.join(" ");
    let command = WholeCli::command();
    let commands = command.get_subcommands().map(clap::Command::get_name);
    let known = commands.chain(TOPICS.iter().map(|topic| topic.name));
    let meant = closest(&subject, known).map(|meant| format!("; did you mean `{meant}`?"));
    let shown = printable(&subject);
    let message = format!("no command or topic `{shown}`{}", meant.unwrap_or_default());
    ProgramError::usage(message).hint("`orch help` lists all commands and topics")
}

/// Returns the width of a topic.
fn width() -> usize {
    let size = Term::stdout().size_checked();
    let columns = size.filter(|_| io::stdout().is_terminal());
    columns.map_or(WIDTH, |(_, columns)| usize::from(columns).min(MAX_WIDTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overview_has_every_command_and_topic_once() {
        let listed = |list: fn(&Group) -> &'static [&'static str]| {
            let mut names: Vec<&str> = GROUPS.iter().flat_map(list).copied().collect();
            names.sort_unstable();
            names
        };
        let command = WholeCli::command();
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        let mut commands: Vec<&str> = shown.map(clap::Command::get_name).collect();
        commands.sort_unstable();
        assert_eq!(listed(|group| group.1), commands);
        let mut topics: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
        topics.sort_unstable();
        assert_eq!(listed(|group| group.2), topics);
    }
}
