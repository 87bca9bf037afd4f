//! The formats of reports.

use std::ffi::OsStr;
use std::io::{self, Write};

use super::full::write_report_json;
use super::html::write_html;
use super::junit::write_junit;
use super::markdown::write_markdown;
use super::runs::ShownRun;
use super::terragrunt::{write_terragrunt_csv, write_terragrunt_json};
use crate::record::logs::Logs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    /// Everything, for programs.
    Json,
    /// `JUnit` XML, in which each stack is a test.
    Junit,
    /// Markdown for a comment or a summary.
    Markdown,
    /// A page for a browser, with the logs.
    Html,
    /// Terragrunt's run report as JSON.
    TerragruntJson,
    /// Terragrunt's run report as CSV.
    TerragruntCsv,
}

impl ReportFormat {
    pub const ALL: [ReportFormat; 6] = [
        ReportFormat::Json,
        ReportFormat::Junit,
        ReportFormat::Markdown,
        ReportFormat::Html,
        ReportFormat::TerragruntJson,
        ReportFormat::TerragruntCsv,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ReportFormat::Json => "json",
            ReportFormat::Junit => "junit",
            ReportFormat::Markdown => "markdown",
            ReportFormat::Html => "html",
            ReportFormat::TerragruntJson => "terragrunt-json",
            ReportFormat::TerragruntCsv => "terragrunt-csv",
        }
    }

    /// Returns the extension of files that have this format by default.
    pub fn extension(self) -> Option<&'static str> {
        match self {
            ReportFormat::Json => Some("json"),
            ReportFormat::Junit => Some("xml"),
            ReportFormat::Markdown => Some("md"),
            ReportFormat::Html => Some("html"),
            ReportFormat::TerragruntJson => None,
            ReportFormat::TerragruntCsv => Some("csv"),
        }
    }

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

/// Writes the report of a run. A Markdown report has at most `max_bytes` bytes.
pub fn write_report(
    out: &mut impl Write,
    format: ReportFormat,
    run: &ShownRun,
    logs: &Logs,
    max_markdown_bytes: usize,
) -> io::Result<()> {
    match format {
        ReportFormat::Json => write_report_json(out, run, logs),
        ReportFormat::Junit => write_junit(out, run, logs),
        ReportFormat::Markdown => write_markdown(out, run, logs, max_markdown_bytes),
        ReportFormat::Html => write_html(out, run, logs),
        ReportFormat::TerragruntJson => write_terragrunt_json(out, run),
        ReportFormat::TerragruntCsv => write_terragrunt_csv(out, run),
    }
}
