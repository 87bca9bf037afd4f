//! `orch completions`

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::program::commands::command_line::Cli;
use crate::program::console;
use crate::program::error::Result;
use crate::program::exit::ExitStatus;

/// Print a completion script for a shell
///
/// In bash: source <(orch completions bash)
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

pub(super) fn completions(args: &CompletionsArgs) -> Result<ExitStatus> {
    // The generator panics where it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "orch", &mut script);
    let mut out = console::stdout();
    out.write_all(&script)?;
    out.flush()?;
    Ok(ExitStatus::Success)
}
