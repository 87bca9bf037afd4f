//! The timeline of a run: the slot of each stack, the stack that it waited for, and the critical
//! path.
//!
//! A journal records when attempts began and how long they took. The rest follows from these and
//! the edges.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::record::journal::{RunRecord, StackRecord};

#[derive(Debug, Default)]
pub(super) struct RunTimeline {
    /// By stack: when it ran, if it did.
    pub(super) times: Vec<Option<Time>>,
    /// For each stack, the length of the longest chain of stacks that run before it.
    pub(super) waves: Vec<usize>,
    /// For each intermediate node, the wave that it follows.
    pub(super) between: Vec<usize>,
    /// The dependencies: first the stacks, then the intermediate nodes.
    pub(super) edges: Vec<(usize, usize)>,
    /// The stacks that decided how long the run took, the first one first.
    pub(super) critical: Vec<usize>,
}

/// When a stack ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Time {
    /// Milliseconds after the run began.
    pub(super) start: i64,
    pub(super) end: i64,
    /// The slot, counted from 0.
    pub(super) slot: usize,
    /// The stack that ended last among those before it, or that occupied its slot.
    pub(super) waited: Option<usize>,
    pub(super) for_slot: bool,
}

impl RunTimeline {
    pub(super) fn new(record: &RunRecord) -> Self {
        let mut course = RunTimeline::default();
        let n_stacks = record.stacks.len();
        let edges = edges(record);
        let nodes = edges.iter().map(|&(from, to)| from.max(to) + 1);
        let n_nodes = nodes.max().unwrap_or(0).max(n_stacks);
        let times: Vec<Option<(i64, i64)>> = record
            .stacks
            .iter()
            .map(|stack| ran(record, stack))
            .collect();

        let mut successors = vec![Vec::new(); n_nodes];
        let mut left = vec![0_usize; n_nodes];
        for &(from, to) in &edges {
            successors[from].push(to);
            left[to] += 1;
        }
        // The stack that ended last before a node; one that did not run passes on its own predecessor.
        let mut last: Vec<Option<usize>> = vec![None; n_nodes];
        let mut level = vec![0; n_nodes];
        let end = |stack: usize| times[stack].map(|(_, end)| end);
        let mut open: Vec<usize> = (0..n_nodes).filter(|&node| left[node] == 0).collect();
        while let Some(node) = open.pop() {
            let is_stack = node < n_stacks;
            let ran = is_stack && times[node].is_some();
            let through = if ran { Some(node) } else { last[node] };
            for &next in &successors[node] {
                let later = |of: usize| last[next].is_none_or(|known| end(known) < end(of));
                if let Some(through) = through.filter(|&of| later(of)) {
                    last[next] = Some(through);
                }
                level[next] = level[next].max(level[node] + usize::from(is_stack));
                left[next] -= 1;
                if left[next] == 0 {
                    open.push(next);
                }
            }
        }
        course.between = level.split_off(n_stacks);
        course.waves = level;
        course.times = in_slots(&times, &last, record.header.settings.jobs);
        course.critical = course.critical();
        course.edges = edges;
        course
    }

    /// Returns the path back from the stack that ended last.
    fn critical(&self) -> Vec<usize> {
        let ran = self
            .times
            .iter()
            .enumerate()
            .filter_map(|(stack, time)| Some((time.as_ref()?.end, stack)));
        let mut path = Vec::new();
        let mut next = ran.max().map(|(_, stack)| stack);
        while let Some(stack) = next {
            path.push(stack);
            next = self.times[stack]
                .and_then(|time| time.waited)
                // The clock may be set back during a run.
                .filter(|_| path.len() < self.times.len());
        }
        path.reverse();
        path
    }
}

/// Returns the edges between stacks, and intermediate nodes numbered after all stacks: turns that were
/// added come after those that the numbers of the journal are about.
fn edges(record: &RunRecord) -> Vec<(usize, usize)> {
    let n_ordered = record.header.order.len();
    let mut between = HashMap::new();
    let mut number = |node: usize| {
        if node < n_ordered {
            return node;
        }
        let next = record.stacks.len() + between.len();
        *between.entry(node).or_insert(next)
    };
    let edges = record.header.edges.iter();
    edges
        .map(|&(from, to)| (number(from), number(to)))
        .collect()
}

fn ran(record: &RunRecord, stack: &StackRecord) -> Option<(i64, i64)> {
    let offset = |time: Timestamp| {
        let since = time.duration_since(record.header.at).as_millis();
        i64::try_from(since).unwrap_or_default().max(0)
    };
    let (first, last) = (stack.attempts.first()?, stack.attempts.last()?);
    let start = offset(first.began);
    let end = match last.elapsed {
        Some(elapsed) => {
            offset(last.began).saturating_add(i64::try_from(elapsed.as_millis()).unwrap_or(0))
        }
        None => offset(record.last),
    };
    Some((start, end.max(start)))
}

/// Gives each stack the lowest slot that is free when it starts.
fn in_slots(
    times: &[Option<(i64, i64)>],
    last: &[Option<usize>],
    jobs: usize,
) -> Vec<Option<Time>> {
    let mut result = vec![None; times.len()];
    let mut starts: Vec<(i64, usize, i64)> = Vec::new();
    for (stack, time) in times.iter().enumerate() {
        starts.extend(time.map(|(start, end)| (start, stack, end)));
    }
    starts.sort_unstable();
    let end_of = |stack: usize| times[stack].map_or(0, |(_, end)| end);
    // The latest stack in each slot.
    let mut slots: Vec<usize> = Vec::new();
    for (start, stack, end) in starts {
        let free = slots.iter().position(|&before| end_of(before) <= start);
        // Times are rounded: if no slot seems free, take the one that becomes free next.
        let next = || {
            let full = slots.len() >= jobs.max(1);
            let slots = slots.iter().enumerate().filter(|_| full);
            slots
                .min_by_key(|(_, before)| end_of(**before))
                .map(|(slot, _)| slot)
        };
        let slot = free.or_else(next).unwrap_or(slots.len());
        let ready = last[stack].map_or(0, end_of);
        let was_free = slots.len() < jobs || slots.iter().any(|&before| end_of(before) <= ready);
        let before = slots.get(slot).copied().filter(|_| !was_free);
        result[stack] = Some(Time {
            start,
            end,
            slot,
            waited: before.or(last[stack]),
            for_slot: before.is_some(),
        });
        match slots.get_mut(slot) {
            Some(before) => *before = stack,
            None => slots.push(stack),
        }
    }
    result
}
