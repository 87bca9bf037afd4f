//! The formats of reports.

use std::ffi::OsStr;
use std::io::{self, Write};

use super::full::write_report_json;
use super::runs::ShownRun;
use crate::record::logs::Logs;

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    /// Everything, for programs.
    Json,
}

impl ReportFormat {
    /// All formats.
    pub const ALL: [ReportFormat; 1] = [ReportFormat::Json];

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        match self {
            ReportFormat::Json => "json",
        }
    }

    /// Returns the extension of files that have this format unless somebody says otherwise.
    pub fn extension(self) -> Option<&'static str> {
        match self {
            ReportFormat::Json => Some("json"),
        }
    }

    /// Returns the format of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns the format of files with this extension, in any case.
    pub fn of_extension(extension: &OsStr) -> Option<Self> {
        let is = |format: &ReportFormat| {
            let known = format.extension();
            known.is_some_and(|known| extension.eq_ignore_ascii_case(known))
        };
        Self::ALL.into_iter().find(is)
    }
}

/// Writes the report of a run.
///
/// # Errors
///
/// If it cannot be written.
pub fn write_report(
    out: &mut impl Write,
    format: ReportFormat,
    run: &ShownRun,
    logs: &Logs,
) -> io::Result<()> {
    match format {
        ReportFormat::Json => write_report_json(out, run, logs),
    }
}
