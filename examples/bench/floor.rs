//! The least work that could give the same result: what the figures of `orch` are held against.
//!
//! Each floor runs in a process of its own, so that starting a process counts on both sides.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use orch::project::discover::is_configuration;
use walkdir::WalkDir;

/// Walks the directories that `orch` enters, on one thread, reads the files that `orch` reads, and
/// does nothing with them. Generated repositories have no skip marks, so names tell everything.
pub(crate) fn walk(root: &Path) -> Result<()> {
    let entries = WalkDir::new(root).into_iter().filter_entry(|entry| {
        let is_dot = entry.file_name().as_encoded_bytes().starts_with(b".");
        entry.depth() == 0 || !(is_dot && entry.file_type().is_dir())
    });
    for entry in entries {
        let entry = entry?;
        if entry.file_type().is_file() && is_configuration(entry.file_name()) {
            black_box(fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// Runs `true` in each directory that the file `list` names, one a line.
pub(crate) fn spawn(list: &Path) -> Result<()> {
    for directory in fs::read_to_string(list)?.lines() {
        let status = Command::new("true")
            .current_dir(directory)
            .status()
            .context("failed to run `true`")?;
        ensure!(status.success(), "`true` failed");
    }
    Ok(())
}
