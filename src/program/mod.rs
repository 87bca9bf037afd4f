//! The program around the library: command line, console and exit status.
//!
//! Commands only read their arguments, call the library and print.

mod commands;
mod console;
mod early_flags;
mod environment_flags;
mod error;
mod github;
mod help;
mod notices;

use std::process::ExitCode;
use std::{io, thread};

use clap::error::ErrorKind;
use orch::exit::ExitStatus;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::program::commands::{
    answer_completion, command_line, contradicting_flag, stray_path, version,
};
use crate::program::error::{ProgramError, Result};

/// The stack of the main working thread. Expressions and references between globals may nest
/// deeply, and the main thread's stack may be small.
const STACK_BYTES: usize = 64 << 20;

pub(crate) fn start() -> ExitCode {
    // If memory is limited, a smaller stack is enough for all but hostile expressions.
    let sizes = [STACK_BYTES, STACK_BYTES / 8];
    let start = |size| thread::Builder::new().stack_size(size).spawn(program).ok();
    let status = match sizes.into_iter().find_map(start) {
        None => program(),
        Some(program) => match program.join() {
            Ok(status) => status,
            Err(panic) => std::panic::resume_unwind(panic),
        },
    };
    status.into()
}

fn program() -> ExitStatus {
    if let Some(answered) = answer_completion() {
        return status(answered);
    }
    let cli = match command_line::parse() {
        Ok(cli) => cli,
        Err(error) => {
            if error.kind() == ErrorKind::DisplayVersion && command_line::wants_details() {
                return status(version(true));
            }
            let explained = contradicting_flag(&error, std::env::args_os());
            if let Some(error) = explained.or_else(|| stray_path(&error)) {
                error.show();
                return error.status();
            }
            let status = if error.use_stderr() {
                ExitStatus::Usage
            } else {
                ExitStatus::Success
            };
            return match error.print() {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    console::error(&error);
                    ExitStatus::External
                }
                _ => status,
            };
        }
    };
    status(start_tracing(cli.verbose).and_then(|()| commands::run(cli)))
}

/// Prints the error, if any.
fn status(result: Result<ExitStatus>) -> ExitStatus {
    match result {
        Ok(status) => status,
        Err(error) => {
            error.show();
            error.status()
        }
    }
}

/// Starts logging if `-v` or `ORCH_LOG` requests it.
fn start_tracing(verbose: u8) -> Result<()> {
    let targets = match (std::env::var("ORCH_LOG"), verbose) {
        (Ok(directives), _) if !directives.is_empty() => directives
            .parse()
            .map_err(|error| ProgramError::usage(format!("in ORCH_LOG: {error}")))?,
        (_, 0) => return Ok(()),
        (_, 1) => Targets::new().with_target("orch", Level::INFO),
        (_, 2) => Targets::new().with_target("orch", Level::DEBUG),
        _ => Targets::new().with_target("orch", Level::TRACE),
    };
    let log = tracing_subscriber::fmt::layer().with_writer(console::stderr);
    tracing_subscriber::registry()
        .with(targets)
        .with(log)
        .init();
    Ok(())
}
