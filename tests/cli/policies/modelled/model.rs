//! A naive model of a workflow: what policies answer, what follows from that, and what may run when.
//!
//! What depends on time is given to it: which turn starts or ends next, and when an evaluation is done.
//! Everything else it says itself. It knows no journal and no `orch`.

use std::collections::{BTreeMap, BTreeSet};

use super::scenario::{IDS, POLICIES, Policy, STACKS, Scenario, Then, When};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Waiting,
    Running,
    Succeeded,
    Failed,
    Skipped,
    Cancelled,
    /// It was running when `orch` was killed.
    Killed,
}

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Turn {
    pub(super) stack: usize,
    pub(super) phase: Phase,
    pub(super) is_tracked: bool,
    /// Whether policies have added it.
    is_added: bool,
    /// The policies that asked for it last.
    pub(super) by: Vec<&'static str>,
    /// Whether a user asked for it again.
    pub(super) is_by_user: bool,
    /// Whether it follows, directly or not, from a turn that did not finish.
    answers_failure: bool,
    /// The flags, and who has set them.
    pub(super) flags: BTreeMap<&'static str, BTreeSet<&'static str>>,
    /// Whether its failure has been decided, and whether it will be tried again.
    is_decided: bool,
    is_retried: bool,
}

/// The end of a turn that policies are to be asked about.
#[derive(Debug, Clone)]
struct Event {
    turn: usize,
    /// The phases of all turns at that moment.
    phases: Vec<Phase>,
}

/// What became of an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Evaluated {
    pub(super) answers: Vec<(&'static str, Answer)>,
    /// The new turns: which one, and who asked for it.
    pub(super) queued: BTreeSet<(usize, Vec<&'static str>)>,
    pub(super) joined: BTreeSet<(usize, Vec<&'static str>)>,
    /// The name, who asked for it, why not.
    pub(super) dropped: BTreeSet<(String, Vec<&'static str>, &'static str)>,
}

/// What one policy answers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) trigger: BTreeSet<&'static str>,
    pub(super) flag: BTreeSet<&'static str>,
    pub(super) reset: BTreeSet<&'static str>,
    pub(super) has_failed: bool,
}

/// What policies are told of a turn that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) stack: &'static str,
    pub(super) state: &'static str,
    pub(super) is_tracked: bool,
    pub(super) by: Option<&'static str>,
    pub(super) is_by_user: bool,
    pub(super) flags: BTreeSet<&'static str>,
    /// Each turn of the workflow: the stack, the state, whether it is tracked.
    pub(super) workflow: Vec<(&'static str, &'static str, bool)>,
}

#[derive(Debug, Clone)]
pub(super) struct Model<'a> {
    scenario: &'a Scenario,
    pub(super) turns: Vec<Turn>,
    /// Where the turns of the present run begin, and those of the runs before it.
    pub(super) first: usize,
    pub(super) firsts: Vec<usize>,
    /// What breaks ties, by stack: the lower goes first.
    ranks: Vec<usize>,
    /// What the commands of the present run find in their environment.
    pub(super) log: Vec<String>,
    events: Vec<Event>,
    has_problem: bool,
}

impl Phase {
    fn word(self, is_tracked: bool) -> &'static str {
        match self {
            Phase::Waiting => "QUEUED",
            Phase::Running if is_tracked => "APPLYING",
            Phase::Running => "PERFORMING",
            Phase::Succeeded => "FINISHED",
            Phase::Failed => "FAILED",
            Phase::Skipped => "SKIPPED",
            Phase::Cancelled => "CANCELED",
            Phase::Killed => "STOPPED",
        }
    }

    fn has_ended(self) -> bool {
        !matches!(self, Phase::Waiting | Phase::Running)
    }
}

impl Turn {
    fn new(stack: usize, is_tracked: bool) -> Self {
        Turn {
            stack,
            phase: Phase::Waiting,
            is_tracked,
            is_added: false,
            by: Vec::new(),
            is_by_user: false,
            answers_failure: false,
            flags: BTreeMap::new(),
            is_decided: false,
            is_retried: false,
        }
    }

