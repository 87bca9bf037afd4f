//! Errors of the state as errors of a command: with an exit status and a fix.

use std::path::Path;

use crate::change::MoveConflict;
use crate::duration::exact;
use crate::error::{Error, ErrorKind};
use crate::printable::{command_line, printable};
use crate::state::backend::BackendReadError;
use crate::state::document::Lock;
use crate::state::edit::EditError;
use crate::state::lock::{LockConflict, LockError};
use crate::state::salvage::Damage;
use crate::state::store::{StoreError, StoreFailure};

pub fn from_store(error: StoreError) -> Error {
    let failure = error.failure;
    let error = Error::external(error);
    match failure {
        StoreFailure::NoBucket => error.hint(
            "check the name of the bucket in the configuration of the state; orch creates no buckets",
        ),
        StoreFailure::NotImplemented => error.hint(
            "use a store with conditional writes (`If-None-Match` and `If-Match`)",
        ),
        StoreFailure::Transient | StoreFailure::Other => error,
    }
}

pub fn from_read(error: BackendReadError) -> Error {
    match error {
        BackendReadError::Store(error) => from_store(error),
        BackendReadError::Newer { .. } => Error::new(ErrorKind::Refused, error)
            .hint("install the version of orch that the others use"),
        BackendReadError::Damaged { ref backup, .. } => {
            let hint = match backup {
                Some(backup) => {
                    let serial = Path::new(backup).file_stem().unwrap_or_default();
                    format!(
                        "to restore the newest backup, `{backup}`, run `orch state restore {}`",
                        serial.display()
                    )
                }
                None => "it has no backup; look for an earlier version in the backend".to_owned(),
            };
            Error::external(error).hint(hint)
        }
    }
}

pub fn from_lock(error: LockError) -> Error {
    match error {
        LockError::Read(error) => from_read(error),
        LockError::Missing(address) => missing(&address),
        LockError::Held(held) => locked(&held),
        LockError::OtherSecret(ref lock) => {
            let unlock = format!("run `orch state unlock {}`", printable(&lock.code));
            Error::new(ErrorKind::Refused, error)
                .hint("give all jobs and `orch finish` the same `ORCH_ORDER_SECRET`")
                .hint(format!(
                    "if the jobs with the other secret have ended, {unlock}"
                ))
        }
        LockError::Damaged(ref lock, ref damage) => {
            let what = format!(
                "the lock of run {} cannot be taken over",
                printable(&lock.run)
            );
            let force = format!(
                "if that run has ended, run `orch state unlock --force {}`; {} then",
                printable(&lock.code),
                lost_records(damage, lock)
            );
            let elsewhere = other_copies(lock);
            Error::described(what, error).hint(elsewhere).hint(force)
        }
        LockError::Busy(_) => Error::external(error),
    }
}

/// Describes in a clause what removing a lock loses if the run's record is damaged or missing.
pub fn lost_records(damage: &Damage, lock: &Lock) -> String {
    let run = printable(&lock.run);
    match damage.lost.as_deref() {
        None => format!("the entries of run {run} are lost"),
        Some([]) => format!("no entries of run {run} are lost"),
        Some(stacks) => format!("the entries of run {run} about {} are lost", quoted(stacks)),
    }
}

/// Describes where the run may have kept the lost records.
pub fn other_copies(lock: &Lock) -> String {
    format!(
        "on {}, where it ran, `orch state recover {}` may still recover them",
        printable(&lock.host),
        printable(&lock.run)
    )
}

pub fn quoted(stacks: &[String]) -> String {
    let stacks = stacks.iter().map(|stack| format!("`{}`", printable(stack)));
    stacks.collect::<Vec<_>>().join(", ")
}

/// Explains an edit that was not made.
pub fn from_edit<E: From<Error>>(error: EditError<E>) -> E {
    match error {
        EditError::Lock(error) => from_lock(error).into(),
        EditError::Refused(error) => error,
    }
}

pub fn missing(address: &str) -> Error {
    Error::refused(format!("no state at `{address}`"))
        .hint("if there was one, check the namespace and the key for a typo, and whether it was deleted (`git clean -fdx` deletes `.orch`)")
        .hint("`orch state init` creates a new document")
}

/// Explains that `moved` blocks contradict the state.
pub fn clashing(clashes: &[MoveConflict]) -> Error {
    const MOST: usize = 10;
    let told = clashes
        .iter()
        .take(MOST)
        .map(|clash| printable(&clash.to_string()).into_owned());
    let mut text = told.collect::<Vec<_>>().join("\n  ");
    if let Some(more @ 1..) = clashes.len().checked_sub(MOST) {
        text += &format!("\n  and {more} more");
    }
    let error = Error::refused(text);
    match clashes.first() {
        Some(MoveConflict::Both(from, other, _) | MoveConflict::Same(from, other, _)) => {
            let [from, other] = [from, other].map(|key| command_line(&[key.into()]));
            error
                .hint(format!(
                    "if one of them no longer exists, run `orch state forget {from}` or `orch state forget {other}`"
                ))
                .hint("if they are two stacks, remove the block")
        }
        _ => error.hint("remove the block, or correct the ids"),
    }
}

/// Explains that another run holds the lock.
pub fn locked(held: &LockConflict) -> Error {
    let error = Error::refused(format!("the state is locked by {held}"));
    let Some(lock) = &held.lock else {
        return error.hint("wait until it is free");
    };
    let error = error.hint(if held.is_outlived {
        format!(
            "orch was killed during that run, but a process of it is still running: wait until it has ended, or run `orch state unlock {}`",
            lock.code
        )
    } else {
        format!(
            "wait until it is free; if that run no longer exists, run `orch state unlock {}`",
            lock.code
        )
    });
    match lock.expires() {
        Some(expires) => error.hint(format!(
            "the lock expires {} after the last heartbeat of that run",
            exact(expires)
        )),
        None => error,
    }
}

pub(super) fn foreign(address: &str, what: &str, here: &str, there: &str) -> Error {
    let shown = |text: &str| match text {
        "" => "the top of the repository".to_owned(),
        text => format!("`{text}`"),
    };
    let (here, there) = (shown(here), shown(there));
    Error::refused(format!(
        "the state at `{address}` belongs to another {what}: {there}, and this is {here}"
    ))
    .hint("check the configuration of the state")
}
