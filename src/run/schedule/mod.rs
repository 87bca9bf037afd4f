//! Decides which turn may start: a state machine without processes, threads or time.
//!
//! The whole order of `orch` is in [`Schedule::start_next`]: among the turns that may run, the one of lowest rank.
//! Its caller reports how each turn ended: the serial order, `list --order` and a run are three such callers. Turns
//! are at nodes of a [`Precedence`]. Nodes without a turn (stacks that are not selected, groups of stacks) count as
//! done as soon as everything before them is, so constraints hold through them.
//!
//! The end of a turn and its effect on others are two steps, [`Schedule::finish`] and [`Schedule::settle`]: another
//! turn, added in between, may retry a failed one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::num::NonZeroUsize;

pub use crate::record::journal::OnError;
use crate::run::turn::TurnIndex;
use crate::selection::graph::Precedence;

/// At most this many turns at some nodes run at once.
#[derive(Debug, Clone)]
pub struct Limit {
    pub at_once: NonZeroUsize,
    pub nodes: Vec<usize>,
}

/// A turn that will not run, because a turn before it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    pub turn: TurnIndex,
    pub cause: TurnIndex,
}

pub struct Schedule {
    precedence: Precedence,
    /// The reversed precedence, from the first added turn on.
    reversed: Option<Precedence>,
    on_error: OnError,
    /// How many more turns may run now, in total and under each limit.
    free: usize,
    limits: Vec<usize>,
    /// Nodes under the same limits.
    classes: Vec<Class>,
    /// The class of each node.
    class: Vec<u32>,
    /// Unfinished predecessors, by node.
    pending: Vec<u32>,
    /// The failed turn that blocks a node, by node.
    blocked_by: Vec<Option<TurnIndex>>,
    /// The initial turn of each node.
    first: Vec<Option<TurnIndex>>,
    /// Turns at other nodes that count for a node with added turns.
    elsewhere: BTreeMap<usize, Vec<CoveringTurn>>,
    added: BTreeMap<usize, Vec<TurnIndex>>,
    turns: Vec<Entry>,
    /// Turns that have neither ended nor been skipped.
    n_left: usize,
    /// Failed turns whose effect on others is not known yet.
    n_open_failures: usize,
    skipped: Vec<Skipped>,
    stopped: Option<Stop>,
}

/// The turns that no longer start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Turns that do not answer a failure.
    AfterFailure,
    Entirely,
}

#[derive(Debug, Default)]
struct Class {
    limits: Vec<usize>,
    /// Turns by rank. A turn that has since come to wait for an added one is removed when it is reached.
    ready: BinaryHeap<Reverse<(u32, TurnIndex)>>,
}

struct Entry {
    node: usize,
    /// Breaks ties: the lowest runs first.
    rank: u32,
    state: State,
    /// The number of its unfinished predecessors: its node, if the turn is an initial one, and other turns.
    n_waits: u32,
    blocked_by: Option<TurnIndex>,
    /// Whether nothing that runs after it starts if it fails, even with [`OnError::Continue`].
    is_needed: bool,
    /// Whether it answers a failure: it runs after a failed turn, and after a failure that stops others.
    answers_failure: bool,
    /// Turns that wait for it besides the nodes behind its own, and whether a failure reaches them.
    holds: Vec<(TurnIndex, bool)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    /// It has ended, and its effect is not known.
    Ended {
        succeeded: bool,
    },
    /// Its effect is known: later turns may run, or this turn blocks them.
    Over(Option<TurnIndex>),
}

/// Something finished that others wait for.
#[derive(Debug, Clone, Copy)]
enum Done {
    Node(usize),
    Turn(TurnIndex),
}

