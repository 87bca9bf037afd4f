//! `orch version`

use std::io::Write as _;

use clap::Args;
use orch::exit::ExitStatus;

use crate::program::console;
use crate::program::error::Result;

/// Print the version
///
/// With -v, it also prints the commit, target, compiler and features of the build. So does
/// `orch --version -v`.
#[derive(Debug, Args)]
pub(crate) struct VersionArgs {}

/// Prints the version; with `details`, also the details of the build.
pub(crate) fn version(details: bool) -> Result<ExitStatus> {
    let mut out = console::stdout();
    writeln!(out, "orch {}", env!("CARGO_PKG_VERSION"))?;
    if details {
        let rustc = env!("ORCH_RUSTC");
        for (name, value) in [
            ("commit", env!("ORCH_COMMIT")),
            ("commit date", env!("ORCH_COMMIT_DATE")),
            ("target", env!("ORCH_TARGET")),
            ("rustc", rustc.strip_prefix("rustc ").unwrap_or(rustc)),
            ("features", env!("ORCH_FEATURES")),
        ] {
            writeln!(out, "{name}: {value}")?;
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}
