//! `--report`: report files about a run.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use orch::record::logs::Logs;
use orch::report::{LEAST_MARKDOWN_BYTES, MARKDOWN_BYTES, ReportFormat, ShownRun, write_report};

use super::step_summary::StepSummary;
use super::working_directory;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct ReportArgs {
    /// Write a report of the run to a file (can be repeated)
    ///
    /// Without FORMAT, the extension of FILE decides. `-` writes to stdout, and needs a FORMAT. See
    /// `orch help reports` for the formats.
    #[arg(long = "report", value_name = "[FORMAT=]FILE", value_parser = requested())]
    requested: Vec<RequestedReport>,

    /// The maximum size of a Markdown report [default: 65536]
    ///
    /// The default is the limit for a comment on GitHub; a step summary there may have 1048576 bytes.
    /// Rows and quoted output that do not fit are left out and counted. The minimum is 1024.
    #[arg(long, value_name = "BYTES", requires = "requested", value_parser = max_bytes())]
    max_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RequestedReport {
    format: ReportFormat,
    /// `None` for standard output.
    file: Option<PathBuf>,
}

/// Where a file goes that a command writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Stdout,
    /// A file, replaced atomically.
    File(PathBuf),
    /// A pipe or a device, written in place.
    Device(PathBuf),
    /// The step summary of GitHub Actions.
    StepSummary(StepSummary),
}

/// Reports that passed the checks before the run.
pub(crate) struct Reports {
    wanted: Vec<(ReportFormat, Target)>,
    max_bytes: usize,
}

/// Parses the maximum length of a Markdown page.
pub(super) fn max_bytes() -> impl TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(LEAST_MARKDOWN_BYTES as u64..)
}

/// Parses `[FORMAT=]FILE`.
fn requested() -> impl TypedValueParser<Value = RequestedReport> {
    OsStringValueParser::new().try_map(|word: OsString| parse(&word))
}

fn parse(word: &OsStr) -> Result<RequestedReport, String> {
    let split = word.to_str().and_then(|word| word.split_once('='));
    // `./a=b.json` is a file, `jsno=a` a mistake.
    let is_name = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    let (format, file) = match split {
        Some((name, file)) if is_name(name) => {
            let format = ReportFormat::of_name(name);
            let problem = || format!("`{name}` is not a format; {}", formats());
            (format.ok_or_else(problem)?, OsStr::new(file))
        }
        _ if word == "-" => {
            return Err(format!(
                "standard output has no extension: write `FORMAT=-`; {}",
                formats()
            ));
        }
        _ => {
            let extension = Path::new(word).extension();
            let format = extension.and_then(ReportFormat::of_extension);
            let problem = || match extension {
                Some(extension) => format!(
                    "`.{}` is not the extension of a format; {}",
                    extension.to_string_lossy(),
                    formats()
                ),
                None => format!("it has neither a FORMAT nor an extension; {}", formats()),
            };
            (format.ok_or_else(problem)?, word)
        }
    };
    if file.is_empty() {
        return Err("the file name is empty".to_owned());
    }
    Ok(RequestedReport {
        format,
        file: (file != "-").then(|| file.into()),
    })
}

/// Lists the formats.
fn formats() -> String {
    let named = ReportFormat::ALL.map(|format| match format.extension() {
        Some(extension) => format!("`{}` (.{extension})", format.name()),
        None => format!("`{}`", format.name()),
    });
    format!("the formats are {}", named.join(", "))
}

impl ReportArgs {
    pub(crate) fn are_wanted(&self) -> bool {
        !self.requested.is_empty()
    }

    /// Checks before the run that the reports can be written. Fails if a directory is missing or
    /// not writable, or if two reports, or a report and the events, have the same file.
    pub(crate) fn check(&self, chdir: &[PathBuf], events: Option<&Path>) -> Result<Reports> {
        let mut wanted: Vec<(ReportFormat, Target)> = Vec::new();
        for RequestedReport { format, file } in &self.requested {
            let target = match file {
                None => Target::Stdout,
                Some(file) => {
                    target(&working_directory(chdir)?.join(file), file).with_context(|| {
                        format!("the report `{}` cannot be written", file.display())
                    })?
                }
            };
            let place = file
                .as_ref()
                .map_or("-".into(), |file| file.to_string_lossy());
            if let Target::File(file) = &target
                && events == Some(file)
            {
                return Err(ProgramError::usage(format!(
                    "a report and the events cannot both be written to `{place}`"
                )));
            }
            if wanted.iter().any(|(_, other)| *other == target) {
                return Err(ProgramError::usage(format!(
                    "two reports cannot both be written to `{place}`"
                )));
            }
            wanted.push((*format, target));
        }
        let max_bytes = self
            .max_bytes
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(Reports {
            wanted,
            max_bytes: max_bytes.unwrap_or(MARKDOWN_BYTES),
        })
    }
}

/// Returns the path that a file has, or would have, with links resolved.
pub(crate) fn resolved(file: &Path) -> PathBuf {
    let beside = || {
        let directory = dunce::canonicalize(file.parent()?).ok()?;
        Some(directory.join(file.file_name()?))
    };
    // The target of a link is replaced, not the link.
    let resolved = dunce::canonicalize(file).ok().or_else(beside);
    resolved.unwrap_or_else(|| file.to_owned())
}

