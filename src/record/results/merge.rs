//! The run that the results of a work order make together.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::order::StoredOrder;
use super::result::TurnResult;
use crate::record::journal::{
    CauseRecord, EndedTurnRecord, Event, Finished, JournalEntry, OnError, OutcomeRecord, RunRecord,
};

/// What the results do not show.
#[derive(Debug, Default)]
pub struct MergeFacts {
    /// Whether no job is left that may run.
    pub has_ended: bool,
    /// Whether a run may still be evaluating the results.
    pub is_evaluated: bool,
    /// The latest attempts without results: those that have begun, and what the state knows of others.
    pub latest: Vec<TurnResult>,
}

/// Returns the lines of the journal of the whole run, without its header. The results are in the order of their turns
/// and attempts; the attempts of their commands are counted through.
pub fn merged(
    order: &StoredOrder,
    results: &mut [TurnResult],
    facts: &MergeFacts,
) -> Vec<JournalEntry> {
    count_through(results);
    let mut lines = in_sequence(results);
    let known: BTreeSet<usize> = results.iter().map(|result| result.turn).collect();
    let ended = results.iter().filter(|result| result.has_ended());
    let ended: BTreeSet<usize> = ended.map(|result| result.turn).collect();
    let is_whole = ended.len() == order.outline.turns.len();
    if (is_whole || facts.has_ended) && !facts.is_evaluated {
        let at = lines.last().map_or(order.header.at, |line| line.at);
        let ended = ended_without_start(order, results, &known);
        lines.extend(ended.into_iter().map(|mut line| {
            line.at = at;
            line
        }));
        lines.push(finished(order, &lines, at, is_whole));
    }
    lines
}

