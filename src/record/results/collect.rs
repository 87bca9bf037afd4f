//! Collects the lines about each turn of a job until the turn has ended.

use std::collections::HashMap;

use jiff::Timestamp;

use super::order::OrderOutline;
use super::result::{AttemptLog, LONGEST_LOG, TurnResult};
use crate::record::journal::{Event, JournalEntry, OutcomeRecord};
use crate::record::logs::Logs;

/// The lines of the turns of a job that have not ended.
#[derive(Debug)]
pub struct ResultLines {
    /// The run of the job.
    run: String,
    /// The position in the work order of each turn, by stack and whether it destroys.
    positions: HashMap<(String, bool), usize>,
    /// The number of each turn of the order among those of its stack.
    numbers: Vec<u32>,
    of_turns: HashMap<usize, Vec<JournalEntry>>,
    /// Lines about the whole job, for the next result.
    of_job: Vec<JournalEntry>,
}

impl ResultLines {
    pub fn new(run: &str, outline: &OrderOutline) -> Self {
        let turns = outline.turns.iter().enumerate();
        let positions =
            turns.map(|(position, turn)| ((turn.stack.clone(), turn.destroys), position));
        ResultLines {
            run: run.to_owned(),
            positions: positions.collect(),
            numbers: outline.numbers(),
            of_turns: HashMap::new(),
            of_job: Vec::new(),
        }
    }

    /// Returns the run of the job.
    pub fn job(&self) -> &str {
        &self.run
    }

    /// Returns the position in the work order of a turn, given as its stack and whether it destroys.
    pub fn position(&self, (stack, destroys): (&str, bool)) -> Option<usize> {
        let position = self.positions.get(&(stack.to_owned(), destroys));
        position.copied()
    }

    /// Returns a line with the answers of policies to a turn.
    pub fn answers(&self, entry: &JournalEntry, turn: (&str, bool)) -> Option<TurnResult> {
        let position = self.position(turn)?;
        Some(TurnResult {
            run: self.run.clone(),
            turn: position,
            lines: vec![self.numbered(entry, position)],
            logs: Vec::new(),
        })
    }

    /// Returns a line with the number of its turn in the work order.
    fn numbered(&self, entry: &JournalEntry, position: usize) -> JournalEntry {
        let number = self.numbers[position];
        JournalEntry {
            turn: Some(number).filter(|number| *number > 1),
            ..entry.clone()
        }
    }

    /// Adds a line. `turn` is the stack of its turn and whether the turn destroys it; `logs` has the logs of the job,
    /// and the position of the turn in the job, from 1. Returns the result if the line ends the turn.
    pub fn add(
        &mut self,
        entry: &JournalEntry,
        turn: Option<(&str, bool)>,
        logs: Option<(&Logs, usize)>,
    ) -> Option<TurnResult> {
        let Some((stack, destroys)) = turn else {
            if matches!(
                entry.event,
                Event::Interrupted { .. } | Event::RunTimedOut { .. }
            ) {
                self.of_job.push(entry.clone());
            }
            return None;
        };
        let position = self.position((stack, destroys))?;
        let number = self.numbers[position];
        let entry = self.numbered(entry, position);
        let ended = match &entry.event {
            Event::Ended(ended) => Some(ended.clone()),
            _ => None,
        };
        let at = entry.at;
        let lines = self.of_turns.entry(position).or_default();
        lines.push(entry);
        let ended = ended?;
        let mut lines = self.of_turns.remove(&position)?;
        // Those that never started follow from the others.
        if matches!(
            ended.outcome,
            OutcomeRecord::Skipped | OutcomeRecord::Cancelled
        ) {
            return None;
        }
        let mut sent = Vec::new();
        for attempt in 1..=ended.attempts {
            let Some((logs, of_job)) = logs else { break };
            match read(logs, of_job, stack, attempt) {
                Ok(log) => sent.extend(log),
                Err(problem) => lines.insert(lines.len() - 1, lost(at, number, stack, problem)),
            }
        }
        let mut all = std::mem::take(&mut self.of_job);
        all.extend(lines);
        Some(TurnResult {
            run: self.run.clone(),
            turn: position,
            lines: all,
            logs: sent,
        })
    }
}

/// Reads the log of an attempt, if it printed anything.
fn read(
    logs: &Logs,
    position: usize,
    stack: &str,
    attempt: u32,
) -> Result<Option<AttemptLog>, String> {
    let Some((output, streams)) = logs
        .content(position, stack, attempt)
        .map_err(|error| error.to_string())?
    else {
        return Ok(None);
    };
    if output.len() > LONGEST_LOG {
        let size = output.len() >> 20;
        return Err(format!(
            "the log of {size} MiB is only on the machine that ran the job"
        ));
    }
    Ok(Some(AttemptLog {
        attempt,
        output,
        streams,
    }))
}

fn lost(at: Timestamp, number: u32, stack: &str, problem: String) -> JournalEntry {
    let mut entry = JournalEntry::new(
        at,
        Event::OutputLost {
            stack: stack.to_owned(),
            problem,
        },
    );
    entry.turn = Some(number).filter(|number| *number > 1);
    entry
}
