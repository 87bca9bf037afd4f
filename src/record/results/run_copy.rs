//! A copy of a run of follow-ups for other machines: its journal and logs.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::result::{LONGEST_LOG, ResultError, check_format};
use crate::folder::{GuardedFolder, Unusable, failed};
use crate::record::journal::FORMAT;

/// The journal in the folder of a run.
const JOURNAL: &str = "journal.jsonl";

/// The folder with logs in that of a run.
const LOGS: &str = "logs";

/// The files of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct RunCopy {
    journal: Vec<u8>,
    /// By their names. Very long ones are left out.
    logs: Vec<(String, Vec<u8>)>,
}

/// The first line. The contents of all files follow, that of the journal first.
#[derive(Serialize, Deserialize)]
struct CopyHead {
    format: u32,
    orch: String,
    journal: usize,
    logs: Vec<(String, usize)>,
}

impl RunCopy {
    /// Reads a run on this machine.
    pub fn read(folder: &GuardedFolder, run: &str) -> Result<Self, Unusable> {
        let path = format!("runs/{run}");
        let journal = format!("{path}/{JOURNAL}");
        let missing = || failed("read", &journal, io::ErrorKind::NotFound.into());
        let journal = folder.read(&journal)?.ok_or_else(missing)?;
        let path = format!("{path}/{LOGS}");
        let logs = match folder.directory(&path)? {
            Some(logs) => read_all(&logs).map_err(|error| failed("read", &path, error))?,
            None => Vec::new(),
        };
        Ok(RunCopy { journal, logs })
    }

    /// Writes the run to this machine. Its journal comes last, so a run that is here is complete.
    pub fn write(&self, folder: &GuardedFolder, run: &str) -> Result<(), Unusable> {
        let path = format!("runs/{run}/{LOGS}");
        folder.make_directory(&path)?;
        for (name, content) in &self.logs {
            folder.replace(&format!("{path}/{name}"), content)?;
        }
        folder.replace(&format!("runs/{run}/{JOURNAL}"), &self.journal)
    }

    /// Returns whether a run is on this machine.
    pub fn is_here(folder: &GuardedFolder, run: &str) -> bool {
        folder.may_have(&format!("runs/{run}/{JOURNAL}"))
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let logs = self.logs.iter();
        let head = CopyHead {
            format: FORMAT,
            orch: env!("CARGO_PKG_VERSION").to_owned(),
            journal: self.journal.len(),
            logs: logs.map(|(name, it)| (name.clone(), it.len())).collect(),
        };
        let mut bytes = serde_json::to_vec(&head).expect("it has only text and numbers");
        bytes.push(b'\n');
        bytes.extend(&self.journal);
        for (_, content) in &self.logs {
            bytes.extend(content);
        }
        bytes
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, ResultError> {
        let end = memchr::memchr(b'\n', bytes).ok_or(ResultError::Incomplete)?;
        let (head, mut rest) = (&bytes[..end], &bytes[end + 1..]);
        check_format(head)?;
        let head: CopyHead = serde_json::from_slice(head)?;
        let mut next = |length| -> Result<Vec<u8>, ResultError> {
            let (content, after) = rest
                .split_at_checked(length)
                .ok_or(ResultError::Incomplete)?;
            rest = after;
            Ok(content.to_owned())
        };
        let journal = next(head.journal)?;
        let mut logs = Vec::new();
        for (name, length) in head.logs {
            let content = next(length)?;
            // A store must not name files elsewhere.
            let is_plain = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
            if !name.is_empty() && name.chars().all(is_plain) && !name.starts_with('.') {
                logs.push((name, content));
            }
        }
        Ok(RunCopy { journal, logs })
    }
}

/// Reads the files of a directory, in the order of their names.
fn read_all(directory: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_short = entry.metadata()?.len() <= LONGEST_LOG as u64;
        if let Ok(name) = entry.file_name().into_string()
            && is_short
        {
            files.push((name, fs::read(entry.path())?));
        }
    }
    files.sort_unstable();
    Ok(files)
}