/// Returns the lines of all results, sorted by the clocks of their machines; the attempts at a turn keep their order,
/// whatever the clocks say.
fn in_sequence(results: &[TurnResult]) -> Vec<JournalEntry> {
    let mut latest: BTreeMap<usize, Timestamp> = BTreeMap::new();
    let mut lines = Vec::new();
    for result in results {
        for line in &result.lines {
            let at = latest.entry(result.turn).or_insert(line.at);
            *at = line.at.max(*at);
            lines.push((*at, line.clone()));
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Numbers the attempts of each turn through all its results.
fn count_through(results: &mut [TurnResult]) {
    let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
    for result in results {
        let count = counts.entry(result.turn).or_default();
        let before = *count;
        for line in &mut result.lines {
            match &mut line.event {
                Event::Started { attempt, .. } | Event::Retrying { attempt, .. } => {
                    *attempt += before;
                    *count = *attempt;
                }
                Event::Ended(ended) => {
                    ended.attempts += before;
                    *count = ended.attempts;
                }
                _ => {}
            }
        }
        for log in &mut result.logs {
            log.attempt += before;
        }
    }
}

/// Returns the ends of the turns that never started because of a failure, as a run on one machine has them, and of
/// further turns of stacks.
fn ended_without_start(
    order: &StoredOrder,
    results: &[TurnResult],
    known: &BTreeSet<usize>,
) -> Vec<JournalEntry> {
    let outline = &order.outline;
    let outcome = |result: &TurnResult| {
        let mut ends = result.lines.iter().rev();
        ends.find_map(|line| match &line.event {
            Event::Ended(ended) => Some((line.at, ended.outcome.clone())),
            _ => None,
        })
    };
    let mut failed: BTreeMap<usize, Timestamp> = BTreeMap::new();
    let mut succeeded: BTreeSet<&str> = BTreeSet::new();
    for result in results {
        match outcome(result) {
            Some((_, OutcomeRecord::Succeeded)) => {
                failed.remove(&result.turn);
                succeeded.insert(&outline.turns[result.turn].stack);
            }
            Some((at, _)) => _ = failed.insert(result.turn, at),
            None => {}
        }
    }
    let first = failed.iter().min_by_key(|(_, at)| **at);
    let first = first.map(|(turn, _)| *turn);
    let needed = outline.needed();
    // The failed turn that each waits for, the nodes that run nothing included.
    let mut causes: BTreeMap<usize, Option<usize>> = BTreeMap::new();
    let numbers = outline.numbers();
    let mut lines = Vec::new();
    for (position, turn) in outline.turns.iter().enumerate() {
        if known.contains(&position) {
            continue;
        }
        let (outcome, cause) = match order.header.settings.on_error.known() {
            Ok(OnError::Continue) => (OutcomeRecord::Cancelled, None),
            Ok(OnError::Stop) => (OutcomeRecord::Cancelled, first),
            Ok(OnError::SkipDependents) | Err(_) => {
                let cause = cause_of(position, &needed, &failed, known, &mut causes);
                (OutcomeRecord::Skipped, cause)
            }
        };
        // Otherwise, a stack would look done whose first turn has succeeded: it may only be destroyed.
        let looks_done = numbers[position] > 1 && succeeded.contains(turn.stack.as_str());
        let outcome = match cause {
            Some(_) => outcome,
            None if looks_done => OutcomeRecord::Cancelled,
            None => continue,
        };
        let ended = EndedTurnRecord {
            stack: turn.stack.clone(),
            outcome,
            failure: None,
            cause: cause.map(|cause| CauseRecord::Failed {
                stack: outline.turns[cause].stack.clone(),
            }),
            elapsed_ms: 0,
            attempts: 0,
            changes: None,
        };
        let mut line = JournalEntry::new(order.header.at, Event::Ended(ended));
        line.turn = Some(numbers[position]).filter(|number| *number > 1);
        lines.push(line);
    }
    lines
}

/// Returns the failed turn that a node waits for, directly or through others that never started.
fn cause_of(
    node: usize,
    needed: &BTreeMap<usize, Vec<usize>>,
    failed: &BTreeMap<usize, Timestamp>,
    known: &BTreeSet<usize>,
    causes: &mut BTreeMap<usize, Option<usize>>,
) -> Option<usize> {
    let mut open = vec![(node, false)];
    while let Some((node, is_second)) = open.pop() {
        if causes.contains_key(&node) {
            continue;
        }
        let before = needed.get(&node).map_or(&[][..], Vec::as_slice);
        if !is_second {
            // First those before it.
            open.push((node, true));
            let unknown = before.iter().filter(|it| !known.contains(*it));
            open.extend(unknown.map(|it| (*it, false)));
            continue;
        }
        let cause = before.iter().find_map(|it| {
            let own = failed.contains_key(it).then_some(*it);
            own.or_else(|| causes.get(it).copied().flatten())
        });
        causes.insert(node, cause);
    }
    causes.get(&node).copied().flatten()
}

/// Returns the last line of the run; `is_whole` if all turns have results.
fn finished(
    order: &StoredOrder,
    lines: &[JournalEntry],
    at: Timestamp,
    is_whole: bool,
) -> JournalEntry {
    let mut record = RunRecord::new(order.header.clone());
    lines.iter().cloned().for_each(|line| record.add(line));
    let counts = record.counts();
    let has_changes = record.stacks.iter().any(|stack| stack.state.has_changes());
    let is_done = is_whole && counts.succeeded == record.stacks.len();
    let status = match is_done {
        true if order.header.settings.detailed_exit_code && has_changes => 2,
        true => 0,
        false => 1,
    };
    let first = lines.first().map_or(at, |line| line.at);
    let elapsed = at.duration_since(first).as_millis();
    let finished = Finished {
        status,
        elapsed_ms: u64::try_from(elapsed).unwrap_or_default(),
        counts,
    };
    JournalEntry::new(at, Event::Finished(finished))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::results::{OrderOutline, OutlinedTurn};

    /// The first attempt ran on a machine whose clock is ahead.
    #[test]
    fn attempts_keep_their_order_whatever_the_clocks_say() {
        let turns = vec![OutlinedTurn {
            stack: "/a".to_owned(),
            destroys: false,
        }];
        let outline = OrderOutline {
            run: "order".to_owned(),
            turns,
            edges: Vec::new(),
            order_only: Vec::new(),
            is_recorded: true,
            policies: None,
        };
        let at = |second| Timestamp::from_second(second).unwrap();
        let failed = outline.unsent("first", 0, (OutcomeRecord::Failed, at(9)));
        let succeeded = outline.unsent("second", 0, (OutcomeRecord::Succeeded, at(1)));
        let lines = in_sequence(&[failed, succeeded]);
        let ends = lines.iter().filter_map(|line| match &line.event {
            Event::Ended(ended) => Some(ended.outcome.clone()),
            _ => None,
        });
        let ends: Vec<OutcomeRecord> = ends.collect();
        assert_eq!(ends, [OutcomeRecord::Failed, OutcomeRecord::Succeeded]);
    }
}
