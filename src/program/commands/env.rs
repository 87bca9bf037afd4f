//! `orch env`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use orch::printable::printable;
use orch::report::{Document, write_environments};

use super::format::Format;
use super::selection_flags::{SEE_SELECTION, SelectArgs};
use super::{Filters, Loaded, Reads};
use crate::program::console;
use crate::program::error::Result;
use crate::program::exit::ExitStatus;

/// Show what a run adds to the environment of each stack
///
/// `ORCH_RUN_ID` is missing, since each run has a new one. See `orch help environment`.
#[derive(Debug, Args)]
#[command(after_long_help = SEE_SELECTION)]
pub(crate) struct EnvArgs {
    /// The format of the environment
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

pub(super) fn env(chdir: &[PathBuf], args: &EnvArgs) -> Result<ExitStatus> {
    let filters = Filters::new(chdir, &args.select)?;
    let document = args.format.document(Document::Stacks);
    let mut loaded = Loaded::new(chdir, document, Reads::for_selection(&args.select))?;
    if let Some(status) = loaded.check(filters.change())? {
        return Ok(status);
    }
    let query = loaded.query(filters)?;
    let selection = loaded.select(&query);
    let environments = loaded.environments(selection.stacks());
    if let Some(status) = loaded.report()? {
        return Ok(status);
    }
    let mut out = console::stdout();
    match args.format {
        Format::Json => write_environments(
            &mut out,
            &loaded.project,
            &loaded.problems,
            &selection,
            &environments,
        )?,
        Format::Text => {
            for (stack, environment) in &environments {
                let path = loaded.project.stacks[*stack]
                    .path
                    .relative_to(&loaded.directory);
                writeln!(out, "{}:", printable(&path))?;
                for (name, value) in environment {
                    match value {
                        Some(value) => writeln!(out, "  {name}={}", printable(value))?,
                        None => writeln!(out, "  {name} is removed")?,
                    }
                }
            }
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}