/// Checks that a file can be written; `typed` is how the user names it. Fails if it is a directory,
/// or its directory is missing or not writable.
pub(crate) fn check_place(file: &Path, typed: &Path) -> io::Result<()> {
    match fs::metadata(file) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if metadata.is_file() => File::options().append(true).open(file).map(drop),
        Ok(_) => Ok(()),
        Err(_) => try_directory(file, typed),
    }
}

/// Checks that a file can be created in the directory of a file.
fn try_directory(file: &Path, typed: &Path) -> io::Result<()> {
    let Err(error) = temporary(file) else {
        return Ok(());
    };
    let directory = typed.parent().unwrap_or(typed);
    if error.kind() == io::ErrorKind::NotFound {
        let message = format!("the directory `{}` does not exist", directory.display());
        return Err(io::Error::new(error.kind(), message));
    }
    Err(error)
}

/// Decides how to write to a path, and checks its directory.
pub(super) fn target(file: &Path, typed: &Path) -> io::Result<Target> {
    match fs::metadata(file) {
        Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if !metadata.is_file() => return Ok(Target::Device(file.to_owned())),
        _ => {}
    }
    let file = resolved(file);
    try_directory(&file, typed)?;
    Ok(Target::File(file))
}

/// Writes a file that has its old content until the new one is complete.
fn replace(file: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, temporary(file)?);
    content(&mut out)?;
    let temporary = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    temporary.persist(file)?;
    Ok(())
}

/// Creates a temporary file beside a file, with the permissions that the file has or would get.
fn temporary(file: &Path) -> io::Result<tempfile::NamedTempFile> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".orch-report-");
    #[cfg(unix)]
    let permissions: Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    #[cfg(unix)]
    builder.permissions(permissions);
    // The error names the temporary file, which the user does not know.
    let temporary = builder.tempfile_in(directory).map_err(|error| {
        let cause = error.get_ref().and_then(std::error::Error::source);
        match cause.map(ToString::to_string) {
            Some(cause) => io::Error::new(error.kind(), cause),
            None => error.kind().into(),
        }
    })?;
    if let Ok(metadata) = fs::metadata(file) {
        let permissions: Permissions = metadata.permissions();
        temporary.as_file().set_permissions(permissions)?;
    }
    Ok(temporary)
}

impl Reports {
    /// Adds the step summary, in a job of GitHub Actions.
    #[must_use]
    pub(crate) fn with_step_summary(mut self) -> Self {
        if let Some(summary) = StepSummary::of_job() {
            let target = Target::StepSummary(summary);
            self.wanted.push((ReportFormat::Markdown, target));
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Returns whether one of them is written to standard output.
    pub(crate) fn need_stdout(&self) -> bool {
        self.wanted
            .iter()
            .any(|(_, target)| *target == Target::Stdout)
    }

    /// Writes all of them, and warns of failures. Returns whether all requested ones were written.
    pub(crate) fn write(&self, run: &ShownRun, logs: &Logs) -> bool {
        let mut are_written = true;
        for (format, target) in &self.wanted {
            let max_bytes = match target {
                Target::StepSummary(summary) => {
                    let Some(room) = summary.room() else {
                        continue;
                    };
                    room
                }
                _ => self.max_bytes,
            };
            let write_to = |out: &mut dyn Write| {
                let mut out = out;
                write_report(&mut out, *format, run, logs, max_bytes)
            };
            if let Err(error) = target.write(write_to) {
                let place = match target {
                    Target::Stdout => "-".into(),
                    Target::File(file)
                    | Target::Device(file)
                    | Target::StepSummary(StepSummary(file)) => file.to_string_lossy(),
                };
                console::warning(&format!("failed to write the report `{place}`: {error}"));
                // The user has not requested this one.
                are_written &= matches!(target, Target::StepSummary(_));
            }
        }
        are_written
    }
}

impl Target {
    pub(super) fn write(
        &self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Target::Stdout => {
                let mut out = console::stdout();
                content(&mut out)?;
                out.flush()
            }
            Target::StepSummary(summary) => summary.append(content),
            Target::Device(file) => {
                let mut out = BufWriter::new(File::options().write(true).open(file)?);
                content(&mut out)?;
                out.flush()
            }
            Target::File(file) => replace(file, content),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_an_extension_says_the_format() {
        let parsed = |word: &str| parse(word.as_ref()).map(|report| (report.format, report.file));
        let file = |name: &str| Some(PathBuf::from(name));
        let json = ReportFormat::Json;
        assert_eq!(parsed("a/b.json"), Ok((json, file("a/b.json"))));
        assert_eq!(parsed("B.JSON"), Ok((json, file("B.JSON"))));
        assert_eq!(parsed("json=b.xml"), Ok((json, file("b.xml"))));
        assert_eq!(parsed("json=a=b"), Ok((json, file("a=b"))));
        assert_eq!(parsed("./a=b.json"), Ok((json, file("./a=b.json"))));
        assert_eq!(parsed("json=-"), Ok((json, None)));
        for bad in [
            "-",
            "",
            "b",
            "b.yaml",
            "jsno=b.json",
            "json=",
            "=b.json",
            ".json",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
