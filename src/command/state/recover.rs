//! `orch state unlock` and `recover`

use super::{ProjectState, WriteOptions};
use crate::context::{Context, from_lock, locked, lost_records, other_copies, quoted};
use crate::error::{Error, ErrorContext as _, Result};
use crate::folder::GuardedFolder;
use crate::record::journal::{Liveness, Runs};
use crate::report::{DocumentChange, Written};
use crate::state::lock::{self, RemovedLock, UnlockError, Unlocking};
use crate::state::recover::{self as recovery, RecoverError, Recovery};
use crate::state::run_record::RunChanges;
use crate::state::writer::LocalCopy;

/// Releases a lock, given its code. `--force` also releases the lock of a run that may be alive, or
/// whose record is damaged.
pub fn unlock(
    context: &mut Context,
    code: &str,
    force: bool,
    options: &WriteOptions,
) -> Result<Written> {
    let state = ProjectState::of(context)?;
    state.read_alone()?;
    let unlocking = Unlocking {
        code: code.to_owned(),
        force,
        reason: options.reason.clone(),
        dry_run: options.dry_run,
    };
    let opened = state.opened;
    let unlocked = lock::unlock(&opened.backend, &unlocking, &opened.author, &state.clock)
        .map_err(|error| match error {
            UnlockError::Lock(error) => from_lock(error),
            UnlockError::NotLocked => Error::refused("the state is not locked"),
            UnlockError::WrongCode(held) => locked(&held),
            UnlockError::Alive(held) => Error::refused(format!(
                "the holder of the lock may still be running: {held}"
            ))
            .hint("wait for that run; if it no longer exists, add `--force`"),
            UnlockError::Damaged(ref lock, ref damage) => {
                let force = format!(
                    "if that run no longer exists, add `--force`; {} then",
                    lost_records(damage, lock)
                );
                let elsewhere = other_copies(lock);
                Error::external(error).hint(elsewhere).hint(force)
            }
        })?;
    let RemovedLock {
        lock,
        document,
        damage,
    } = unlocked;
    if let Some(damage) = &damage {
        state.context.notices.warning(&format!(
            "the record of the run, `{}`, cannot be used: {}; {}",
            damage.address,
            damage.why,
            lost_records(damage, &lock)
        ));
    }
    let change = DocumentChange::Unlocked {
        by: lock.by,
        run: lock.run,
    };
    Ok(state.written(options.dry_run, change, Vec::new(), &document))
}

pub struct RecoverRequest<'a> {
    /// The run, as the user names it.
    pub run: &'a str,
    /// Stacks whose records of the run win over those of others.
    pub take: &'a [String],
    /// Stacks whose records of the run are dropped.
    pub drop: &'a [String],
}

/// Adds the records to the document that a run of this checkout could not write.
pub fn recover(
    context: &mut Context,
    request: &RecoverRequest<'_>,
    options: &WriteOptions,
) -> Result<Written> {
    let state = ProjectState::of(context)?;
    let (id, copy, record) = kept(&state, request.run)?;
    let document = state.read_alone()?;
    let keys = |written: &[String]| -> Result<Vec<String>> {
        let keys = written.iter().map(|written| {
            if record.stacks.contains_key(written) {
                Ok(written.clone())
            } else {
                state.key(&document, written)
            }
        });
        keys.collect()
    };
    let (take, drop) = (keys(request.take)?, keys(request.drop)?);
    if let Some(both) = take.iter().find(|key| drop.contains(key)) {
        return Err(Error::usage(format!(
            "`--take` and `--drop` both name `{both}`"
        )));
    }
    let recovery = Recovery {
        take,
        drop,
        reason: options.reason.clone(),
        dry_run: options.dry_run,
    };
    let opened = state.opened;
    let (backend, author) = (&opened.backend, &opened.author);
    let recovered = recovery::recover(backend, &record, &recovery, author, &state.clock)
        .map_err(|error| explained(error, &id))?;
    if !options.dry_run
        && let Err(error) = copy.remove()
    {
        state.context.notices.note(&format!(
            "the recovered file could not be removed from this machine: {error}"
        ));
    }
    if recovered.merged.is_empty() {
        state
            .context
            .notices
            .note("nothing to recover: everything is in the document");
    }
    let change = DocumentChange::Each("recovered");
    Ok(state.written(
        options.dry_run,
        change,
        recovered.merged,
        &recovered.document,
    ))
}

fn kept(state: &ProjectState<'_>, wanted: &str) -> Result<(String, LocalCopy, RunChanges)> {
    let failed = "no runs can be read";
    let folder = GuardedFolder::find(&state.context.project.root).context(failed)?;
    let none = || Error::refused("no run of this project is recorded");
    let folder = folder.ok_or_else(none)?;
    let runs = Runs::find(folder.clone()).context(failed)?;
    let id = runs
        .id(wanted)
        .map_err(|error| Error::usage(error.to_string()))?;
    match runs.liveness(id) {
        Liveness::Gone | Liveness::Outlived => {}
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
    let bytes = copy.read().context(failed)?;
    let Some(bytes) = bytes else {
        return Err(Error::refused(format!("run {id} has nothing to recover")));
    };
    let record = RunChanges::parse(&bytes).map_err(|error| {
        let what = format!("the file of run {id} cannot be used");
        Error::described(what, error).hint(format!(
            "it is in `.orch/runs/{id}/state.json`; to discard it, remove that file"
        ))
    })?;
    Ok((id.to_owned(), copy, record))
}

fn explained(error: RecoverError, run: &str) -> Error {
    match error {
        RecoverError::Lock(error) => from_lock(error),
        RecoverError::Foreign => {
            Error::refused(format!("run {run} recorded entries of another state"))
                .hint("check the namespace and the backend of the configuration")
        }
        RecoverError::Unknown(stacks) => Error::usage(format!(
            "run {run} recorded nothing about {}",
            quoted(&stacks)
        )),
        RecoverError::Conflicts(stacks) => Error::refused(format!(
            "others have changed the entries of {} since run {run}",
            quoted(&stacks)
        ))
        .hint("to write the entry of this run, add `--take STACK`; to keep the other one, add `--drop STACK`"),
    }
}
