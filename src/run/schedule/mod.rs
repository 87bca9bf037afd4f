//! Which turn may start now: a state machine without processes, threads or time.
//!
//! The whole order of `orch` is in [`Schedule::start_next`]: among the turns that may run, the one of
//! lowest rank. Its caller says how each turn ended: the serial order, `list --order` and a run are
//! three such callers. Turns stand at nodes of a [`Precedence`]. Nodes without a turn (stacks
//! that are not selected, groups of stacks) count as done as soon as everything before them is, so
//! constraints hold through them.
//!
//! That a turn has ended and what that means for others are two moments, [`Schedule::finish`] and
//! [`Schedule::settle`]: a failed turn may be tried again by another turn, which is added in between.

mod answers;
mod elsewhere;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::num::NonZeroUsize;

pub use self::elsewhere::CoveringTurn;
use crate::run::turn::TurnIndex;
use crate::selection::graph::Precedence;

/// What happens after a turn failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// Nothing new starts.
    Stop,
    /// Everything that transitively runs after it is skipped; the rest runs.
    SkipDependents,
    /// Everything else runs.
    Continue,
}

/// At most this many turns at some nodes run at once.
#[derive(Debug, Clone)]
pub struct Limit {
    /// How many.
    pub at_once: NonZeroUsize,
    pub nodes: Vec<usize>,
}

/// A turn that will not run, since another one failed that it runs after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    pub turn: TurnIndex,
    /// The failed one.
    pub cause: TurnIndex,
}

/// How far the turns of a run have come.
#[derive(Debug)]
pub struct Schedule {
    precedence: Precedence,
    /// The same turned round, from the first turn on that is added.
    reversed: Option<Precedence>,
    on_error: OnError,
    /// How many more turns may run now, in all and under each limit.
    free: usize,
    limits: Vec<usize>,
    /// Nodes under the same limits.
    classes: Vec<Class>,
    /// The class of each node.
    class: Vec<u32>,
    /// Unfinished predecessors, by node.
    pending: Vec<u32>,
    /// The failed turn that a node waits for in vain, by node.
    blocked_by: Vec<Option<TurnIndex>>,
    /// The turn that a node had from the beginning, by node.
    first: Vec<Option<TurnIndex>>,
    /// Turns at other nodes that count for a node where turns are added.
    elsewhere: BTreeMap<usize, Vec<CoveringTurn>>,
    /// The turns that were added at a node.
    added: BTreeMap<usize, Vec<TurnIndex>>,
    turns: Vec<Entry>,
    /// Turns that have neither ended nor been skipped.
    n_left: usize,
    /// Failed turns whose meaning for others is not known yet.
    n_open_failures: usize,
    skipped: Vec<Skipped>,
    stopped: Option<Stop>,
}

/// What no longer starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// What does not answer a failure.
    AfterFailure,
    /// Anything.
    Entirely,
}

#[derive(Debug, Default)]
struct Class {
    /// Indices into the limits.
    limits: Vec<usize>,
    /// Turns by rank. Those that have come to wait for an added one leave when they are met.
    ready: BinaryHeap<Reverse<(u32, TurnIndex)>>,
}

/// What is known of one turn.
#[derive(Debug)]
struct Entry {
    node: usize,
    /// Lower goes first.
    rank: u32,
    state: State,
    /// For how much it waits: its node, if it was there from the beginning, and other turns.
    n_waits: u32,
    /// The failed turn that it waits for in vain.
    blocked_by: Option<TurnIndex>,
    /// Whether it answers a failure: it runs behind a failed turn, and after a failure that stops others.
    answers_failure: bool,
    /// Turns that wait for it besides the nodes behind its own, and whether a failure reaches them.
    holds: Vec<(TurnIndex, bool)>,
}

/// How far one turn has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    /// It has ended, and what that means is not known.
    Ended {
        succeeded: bool,
    },
    /// What it means is known: everything behind it may go on, or waits in vain for this turn.
    Over(Option<TurnIndex>),
}

/// What has been done, so that others may go on.
#[derive(Debug, Clone, Copy)]
enum Done {
    Node(usize),
    Turn(TurnIndex),
}

impl Schedule {
    /// Starts with nothing run, for a serial run that a failure stops. Each turn is given by its node,
    /// where it is the only one, and its rank, which breaks ties: the lower goes first.
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

    /// Lets this many turns run at once, and at some nodes no more than their limits. To be called
    /// before anything has started.
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

    /// Records that a started turn has ended, and gives back its slot. Others go on, or do not, once
    /// it is settled.
    pub fn finish(&mut self, turn: TurnIndex, succeeded: bool) {
        self.leave_slot(turn, State::Ended { succeeded });
        self.n_left -= 1;
        self.n_open_failures += usize::from(!succeeded);
    }

    /// Settles what a turn that has ended means for others: those behind it go on as after a success,
    /// or as after a failure. Returns the turns that will not run because of it, in no special order.
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

    /// Adds a turn at a node, whether or not it has one. It waits for all turns at and before its
    /// node that have not been settled, and what has not started behind its node waits for it, through
    /// whatever lies between. Returns its number, and the turns that will not run because of a failure
    /// before it, itself among them, unless it answers a failure.
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

    /// Returns whether nothing starts because it was stopped, or nothing but answers to a failure.
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

    /// Returns whether a turn has ended, and what that means for others is not known.
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

    /// Lets everything go on that waited for nothing but what is done.
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

    /// Everything before a node is done: its turn waits no longer for that, or the node is done too.
    fn open(&mut self, node: usize) -> Option<Done> {
        match self.first[node] {
            Some(turn) => self.release(turn, self.blocked_by[node]),
            None => Some(Done::Node(node)),
        }
    }

    /// A turn has one thing less to wait for, or waited for it in vain.
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

    /// Queues a turn that waits for nothing, or skips it, which is done by that.
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
}

impl Class {
    /// Returns the turn to start first, if there is one. Those that have come to wait for another one
    /// since they were queued are dropped: they are queued again. If only answers to a failure count, so are
    /// all others.
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

#[cfg(test)]
mod tests;
