//! `orch fmt`

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use orch::command::fmt::{Unformatted, format_text};
use orch::exit::ExitStatus;
use orch::printable::printable;

use super::working_directory;
use crate::program::error::Result;
use crate::program::{console, notices};

/// The status of `--check` if a file differs.
const DIFFERENT: ExitStatus = ExitStatus::Run(1);

/// The status of `--detailed-exit-code` if a file was changed.
const CHANGED: ExitStatus = ExitStatus::Run(2);

/// Format configuration files
///
/// Indents and aligns as `terramate fmt` and `terraform fmt` do. Only blanks change: comments, line
/// breaks and strings are kept. Prints the names of the files that change.
///
/// Without FILE, formats all files ending in .tm, .tm.hcl, .orch.hcl or .tmgen at and below the current
/// directory, except in dot directories and directories with `.tmskip` or `.orchskip`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orch fmt
  orch fmt --check              in CI: exit status 1 if a file is not formatted
  orch fmt - < stack.tm.hcl     print the formatted text")]
pub(crate) struct FmtArgs {
    /// The files; `-` alone formats stdin to stdout
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Change nothing, and exit with 1 if a file is not formatted
    #[arg(long, conflicts_with = "detailed_exit_code")]
    pub(crate) check: bool,

    /// Exit with 2 if a file was changed
    #[arg(long)]
    pub(crate) detailed_exit_code: bool,
}

pub(super) fn fmt(chdir: &[PathBuf], args: &FmtArgs) -> Result<ExitStatus> {
    let directory = working_directory(chdir)?;
    let notices = notices::of(&directory);
    if let [file] = args.files.as_slice()
        && file == Path::new("-")
    {
        let mut text = String::new();
        let read = io::stdin().lock().read_to_string(&mut text);
        read.context("failed to read stdin")?;
        let formatted = format_text("stdin", &text, &notices)?;
        let is_same = formatted == text;
        if !args.check {
            let mut out = console::stdout();
            out.write_all(formatted.as_bytes())?;
            out.flush()?;
        }
        return Ok(status(is_same, args));
    }
    let unformatted = Unformatted::find(&directory, &args.files, &notices)?;
    if !args.check {
        unformatted.write()?;
    }
    let mut out = console::stdout();
    for file in unformatted.files() {
        writeln!(out, "{}", printable(file))?;
    }
    out.flush()?;
    Ok(status(unformatted.files().next().is_none(), args))
}

fn status(is_same: bool, args: &FmtArgs) -> ExitStatus {
    match (args.check, args.detailed_exit_code) {
        _ if is_same => ExitStatus::Success,
        (true, _) => DIFFERENT,
        (_, true) => CHANGED,
        _ => ExitStatus::Success,
    }
}
