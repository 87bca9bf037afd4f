//! The single turns in a journal.

use std::collections::{HashMap, HashSet};

use super::entry::{CauseRecord, EndedTurnRecord, FailureRecord, OutcomeRecord};
use super::evaluated::ReasonRecord;
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
    /// How it ended, if it has.
    pub outcome: Option<TurnOutcome>,
}

/// How a turn ended, as policies know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnOutcome {
    Finished,
    Failed,
    /// It was interrupted when the run was.
    Stopped,
    /// It did nothing, because its changes were not approved.
    Unconfirmed,
    /// It never started, since the plan was not approved.
    Discarded,
    /// It never started, since another one failed.
    Canceled,
    /// It never started for another reason.
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

impl TurnOutcome {
    /// Returns whether policies are asked after such a result.
    pub fn is_asked_about(self) -> bool {
        !matches!(self, TurnOutcome::Unconfirmed | TurnOutcome::Skipped)
    }

    pub(super) fn of(ended: &EndedTurnRecord, is_stopped: bool) -> Self {
        let has_run_too_long = matches!(ended.failure, Some(FailureRecord::RunTimedOut { .. }));
        match (&ended.outcome, &ended.cause) {
            (OutcomeRecord::Succeeded, _) => TurnOutcome::Finished,
            (OutcomeRecord::Failed, _) if is_stopped || has_run_too_long => TurnOutcome::Stopped,
            (OutcomeRecord::Failed, _) => TurnOutcome::Failed,
            (OutcomeRecord::Unconfirmed, _) => TurnOutcome::Unconfirmed,
            (OutcomeRecord::Cancelled, Some(CauseRecord::Rejected)) => TurnOutcome::Discarded,
            (OutcomeRecord::Cancelled, Some(CauseRecord::Failed { .. })) => TurnOutcome::Canceled,
            _ => TurnOutcome::Skipped,
        }
    }
}
