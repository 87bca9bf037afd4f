//! Recorded runs.

mod causes;
pub(super) mod json;
mod stack;
mod text;

use std::path::PathBuf;

pub(super) use self::causes::{Causes, Followed, policy_problems};
pub use self::json::{
    write_causes_json, write_causes_refusal_json, write_run_json, write_run_refusal_json,
    write_runs_json,
};
use self::stack::nth;
pub(super) use self::stack::{ShownStack, how_ended};
pub(super) use self::text::{facts, words};
pub use self::text::{write_causes, write_run, write_runs};
use crate::record::journal::{Brief, JournalError, RunRecord, RunStatus, StackState};

pub struct ListedRun {
    pub id: String,
    /// The contents of its journal, if it is readable.
    pub brief: Result<Brief, JournalError>,
}

#[derive(Debug)]
pub struct ShownRun {
    pub record: RunRecord,
    /// The earlier runs of its workflow, the latest first, as far as they are on this machine.
    pub earlier: Vec<RunRecord>,
    pub state: RunStatus,
    /// The location of its journal and logs.
    pub folder: PathBuf,
}

impl ShownRun {
    /// Takes the journals of a run and of the earlier runs of its workflow, the latest first.
    pub fn new(
        mut record: RunRecord,
        earlier: Vec<RunRecord>,
        state: RunStatus,
        folder: PathBuf,
    ) -> Self {
        record.show_unresolved_failures();
        ShownRun {
            record,
            earlier,
            state,
            folder,
        }
    }

    /// Returns the state of a stack in a word. If a stack was started and has not ended, and its run
    /// is over, its end is unknown.
    pub(super) fn word<'s>(&self, state: &'s StackState) -> &'s str {
        match state {
            StackState::LeftOut => "left out",
            StackState::Waiting if self.state == RunStatus::DryRun => "would run",
            StackState::Waiting if self.state == RunStatus::Running => "waiting",
            StackState::Waiting => "not run",
            StackState::Started { .. } if self.state == RunStatus::Running => "running",
            StackState::Started { .. } => "unknown",
            StackState::Ended(ended) => ended.outcome.word(),
        }
    }
}
