//! The run of a work order as one machine would have recorded it: the turns of its jobs, then its follow-ups, whose runs
//! have journals of their own.

use std::collections::HashMap;

use super::entry::{Event, Finished, JournalEntry};
use super::header::Header;
use super::record::{RunRecord, StackState};
use super::turns::{TurnRecord, turns_of};
use crate::exit::worse;

/// A run with its follow-ups.
#[derive(Debug)]
pub struct WholeRun {
    pub record: RunRecord,
    /// The runs of follow-ups, each with the number of its first turn in the record.
    pub follow_ups: Vec<(usize, String)>,
    /// Later runs that may be follow-ups, but whose journals cannot be read, each with the reason.
    pub unread: Vec<(String, String)>,
    /// The latest end of its jobs or follow-ups. A killed run has none.
    last_end: Option<Finished>,
    /// How many turns each stack had before each run.
    before: HashMap<String, TurnCounts>,
}

/// Numbers of turns, by stack.
type TurnCounts = HashMap<String, u32>;

impl WholeRun {
    pub(super) fn new(record: RunRecord) -> Self {
        WholeRun {
            before: HashMap::from([(record.header.run.clone(), TurnCounts::new())]),
            follow_ups: Vec::new(),
            unread: Vec::new(),
            last_end: None,
            record,
        }
    }

    /// Adds a run of follow-ups: their turns are further turns of their stacks.
    pub(super) fn add(&mut self, header: &Header, entries: Vec<JournalEntry>) {
        let run = &header.run;
        self.follow_ups.push((self.record.turns.len(), run.clone()));
        let mut counts = TurnCounts::new();
        for turn in &self.record.turns {
            *counts.entry(turn.stack.clone()).or_default() += 1;
        }
        // A job may have run again after follow-ups.
        let mut later = self.record.successes_after(header.at);
        let before = self.record.finished.take().or(self.last_end.take());
        for turn in turns_of(header) {
            let number = moved(&counts, &turn.stack, turn.turn);
            self.record.retry(header.at, turn.stack, number);
        }
        self.before.insert(run.clone(), counts);
        for entry in entries {
            match (entry.event, &before) {
                (Event::Finished(finished), Some(before)) => {
                    self.record.put_back(std::mem::take(&mut later));
                    self.record.finished = Some(self.finished(&entry.at, before, &finished));
                }
                (Event::Finished(_), None) => {}
                (event, _) => self.add_entry(run, JournalEntry { event, ..entry }),
            }
        }
        self.record.put_back(later);
        self.last_end = before;
    }

    fn add_entry(&mut self, run: &str, mut entry: JournalEntry) {
        let counts = &self.before[run];
        let mut of_turn = counts;
        match &mut entry.event {
            Event::Added {
                follows: Some(reason),
                ..
            } => {
                let of_reason = reason.run.as_deref().unwrap_or(run);
                if let Some(counts) = self.before.get(of_reason) {
                    reason.turn = moved(counts, &reason.stack, reason.turn);
                    reason.run = None;
                }
            }
            Event::Evaluated(evaluated) => {
                if let Some(earlier) = evaluated.run.take_if(|it| self.before.contains_key(it)) {
                    of_turn = &self.before[&earlier];
                }
                for follow in evaluated.queued.iter_mut().chain(&mut evaluated.joined) {
                    follow.turn = moved(counts, &follow.stack, follow.turn);
                }
            }
            _ => {}
        }
        if let Some(stack) = entry.event.stack() {
            entry.turn = moved(of_turn, stack, entry.turn);
        }
        if let Event::Evaluated(evaluated) = &entry.event {
            // Its job had asked the policies, and nothing has followed.
            let is_same = |stack: &str, turn| stack == evaluated.stack && turn == entry.turn;
            let all = &mut self.record.evaluated;
            all.retain(|it| it.evaluated.run.is_some() || !is_same(&it.evaluated.stack, it.turn));
        }
        self.record.add(entry);
    }

    /// Returns the end of the whole, given those of the runs before and of its latest follow-ups.
    fn finished(&self, at: &jiff::Timestamp, before: &Finished, follow_ups: &Finished) -> Finished {
        let mut stacks = self.record.stacks.iter();
        // A replaced stack may be destroyed, and not yet recreated.
        let turns = self.record.turns.iter();
        let last: HashMap<&str, &TurnRecord> = turns.map(|turn| (&*turn.stack, turn)).collect();
        // A follow-up may have run a stack again that had failed.
        let is_done = stacks.all(|stack| StackState::is_success(&stack.state))
            && last.values().all(|turn| turn.outcome.is_some())
            && !self.record.has_unresolved_failure();
        let elapsed = at.duration_since(self.record.header.at).as_millis();
        Finished {
            status: if is_done {
                follow_ups.status
            } else {
                worse(before.status, follow_ups.status)
            },
            elapsed_ms: u64::try_from(elapsed).unwrap_or_default(),
            counts: self.record.counts(),
        }
    }
}

/// Returns the number of a stack's turn in the whole; `None` for its first.
fn moved(before: &TurnCounts, stack: &str, turn: Option<u32>) -> Option<u32> {
    let before = before.get(stack).copied().unwrap_or_default();
    Some(before + turn.unwrap_or(1)).filter(|turn| *turn > 1)
}
