//! `orch man`

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory};
use orch::exit::ExitStatus;

use super::working_directory;
use crate::program::commands::command_line::WholeCli;
use crate::program::error::Result;
use crate::program::help::{TOPICS, command_pages};

/// Write man pages for all commands and topics
///
/// Section 1 has a page for each command (`orch.1`, `orch-list.1`, …), section 7 one for each topic
/// (`orch-changes.7`, …).
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory to write to; created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(super) fn man(chdir: &[PathBuf], args: &ManArgs) -> Result<ExitStatus> {
    let directory = working_directory(chdir)?.join(&args.directory);
    let failed = || format!("failed to write man pages to `{}`", directory.display());
    fs::create_dir_all(&directory).with_context(failed)?;
    let mut command = WholeCli::command().disable_help_subcommand(true);
    command.build();
    for page in command_pages(&command).with_context(failed)? {
        fs::write(directory.join(page.file), page.text).with_context(failed)?;
    }
    for topic in &TOPICS {
        let file = directory.join(format!("orch-{}.7", topic.name));
        fs::write(file, topic.man_page()).with_context(failed)?;
    }
    Ok(ExitStatus::Success)
}
