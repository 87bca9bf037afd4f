//! The turns of earlier runs of a workflow, from their journals.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{FlagChange, SessionInput, TurnKind, WorkflowTurn, set_flags, turn_id};
use crate::path::StackPath;
use crate::project::stack::Stacks;
use crate::record::journal::{AskedRecord, DRIFT, EvaluatedTurn, RunRecord, TASK};
use crate::run::evaluated::TurnState;

#[derive(Debug, Default)]
pub struct EarlierTurns {
    /// All of them: those of the first run by number, then those of the next.
    pub turns: Vec<WorkflowTurn>,
    /// The turns whose ends concern policies, by position, in the order of their ends.
    pub ended: Vec<usize>,
    /// Those of them that no policy was asked about.
    pub unevaluated: Vec<usize>,
    /// The last turn of each stack, by its path.
    last: HashMap<StackPath, usize>,
}

impl EarlierTurns {
    /// Reads the journals of the runs, the first one first.
    pub fn new(records: &[&RunRecord], stacks: &Stacks) -> Self {
        let mut earlier = EarlierTurns::default();
        // By run, stack and turn of that.
        let mut places: HashMap<(&str, &str, Option<u32>), usize> = HashMap::new();
        let mut evaluated: HashSet<usize> = HashSet::new();
        for record in records {
            let run = record.header.run.as_str();
            let first = earlier.turns.len();
            earlier.add_turns(record, stacks);
            for (number, turn) in record.turns.iter().enumerate() {
                places.insert((run, &turn.stack, turn.turn), first + number);
            }
            let is_open = |number: &&usize| {
                let outcome = record.turns[**number].outcome;
                outcome.is_some_and(TurnState::is_asked_about)
            };
            let open = record.ended.iter().filter(is_open);
            earlier.ended.extend(open.map(|number| first + number));
            for EvaluatedTurn {
                turn,
                evaluated: said,
            } in &record.evaluated
            {
                let of = said.run.as_deref().unwrap_or(run);
                let Some(&place) = places.get(&(of, said.stack.as_str(), *turn)) else {
                    continue;
                };
                if said.run.is_none() {
                    earlier.turns[place].answers = Some(said.policies.clone());
                }
                // Jobs only ask policies.
                if !record.header.is_of_work_order() || said.run.is_some() {
                    evaluated.insert(place);
                }
                let changes: Vec<_> = said
                    .policies
                    .iter()
                    .map(|it| FlagChange {
                        policy: &it.policy,
                        reset: it.answer.reset_flag.iter().collect(),
                        set: it.answer.flag.iter().collect(),
                    })
                    .collect();
                set_flags(&mut earlier.turns[place].flags, &changes);
                for follow in said.queued.iter().chain(&said.joined) {
                    if let Some(&next) = places.get(&(run, follow.stack.as_str(), follow.turn)) {
                        earlier.follows(next, place, &follow.policies);
                    }
                }
            }
            // A kill may have separated added turns from the answers that requested them.
            for (number, turn) in record.turns.iter().enumerate() {
                let next = first + number;
                let is_open = earlier.turns[next].after.is_none();
                if let Some(reason) = turn.follows.as_ref().filter(|_| is_open) {
                    let of = reason.run.as_deref().unwrap_or(run);
                    if let Some(&place) = places.get(&(of, reason.stack.as_str(), reason.turn)) {
                        earlier.follows(next, place, &reason.policies);
                    }
                }
            }
        }
        let open = earlier.ended.iter().copied();
        earlier.unevaluated = open.filter(|place| !evaluated.contains(place)).collect();
        earlier
    }

    pub fn last(&self, stack: &StackPath) -> Option<(usize, &WorkflowTurn)> {
        let position = *self.last.get(stack)?;
        Some((position, &self.turns[position]))
    }

    /// Makes another turn of a stack its last one.
    pub fn supersede(&mut self, stack: StackPath, position: usize) {
        self.last.insert(stack, position);
    }

    /// Treats the last, finished turn of a stack as killed: its effect is unknown.
    pub fn reopen(&mut self, stack: &StackPath) {
        let last = self.last.get(stack).copied();
        if let Some(position) = last.filter(|it| self.turns[*it].state == TurnState::Finished) {
            self.turns[position].state = TurnState::Stopped;
            self.unevaluated.retain(|open| *open != position);
        }
    }

    /// Returns the last turns of the project's stacks that are follow-ups and neither succeeded nor were left
    /// unconfirmed, in the order in which they were requested.
    pub fn open_followups(&self) -> Vec<&WorkflowTurn> {
        let is_open = |turn: &&WorkflowTurn| {
            let is_left = !matches!(turn.state, TurnState::Finished | TurnState::Unconfirmed);
            turn.is_followup && turn.stack.is_some() && is_left
        };
        let mut last: Vec<usize> = self.last.values().copied().collect();
        last.sort_unstable();
        let last = last.into_iter().map(|position| &self.turns[position]);
        last.filter(is_open).collect()
    }

