//! Which stack may start now: a state machine without processes, threads or time.
//!
//! The whole order of `orch` is in [`Schedule::start_next`]: among the stacks that may run, the one
//! of lowest rank. Whoever drives it says how each stack ended; the serial order, `list --order` and
//! a run are three ways to drive it. Unselected stacks and groups of stacks count as done as soon as
//! everything before them is, so constraints hold through them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::num::NonZeroUsize;

use crate::project::stack::StackIndex;
use crate::selection::graph::Precedence;

/// What happens after a stack failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// Nothing new starts.
    Stop,
    /// What transitively runs after it is skipped, the rest goes on.
    SkipDependents,
    /// Everything goes on.
    Continue,
}

/// At most this many of some stacks run at once.
#[derive(Debug, Clone)]
pub struct Limit {
    /// How many.
    pub at_once: NonZeroUsize,
    /// Of which stacks.
    pub stacks: Vec<StackIndex>,
}

/// How far the stacks of a run have come.
#[derive(Debug)]
pub struct Schedule {
    precedence: Precedence,
    on_error: OnError,
    /// How many more stacks may run now, in all and under each limit.
    free: usize,
    limits: Vec<usize>,
    /// Stacks under the same limits.
    classes: Vec<Class>,
    /// The class of each stack.
    class: Vec<u32>,
    is_selected: Vec<bool>,
    /// Lower goes first; by stack.
    rank: Vec<u32>,
    /// Unfinished predecessors, by node.
    pending: Vec<u32>,
    /// The failed stack that a node waits for in vain, by node.
    blocked_by: Vec<Option<StackIndex>>,
    state: Vec<State>,
    /// Stacks that have neither ended nor been skipped.
    n_left: usize,
    skipped: Vec<(StackIndex, StackIndex)>,
    is_stopped: bool,
}

#[derive(Debug, Default)]
struct Class {
    /// Indices into the limits.
    limits: Vec<usize>,
    ready: BinaryHeap<Reverse<(u32, u32)>>,
}

/// How far one stack has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Over,
}

impl Schedule {
    /// Starts with nothing run, for a serial run that a failure stops. Ranks break ties, by stack:
    /// the lower goes first.
    pub fn new(
        precedence: Precedence,
        stacks: impl IntoIterator<Item = StackIndex>,
        rank: Vec<u32>,
    ) -> Self {
        let n_nodes = precedence.n_nodes();
        let n_stacks = precedence.n_stacks();
        let mut is_selected = vec![false; n_nodes];
        let mut n_left = 0;
        for stack in stacks {
            is_selected[stack.get()] = true;
            n_left += 1;
        }
        let pending = precedence.pending();
        let free: Vec<usize> = (0..n_nodes).filter(|&node| pending[node] == 0).collect();
        let mut schedule = Schedule {
            precedence,
            on_error: OnError::Stop,
            free: 1,
            limits: Vec::new(),
            classes: vec![Class::default()],
            class: vec![0; n_stacks],
            is_selected,
            rank,
            pending,
            blocked_by: vec![None; n_nodes],
            state: vec![State::Waiting; n_stacks],
            n_left,
            skipped: Vec::new(),
            is_stopped: false,
        };
        schedule.release(free);
        schedule
    }

    /// Says what happens after a failure.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Lets this many stacks run at once, and of some stacks no more than their limits. To be called
    /// before anything has started.
    #[must_use]
    pub fn at_once(mut self, jobs: NonZeroUsize, limits: &[Limit]) -> Self {
        self.free = jobs.get();
        self.limits = limits.iter().map(|limit| limit.at_once.get()).collect();
        let mut limits_of: Vec<Vec<usize>> = vec![Vec::new(); self.class.len()];
        for (index, limit) in limits.iter().enumerate() {
            for stack in &limit.stacks {
                if limits_of[stack.get()].last() != Some(&index) {
                    limits_of[stack.get()].push(index);
                }
            }
        }
        let ready = std::mem::take(&mut self.classes[0].ready);
        let mut known: HashMap<Vec<usize>, u32> = HashMap::from([(Vec::new(), 0)]);
        for (stack, limits) in limits_of.into_iter().enumerate() {
            let next = u32::try_from(known.len()).expect("there are no more classes than stacks");
            self.class[stack] = *known.entry(limits).or_insert_with_key(|limits| {
                self.classes.push(Class {
                    limits: limits.clone(),
                    ready: BinaryHeap::new(),
                });
                next
            });
        }
        for Reverse((rank, stack)) in ready {
            let class = self.class[stack as usize] as usize;
            self.classes[class].ready.push(Reverse((rank, stack)));
        }
        self
    }

