//! `orch policy schema`

use std::io::Write as _;

use clap::Args;
use orch::exit::ExitStatus;
use orch::run::workflow::SCHEMA;

use crate::program::console;
use crate::program::error::Result;

/// Print the JSON Schema of the input of policies
///
/// Describes every key of both inputs: after the run of a stack (`run_input`) and at the release of
/// a module (`module_input`). The version of JSON Schema is 2020-12.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {}

pub(super) fn schema() -> Result<ExitStatus> {
    let mut out = console::stdout();
    out.write_all(SCHEMA.as_bytes())?;
    out.flush()?;
    Ok(ExitStatus::Success)
}
