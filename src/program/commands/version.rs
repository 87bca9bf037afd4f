//! `orch version`

use std::io::Write as _;

use clap::Args;

use crate::program::console;
use crate::program::error::Result;
use crate::program::exit::ExitStatus;

/// Print the version
#[derive(Debug, Args)]
pub(crate) struct VersionArgs {}

pub(super) fn version() -> Result<ExitStatus> {
    let mut out = console::stdout();
    writeln!(out, "orch {}", env!("CARGO_PKG_VERSION"))?;
    out.flush()?;
    Ok(ExitStatus::Success)
}