    /// Returns the stack to start now, or `None` if none may start before another one ends, or at
    /// all.
    pub fn start_next(&mut self) -> Option<StackIndex> {
        if self.is_stopped || self.free == 0 {
            return None;
        }
        let has_room =
            |class: &&mut Class| class.limits.iter().all(|&limit| self.limits[limit] > 0);
        let classes = self.classes.iter_mut().filter(has_room);
        // The heap has the lowest on top.
        let class = classes.max_by_key(|class| class.ready.peek().copied())?;
        let Reverse((_, node)) = class.ready.pop()?;
        for &limit in &class.limits {
            self.limits[limit] -= 1;
        }
        self.free -= 1;
        let stack = StackIndex(node);
        self.state[stack.get()] = State::Running;
        Some(stack)
    }

    /// Takes note that a started stack has ended. Returns the stacks that will not run because of
    /// it, each with the failed stack that is the cause.
    pub fn finish(&mut self, stack: StackIndex, succeeded: bool) -> Vec<(StackIndex, StackIndex)> {
        let state = std::mem::replace(&mut self.state[stack.get()], State::Over);
        assert!(state == State::Running, "only what was started can end");
        self.n_left -= 1;
        self.free += 1;
        for &limit in &self.classes[self.class[stack.get()] as usize].limits {
            self.limits[limit] += 1;
        }
        if !succeeded {
            match self.on_error {
                OnError::Stop => self.is_stopped = true,
                OnError::SkipDependents => self.blocked_by[stack.get()] = Some(stack),
                OnError::Continue => {}
            }
        }
        self.complete(stack.get());
        std::mem::take(&mut self.skipped)
    }

    /// From now on nothing starts.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Says whether nothing starts any more, because it was stopped or a failure did.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns how many stacks the project has, selected or not.
    pub fn n_stacks(&self) -> usize {
        self.state.len()
    }

    /// Says whether every stack has ended or was skipped.
    pub fn is_over(&self) -> bool {
        self.n_left == 0
    }

    /// Returns the stacks that have not started and will not be skipped, lowest first.
    pub fn waiting(&self) -> impl Iterator<Item = StackIndex> {
        let is_waiting =
            |&stack: &usize| self.is_selected[stack] && self.state[stack] == State::Waiting;
        (0..self.state.len())
            .filter(is_waiting)
            .map(StackIndex::new)
    }

    fn complete(&mut self, node: usize) {
        let mut done = vec![node];
        while let Some(node) = done.pop() {
            let mut freed = Vec::new();
            for position in 0..self.precedence.successors(node).len() {
                let next = self.precedence.successors(node)[position] as usize;
                self.blocked_by[next] = self.blocked_by[next].or(self.blocked_by[node]);
                self.pending[next] -= 1;
                if self.pending[next] == 0 {
                    freed.push(next);
                }
            }
            done.extend(self.admit(freed));
        }
    }

    fn release(&mut self, free: Vec<usize>) {
        for node in self.admit(free) {
            self.complete(node);
        }
    }

    /// Queues those of the freed nodes that are to run, and returns those that are done by that.
    fn admit(&mut self, freed: Vec<usize>) -> Vec<usize> {
        let mut done = Vec::new();
        for node in freed {
            let stack = StackIndex::new(node);
            if !self.is_selected[node] {
                done.push(node);
            } else if let Some(cause) = self.blocked_by[node] {
                self.skipped.push((stack, cause));
                self.state[node] = State::Over;
                self.n_left -= 1;
                done.push(node);
            } else {
                let class = self.class[node] as usize;
                self.classes[class]
                    .ready
                    .push(Reverse((self.rank[node], stack.0)));
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: StackIndex = StackIndex(0);
    const B: StackIndex = StackIndex(1);
    const C: StackIndex = StackIndex(2);

    fn schedule(pairs: &[(u32, u32)], limits: &[Limit]) -> Schedule {
        let precedence = Precedence::from_edges(3, 3, pairs.iter().copied());
        Schedule::new(precedence, [A, B, C], vec![0, 1, 2])
            .on_error(OnError::SkipDependents)
            .at_once(NonZeroUsize::new(3).unwrap(), limits)
    }

    #[test]
    fn a_stack_that_a_limit_names_twice_counts_once() {
        let limit = Limit {
            at_once: NonZeroUsize::new(2).unwrap(),
            stacks: vec![A, A, B, C],
        };
        let mut schedule = schedule(&[], &[limit]);
        assert_eq!(schedule.start_next(), Some(A));
        assert_eq!(schedule.start_next(), Some(B));
        assert_eq!(schedule.start_next(), None);
        schedule.finish(A, true);
        assert_eq!(schedule.start_next(), Some(C));
    }

    #[test]
    fn of_several_causes_the_first_is_told() {
        let mut schedule = schedule(&[(0, 2), (1, 2)], &[]);
        assert_eq!(schedule.start_next(), Some(A));
        assert_eq!(schedule.start_next(), Some(B));
        assert_eq!(schedule.finish(B, false), []);
        assert_eq!(schedule.finish(A, false), [(C, B)]);
        assert!(schedule.is_over());
    }
}
