//! The step summary of GitHub Actions: a file that all programs of a step append to.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use orch::report::LEAST_MARKDOWN_BYTES;

/// The maximum size of a step summary, in bytes.
const MAX_BYTES: usize = 1 << 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct StepSummary(pub(super) PathBuf);

impl StepSummary {
    /// Returns the step summary, if this is a job of GitHub Actions.
    pub(super) fn of_job() -> Option<Self> {
        let is_github = env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true");
        let file = env::var_os("GITHUB_STEP_SUMMARY").filter(|file| is_github && !file.is_empty());
        file.map(|file| StepSummary(file.into()))
    }

    /// Returns how many bytes it can take; `None` if too few to be useful, since GitHub hides a
    /// summary that is too long.
    pub(super) fn room(&self) -> Option<usize> {
        let length = fs::metadata(&self.0).map_or(0, |metadata| metadata.len());
        let used = usize::try_from(length).unwrap_or(usize::MAX);
        let room = MAX_BYTES.saturating_sub(used);
        (room >= LEAST_MARKDOWN_BYTES).then_some(room)
    }

    /// Appends to it. Fails if it cannot be written.
    pub(super) fn append(
        &self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let file = File::options().append(true).create(true).open(&self.0)?;
        let mut out = BufWriter::new(file);
        content(&mut out)?;
        out.flush()
    }
}
