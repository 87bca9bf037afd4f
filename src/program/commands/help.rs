//! `orch help`

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use anstream::{AutoStream, ColorChoice};
use clap::{Args, CommandFactory};
use console::Term;
use orch::diagnostic::closest;
use orch::exit::ExitStatus;
use orch::printable::printable;

use crate::program::commands::command_line::Cli;
use crate::program::console::stdout;
use crate::program::error::{ProgramError, Result};
use crate::program::help::{TOPICS, Topic, TopicStyle};

/// The width of a topic if the terminal's is not known.
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

/// Lists commands and topics.
fn overview() -> String {
    let command = Cli::command();
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    let commands = shown.map(|command| {
        let about = command.get_about().map(ToString::to_string);
        (command.get_name(), about.unwrap_or_default())
    });
    let topics = TOPICS
        .iter()
        .map(|topic| (topic.name, topic.summary.to_owned()));
    let mut text = String::new();
    section(&mut text, "Commands", commands);
    text.push('\n');
    section(&mut text, "Topics", topics);
    text += "\n`orch help COMMAND` and `orch help TOPIC` show more; `orch man DIR` writes all of it as man pages.\n";
    text += "If a command has the name of a topic, `orch help` shows the topic; `COMMAND --help` the command.\n";
    text
}

fn section<'a>(text: &mut String, title: &str, entries: impl Iterator<Item = (&'a str, String)>) {
    _ = writeln!(text, "{title}:");
    for (name, summary) in entries {
        _ = writeln!(text, "  {name:<14} {summary}");
    }
}

/// Returns what `orch COMMAND --help` shows.
fn command_help(words: &[String], is_plain: bool) -> Option<String> {
    let mut root = Cli::command();
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
    let command = Cli::command();
    let commands = command.get_subcommands().map(clap::Command::get_name);
    let known = commands.chain(TOPICS.iter().map(|topic| topic.name));
    let meant = closest(&subject, known).map(|meant| format!("; did you mean `{meant}`?"));
    let shown = printable(&subject);
    let message = format!(
        "there is no command or topic `{shown}`{}",
        meant.unwrap_or_default()
    );
    ProgramError::usage(message).hint("`orch help` lists all commands and topics")
}

/// Returns the width of a topic.
fn width() -> usize {
    let size = Term::stdout().size_checked();
    let columns = size.filter(|_| io::stdout().is_terminal());
    columns.map_or(WIDTH, |(_, columns)| usize::from(columns).min(MAX_WIDTH))
}
