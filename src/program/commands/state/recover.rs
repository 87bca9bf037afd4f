//! `orch state unlock` and `recover`

use clap::Args;
use orch::context::{from_lock, is_lost, locked, quoted, where_else};
use orch::error::ErrorKind;
use orch::exit::ExitStatus;
use orch::folder::GuardedFolder;
use orch::printable::printable;
use orch::record::journal::{Liveness, Runs};
use orch::state::lock::{self, UnlockError, Unlocked, Unlocking};
use orch::state::recover::{self as recovery, RecoverError, Recovery};
use orch::state::run_record::RunRecord;
use orch::state::writer::LocalCopy;

use super::write::each;
use super::{State, WriteArgs};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Take the lock away from a run that is gone
///
/// From then on the run can record nothing. What it has recorded is kept, and what it had started counts as
/// interrupted. A run that was heard from within the last two minutes may be alive: look at its CI job
/// first. If the record of the run is damaged or missing, --force gives up what cannot
/// be read of it.
#[derive(Debug, Args)]
pub(crate) struct UnlockArgs {
    /// The code of the lock, which `orch state show` prints
    #[arg(value_name = "CODE")]
    pub(super) code: String,

    /// Do so even if the run was heard from within the last two minutes, or its record is damaged or missing
    #[arg(long)]
    pub(super) force: bool,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Add to the document what a run of this checkout could not write
///
/// If others have changed the entry of one of its stacks since, orch writes nothing until --take or --drop
/// says whose version counts.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// `last`, `last~1`, or a unique beginning or end of a run id
    #[arg(value_name = "RUN")]
    pub(super) run: String,

    /// Take what the run has recorded of this stack, whatever others have written (can be repeated)
    #[arg(long, value_name = "STACK")]
    pub(super) take: Vec<String>,

    /// Keep what others have written about this stack (can be repeated)
    #[arg(long, value_name = "STACK")]
    pub(super) drop: Vec<String>,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

pub(super) fn unlock(state: &State, args: &UnlockArgs) -> Result<ExitStatus> {
    state.read_alone()?;
    let unlocking = Unlocking {
        code: args.code.clone(),
        force: args.force,
        reason: args.write.reason.clone(),
        dry_run: args.write.dry_run,
    };
    let unlocked = lock::unlock(
        &state.opened.backend,
        &unlocking,
        &state.opened.author,
        &state.clock,
    );
    let unlocked = unlocked.map_err(|error| match error {
        UnlockError::Lock(error) => from_lock(error).into(),
        UnlockError::NotLocked => ProgramError::refused("the state is not locked"),
        UnlockError::WrongCode(held) => locked(&held).into(),
        UnlockError::Alive(held) => {
            ProgramError::refused(format!("the holder of the lock may be alive: {held}"))
                .hint("end that run first; if it is gone, add `--force`")
        }
        UnlockError::Damaged(ref lock, ref damage) => {
            let force = format!(
                "if that run is gone, add `--force`; {} then",
                is_lost(damage, lock)
            );
            let elsewhere = where_else(lock);
            ProgramError::new(ErrorKind::External, error.into())
                .hint(elsewhere)
                .hint(force)
        }
    })?;
    let Unlocked {
        lock,
        document,
        damage,
    } = unlocked;
    if let Some(damage) = &damage {
        console::warning(&format!(
            "the run record `{}` cannot be used: {}; {}",
            damage.address,
            damage.why,
            is_lost(damage, &lock)
        ));
    }
    let (by, run) = (printable(&lock.by), printable(&lock.run));
    let text = format!("took the lock away from {by}, run {run}\n");
    state.say(args.write.dry_run, args.write.format, &text, &[], &document)
}

pub(super) fn recover(state: &State, args: &RecoverArgs) -> Result<ExitStatus> {
    let (id, copy, record) = kept(state, &args.run)?;
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
    let (take, drop) = (keys(&args.take)?, keys(&args.drop)?);
    if let Some(both) = take.iter().find(|key| drop.contains(key)) {
        return Err(ProgramError::usage(format!(
            "`--take` and `--drop` both name `{both}`"
        )));
    }
    let recovery = Recovery {
        take,
        drop,
        reason: args.write.reason.clone(),
        dry_run: args.write.dry_run,
    };
    let recovered = recovery::recover(
        &state.opened.backend,
        &record,
        &recovery,
        &state.opened.author,
        &state.clock,
    );
    let recovered = recovered.map_err(|error| explained(error, &id))?;
    if !args.write.dry_run
        && let Err(error) = copy.remove()
    {
        console::note(&format!(
            "what was recovered stays on this machine: {error}"
        ));
    }
    if recovered.merged.is_empty() {
        console::note("nothing to recover: everything is in the document");
    }
    state.say(
        args.write.dry_run,
        args.write.format,
        &each("recovered")(&recovered.merged),
        &recovered.merged,
        &recovered.document,
    )
}

/// Returns what a run has kept on this machine.
fn kept(state: &State, wanted: &str) -> Result<(String, LocalCopy, RunRecord)> {
    let cannot = |error: anyhow::Error| ProgramError::from(error.context("no runs can be read"));
    let folder = GuardedFolder::find(&state.loaded.project.root);
    let folder = folder.map_err(|error| cannot(error.into()))?;
    let none = || ProgramError::refused("no run of this project is on record");
    let folder = folder.ok_or_else(none)?;
    let runs = Runs::find(folder.clone()).map_err(|error| cannot(error.into()))?;
    let id = runs
        .id(wanted)
        .map_err(|error| ProgramError::usage(error.to_string()))?;
    match runs.liveness(id) {
        Liveness::Gone => {}
        Liveness::Alive => {
            return Err(ProgramError::refused(format!("run {id} is in progress")));
        }
        Liveness::Unknown => {
            return Err(ProgramError::refused(format!(
                "run {id} may still be in progress: neither its journal nor its process shows that it has ended"
            ))
            .hint(format!("make `.orch/runs/{id}/journal.jsonl` readable")));
        }
    }
    let copy = LocalCopy::of(folder, id);
    let bytes = copy.read().map_err(|error| cannot(error.into()))?;
    let Some(bytes) = bytes else {
        return Err(ProgramError::refused(format!(
            "run {id} has left nothing to recover"
        )));
    };
    let record = RunRecord::parse(&bytes).map_err(|error| {
        let what = format!("what run {id} has left cannot be used");
        ProgramError::from(anyhow::Error::new(error).context(what)).hint(format!(
            "it is in `.orch/runs/{id}/state.json`; to give it up, remove that file"
        ))
    })?;
    Ok((id.to_owned(), copy, record))
}

fn explained(error: RecoverError, run: &str) -> ProgramError {
    match error {
        RecoverError::Lock(error) => from_lock(error).into(),
        RecoverError::Foreign => {
            ProgramError::refused(format!("run {run} has recorded something about another state"))
                .hint("check the namespace and the backend of the configuration")
        }
        RecoverError::Unknown(stacks) => ProgramError::usage(format!(
            "run {run} has recorded nothing about {}",
            quoted(&stacks)
        )),
        RecoverError::Conflicts(stacks) => ProgramError::refused(format!(
            "others have written about {} since run {run}",
            quoted(&stacks)
        ))
        .hint("write what the run has recorded with `--take STACK`, or keep what others have written with `--drop STACK`"),
    }
}