impl Schedule {
    /// Creates the schedule of a serial run that stops after a failure. Each turn has a node of its own, and a rank
    /// that breaks ties: the lowest runs first.
    pub fn new(precedence: Precedence, turns: impl IntoIterator<Item = (usize, u32)>) -> Self {
        let n_nodes = precedence.n_nodes();
        let mut first = vec![None; n_nodes];
        let mut entries = Vec::new();
        for (node, rank) in turns {
            let other = first[node].replace(TurnIndex::new(entries.len()));
            assert!(other.is_none(), "a node begins with one turn at most");
            entries.push(Entry {
                node,
                rank,
                state: State::Waiting,
                n_waits: 1,
                blocked_by: None,
                is_needed: false,
                answers_failure: false,
                holds: Vec::new(),
            });
        }
        let pending = precedence.pending();
        let free: Vec<usize> = (0..n_nodes).filter(|&node| pending[node] == 0).collect();
        let mut schedule = Schedule {
            precedence,
            reversed: None,
            on_error: OnError::Stop,
            free: 1,
            limits: Vec::new(),
            classes: vec![Class::default()],
            class: vec![0; n_nodes],
            pending,
            blocked_by: vec![None; n_nodes],
            first,
            elsewhere: BTreeMap::new(),
            added: BTreeMap::new(),
            n_left: entries.len(),
            turns: entries,
            n_open_failures: 0,
            skipped: Vec::new(),
            stopped: None,
        };
        let mut done = Vec::new();
        for node in free {
            done.extend(schedule.open(node));
        }
        schedule.complete(done);
        schedule
    }

    /// Sets what happens after a failure.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Marks turns without which nothing starts that runs after them, even with [`OnError::Continue`].
    #[must_use]
    pub fn needing(mut self, turns: impl Iterator<Item = TurnIndex>) -> Self {
        for turn in turns {
            self.turns[turn.get()].is_needed = true;
        }
        self
    }

    /// Allows this many turns at once, and limits some nodes further. Call it before anything has started.
    #[must_use]
    pub fn at_once(mut self, jobs: NonZeroUsize, limits: &[Limit]) -> Self {
        self.free = jobs.get();
        self.limits = limits.iter().map(|limit| limit.at_once.get()).collect();
        let mut limits_of: Vec<Vec<usize>> = vec![Vec::new(); self.class.len()];
        for (index, limit) in limits.iter().enumerate() {
            for &node in &limit.nodes {
                if limits_of[node].last() != Some(&index) {
                    limits_of[node].push(index);
                }
            }
        }
        let ready = std::mem::take(&mut self.classes[0].ready);
        let mut known: HashMap<Vec<usize>, u32> = HashMap::from([(Vec::new(), 0)]);
        for (node, limits) in limits_of.into_iter().enumerate() {
            let next = u32::try_from(known.len()).expect("there are no more classes than nodes");
            self.class[node] = *known.entry(limits).or_insert_with_key(|limits| {
                self.classes.push(Class {
                    limits: limits.clone(),
                    ready: BinaryHeap::new(),
                });
                next
            });
        }
        for Reverse((_, turn)) in ready {
            self.queue(turn);
        }
        self
    }

    /// Returns the turn to start now, or `None` if none may start before another one ends, or at all.
    pub fn start_next(&mut self) -> Option<TurnIndex> {
        let may_have_stopped = self.on_error == OnError::Stop && self.n_open_failures > 0;
        if self.stopped == Some(Stop::Entirely) || may_have_stopped || self.free == 0 {
            return None;
        }
        let only_answers = self.stopped == Some(Stop::AfterFailure);
        let Schedule {
            classes,
            limits,
            turns,
            ..
        } = self;
        let has_room = |class: &&mut Class| class.limits.iter().all(|&limit| limits[limit] > 0);
        let with_room = classes.iter_mut().filter(has_room);
        let lowest =
            with_room.filter_map(|class| Some((class.lowest(turns, only_answers)?, class)));
        // The heap has the lowest on top.
        let (Reverse((_, turn)), class) = lowest.max_by_key(|(lowest, _)| *lowest)?;
        class.ready.pop();
        for &limit in &class.limits {
            limits[limit] -= 1;
        }
        self.free -= 1;
        turns[turn.get()].state = State::Running;
        Some(turn)
    }

