//! The run of a work order in the folder of this machine, made of the results that were read so far.
//!
//! ```text
//! .orch/runs/<run of the order>/
//!   journal.jsonl, logs/     like those of a run on this machine
//!   results/00007.1.result   a result that was read, without its logs
//! ```

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

use super::merge::{MergeFacts, merged};
use super::order::StoredOrder;
use super::result::TurnResult;
use super::run_copy::RunCopy;
use crate::folder::{GuardedFolder, Unusable, failed};
use crate::record::journal::line;
use crate::record::logs::Logs;

/// The results of the run of a work order on this machine. Other processes wait while it exists.
#[derive(Debug)]
pub struct LocalResults {
    folder: GuardedFolder,
    /// The folder of the run, from that of the project.
    path: String,
    _lock: File,
}

impl LocalResults {
    pub fn open(folder: GuardedFolder, run: &str) -> Result<Self, Unusable> {
        let path = format!("runs/{run}");
        folder.make_directory(&format!("{path}/results"))?;
        let name = format!("{path}/results/lock");
        let options = &mut OpenOptions::new();
        let lock = folder.open(&name, options.write(true).create(true).truncate(false))?;
        lock.lock().map_err(|error| failed("lock", &name, error))?;
        Ok(LocalResults {
            folder,
            path,
            _lock: lock,
        })
    }

    /// Returns a result that was read earlier, without its logs; `None` if it was not, or is damaged.
    pub fn find(&self, name: &str) -> Result<Option<TurnResult>, Unusable> {
        let bytes = self.folder.read(&format!("{}/results/{name}", self.path))?;
        Ok(bytes.and_then(|bytes| TurnResult::parse(&bytes).ok()))
    }

    /// Returns whether a run of follow-ups is on this machine.
    pub fn has(&self, run: &str) -> bool {
        RunCopy::is_here(&self.folder, run)
    }

    /// Adds a run of follow-ups that another machine has run.
    pub fn add(&self, run: &str, copy: &RunCopy) -> Result<(), Unusable> {
        copy.write(&self.folder, run)
    }

    /// Writes the run. The results have names; those that were read just now have logs. `answers` are those of policies
    /// to the latest results, with names of their own.
    pub fn write(
        &self,
        order: &StoredOrder,
        results: Vec<(String, TurnResult)>,
        answers: Vec<(String, TurnResult)>,
        facts: &MergeFacts,
    ) -> Result<(), Unusable> {
        let kept = results.iter().chain(&answers);
        let kept = kept.map(|(name, result)| (name.clone(), result.without_logs()));
        let kept: Vec<(String, TurnResult)> = kept.collect();
        let mut results: Vec<TurnResult> = results.into_iter().map(|(_, result)| result).collect();
        // The results are in order, so the last one of a turn remains.
        let of_turns = results.iter_mut().map(|result| (result.turn, result));
        let mut latest: HashMap<usize, &mut TurnResult> = of_turns.collect();
        for (_, answers) in answers {
            if let Some(result) = latest.get_mut(&answers.turn) {
                result.lines.extend(answers.lines);
            }
        }
        results.extend(facts.latest.iter().cloned());
        let lines = merged(order, &mut results, facts);
        let logs = Logs::new(self.folder.make_directory(&format!("{}/logs", self.path))?);
        for result in &results {
            let stack = &order.outline.turns[result.turn].stack;
            for log in &result.logs {
                let file = logs.file(result.turn + 1, stack, log.attempt);
                let shown = format!("{}/logs", self.path);
                put(&file, &log.output)
                    .and_then(|()| {
                        if log.streams.is_empty() {
                            Ok(())
                        } else {
                            put(&Logs::index(&file), log.streams.as_bytes())
                        }
                    })
                    .map_err(|error| failed("write", &shown, error))?;
            }
        }
        // After the logs: a result that is here is here with all its parts.
        for (name, result) in &kept {
            let name = format!("{}/results/{name}", self.path);
            if self.folder.may_have(&name) {
                continue;
            }
            let bytes = result.to_bytes().map_err(io::Error::from);
            let file = self
                .folder
                .make_directory(&format!("{}/results", self.path))?;
            let file = file.join(name.rsplit('/').next().unwrap_or_default());
            bytes
                .and_then(|bytes| put(&file, &bytes))
                .map_err(|error| failed("write", &name, error))?;
        }
        let mut journal = Vec::new();
        let shown = format!("{}/journal.jsonl", self.path);
        let text = line(&order.header).and_then(|header| {
            journal.extend(header);
            for entry in &lines {
                journal.extend(line(entry)?);
            }
            Ok(())
        });
        text.map_err(|error| failed("write", &shown, error.into()))?;
        self.folder.replace(&shown, &journal)
    }
}

/// Writes a file at once, which only its owner can read.
fn put(file: &PathBuf, bytes: &[u8]) -> io::Result<()> {
    let new = file.with_added_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&new)?.write_all(bytes)?;
    fs::rename(&new, file)
}
