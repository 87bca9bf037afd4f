//! The journal: the record of a run on disk, from which it can be resumed.
//!
//! ```text
//! .orch/                   at the project root; ignores itself
//!   .gitignore             *
//!   lock                   held while a run is in progress, and while a job of a work order begins
//!   lock.begin             held while a run begins
//!   runs/<run id>/
//!     journal.jsonl        a header, then one line for each transition
//!     logs/                the output of commands
//!     lock                 held while a job is in progress
//! ```
//!
//! A run writes its journal as events happen, each line with one unbuffered call, so that the journal is complete
//! however `orch` ends. It is not synced to the disk: a killed process loses nothing that it has written. Only a
//! power cut may lose the last lines, and avoiding that would cost two syncs for each stack.
//!
//! Stacks are named by their paths, because indices differ in the next run. This module doesn't know how a run
//! proceeds, and does not decide which stacks run again.

mod entry;
mod header;
mod lock;
mod read;
mod record;
mod runs;
mod turns;
mod whole;
mod write;

pub use self::entry::{
    CauseRecord, ChangeSummary, Counts, DroppedRecord, EndedTurnRecord, EvaluatedRecord, Event,
    FailureRecord, Finished, FollowRecord, JournalEntry, OutcomeRecord, PolicyAnswer, Reaction,
    ReasonRecord, ResourceCounts,
};
pub use self::header::{
    Argument, BaseRecord, Direction, FORMAT, Header, OnError, SettingsRecord, Sharing,
    TagLimitRecord, UncommittedFile, Word, arguments,
};
pub use self::header::{AskedRecord, DRIFT, PLAN_FOLLOW_UPS, PoliciesRecord, TASK, TRACKED};
pub use self::lock::{LockHolder, Locking, RunLock};
pub use self::read::JournalError;
pub use self::record::{
    AttemptRecord, EvaluatedTurn, RunRecord, StackRecord, StackState, Stop, StopCause,
};
pub use self::runs::{
    Brief, FindError, KEPT_RUNS, Liveness, PrunedRuns, RunStatus, Runs, UnreadRun, remove_run,
    run_folder,
};
pub use self::turns::{TurnRecord, TurnState};
pub use self::whole::WholeRun;
pub use self::write::{Journal, line};

#[cfg(test)]
mod tests;
