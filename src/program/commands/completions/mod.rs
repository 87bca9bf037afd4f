//! `orch completions`, and the candidates that a shell requests.
//!
//! The shell's script calls `orch` for each completion, with `ORCH_COMPLETE` and the command line.
//! Flags come from the definition of the command line, names from the project. Nothing is printed
//! to stderr; in an invalid project, the readable names are offered.

mod candidates;
mod line;
mod values;

use std::env;
use std::ffi::OsString;
use std::io::Write as _;

use clap::Args;
use clap_complete::Shell;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{Elvish, EnvCompleter, Powershell};
use orch::exit::ExitStatus;

use self::candidates::Completion;
use self::line::Line;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// The variable with the shell that requests candidates.
const VARIABLE: &str = "ORCH_COMPLETE";

/// Print a completion script for a shell
///
/// The script asks orch for candidates: it completes the stacks, tags, runs, policies and modules of the project
/// as well.
/// Its first lines say how to install it; in bash: eval "$(orch completions bash)"
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

pub(super) fn completions(args: &CompletionsArgs) -> Result<ExitStatus> {
    let mut out = console::stdout();
    match args.shell {
        Shell::Bash => out.write_all(include_bytes!("orch.bash"))?,
        Shell::Zsh => out.write_all(include_bytes!("orch.zsh"))?,
        Shell::Fish => out.write_all(include_bytes!("orch.fish"))?,
        Shell::Elvish => {
            writeln!(out, "# Add to ~/.config/elvish/rc.elv:")?;
            writeln!(out, "#     eval (orch completions elvish | slurp)")?;
            Elvish.write_registration(VARIABLE, "orch", "orch", "orch", &mut out)?;
        }
        Shell::PowerShell => {
            writeln!(out, "# Add to the file that $PROFILE names:")?;
            writeln!(
                out,
                "#     orch completions powershell | Out-String | Invoke-Expression"
            )?;
            Powershell.write_registration(VARIABLE, "orch", "orch", "orch", &mut out)?;
        }
        other => {
            let message = format!("no completion script for {other}");
            return Err(ProgramError::usage(message));
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// Prints the candidates if a script requests them: `ORCH_COMPLETE=bash orch -- LINE WORD`. `None`
/// otherwise: an accidentally set variable has no effect, because no other command line begins like
/// that.
pub(crate) fn answer() -> Option<Result<ExitStatus>> {
    let shell = env::var_os(VARIABLE)?;
    let mut words = env::args_os().skip(1);
    if words.next()? != "--" {
        return None;
    }
    let words: Vec<OsString> = words.collect();
    Some(print_candidates(&shell.to_string_lossy(), words))
}

fn print_candidates(shell: &str, words: Vec<OsString>) -> Result<ExitStatus> {
    let mut text = Vec::new();
    match shell {
        "bash" | "zsh" | "fish" => {
            let typed: Vec<String> = words
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            let line = Line::split(typed.first().map_or("", String::as_str));
            let replaced = typed.get(1).map_or("", String::as_str);
            for candidate in Completion::new(&line.words).candidates() {
                if let Some(shown) = in_shell(shell, &line, replaced, &candidate) {
                    text.extend(shown.as_bytes());
                    text.push(b'\n');
                }
            }
        }
        "elvish" => Completion::of_words(&words).write(&Elvish, words, &mut text),
        "powershell" => Completion::of_words(&words).write(&Powershell, words, &mut text),
        other => {
            let message = format!("in {VARIABLE}: no completion for `{other}`");
            return Err(ProgramError::usage(message));
        }
    }
    let mut out = console::stdout();
    out.write_all(&text)?;
    out.flush()?;
    Ok(ExitStatus::Success)
}

fn in_shell(
    shell: &str,
    line: &Line<'_>,
    replaced: &str,
    candidate: &CompletionCandidate,
) -> Option<String> {
    let value = candidate.get_value().to_str()?;
    if shell == "bash" {
        return line.instead_of(replaced, value);
    }
    let help = candidate.get_help().map(ToString::to_string);
    let help = help
        .as_deref()
        .and_then(|help| help.lines().next())
        .unwrap_or_default();
    if shell == "fish" {
        return Some(format!("{value}\t{help}"));
    }
    let kind = if value.ends_with(['/', '=', '@']) {
        '+'
    } else {
        '='
    };
    let value = value.replace('\\', r"\\").replace(':', r"\:");
    Some(format!("{kind}{value}:{}", help.replace('\\', r"\\")))
}
