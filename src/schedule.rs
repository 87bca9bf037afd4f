//! Which stack may start now: a state machine without processes, threads or time.
//!
//! The whole order of `orch` is in [`Schedule::start_next`]: among the stacks that may run, the one
//! of lowest rank. Whoever drives it says how each stack ended; the serial order, `list --order` and
//! a run are three ways to drive it. Unselected stacks and groups of stacks count as done as soon as
//! everything before them is, so constraints hold through them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::Precedence;
use crate::select::Selection;
use crate::stack::StackIndex;

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

/// How far the stacks of a selection have come.
#[derive(Debug)]
pub struct Schedule {
    precedence: Precedence,
    on_error: OnError,
    is_selected: Vec<bool>,
    /// Lower goes first; by stack.
    rank: Vec<u32>,
    /// Unfinished predecessors, by node.
    pending: Vec<u32>,
    /// The failed stack that a node waits for in vain, by node.
    blocked_by: Vec<Option<StackIndex>>,
    ready: BinaryHeap<Reverse<(u32, u32)>>,
    started: Vec<bool>,
    skipped: Vec<(StackIndex, StackIndex)>,
    is_stopped: bool,
}

impl Schedule {
    /// Starts with nothing run. Ranks break ties, by stack: the lower goes first.
    pub fn new(
        precedence: Precedence,
        selection: &Selection,
        rank: Vec<u32>,
        on_error: OnError,
    ) -> Self {
        let n_nodes = precedence.n_nodes();
        let n_stacks = precedence.n_stacks();
        let mut is_selected = vec![false; n_nodes];
        for stack in selection.stacks() {
            is_selected[stack.get()] = true;
        }
        let pending = precedence.pending();
        let free: Vec<usize> = (0..n_nodes).filter(|&node| pending[node] == 0).collect();
        let mut schedule = Schedule {
            precedence,
            on_error,
            is_selected,
            rank,
            pending,
            blocked_by: vec![None; n_nodes],
            ready: BinaryHeap::new(),
            started: vec![false; n_stacks],
            skipped: Vec::new(),
            is_stopped: false,
        };
        schedule.release(free);
        schedule
    }

    /// Returns the stack to start now, or `None` if none may start before another one ends, or at
    /// all.
    pub fn start_next(&mut self) -> Option<StackIndex> {
        if self.is_stopped {
            return None;
        }
        let Reverse((_, node)) = self.ready.pop()?;
        let stack = StackIndex(node);
        self.started[stack.get()] = true;
        Some(stack)
    }

    /// Takes note that a started stack has ended. Returns the stacks that will not run because of
    /// it, each with the failed stack that is the cause.
    pub fn finish(&mut self, stack: StackIndex, succeeded: bool) -> Vec<(StackIndex, StackIndex)> {
        assert!(self.started[stack.get()], "only what was started can end");
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
                done.push(node);
            } else {
                self.ready.push(Reverse((self.rank[node], stack.0)));
            }
        }
        done
    }
}
