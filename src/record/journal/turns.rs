//! The single turns in a journal.

use std::collections::{HashMap, HashSet};

use super::entry::ReasonRecord;
use super::entry::{CauseRecord, EndedTurnRecord, FailureRecord, OutcomeRecord};
use super::header::Header;

#[derive(Debug)]
pub struct TurnRecord {
    pub stack: String,
    /// The number of its stack's turn; absent for the first.
    pub turn: Option<u32>,
    pub is_added: bool,
    /// Why it was, if policies asked for it.
    pub follows: Option<ReasonRecord>,
    /// The operation on its stack, if known yet: `apply` or `destroy`; absent for a command of `orch run`.
    pub operation: Option<String>,
    /// How many turns had ended when it last started; `None` if it never did.
    pub started_after: Option<usize>,
    /// How many turns had ended before it did.
    pub ended_after: Option<usize>,
    /// How it ended; `None` if it has not. Never a state before the end.
    pub outcome: Option<TurnState>,
}

/// The state of a turn, as policies know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TurnState {
    /// It has not started.
    Queued,
    Planning,
    /// It has changes that were not approved, so nothing was done.
    Unconfirmed,
    /// The command of a tracked run is running.
    Applying,
    /// The command of a task is running.
    Performing,
    Finished,
    Failed,
    /// It was interrupted when the run was.
    Stopped,
    /// It never started, because the plan was not approved.
    Discarded,
    /// It never started, because another one failed.
    Canceled,
    /// It never started, because it runs after a failed one, or the run ended before.
    Skipped,
}

pub(super) fn turns_of(header: &Header) -> Vec<TurnRecord> {
    let policies = header.policies.as_ref();
    let of_earlier = || policies.map_or(&[][..], |policies| &policies.turns);
    let listed = match &*header.turns {
        [] => of_earlier(),
        turns => turns,
    };
    if !listed.is_empty() {
        let mut counts: HashMap<&String, u32> = HashMap::new();
        let turns = listed.iter().map(|path| {
            let count = counts.entry(path).or_default();
            *count += 1;
            TurnRecord::new(path, Some(*count).filter(|count| *count > 1))
        });
        return turns.collect();
    }
    let left_out: HashSet<&String> = header.left_out.iter().collect();
    let stacks = header.order.iter().filter(|path| !left_out.contains(path));
    stacks.map(|path| TurnRecord::new(path, None)).collect()
}

pub(super) fn numbers(turns: &[TurnRecord]) -> HashMap<(String, Option<u32>), usize> {
    let numbered = turns.iter().zip(0..);
    numbered
        .map(|(turn, number)| ((turn.stack.clone(), turn.turn), number))
        .collect()
}

impl TurnRecord {
    pub(super) fn new(stack: &str, turn: Option<u32>) -> Self {
        TurnRecord {
            stack: stack.to_owned(),
            turn,
            is_added: false,
            follows: None,
            operation: None,
            started_after: None,
            ended_after: None,
            outcome: None,
        }
    }
}

impl TurnState {
    pub const ALL: [TurnState; 11] = [
        TurnState::Queued,
        TurnState::Planning,
        TurnState::Unconfirmed,
        TurnState::Applying,
        TurnState::Performing,
        TurnState::Finished,
        TurnState::Failed,
        TurnState::Stopped,
        TurnState::Discarded,
        TurnState::Canceled,
        TurnState::Skipped,
    ];

    /// Returns whether the stacks that run after it may run.
    pub fn lets_others_run(self) -> bool {
        matches!(self, TurnState::Finished | TurnState::Unconfirmed)
    }

    /// Returns the word that policies know it by.
    pub fn word(self) -> &'static str {
        match self {
            TurnState::Queued => "QUEUED",
            TurnState::Planning => "PLANNING",
            TurnState::Unconfirmed => "UNCONFIRMED",
            TurnState::Applying => "APPLYING",
            TurnState::Performing => "PERFORMING",
            TurnState::Finished => "FINISHED",
            TurnState::Failed => "FAILED",
            TurnState::Stopped => "STOPPED",
            TurnState::Discarded => "DISCARDED",
            TurnState::Canceled => "CANCELED",
            TurnState::Skipped => "SKIPPED",
        }
    }

    /// Returns whether policies are asked after such a result.
    pub fn is_asked_about(self) -> bool {
        matches!(
            self,
            TurnState::Finished
                | TurnState::Failed
                | TurnState::Stopped
                | TurnState::Discarded
                | TurnState::Canceled
        )
    }

    pub(super) fn of(ended: &EndedTurnRecord, is_stopped: bool) -> Self {
        let has_run_too_long = matches!(ended.failure, Some(FailureRecord::RunTimedOut { .. }));
        match (&ended.outcome, &ended.cause) {
            (OutcomeRecord::Succeeded, _) => TurnState::Finished,
            (OutcomeRecord::Failed, _) if is_stopped || has_run_too_long => TurnState::Stopped,
            (OutcomeRecord::Failed, _) => TurnState::Failed,
            (OutcomeRecord::Unconfirmed, _) => TurnState::Unconfirmed,
            (OutcomeRecord::Cancelled, Some(CauseRecord::Rejected)) => TurnState::Discarded,
            (OutcomeRecord::Cancelled, Some(CauseRecord::Failed { .. })) => TurnState::Canceled,
            _ => TurnState::Skipped,
        }
    }
}
