//! The run of a work order, as all its jobs know it.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::result::{ResultError, TurnResult, check_format};
use crate::record::journal::{
    CauseRecord, EndedTurnRecord, Event, FORMAT, Header, JournalEntry, OutcomeRecord,
    PoliciesRecord,
};

/// The turns of a work order and their constraints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderOutline {
    /// The id of the run that all jobs belong to.
    pub run: String,
    /// The turns, in the sequence of a serial run.
    pub turns: Vec<OutlinedTurn>,
    /// Pairs of an earlier and a later turn, by position. Positions beyond the end are nodes that run nothing.
    pub edges: Vec<(usize, usize)>,
    /// More of them, for the order only.
    pub order_only: Vec<(usize, usize)>,
    /// Whether the order holds the lock of the state until it ends.
    pub is_recorded: bool,
    /// The policies that are evaluated after the jobs, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<PoliciesRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OutlinedTurn {
    pub stack: String,
    /// Whether it destroys its stack.
    pub destroys: bool,
}

/// The object in the store: the outline, and the header of the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredOrder {
    format: u32,
    pub header: Header,
    pub outline: OrderOutline,
}

impl OrderOutline {
    /// Returns the number of each turn among those of its stack, from 1.
    pub(super) fn numbers(&self) -> Vec<u32> {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        let number = |turn| {
            let turn: &OutlinedTurn = turn;
            let count = counts.entry(&turn.stack).or_default();
            *count += 1;
            *count
        };
        self.turns.iter().map(number).collect()
    }

    /// Returns the result of a turn in a run of its job, of which only the outcome and its time are known.
    pub fn unsent(
        &self,
        run: &str,
        turn: usize,
        (outcome, at): (OutcomeRecord, Timestamp),
    ) -> TurnResult {
        let stack = &self.turns[turn].stack;
        let events = [
            Event::Started {
                stack: stack.clone(),
                attempt: 1,
            },
            Event::OutputLost {
                stack: stack.clone(),
                problem: "its job sent no result".to_owned(),
            },
            Event::Ended(EndedTurnRecord {
                stack: stack.clone(),
                outcome,
                failure: None,
                cause: None,
                elapsed_ms: 0,
                attempts: 1,
                changes: None,
            }),
        ];
        self.result(run, turn, events, at)
    }

    /// Returns an attempt at a turn of which only the beginning is known: it runs, or was killed.
    pub fn begun(&self, run: &str, turn: usize, since: Timestamp) -> TurnResult {
        let started = Event::Started {
            stack: self.turns[turn].stack.clone(),
            attempt: 1,
        };
        self.result(run, turn, [started], since)
    }

    /// Returns the result of a turn that another run has done.
    pub fn done(&self, turn: usize, by: Option<&str>, at: Timestamp) -> TurnResult {
        let ended = Event::Ended(EndedTurnRecord {
            stack: self.turns[turn].stack.clone(),
            outcome: OutcomeRecord::Succeeded,
            failure: None,
            cause: Some(CauseRecord::Done {
                run: by.map(str::to_owned),
            }),
            elapsed_ms: 0,
            attempts: 0,
            changes: None,
        });
        self.result(by.unwrap_or_default(), turn, [ended], at)
    }

    fn result(
        &self,
        run: &str,
        turn: usize,
        events: impl IntoIterator<Item = Event>,
        at: Timestamp,
    ) -> TurnResult {
        let number = Some(self.numbers()[turn]).filter(|number| *number > 1);
        let lines = events.into_iter().map(|event| JournalEntry {
            turn: number,
            ..JournalEntry::new(at, event)
        });
        TurnResult {
            run: run.to_owned(),
            turn,
            lines: lines.collect(),
            logs: Vec::new(),
        }
    }

    /// Returns the turns right before each, by position, that must succeed first.
    pub(super) fn needed(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut before: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &(from, to) in &self.edges {
            before.entry(to).or_default().push(from);
        }
        before
    }
}

impl StoredOrder {
    /// Makes the header of a job's run that of the whole.
    pub fn new(outline: OrderOutline, of_job: Header) -> Self {
        let mut known = HashSet::new();
        let stacks = outline.turns.iter().map(|turn| turn.stack.clone());
        let order: Vec<String> = stacks.filter(|stack| known.insert(stack.clone())).collect();
        let has_repeated = order.len() < outline.turns.len();
        let turns = outline.turns.iter().filter(|_| has_repeated);
        let header = Header {
            run: outline.run.clone(),
            resumes: None,
            turns: turns.map(|turn| turn.stack.clone()).collect(),
            edges: if has_repeated || of_job.purpose.is_some() {
                Vec::new()
            } else {
                outline.edges.clone()
            },
            order,
            left_out: Vec::new(),
            policies: outline.policies.clone(),
            part_of: Some(outline.run.clone()),
            ..of_job
        };
        StoredOrder {
            format: FORMAT,
            header,
            outline,
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("it has only text, numbers and lists")
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, ResultError> {
        check_format(bytes)?;
        Ok(serde_json::from_slice(bytes)?)
    }
}
