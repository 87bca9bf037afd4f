//! The command line before the command.

use std::ffi::OsString;
use std::ops::Deref;
use std::path::PathBuf;

use clap::error::{Error, ErrorKind};
use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, CommandFactory as _, FromArgMatches, Parser,
};

use crate::program::commands;
use crate::program::early_flags::move_behind_command;
use crate::program::environment_flags::{is_any_set, with_environment};

/// Finds the stacks of an infrastructure monorepo, puts them in order and runs a command in each
///
/// A stack is a directory with a `stack {}` block in a file ending in .tm, .tm.hcl or .orch.hcl.
/// Terramate projects work as they are.
#[derive(Debug, Parser)]
#[command(
    name = "orch",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    propagate_version = false,
    after_help = "\
Examples:
  orch list                           list the stacks at and below the current directory
  orch list --order --why             in the order of a run, with the reasons
  orch run terraform plan             run a command in each of them, in order
  orch run --tags prod -- make deploy only in stacks tagged `prod`
  orch list --changed --why           list changed stacks, with the reason
  orch run --resume                   continue the last run
  orch runs show                      show the last run, stack by stack
  orch why prod/network --changed     explain one stack
  orch -C prod graph | dot -Tsvg      draw the order of stacks
  orch --changed run terraform plan   flags of a command may precede it
  orch help changes                   read about a topic; `orch help` lists them all

Exit status:
  0 done, or nothing to do              1 a command failed
  3 the configuration is wrong          4 refused: see `orch help exit-status`
  5 I/O, git or a missing program        64 the command line is wrong
  128+n ended by signal n"
)]
pub(crate) struct Cli<const IS_LATE: bool> {
    /// Work in this directory instead of the current one
    ///
    /// Can be repeated: each is relative to the one before.
    #[arg(
        short = 'C',
        long = "chdir",
        value_name = "DIR",
        global = true,
        help_heading = "Global options"
    )]
    pub(crate) chdir: Vec<PathBuf>,

    /// Work in the project root instead of the current directory
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) root: bool,

    /// Log to stderr; more with -vv and -vvv
    ///
    /// `ORCH_LOG` gives finer control: `ORCH_LOG=debug`, or `ORCH_LOG=orch::run::execute=trace`.
    #[arg(
        short,
        long,
        action = ArgAction::Count,
        global = true,
        help_heading = "Global options"
    )]
    pub(crate) verbose: u8,

    #[command(flatten)]
    _terramate: TerramateFlags,

    #[command(subcommand)]
    pub(crate) command: commands::Command<IS_LATE>,
}

/// Global flags of Terramate that have no effect: its log, and its check for updates.
#[derive(Debug, Args)]
struct TerramateFlags {
    #[arg(long, global = true, hide = true, value_name = "LEVEL")]
    log_level: Option<String>,

    #[arg(long, global = true, hide = true, value_name = "FORMAT")]
    log_fmt: Option<String>,

    #[arg(long, global = true, hide = true, value_name = "STREAM")]
    log_destination: Option<String>,

    #[arg(long, global = true, hide = true)]
    disable_checkpoint: bool,

    #[arg(long, global = true, hide = true)]
    disable_checkpoint_signature: bool,
}

/// The command line with the flags of all commands.
pub(crate) type WholeCli = Cli<false>;

/// The command line with the flags of only the command that is used.
pub(crate) type LateCli = Cli<true>;

/// Parses the command line. Fails if it is invalid, or requests the help or the version.
pub(crate) fn parse() -> Result<LateCli, Error> {
    let words: Vec<OsString> = std::env::args_os().collect();
    parse_words(&words).or_else(|error| {
        if error.kind() != ErrorKind::UnknownArgument {
            return Err(error);
        }
        match move_behind_command(WholeCli::command(), words.clone())? {
            Some(moved) => parse_words(&moved),
            None => match LateCli::try_parse_from(words.into_iter().map(shielded)) {
                Ok(cli) if matches!(cli.command, commands::Command::Eval(_)) => Ok(cli),
                _ => Err(error),
            },
        }
    })
}

/// Parses words, and the flags that the environment sets.
fn parse_words(words: &[OsString]) -> Result<LateCli, Error> {
    let parse = |mut command: Command| {
        let matches = command.try_get_matches_from_mut(words)?;
        LateCli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    };
    // Variables, messages and the help need the flags of all commands.
    if !is_any_set()
        && let Ok(cli) = parse(LateCli::command())
    {
        return Ok(cli);
    }
    parse(with_environment(WholeCli::command()))
}

/// Puts a space before an expression that begins with a minus, so that it is not parsed as a flag.
fn shielded(word: OsString) -> OsString {
    let bytes = word.as_encoded_bytes();
    let is_negative = matches!(bytes, [b'-', b'0'..=b'9' | b'(' | b' ', ..]);
    if !is_negative {
        return word;
    }
    let mut shielded = OsString::from(" ");
    shielded.push(word);
    shielded
}

/// Returns whether `-v` and `--version` are both given, in either order.
pub(crate) fn wants_details() -> bool {
    let version = Arg::new("version").short('V').long("version");
    let command = WholeCli::command()
        .disable_version_flag(true)
        .arg(version.action(ArgAction::SetTrue))
        .ignore_errors(true);
    let matches = command.try_get_matches_from(std::env::args_os());
    matches.is_ok_and(|matches| matches.get_count("verbose") > 0)
}

/// The arguments of a command. If `IS_LATE`, their flags are built only when the command is used: building those of all
/// commands takes longer than many commands do.
#[derive(Debug)]
pub(crate) struct Late<A, const IS_LATE: bool>(Box<A>);

impl<A: Args, const IS_LATE: bool> Args for Late<A, IS_LATE> {
    fn augment_args(command: Command) -> Command {
        if IS_LATE {
            command.defer(A::augment_args)
        } else {
            A::augment_args(command)
        }
    }

    fn augment_args_for_update(command: Command) -> Command {
        A::augment_args_for_update(command)
    }
}

impl<A: FromArgMatches, const IS_LATE: bool> FromArgMatches for Late<A, IS_LATE> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        A::from_arg_matches(matches).map(|args| Late(Box::new(args)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<A, const IS_LATE: bool> Deref for Late<A, IS_LATE> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        WholeCli::command().debug_assert();
    }
}