    /// Returns the project's stacks whose last turns were left unconfirmed, by path, with the ids of the runs of
    /// these turns.
    pub fn unconfirmed(&self) -> BTreeMap<&StackPath, &str> {
        let last = self.last.values().map(|position| &self.turns[*position]);
        let unconfirmed =
            last.filter(|turn| turn.stack.is_some() && turn.state == TurnState::Unconfirmed);
        unconfirmed.map(|turn| (&turn.path, turn.run())).collect()
    }

    fn add_turns(&mut self, record: &RunRecord, stacks: &Stacks) {
        let policies = record.header.policies.as_ref();
        let kind = match policies {
            Some(policies) if policies.kind == TASK => TurnKind::Task,
            Some(policies) if policies.kind == DRIFT => TurnKind::Drift,
            _ => TurnKind::Tracked,
        };
        let asked: HashMap<&str, _> = policies
            .map_or(&[][..], |policies| &policies.asked)
            .iter()
            .map(|it| (it.stack.as_str(), it))
            .collect();
        let at = u64::try_from(record.header.at.as_nanosecond()).unwrap_or_default();
        for (number, turn) in record.turns.iter().enumerate() {
            let stack = stacks.named(&turn.stack);
            let path = match stack {
                Some(stack) => Some(stacks[stack].path.clone()),
                None => StackPath::parse(&turn.stack),
            };
            let path = path.unwrap_or_else(|| crate::path::ProjectPath::root().into());
            let state = turn.outcome.unwrap_or(match turn.started_after {
                // It was killed with its run.
                Some(_) => TurnState::Stopped,
                None => TurnState::Skipped,
            });
            let before = self.last.insert(path.clone(), self.turns.len());
            let id = turn_id(&record.header.run, number);
            let mut next = WorkflowTurn::new(id, stack, path, at);
            next.kind = match turn.operation.as_deref() {
                Some("destroy") => TurnKind::Destroy,
                _ if turn.is_added => TurnKind::Tracked,
                _ => kind,
            };
            // It is a follow-up whether or not a reason is recorded.
            (next.is_followup, next.was_added) = (turn.is_added, turn.is_added);
            if record.header.is_of_work_order() {
                (next.started_after, next.ended_after) = (turn.started_after, turn.ended_after);
            }
            next.state = state;
            next.history.push(state);
            if let Some(asked) = asked
                .get(turn.stack.as_str())
                .filter(|_| turn.turn.is_none())
            {
                next.triggered_by.clone_from(&asked.by);
                next.is_followup = asked.follows;
                if asked.follows {
                    next.kind = TurnKind::Tracked;
                }
                let before = before.map(|before| &self.turns[before]);
                if let Some(before) = before.filter(|_| asked.kept) {
                    next.keep(before);
                } else {
                    // It replaces a turn that has run, and that was counted.
                    next.was_added = false;
                }
            }
            self.turns.push(next);
        }
    }

    fn follows(&mut self, position: usize, after: usize, policies: &[String]) {
        let before = self.turns[after].clone();
        let turn = &mut self.turns[position];
        turn.policies = policies.to_vec();
        turn.triggered_by = policies.first().map(|name| format!("policy/{name}"));
        turn.after = Some(after);
        turn.answers_failure |= before.answers_failure || before.state != TurnState::Finished;
        if before.path == turn.path {
            for (flag, setters) in before.flags {
                turn.flags.entry(flag).or_default().extend(setters);
            }
        }
    }
}

impl WorkflowTurn {
    /// Takes over the last turn of its stack in an earlier run, which did not succeed. A turn that had not started
    /// keeps its cause; the resuming user requests all others again. Returns the reason to record, if any.
    pub fn ask_again(
        &mut self,
        last: &WorkflowTurn,
        session: &SessionInput,
    ) -> Option<AskedRecord> {
        let is_kept = matches!(last.state, TurnState::Skipped | TurnState::Canceled);
        if is_kept {
            self.keep(last);
        } else {
            self.triggered_by = Some(session.asker());
            (self.kind, self.is_followup) = (last.kind, last.is_followup);
        }
        let is_known = self.triggered_by.is_some() || self.is_followup || !self.flags.is_empty();
        is_known.then(|| AskedRecord {
            stack: self.path.to_string(),
            by: self.triggered_by.clone(),
            kept: is_kept,
            follows: self.is_followup,
        })
    }

    /// Takes over the facts of a turn that did not end, and now runs.
    pub fn keep(&mut self, unfinished: &WorkflowTurn) {
        self.policies.clone_from(&unfinished.policies);
        self.triggered_by.clone_from(&unfinished.triggered_by);
        self.after = unfinished.after;
        self.flags.clone_from(&unfinished.flags);
        self.answers_failure = unfinished.answers_failure;
        self.kind = unfinished.kind;
        self.is_followup = unfinished.is_followup;
        self.was_added = unfinished.was_added;
    }
}
