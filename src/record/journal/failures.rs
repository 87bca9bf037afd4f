//! The failures of a stack's turns without a successful retry.
//!
//! A later turn of the stack may have succeeded as a follow-up of another stack: the run has failed nevertheless.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::entry::{EndedTurnRecord, OutcomeRecord};
use super::evaluated::EvaluatedRecord;

#[derive(Debug, Default)]
pub(super) struct Failures {
    /// By the number of the turn, from 1.
    turns: BTreeMap<u32, FailedTurn>,
}

#[derive(Debug)]
pub(super) struct FailedTurn {
    pub(super) ended: EndedTurnRecord,
    pub(super) at: Timestamp,
    pub(super) operation: Option<String>,
    is_retried: bool,
}

impl Failures {
    pub(super) fn ended(
        &mut self,
        turn: Option<u32>,
        at: Timestamp,
        operation: Option<&str>,
        ended: &EndedTurnRecord,
    ) {
        match ended.outcome {
            OutcomeRecord::Failed => {
                let failed = FailedTurn {
                    ended: ended.clone(),
                    at,
                    operation: operation.map(ToOwned::to_owned),
                    is_retried: false,
                };
                self.turns.insert(turn.unwrap_or(1), failed);
            }
            // It replaces the failures that it retried.
            OutcomeRecord::Succeeded => self.turns.retain(|_, failed| !failed.is_retried),
            // A retry that was not approved leaves the failure, and so does one that has not begun.
            OutcomeRecord::Unconfirmed | OutcomeRecord::Skipped | OutcomeRecord::Cancelled => {
                for failed in self.turns.values_mut() {
                    failed.is_retried = false;
                }
            }
            OutcomeRecord::Other(_) => {}
        }
    }

    /// Notes the answers of policies to the end of a turn.
    pub(super) fn evaluated(&mut self, turn: Option<u32>, evaluated: &EvaluatedRecord) {
        let Some(failed) = self.turns.get_mut(&turn.unwrap_or(1)) else {
            return;
        };
        let mut follows = evaluated.queued.iter().chain(&evaluated.joined);
        let is_asked_for = follows.any(|follow| follow.stack == evaluated.stack);
        // A destroy is never retried, and nothing starts after an interrupt.
        let is_destroy = failed.operation.as_deref() == Some("destroy");
        failed.is_retried = is_asked_for && evaluated.state == "FAILED" && !is_destroy;
    }

    pub(super) fn has_unresolved(&self) -> bool {
        self.turns.values().any(|failed| !failed.is_retried)
    }

    /// Removes the last failure that counts, and returns it with the number of the turn, from 1.
    pub(super) fn take_last(&mut self) -> Option<(u32, FailedTurn)> {
        let mut turns = self.turns.iter().rev();
        let (&number, _) = turns.find(|(_, failed)| !failed.is_retried)?;
        Some((number, self.turns.remove(&number)?))
    }
}
