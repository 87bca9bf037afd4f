//! The input of policies for stacks without a turn, from the recorded state.

use super::input::{CommitInput, StackInput};
use crate::run::evaluated::TurnState;
use crate::state::document::{AttemptOutcome, Entry, INTERRUPTED};

/// How a run that exceeded its time limit has left a stack, in the words of the state.
const RUN_TIMED_OUT: &str = "run-timed-out";

/// The recorded state of a stack, as policies see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedStack {
    pub state: TurnState,
    /// Whether it has been applied, and not only tried to be.
    pub is_applied: bool,
    /// The commit that was applied last, if that is known.
    pub commit: Option<CommitInput>,
}

impl RecordedStack {
    /// Gives it to the input of policies.
    pub fn tell(self, input: &mut StackInput) {
        input.set_state(self.state);
        if let Some(commit) = self.commit {
            input.set_tracked_commit(commit);
        }
    }
}

/// Returns how the last turn of a stack ended; none if it has never been applied, nor tried to be.
pub fn state_on_record(entry: &Entry) -> Option<TurnState> {
    if entry.intent.is_some() {
        return Some(TurnState::Applying);
    }
    let Some(last) = &entry.last else {
        // It was recorded without a run.
        return entry.applied.is_some().then_some(TurnState::Finished);
    };
    Some(match (&last.outcome, last.failure.as_deref()) {
        (AttemptOutcome::Succeeded, _) => TurnState::Finished,
        (_, Some(INTERRUPTED | RUN_TIMED_OUT)) => TurnState::Stopped,
        _ => TurnState::Failed,
    })
}
