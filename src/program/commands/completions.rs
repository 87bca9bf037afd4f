//! `orch completions`

use std::io::Write;

use clap::CommandFactory;

use crate::program::cli::{Cli, CompletionsArgs};
use crate::program::console;
use crate::program::exit::ExitStatus;

pub(super) fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitStatus> {
    // The generator panics where it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "orch", &mut script);
    let mut out = console::stdout();
    out.write_all(&script)?;
    out.flush()?;
    Ok(ExitStatus::Success)
}
