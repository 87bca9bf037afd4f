//! `orch run --events`: who follows a run from outside.

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use orch::run::event_stream::{Destination, EventStream};

use crate::program::commands::working_directory;
use crate::program::error::{ProgramError, Result};

/// Who follows the run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct EventArgs {
    /// Write what happens as it happens: the lines of the journal
    ///
    /// FILE is replaced; `fd:N` is a file or pipe that orch was started with. See `orch help journal`
    /// for the lines.
    #[arg(
        long,
        value_name = "FILE|fd:N",
        value_parser = Destination::parse,
        conflicts_with = "dry_run"
    )]
    events: Option<Destination>,
}

impl EventArgs {
    /// Opens the descriptor that is meant, if one is: before orch opens any file of its own.
    pub(super) fn descriptor(&self) -> Result<Option<File>> {
        let Some(wanted @ Destination::Descriptor(number)) = &self.events else {
            return Ok(None);
        };
        let problem = match wanted.open(&PathBuf::new()) {
            Ok(file) => return Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => "is not open".to_owned(),
            Err(error) => format!("cannot be written to: {error}"),
        };
        let message = format!("in --events: descriptor {number} {problem}");
        Err(ProgramError::usage(message))
    }

    /// Begins to write to what was opened, or else to the file that is meant.
    pub(super) fn stream(
        &self,
        chdir: &[PathBuf],
        descriptor: Option<File>,
    ) -> Result<Option<EventStream>> {
        let file = match (&self.events, descriptor) {
            (None, _) => return Ok(None),
            (Some(_), Some(open)) => open,
            (Some(wanted), None) => wanted
                .open(&working_directory(chdir)?)
                .context("failed to open the file of `--events`")?,
        };
        let stream = EventStream::new(file);
        Ok(Some(stream.context(
            "failed to start the thread that writes events",
        )?))
    }
}