    /// Whether it has failed for good, as far as is known.
    fn is_failure(&self) -> bool {
        self.phase == Phase::Failed && self.is_decided && !self.is_retried
    }

    /// Returns the turn in another run that stands for this one, which has not succeeded.
    fn again(&self) -> Turn {
        let again = Turn::new(self.stack, self.is_tracked);
        if !matches!(self.phase, Phase::Skipped | Phase::Cancelled) {
            return Turn {
                is_by_user: true,
                ..again
            };
        }
        Turn {
            is_added: self.is_added,
            by: self.by.clone(),
            is_by_user: self.is_by_user,
            answers_failure: self.answers_failure,
            flags: self.flags.clone(),
            ..again
        }
    }
}

impl<'a> Model<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let mut model = Model {
            scenario,
            turns: Vec::new(),
            first: 0,
            firsts: vec![0],
            ranks: (0..STACKS.len()).collect(),
            log: Vec::new(),
            events: Vec::new(),
            has_problem: false,
        };
        let selected = scenario.selected.iter().copied();
        let selected: BTreeSet<usize> = selected
            .filter(|stack| scenario.excluded != Some(*stack))
            .collect();
        for stack in model.in_order(&selected) {
            model.turns.push(Turn::new(stack, !scenario.is_task));
        }
        model
    }

    /// Returns stacks in the order of a serial run.
    fn in_order(&self, stacks: &BTreeSet<usize>) -> Vec<usize> {
        let mut left = stacks.clone();
        let mut order = Vec::new();
        while !left.is_empty() {
            let is_next = |stack: &&usize| self.scenario.before(**stack).is_disjoint(&left);
            let next = left.iter().filter(is_next);
            let next = *next.min_by_key(|it| self.ranks[**it]).expect("no cycle");
            left.remove(&next);
            order.push(next);
        }
        order
    }

    /// Returns the nth turn of a stack in a run, from 1; the runs count from 0.
    pub(super) fn find(&self, run: usize, stack: usize, nth: usize) -> Option<usize> {
        let end = self.firsts.get(run + 1).copied();
        let turns = *self.firsts.get(run)?..end.unwrap_or(self.turns.len());
        let mut same = turns.filter(|it| self.turns[*it].stack == stack);
        same.nth(nth - 1)
    }

    /// `orch` has been killed or has ended, and another run goes on; returns whether anything is left to do.
    pub(super) fn resume(&mut self) -> bool {
        for turn in &mut self.turns[self.first..] {
            turn.phase = match turn.phase {
                Phase::Waiting => Phase::Skipped,
                Phase::Running => Phase::Killed,
                phase => phase,
            };
        }
        let last: BTreeMap<usize, &Turn> = self.turns.iter().map(|it| (it.stack, it)).collect();
        let left = last.values().filter(|it| it.phase != Phase::Succeeded);
        let left: BTreeSet<usize> = left.map(|it| it.stack).collect();
        // What is left goes first, as it was recorded.
        let mut recorded: Vec<usize> = Vec::new();
        for turn in &self.turns[self.first..] {
            if left.contains(&turn.stack) && !recorded.contains(&turn.stack) {
                recorded.push(turn.stack);
            }
        }
        let rank = |it: usize| recorded.iter().position(|of| *of == it);
        let ranks = (0..STACKS.len()).map(|it| rank(it).unwrap_or(recorded.len() + it));
        self.ranks = ranks.collect();
        let again: Vec<Turn> = self
            .in_order(&left)
            .into_iter()
            .map(|it| last[&it].again())
            .collect();
        self.first = self.turns.len();
        self.firsts.push(self.first);
        self.turns.extend(again);
        self.has_problem = false;
        self.log.clear();
        let phases: Vec<Phase> = self.turns.iter().map(|turn| turn.phase).collect();
        for event in &mut self.events {
            event.phases.clone_from(&phases);
        }
        !left.is_empty() || !self.events.is_empty()
    }

    /// `orch` was killed after it had added so many turns for the event that is next. Who asked for them is on
    /// record, and no flag that was set then.
    pub(super) fn add_early(&mut self, n: usize) {
        let Some(of) = self
            .events
            .first()
            .map(|event| self.turns[event.turn].clone())
        else {
            return;
        };
        let mut other = self.clone();
        other.evaluate();
        for mut turn in other.turns.drain(self.turns.len()..).take(n) {
            turn.flags.clear();
            if turn.stack == of.stack {
                turn.flags.clone_from(&of.flags);
            }
            self.turns.push(turn);
        }
    }

    /// Whether a turn of a stack has failed for good.
    fn has_failed(&self, stack: usize) -> bool {
        let mut turns = self.turns[self.first..].iter();
        turns.any(|it| it.stack == stack && it.is_failure())
    }

    fn is_stopping(&self) -> bool {
        let mut turns = self.turns[self.first..].iter();
        self.scenario.on_error == "stop" && turns.any(Turn::is_failure)
    }

    /// Whether a turn that waits will never run, unless a policy still asks for it.
    fn is_doomed(&self, turn: usize) -> bool {
        let turn = &self.turns[turn];
        if turn.phase != Phase::Waiting || turn.answers_failure {
            return false;
        }
        match self.scenario.on_error {
            "stop" => self.is_stopping(),
            "skip-dependents" => {
                // Another turn of the failed stack runs after it, too.
                let mut before = self.scenario.before(turn.stack);
                before.insert(turn.stack);
                before.into_iter().any(|stack| self.has_failed(stack))
            }
            _ => false,
        }
    }

    /// Returns why a turn may not start now.
    fn obstacle(&self, turn: usize) -> Option<String> {
        let it = &self.turns[turn];
        let here = &self.turns[self.first..];
        if it.phase != Phase::Waiting {
            return Some(format!("it is {:?}", it.phase));
        }
        let running = here.iter().filter(|it| it.phase == Phase::Running).count();
        if running >= self.scenario.jobs {
            return Some(format!("{running} are running"));
        }
        if self.events.iter().any(|event| event.turn < self.first) {
            return Some("turns of an earlier run are not evaluated".to_owned());
        }
        if self.is_doomed(turn) {
            return Some("--on-error keeps it from starting".to_owned());
        }
        let before = self.scenario.before(it.stack);
        for (other, of) in (self.first..).zip(here) {
            let is_before = before.contains(&of.stack);
            let is_same = of.stack == it.stack && other < turn;
            // What follows is known, and whether a failure is one.
            let has_run = matches!(of.phase, Phase::Succeeded | Phase::Failed);
            let is_open = has_run && !of.is_decided;
            let may_stop = of.phase == Phase::Failed && self.scenario.on_error == "stop";
            if is_open && (may_stop || is_same || is_before) {
                return Some(format!("turn {other} is not evaluated"));
            }
            if (is_same || is_before) && !of.phase.has_ended() {
                return Some(format!("it waits for turn {other}"));
            }
        }
        None
    }

    /// A turn starts.
    pub(super) fn start(&mut self, turn: usize) -> Result<(), String> {
        if let Some(obstacle) = self.obstacle(turn) {
            return Err(format!("turn {turn} may not start: {obstacle}"));
        }
        let stack = self.turns[turn].stack;
        for other in self.first..self.turns.len() {
            let is_first = self.ranks[self.turns[other].stack] < self.ranks[stack];
            if is_first && self.obstacle(other).is_none() {
                return Err(format!("turn {turn} starts before turn {other}"));
            }
        }
        let number = turn + 1 - self.first;
        let turn = &mut self.turns[turn];
        turn.phase = Phase::Running;
        let by = turn.by.join(",");
        self.log.push(format!("{} {number} {by}", STACKS[stack]));
        Ok(())
    }

    /// A turn ends.
    pub(super) fn end(&mut self, turn: usize, phase: Phase) -> Result<(), String> {
        let now = self.turns[turn].phase;
        let is_right = match phase {
            Phase::Succeeded | Phase::Failed => now == Phase::Running,
            Phase::Skipped => self.is_doomed(turn) && self.scenario.on_error != "stop",
            Phase::Cancelled => self.is_doomed(turn) && self.scenario.on_error == "stop",
            Phase::Waiting | Phase::Running | Phase::Killed => false,
        };
        if !is_right {
            return Err(format!("turn {turn}, which is {now:?}, ends: {phase:?}"));
        }
        self.turns[turn].phase = phase;
        let mut policies = self.scenario.policies.iter();
        if !policies.any(|policy| policy.is_attached(self.turns[turn].stack)) {
            self.turns[turn].is_decided = true;
        } else if phase != Phase::Skipped {
            let phases = self.turns.iter().map(|turn| turn.phase).collect();
            self.events.push(Event { turn, phases });
        }
        Ok(())
    }

    /// Returns the turn whose end is evaluated next, and what policies are told of it.
    pub(super) fn next_event(&self) -> Option<(usize, Told)> {
        let event = self.events.first()?;
        let turn = &self.turns[event.turn];
        // What earlier events have queued is there, and had not started then.
        let phases = event.phases.iter().copied();
        let phases = phases.chain(std::iter::repeat(Phase::Waiting));
        let told = Told {
            stack: IDS[turn.stack],
            state: turn.phase.word(true),
            is_tracked: turn.is_tracked,
            by: turn.by.first().copied(),
            is_by_user: turn.is_by_user,
            flags: turn.flags.keys().copied().collect(),
            workflow: self
                .turns
                .iter()
                .zip(phases)
                .map(|(turn, phase)| {
                    let state = phase.word(turn.is_tracked);
                    (IDS[turn.stack], state, turn.is_tracked)
                })
                .collect(),
        };
        Some((event.turn, told))
    }

    /// The policies answer to the event that is next.
    pub(super) fn evaluate(&mut self) -> Option<Evaluated> {
        let (turn, told) = self.next_event()?;
        let event = self.events.remove(0);
        let mut evaluated = Evaluated::default();
        for (name, policy) in POLICIES.into_iter().zip(&self.scenario.policies) {
            if policy.is_attached(self.turns[turn].stack) {
                let answer = policy.answer(&told);
                self.has_problem |= answer.has_failed && !policy.is_ignored;
                evaluated.answers.push((name, answer));
            }
        }
        self.flag(turn, &evaluated.answers);
        let mut named: BTreeMap<&str, Vec<&'static str>> = BTreeMap::new();
        for (policy, answer) in &evaluated.answers {
            for name in &answer.trigger {
                named.entry(name).or_default().push(policy);
            }
        }
        let mut stacks: BTreeMap<usize, BTreeSet<&'static str>> = BTreeMap::new();
        for (name, by) in named {
            let stack = (0..STACKS.len())
                .find(|it| STACKS[*it] == name || IDS[*it].eq_ignore_ascii_case(name));
            match stack {
                None => _ = evaluated.dropped.insert((name.to_owned(), by, "unknown")),
                Some(stack) => stacks.entry(stack).or_default().extend(by),
            }
        }
        let failed = told.state == "FAILED";
        for (stack, by) in stacks {
            let is_there = self.follow(&event, stack, &by, &mut evaluated);
            self.turns[turn].is_retried |= is_there && failed && stack == self.turns[turn].stack;
        }
        self.turns[turn].is_decided = true;
        Some(evaluated)
    }

    /// What policies say of the flags of a turn.
    fn flag(&mut self, turn: usize, answers: &[(&'static str, Answer)]) {
        let flags = &mut self.turns[turn].flags;
        for (policy, answer) in answers {
            for flag in &answer.reset {
                if let Some(by) = flags.get_mut(flag) {
                    by.remove(policy);
                }
            }
        }
        for (policy, answer) in answers {
            for flag in &answer.flag {
                flags.entry(*flag).or_default().insert(*policy);
            }
        }
        flags.retain(|_, by| !by.is_empty());
    }

    /// A stack is named; returns whether a turn of it follows.
    fn follow(
        &mut self,
        event: &Event,
        stack: usize,
        by: &BTreeSet<&'static str>,
        evaluated: &mut Evaluated,
    ) -> bool {
        let policies: Vec<&'static str> = by.iter().copied().collect();
        let had_not_started =
            |it: &usize| event.phases.get(*it).is_none_or(|it| *it == Phase::Waiting);
        let mut turns = self.first..self.turns.len();
        let there = turns.find(|it| self.turns[*it].stack == stack && had_not_started(it));
        let follows = if let Some(turn) = there {
            evaluated.joined.insert((turn, policies));
            turn
        } else {
            // What never ran does not count.
            let phases = event
                .phases
                .iter()
                .copied()
                .map(Some)
                .chain(std::iter::repeat(None));
            let ran = |phase| !matches!(phase, Some(Phase::Skipped | Phase::Cancelled));
            let turns = self.turns.iter().zip(phases);
            let turns = turns.filter(|(_, phase)| ran(*phase)).map(|(it, _)| it);
            let same = turns.clone().filter(|it| it.stack == stack).count();
            let added = turns.filter(|it| it.is_added).count();
            let why = if self.scenario.excluded == Some(stack) {
                Some("excluded")
            } else if same >= self.scenario.max_turns {
                self.has_problem = true;
                Some("max_turns")
            } else if added >= self.scenario.max_followups {
                self.has_problem = true;
                Some("max_followups")
            } else {
                None
            };
            if let Some(why) = why {
                let name = STACKS[stack].to_owned();
                evaluated.dropped.insert((name, policies, why));
                return false;
            }
            self.turns.push(Turn {
                is_added: true,
                ..Turn::new(stack, true)
            });
            let turn = self.turns.len() - 1;
            evaluated.queued.insert((turn, policies));
            turn
        };
        let of = self.turns[event.turn].clone();
        let turn = &mut self.turns[follows];
        turn.by = by.iter().copied().collect();
        turn.is_by_user = false;
        turn.answers_failure |= of.answers_failure || of.phase != Phase::Succeeded;
        if of.stack == stack {
            for (flag, by) in of.flags {
                turn.flags.entry(flag).or_default().extend(by);
            }
        }
        true
    }

    /// The run is over; returns its exit status.
    pub(super) fn finish(&self) -> Result<i32, String> {
        if let Some(event) = self.events.first() {
            return Err(format!("turn {} is not evaluated", event.turn));
        }
        let here = &self.turns[self.first..];
        if let Some(turn) = here.iter().position(|it| !it.phase.has_ended()) {
            return Err(format!("turn {} has not ended", self.first + turn));
        }
        let mut turns = here.iter();
        let has_failed = turns.any(|it| it.phase != Phase::Succeeded && !it.is_retried);
        Ok(i32::from(has_failed || self.has_problem))
    }
}

impl Policy {
    fn answer(&self, told: &Told) -> Answer {
        let mut answer = Answer::default();
        for (_, then) in self.rules.iter().filter(|(when, _)| when.holds(told)) {
            match then {
                Then::Trigger(names) => answer.trigger.extend(names),
                Then::Again => _ = answer.trigger.insert(told.stack),
                Then::Flag(flag) => _ = answer.flag.insert(flag),
                Then::Reset(flag) => _ = answer.reset.insert(flag),
                Then::Fail => {
                    return Answer {
                        has_failed: true,
                        ..Answer::default()
                    };
                }
            }
        }
        answer
    }
}

impl When {
    fn holds(&self, told: &Told) -> bool {
        let is_finished = |stack: &usize| {
            let mut turns = told.workflow.iter();
            turns.any(|(id, state, _)| *id == IDS[*stack] && *state == "FINISHED")
        };
        self.stack.is_none_or(|stack| IDS[stack] == told.stack)
            && self.state.is_none_or(|state| state == told.state)
            && self
                .is_asked
                .is_none_or(|is_asked| is_asked == (told.is_by_user || told.by.is_some()))
            && self.flag.is_none_or(|flag| told.flags.contains(flag))
            && self.no_flag.is_none_or(|flag| !told.flags.contains(flag))
            && self.is_tracked.is_none_or(|it| it == told.is_tracked)
            && self.finished.iter().all(is_finished)
    }
}
