//! The program: parses the command line, carries it out, and ends with the right exit status.

mod cli;
mod commands;
mod console;
mod exit;

use std::io;
use std::process::ExitCode;
use std::thread;

use clap::Parser;
use orch::discover::RootUnknown;
use tracing_subscriber::EnvFilter;

use crate::cli::Cli;
use crate::commands::UsageError;
use crate::exit::ExitStatus;

/// Expressions nest, and globals refer to globals; the main thread's stack may be small.
const STACK_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
    let program = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(program);
    let program = program.expect("a thread can be started");
    match program.join() {
        Ok(status) => status.into(),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn program() -> ExitStatus {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let is_answer = !error.use_stderr();
            // A closed pipe is no news.
            _ = error.print();
            return if is_answer {
                ExitStatus::Success
            } else {
                ExitStatus::Usage
            };
        }
    };
    if let Err(error) = start_tracing(cli.verbose) {
        console::error(error.as_ref());
        return ExitStatus::Usage;
    }
    match commands::run(cli) {
        Ok(status) => status,
        Err(error) if is_broken_pipe(&error) => ExitStatus::Success,
        Err(error) => {
            console::error(error.as_ref());
            if error.is::<UsageError>() {
                ExitStatus::Usage
            } else if error.is::<RootUnknown>() {
                ExitStatus::Configuration
            } else {
                ExitStatus::Surroundings
            }
        }
    }
}

/// Whoever reads our output has seen enough, as in `orch list | head -1`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Turns on messages about what is going on, where asked for by `-v` or `ORCH_LOG`.
fn start_tracing(verbose: u8) -> anyhow::Result<()> {
    let filter = match (std::env::var("ORCH_LOG"), verbose) {
        (Ok(directives), _) if !directives.is_empty() => EnvFilter::builder()
            .parse(&directives)
            .map_err(|error| anyhow::anyhow!("in ORCH_LOG: {error}"))?,
        (_, 0) => return Ok(()),
        (_, 1) => EnvFilter::new("orch=info"),
        (_, 2) => EnvFilter::new("orch=debug"),
        _ => EnvFilter::new("orch=trace"),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(console::stderr)
        .init();
    Ok(())
}