    /// Records the end of a started turn, and frees its slot. Later turns wait until it is settled.
    pub fn finish(&mut self, turn: TurnIndex, succeeded: bool) {
        self.leave_slot(turn, State::Ended { succeeded });
        self.n_left -= 1;
        self.n_open_failures += usize::from(!succeeded);
    }

    /// Settles the effect of an ended turn: later turns run as after a success, or as after a failure. Returns the
    /// turns that will not run because of it, in no special order.
    pub fn settle(&mut self, turn: TurnIndex, counts_as_success: bool) -> Vec<Skipped> {
        let State::Ended { succeeded } = self.turns[turn.get()].state else {
            panic!("only what has ended can be settled, and once");
        };
        self.n_open_failures -= usize::from(!succeeded);
        let mut cause = None;
        if !counts_as_success {
            match self.on_error {
                OnError::Stop => _ = self.stopped.get_or_insert(Stop::AfterFailure),
                OnError::SkipDependents => cause = Some(turn),
                OnError::Continue if self.turns[turn.get()].is_needed => cause = Some(turn),
                OnError::Continue => {}
            }
        }
        self.turns[turn.get()].state = State::Over(cause);
        self.complete(vec![Done::Turn(turn)]);
        std::mem::take(&mut self.skipped)
    }

    /// Puts a started turn back, as if it had never started. Only for a schedule that was stopped:
    /// the turn will not start again.
    pub fn withdraw(&mut self, turn: TurnIndex) {
        assert!(self.is_stopped(), "it would start again");
        self.leave_slot(turn, State::Waiting);
    }

    /// Adds a turn at a node, which may have others. It waits for all unsettled turns at and before its node, and all
    /// turns after its node that have not started wait for it, through any nodes between. Returns its number, and the
    /// turns that will not run because of an earlier failure, possibly including itself unless it answers a failure.
    pub fn add(
        &mut self,
        node: usize,
        rank: u32,
        answers_failure: bool,
    ) -> (TurnIndex, Vec<Skipped>) {
        let turn = TurnIndex::new(self.turns.len());
        let mut entry = Entry {
            node,
            rank,
            state: State::Waiting,
            n_waits: 0,
            blocked_by: None,
            is_needed: false,
            answers_failure,
            holds: Vec::new(),
        };
        let behind = self.precedence.reach(node);
        for &(other, spreads) in behind.iter().filter(|(other, _)| *other != node) {
            for (held, is_loose) in self.turns_at(other) {
                let held_entry = &mut self.turns[held.get()];
                if held_entry.state == State::Waiting && !is_loose {
                    held_entry.n_waits += 1;
                    entry.holds.push((held, spreads));
                }
            }
        }
        let precedence = &self.precedence;
        let reversed = self.reversed.get_or_insert_with(|| precedence.reversed());
        for (other, spreads) in reversed.reach(node) {
            for (before, is_loose) in self.turns_at(other) {
                let before_entry = &mut self.turns[before.get()];
                match before_entry.state {
                    State::Waiting if is_loose => {}
                    State::Over(Some(cause)) if spreads => {
                        let first = entry.blocked_by.map_or(cause, |known| known.min(cause));
                        entry.blocked_by = Some(first);
                    }
                    State::Over(_) => {}
                    State::Waiting | State::Running | State::Ended { .. } => {
                        before_entry.holds.push((turn, spreads));
                        entry.n_waits += 1;
                    }
                }
            }
        }
        self.added.entry(node).or_default().push(turn);
        let is_free = entry.n_waits == 0;
        self.turns.push(entry);
        self.n_left += 1;
        if is_free {
            let done = self.admit(turn);
            self.complete(done.into_iter().collect());
        }
        (turn, std::mem::take(&mut self.skipped))
    }

    /// From now on nothing starts.
    pub fn stop(&mut self) {
        self.stopped = Some(Stop::Entirely);
    }

