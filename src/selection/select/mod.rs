//! Which stacks a command acts on, and why: one selector for all commands.
//!
//! All stacks → changed → current directory → globs and names → tags → `wants` and `wanted_by` →
//! neighbours in the graph → `wants` and `wanted_by` of these. What a selected stack wants is selected
//! transitively and whatever the other steps say. What is excluded is selected by none of them.

mod filter;
mod wants;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

pub use self::filter::{DirectoryMatch, NamedStacks, Obstacle, PathFilter, Query};
use self::wants::Wants;
use crate::change::trigger::Trigger;
use crate::change::{ChangeCause, Since};
use crate::path::ProjectPath;
use crate::project::stack::{StackIndex, Stacks};
use crate::project::tag::TagFilter;
use crate::selection::graph::{Graph, NeighbourStep, Towards};
use crate::selection::reference::References;
use crate::source::Span;

/// What to do with the neighbours of what is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Select them instead.
    Only,
    /// Select them as well.
    Include,
    /// Do not select them.
    Exclude,
}

/// A query for stacks around those that are selected without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// What to do with them.
    pub verb: Verb,
    /// Which way they lie.
    pub towards: Towards,
    /// How many steps away at most; any number if absent.
    pub depth: Option<NonZeroU32>,
}

/// As a flag: `--include-dependents=1`.
impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            Verb::Only => "only",
            Verb::Include => "include",
            Verb::Exclude => "exclude",
        };
        let towards = match self.towards {
            Towards::Dependencies => "dependencies",
            Towards::Dependents => "dependents",
        };
        write!(f, "--{verb}-{towards}")?;
        match self.depth {
            Some(depth) => write!(f, "={depth}"),
            None => Ok(()),
        }
    }
}

/// Why a stack is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It has changed.
    Changed(ChangeCause),
    /// A trigger wants it to count as changed.
    Triggered(Trigger),
    /// It lies at or below the directory, or is the stack at it.
    Directory(ProjectPath, DirectoryMatch),
    /// `--match` with this text means it.
    Glob(String),
    /// It is named there, on this line.
    Named(String, usize),
    /// It matches a tag filter of the command line.
    Tags(TagFilter),
    /// A selected stack names it in `wants`.
    Wants(StackIndex, Span),
    /// It names a selected stack in `wanted_by`.
    WantedBy(StackIndex, Span),
    /// It is a neighbour of what is selected without it, by this step.
    Neighbour(Reach, NeighbourStep),
}

/// The stacks that a command acts on, each with the reasons it is in.
#[derive(Debug, Default)]
pub struct Selection {
    stacks: BTreeMap<StackIndex, Vec<Reason>>,
    /// What was selected until its neighbours were looked at.
    dropped: BTreeMap<StackIndex, Obstacle>,
    since: Option<Since>,
}

impl Selection {
    /// Takes over what was selected for an earlier run, whose reasons are not known any more.
    pub fn recorded(stacks: impl IntoIterator<Item = StackIndex>) -> Self {
        Selection {
            stacks: stacks
                .into_iter()
                .map(|stack| (stack, Vec::new()))
                .collect(),
            ..Selection::default()
        }
    }

    /// Returns the stacks in path order.
    pub fn stacks(&self) -> impl Iterator<Item = StackIndex> {
        self.stacks.keys().copied()
    }

    /// Returns what changes are measured from, where only what has changed was wanted.
    pub fn since(&self) -> Option<&Since> {
        self.since.as_ref()
    }

    /// Returns how many stacks are selected.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Returns whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Returns whether a stack is selected.
    pub fn contains(&self, stack: StackIndex) -> bool {
        self.stacks.contains_key(&stack)
    }

    /// Returns why a stack is selected; nothing if it is not. What the filters let pass has their
    /// reasons; what is only wanted names the nearest stack that wants it.
    pub fn reasons(&self, stack: StackIndex) -> &[Reason] {
        self.stacks.get(&stack).map_or(&[], Vec::as_slice)
    }

    /// Returns why a stack is not selected that the filters and `wants` select.
    pub fn dropped(&self, stack: StackIndex) -> Option<&Obstacle> {
        self.dropped.get(&stack)
    }
}

/// Selects the stacks that a query means.
pub fn select(stacks: &Stacks, references: &References, graph: &Graph, query: &Query) -> Selection {
    let passing = stacks
        .iter()
        .filter_map(|(index, stack)| Some((index, query.passes(index, stack)?)));
    let mut selection = Selection {
        stacks: passing.collect(),
        dropped: BTreeMap::new(),
        since: query.changed.as_ref().map(|changes| changes.since.clone()),
    };
    let wants = Wants::new(stacks, references);
    wants.close(query, &mut selection);
    if !query.neighbours.is_empty() {
        apply_neighbours(stacks, graph, query, &mut selection);
        wants.close(query, &mut selection);
    }
    selection
}

/// Looks at the graph around the selection: "only" and "include" both at what the steps before have
/// selected, "exclude" at what these two leave.
fn apply_neighbours(stacks: &Stacks, graph: &Graph, query: &Query, selection: &mut Selection) {
    let around =
        |verb: Verb, selection: &Selection| -> Vec<(Reach, BTreeMap<StackIndex, NeighbourStep>)> {
            let wanted = query.neighbours.iter().filter(|reach| reach.verb == verb);
            let reached = |&reach: &Reach| {
                let steps = graph.neighbours(selection.stacks(), reach.towards, reach.depth);
                (reach, steps)
            };
            wanted.map(reached).collect()
        };
    let include = around(Verb::Include, selection);
    let only = around(Verb::Only, selection);
    if !only.is_empty() {
        let mut before = std::mem::take(&mut selection.stacks);
        for (reach, steps) in &only {
            for (&stack, &step) in steps {
                if !query.excludes(&stacks[stack]) {
                    let known = || before.remove(&stack).unwrap_or_default();
                    let reasons = selection.stacks.entry(stack).or_insert_with(known);
                    reasons.push(Reason::Neighbour(*reach, step));
                }
            }
        }
        let obstacle = Obstacle::Only(only[0].0);
        let dropped = before.into_keys().map(|stack| (stack, obstacle.clone()));
        selection.dropped = dropped.collect();
    }
    for (reach, steps) in include {
        for (stack, step) in steps {
            if !query.excludes(&stacks[stack]) {
                let reason = || vec![Reason::Neighbour(reach, step)];
                selection.stacks.entry(stack).or_insert_with(reason);
                selection.dropped.remove(&stack);
            }
        }
    }
    for (reach, steps) in around(Verb::Exclude, selection) {
        for (stack, step) in steps {
            if selection.stacks.remove(&stack).is_some() {
                let obstacle = Obstacle::Neighbour(reach, step);
                selection.dropped.insert(stack, obstacle);
            }
        }
    }
}
