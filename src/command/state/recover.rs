//! `orch state unlock` and `recover`.

use super::edit::each;
use super::{State, StateWrite, WriteOptions};
use crate::context::{from_lock, is_lost, locked, quoted, where_else};
use crate::error::{BoxedError, Error, Result};
use crate::folder::GuardedFolder;
use crate::printable::printable;
use crate::record::journal::{Liveness, Runs};
use crate::state::lock::{self, UnlockError, Unlocked, Unlocking};
use crate::state::recover::{self as recovery, RecoverError, Recovery};
use crate::state::run_record::RunRecord;
use crate::state::writer::LocalCopy;

/// The run whose records are added, and whose version of a stack counts.
pub struct RecoverRequest {
    pub run: String,
    pub take: Vec<String>,
    pub drop: Vec<String>,
}

impl State<'_> {
    pub fn unlock(&self, code: &str, force: bool, write: &WriteOptions) -> Result<StateWrite> {
        self.read_alone()?;
        let unlocking = Unlocking {
            code: code.to_owned(),
            force,
            reason: write.reason.clone(),
            dry_run: write.dry_run,
        };
        let unlocked = lock::unlock(
            &self.opened.backend,
            &unlocking,
            &self.opened.author,
            &self.clock,
        );
        let unlocked = unlocked.map_err(|error| match error {
            UnlockError::Lock(error) => from_lock(error),
            UnlockError::NotLocked => Error::refused("the state is not locked"),
            UnlockError::WrongCode(held) => locked(&held),
            UnlockError::Alive(held) => {
                Error::refused(format!("the holder of the lock may be alive: {held}"))
                    .hint("end that run first; if it is gone, add `--force`")
            }
            UnlockError::Damaged(ref lock, ref damage) => {
                let force = format!(
                    "if that run is gone, add `--force`; {} then",
                    is_lost(damage, lock)
                );
                let elsewhere = where_else(lock);
                Error::external(error).hint(elsewhere).hint(force)
            }
        })?;
        let Unlocked {
            lock,
            document,
            damage,
        } = unlocked;
        if let Some(damage) = &damage {
            self.notices().warning(&format!(
                "the run record `{}` cannot be used: {}; {}",
                damage.address,
                damage.why,
                is_lost(damage, &lock)
            ));
        }
        let (by, run) = (printable(&lock.by), printable(&lock.run));
        let text = format!("took the lock away from {by}, run {run}\n");
        Ok(self.written(write.dry_run, text, Vec::new(), document))
    }

    pub fn recover(&self, request: &RecoverRequest, write: &WriteOptions) -> Result<StateWrite> {
        let (id, copy, record) = self.kept(&request.run)?;
        let document = self.read_alone()?;
        let keys = |written: &[String]| -> Result<Vec<String>> {
            let keys = written.iter().map(|written| {
                if record.stacks.contains_key(written) {
                    Ok(written.clone())
                } else {
                    self.key(&document, written)
                }
            });
            keys.collect()
        };
        let (take, drop) = (keys(&request.take)?, keys(&request.drop)?);
        if let Some(both) = take.iter().find(|key| drop.contains(key)) {
            return Err(Error::usage(format!(
                "`--take` and `--drop` both name `{both}`"
            )));
        }
        let recovery = Recovery {
            take,
            drop,
            reason: write.reason.clone(),
            dry_run: write.dry_run,
        };
        let recovered = recovery::recover(
            &self.opened.backend,
            &record,
            &recovery,
            &self.opened.author,
            &self.clock,
        );
        let recovered = recovered.map_err(|error| explained(error, &id))?;
        if !write.dry_run
            && let Err(error) = copy.remove()
        {
            self.notices().note(&format!(
                "what was recovered stays on this machine: {error}"
            ));
        }
        if recovered.merged.is_empty() {
            self.notices()
                .note("nothing to recover: everything is in the document");
        }
        let text = each("recovered")(&recovered.merged);
        Ok(self.written(write.dry_run, text, recovered.merged, recovered.document))
    }

    /// Returns what a run has kept on this machine.
    fn kept(&self, wanted: &str) -> Result<(String, LocalCopy, RunRecord)> {
        let cannot = |error: BoxedError| Error::described("no runs can be read", error);
        let folder = GuardedFolder::find(&self.context.project.root);
        let folder = folder.map_err(|error| cannot(error.into()))?;
        let none = || Error::refused("no run of this project is on record");
        let folder = folder.ok_or_else(none)?;
        let runs = Runs::find(folder.clone()).map_err(|error| cannot(error.into()))?;
        let id = runs
            .id(wanted)
            .map_err(|error| Error::usage(error.to_string()))?;
        match runs.liveness(id) {
            Liveness::Gone => {}
            Liveness::Alive => {
                return Err(Error::refused(format!("run {id} is in progress")));
            }
            Liveness::Unknown => {
                return Err(Error::refused(format!(
                    "run {id} may still be in progress: neither its journal nor its process shows that it has ended"
                ))
                .hint(format!("make `.orch/runs/{id}/journal.jsonl` readable")));
            }
        }
        let copy = LocalCopy::of(folder, id);
        let bytes = copy.read().map_err(|error| cannot(error.into()))?;
        let Some(bytes) = bytes else {
            return Err(Error::refused(format!(
                "run {id} has left nothing to recover"
            )));
        };
        let record = RunRecord::parse(&bytes).map_err(|error| {
            let what = format!("what run {id} has left cannot be used");
            Error::described(what, error).hint(format!(
                "it is in `.orch/runs/{id}/state.json`; to give it up, remove that file"
            ))
        })?;
        Ok((id.to_owned(), copy, record))
    }
}

fn explained(error: RecoverError, run: &str) -> Error {
    match error {
        RecoverError::Lock(error) => from_lock(error),
        RecoverError::Foreign => {
            Error::refused(format!("run {run} has recorded something about another state"))
                .hint("check the namespace and the backend of the configuration")
        }
        RecoverError::Unknown(stacks) => Error::usage(format!(
            "run {run} has recorded nothing about {}",
            quoted(&stacks)
        )),
        RecoverError::Conflicts(stacks) => Error::refused(format!(
            "others have written about {} since run {run}",
            quoted(&stacks)
        ))
        .hint("write what the run has recorded with `--take STACK`, or keep what others have written with `--drop STACK`"),
    }
}