    /// Returns whether the schedule was stopped, entirely or except for answers to a failure.
    pub fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Returns whether every turn has ended or was skipped.
    pub fn is_over(&self) -> bool {
        self.n_left == 0
    }

    /// Returns the turns that have not started and will not be skipped, by number.
    pub fn waiting(&self) -> impl Iterator<Item = TurnIndex> {
        let turns = self.turns.iter().enumerate();
        turns
            .filter(|(_, entry)| entry.state == State::Waiting)
            .map(|(number, _)| TurnIndex::new(number))
    }

    /// Returns whether a turn has ended, and its effect on others is not known.
    pub fn has_ended(&self, turn: TurnIndex) -> bool {
        matches!(self.turns[turn.get()].state, State::Ended { .. })
    }

    fn leave_slot(&mut self, turn: TurnIndex, state: State) {
        let entry = &mut self.turns[turn.get()];
        let before = std::mem::replace(&mut entry.state, state);
        assert!(before == State::Running, "only what was started can end");
        self.free += 1;
        for &limit in &self.classes[self.class[entry.node] as usize].limits {
            self.limits[limit] += 1;
        }
    }

    /// Releases everything that waited only for this.
    fn complete(&mut self, mut done: Vec<Done>) {
        while let Some(next) = done.pop() {
            match next {
                Done::Node(node) => self.node_done(node, &mut done),
                Done::Turn(turn) => self.turn_done(turn, &mut done),
            }
        }
    }

    fn node_done(&mut self, node: usize, done: &mut Vec<Done>) {
        let mut opened = Vec::new();
        for position in 0..self.precedence.successors(node).len() {
            let successor = self.precedence.successors(node)[position];
            let next = successor.node as usize;
            if successor.spreads_failure {
                self.blocked_by[next] = self.blocked_by[next].or(self.blocked_by[node]);
            }
            self.pending[next] -= 1;
            if self.pending[next] == 0 {
                opened.push(next);
            }
        }
        for node in opened {
            done.extend(self.open(node));
        }
    }

    fn turn_done(&mut self, turn: TurnIndex, done: &mut Vec<Done>) {
        let entry = &mut self.turns[turn.get()];
        let (node, State::Over(cause)) = (entry.node, entry.state) else {
            unreachable!("only what is over is done");
        };
        let holds = std::mem::take(&mut entry.holds);
        if self.first[node] == Some(turn) {
            self.blocked_by[node] = self.blocked_by[node].or(cause);
            done.push(Done::Node(node));
        }
        for (held, spreads) in holds {
            let cause = cause.filter(|_| spreads);
            done.extend(self.release(held, cause));
        }
    }

    /// Everything before a node is done: releases its turn, or the node is done too.
    fn open(&mut self, node: usize) -> Option<Done> {
        match self.first[node] {
            Some(turn) => self.release(turn, self.blocked_by[node]),
            None => Some(Done::Node(node)),
        }
    }

    /// Counts down the predecessors of a turn, one of which is done or failed.
    fn release(&mut self, turn: TurnIndex, cause: Option<TurnIndex>) -> Option<Done> {
        let entry = &mut self.turns[turn.get()];
        entry.blocked_by = entry.blocked_by.or(cause);
        entry.n_waits -= 1;
        if entry.n_waits == 0 {
            self.admit(turn)
        } else {
            None
        }
    }

    /// Queues a turn without unfinished predecessors, or skips it, which finishes it.
    fn admit(&mut self, turn: TurnIndex) -> Option<Done> {
        let entry = &mut self.turns[turn.get()];
        if entry.state != State::Waiting {
            return Some(Done::Turn(turn)); // it was cancelled
        }
        let Some(cause) = entry.blocked_by.filter(|_| !entry.answers_failure) else {
            self.queue(turn);
            return None;
        };
        entry.state = State::Over(Some(cause));
        self.skipped.push(Skipped { turn, cause });
        self.n_left -= 1;
        Some(Done::Turn(turn))
    }

