//! `orch run --events`: writes the events of a run for other programs.

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use orch::run::event_stream::{Destination, EventStream, open_descriptor};

use crate::program::commands::reports::{check_place, resolved};
use crate::program::commands::working_directory;
use crate::program::error::{ProgramError, Result};

#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct EventArgs {
    /// Write each event to a file as it happens, as a line of the journal
    ///
    /// An existing FILE is replaced; `fd:N` is a file descriptor that orch inherits. See `orch help
    /// journal` for the lines.
    #[arg(
        long,
        value_name = "FILE|fd:N",
        value_parser = Destination::parse,
        conflicts_with = "dry_run"
    )]
    events: Option<Destination>,
}

impl EventArgs {
    /// Opens the descriptor, if the flag names one. Call it before `orch` opens any file.
    pub(super) fn descriptor(&self) -> Result<Option<File>> {
        let Some(Destination::Descriptor(number)) = &self.events else {
            return Ok(None);
        };
        let problem = match open_descriptor(*number) {
            Ok(file) => return Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => "is not open".to_owned(),
            Err(error) => format!("cannot be written to: {error}"),
        };
        let message = format!("in --events: descriptor {number} {problem}");
        Err(ProgramError::usage(message))
    }

    /// Returns the file that the flag names, if any, after a check that it can be written.
    pub(super) fn file(&self, chdir: &[PathBuf]) -> Result<Option<PathBuf>> {
        let Some(Destination::File(typed)) = &self.events else {
            return Ok(None);
        };
        let file = resolved(&working_directory(chdir)?.join(typed));
        check_place(&file, typed)
            .with_context(|| format!("the file `{}` cannot be written", typed.display()))?;
        Ok(Some(file))
    }

    /// Begins to write to the open descriptor, or to the file.
    pub(super) fn stream(
        descriptor: Option<File>,
        file: Option<PathBuf>,
    ) -> Result<Option<EventStream>> {
        let stream = match (descriptor, file) {
            (Some(open), _) => EventStream::new(open),
            (None, Some(file)) => EventStream::replace(file),
            (None, None) => return Ok(None),
        };
        Ok(Some(stream.context(
            "failed to start the thread that writes events",
        )?))
    }
}
