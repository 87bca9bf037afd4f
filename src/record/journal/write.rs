//! Writes the journal of a run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::entry::JournalEntry;
use super::header::Header;
use crate::folder::{GuardedFolder, Unusable, failed};

pub(super) const FILE: &str = "journal.jsonl";

/// The name of the file until it has its header: a run that is killed before that has never begun.
pub(super) const NEW_FILE: &str = "journal.new";

#[derive(Debug)]
pub struct Journal {
    pub(super) file: File,
    folder: PathBuf,
    /// The length of the complete lines in the file.
    length: u64,
    /// Lines that could not be written so far.
    pending: Vec<u8>,
}

impl Journal {
    /// Creates the folder of a run and begins its journal. The file is locked while the journal exists, which shows
    /// other processes that the run is in progress.
    pub fn create(place: &GuardedFolder, header: &Header) -> Result<Self, Unusable> {
        let path = format!("runs/{}", header.run);
        let folder = place.make_directory(&path)?;
        let path = format!("{path}/{NEW_FILE}");
        let file = place.open(&path, OpenOptions::new().append(true).create_new(true))?;
        // Without locks, other processes cannot know; nothing else depends on it.
        _ = file.try_lock();
        let mut journal = Journal {
            file,
            folder,
            length: 0,
            pending: Vec::new(),
        };
        let shown = format!(".orch/{path}");
        journal
            .line(header)
            .and_then(|()| fs::rename(journal.folder.join(NEW_FILE), journal.folder.join(FILE)))
            .map_err(|error| failed("write", &shown, error))?;
        Ok(journal)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes an entry. Earlier failed writes are repeated, so that nothing is missing once the disk has room.
    ///
    /// If the file does not have this entry, or one before it.
    pub fn write(&mut self, entry: &JournalEntry) -> io::Result<()> {
        self.line(entry)
    }

    fn line(&mut self, entry: &impl Serialize) -> io::Result<()> {
        let is_behind = !self.pending.is_empty();
        self.pending.extend(self::line(entry)?);
        if is_behind {
            // A part of a line may have been written.
            self.file.set_len(self.length)?;
        }
        self.file.write_all(&self.pending)?;
        self.length += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

pub fn line(of: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(of)?;
    line.push(b'\n');
    Ok(line)
}
