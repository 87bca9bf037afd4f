//! Which stacks a command acts on, and why: one selector for all commands.
//!
//! All stacks → changed or released → current directory → globs and names → tags → `wants` and `wanted_by` →
//! neighbours in the graph → `wants` and `wanted_by` of these. Stacks wanted by a selected stack are selected
//! transitively and regardless of the other steps. No step selects an excluded stack.

mod filter;
mod path_filter;
mod wants;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

pub use self::filter::{DirectoryMatch, NamedStacks, Obstacle, Query, RecordedQuery};
pub use self::filter::{Released, ReleasedQuery};
pub use self::path_filter::PathFilter;
use self::wants::Wants;
use crate::change::trigger::Trigger;
use crate::change::{Baseline, ChangeCause, StackStatus};
use crate::path::ProjectPath;
use crate::project::stack::{StackIndex, Stacks};
use crate::project::tag::TagFilter;
use crate::selection::graph::{Graph, NeighbourStep, SearchDirection};
use crate::selection::reference::References;
use crate::source::Span;

/// What a flag does with the neighbours of selected stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeighbourChoice {
    /// Selects them instead.
    Only,
    Include,
    Exclude,
}

/// The graph in which a flag looks for neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachBy {
    Order,
    /// That of the data which stacks use of each other.
    Data,
}

/// A neighbour flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    pub verb: NeighbourChoice,
    pub by: ReachBy,
    pub towards: SearchDirection,
    /// The maximum number of steps; unlimited if `None`.
    pub depth: Option<NonZeroU32>,
}

/// As a flag: `--include-dependents=1`, or `--include-all-dependents=1` for data.
impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            NeighbourChoice::Only => "only",
            NeighbourChoice::Include => "include",
            NeighbourChoice::Exclude => "exclude",
        };
        let towards = match self.towards {
            SearchDirection::Dependencies => "dependencies",
            SearchDirection::Dependents => "dependents",
        };
        let all = match self.by {
            ReachBy::Order => "",
            ReachBy::Data => "all-",
        };
        write!(f, "--{verb}-{all}{towards}")?;
        match self.depth {
            Some(depth) => write!(f, "={depth}"),
            None => Ok(()),
        }
    }
}

/// Why a stack is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectionReason {
    Changed(ChangeCause),
    /// A trigger makes it count as changed.
    Triggered(Trigger),
    /// Policies name it at the release of a module.
    Released(Box<Released>),
    Status(StackStatus),
    /// It is at or below the directory, or exactly at it.
    Directory(ProjectPath, DirectoryMatch),
    /// It matches this argument of `--match`.
    Glob(String),
    /// The list names it, on this line.
    Named(String, usize),
    /// It matches a tag filter of the command line.
    Tags(TagFilter),
    /// A selected stack names it in `wants`.
    Wants(StackIndex, Span),
    /// It names a selected stack in `wanted_by`.
    WantedBy(StackIndex, Span),
    /// It is a neighbour of a stack that is selected without it, by this step.
    Neighbour(Reach, NeighbourStep),
}

/// The selected stacks, each with the reasons.
#[derive(Debug, Default)]
pub struct Selection {
    stacks: BTreeMap<StackIndex, Vec<SelectionReason>>,
    /// The stacks that were selected before neighbours were considered.
    dropped: BTreeMap<StackIndex, Obstacle>,
    since: Option<Baseline>,
}

impl Selection {
    /// Returns the selection of an earlier run, without reasons.
    pub fn recorded(stacks: impl IntoIterator<Item = StackIndex>) -> Self {
        Selection {
            stacks: stacks
                .into_iter()
                .map(|stack| (stack, Vec::new()))
                .collect(),
            ..Selection::default()
        }
    }

    /// Returns the selection without the stacks for which a condition does not hold.
    #[must_use]
    pub fn only(&self, is_kept: impl Fn(StackIndex) -> bool) -> Self {
        let mut stacks = self.stacks.clone();
        stacks.retain(|stack, _| is_kept(*stack));
        Selection {
            stacks,
            dropped: self.dropped.clone(),
            since: self.since.clone(),
        }
    }

    /// Returns the stacks in path order.
    pub fn stacks(&self) -> impl Iterator<Item = StackIndex> {
        self.stacks.keys().copied()
    }

    /// Returns the base of changes, if only changed stacks were wanted.
    pub fn since(&self) -> Option<&Baseline> {
        self.since.as_ref()
    }

    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    pub fn contains(&self, stack: StackIndex) -> bool {
        self.stacks.contains_key(&stack)
    }

    /// Returns why a stack is selected; empty if it is not. A stack that passes the filters has their
    /// reasons; one that is only wanted names the nearest stack that wants it.
    pub fn reasons(&self, stack: StackIndex) -> &[SelectionReason] {
        self.stacks.get(&stack).map_or(&[], Vec::as_slice)
    }

    /// Returns why a stack that the filters and `wants` select is not selected.
    pub fn dropped(&self, stack: StackIndex) -> Option<&Obstacle> {
        self.dropped.get(&stack)
    }
}

pub fn select(stacks: &Stacks, references: &References, graph: &Graph, query: &Query) -> Selection {
    let passing = stacks
        .iter()
        .filter_map(|(index, stack)| Some((index, query.passes(index, stack)?)));
    let mut selection = Selection {
        stacks: passing.collect(),
        dropped: BTreeMap::new(),
        since: query.since(),
    };
    let wants = Wants::new(stacks, references);
    wants.close(query, &mut selection);
    if !query.neighbours.is_empty() {
        apply_neighbours(stacks, graph, query, &mut selection);
        wants.close(query, &mut selection);
    }
    selection
}

/// Applies the neighbour flags: "only" and "include" start from the result of the earlier steps, "exclude"
/// from the result of these two.
fn apply_neighbours(stacks: &Stacks, graph: &Graph, query: &Query, selection: &mut Selection) {
    let data = OnceCell::new();
    let around = |verb: NeighbourChoice,
                  selection: &Selection|
     -> Vec<(Reach, BTreeMap<StackIndex, NeighbourStep>)> {
        let wanted = query.neighbours.iter().filter(|reach| reach.verb == verb);
        let reached = |&reach: &Reach| {
            let graph = match reach.by {
                ReachBy::Order => graph,
                ReachBy::Data => data.get_or_init(|| Graph::of_data(stacks)),
            };
            let steps = graph.neighbours(selection.stacks(), reach.towards, reach.depth);
            (reach, steps)
        };
        wanted.map(reached).collect()
    };
    let include = around(NeighbourChoice::Include, selection);
    let only = around(NeighbourChoice::Only, selection);
    if !only.is_empty() {
        let mut before = std::mem::take(&mut selection.stacks);
        for (reach, steps) in &only {
            for (&stack, &step) in steps {
                if !query.excludes(&stacks[stack]) {
                    let known = || before.remove(&stack).unwrap_or_default();
                    let reasons = selection.stacks.entry(stack).or_insert_with(known);
                    reasons.push(SelectionReason::Neighbour(*reach, step));
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
                let reason = || vec![SelectionReason::Neighbour(reach, step)];
                selection.stacks.entry(stack).or_insert_with(reason);
                selection.dropped.remove(&stack);
            }
        }
    }
    for (reach, steps) in around(NeighbourChoice::Exclude, selection) {
        for (stack, step) in steps {
            if selection.stacks.remove(&stack).is_some() {
                let obstacle = Obstacle::Neighbour(reach, step);
                selection.dropped.insert(stack, obstacle);
            }
        }
    }
}