    fn queue(&mut self, turn: TurnIndex) {
        let entry = &self.turns[turn.get()];
        let class = self.class[entry.node] as usize;
        self.classes[class].ready.push(Reverse((entry.rank, turn)));
    }

    /// Makes turns count for nodes without a turn of their own, where others are added: they wait for each other as
    /// if all were at that node. Call it before anything has started.
    ///
    /// # Panics
    ///
    /// If such a node has a turn.
    #[must_use]
    pub fn with_elsewhere(mut self, elsewhere: BTreeMap<usize, Vec<CoveringTurn>>) -> Self {
        let is_free = |node: &usize| self.first[*node].is_none();
        assert!(elsewhere.keys().all(is_free), "a turn stands there");
        self.elsewhere = elsewhere;
        self
    }

    /// Returns the turns that count for a node, and whether each is loose.
    fn turns_at(&self, node: usize) -> Vec<(TurnIndex, bool)> {
        let added = self.added.get(&node).map_or(&[][..], Vec::as_slice);
        let here = self.first[node].iter().chain(added);
        let elsewhere = self
            .elsewhere
            .get(&node)
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .map(|it| (it.turn, it.is_loose));
        here.map(|turn| (*turn, false)).chain(elsewhere).collect()
    }

    /// Marks a turn as answering a failure. A started one is not affected.
    pub fn answer_failure(&mut self, turn: TurnIndex) {
        let entry = &mut self.turns[turn.get()];
        entry.answers_failure = true;
        if entry.state == State::Waiting && entry.n_waits == 0 {
            self.queue(turn); // it may have been passed over
        }
    }

    pub fn answers_failure(&self, turn: TurnIndex) -> bool {
        self.turns[turn.get()].answers_failure
    }

    /// From now on only turns that answer a failure start.
    pub fn stop_all_but_answers(&mut self) {
        self.stopped.get_or_insert(Stop::AfterFailure);
    }

    /// Returns the first turn that a failure keeps from ever starting.
    pub fn next_to_cancel(&self) -> Option<TurnIndex> {
        let is_stopped = self.stopped == Some(Stop::AfterFailure);
        let mut waiting = is_stopped.then(|| self.waiting()).into_iter().flatten();
        waiting.find(|turn| !self.answers_failure(*turn))
    }

    /// Cancels a turn that has not started, and releases the turns that wait for it.
    pub fn cancel(&mut self, turn: TurnIndex) {
        let entry = &mut self.turns[turn.get()];
        assert!(
            entry.state == State::Waiting,
            "only what waits can be cancelled"
        );
        entry.state = State::Over(None);
        self.n_left -= 1;
        if entry.n_waits == 0 {
            self.complete(vec![Done::Turn(turn)]);
        } // else it is done once nothing is left that it waits for
    }
}

impl Class {
    /// Returns the first turn to start. Turns that have since come to wait for another one are dropped, because they
    /// will be queued again. With `only_answers`, so are all others that answer no failure.
    fn lowest(&mut self, turns: &[Entry], only_answers: bool) -> Option<Reverse<(u32, TurnIndex)>> {
        while let Some(&lowest) = self.ready.peek() {
            let Reverse((_, turn)) = lowest;
            let entry = &turns[turn.get()];
            let may_start = entry.answers_failure || !only_answers;
            if entry.state == State::Waiting && entry.n_waits == 0 && may_start {
                return Some(lowest);
            }
            self.ready.pop();
        }
        None
    }
}

/// A turn at another node that counts for a node with added turns.
#[derive(Debug, Clone, Copy)]
pub struct CoveringTurn {
    pub turn: TurnIndex,
    /// Whether others wait for it only while it runs, and it waits for no added turn: with its constraints at its own
    /// node, that could close a cycle.
    pub is_loose: bool,
}

#[cfg(test)]
mod tests;
