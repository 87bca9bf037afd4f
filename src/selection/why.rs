//! Explains one stack: what selects or excludes it, what would select it, and its dependencies and
//! dependents.
//!
//! The facts come from the other stages and are collected here; `report` words them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::change::Input;
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::selection::graph::{Graph, Origin, RelatedStack, SearchDirection};
use crate::selection::reference::{ReferenceKind, References};
use crate::selection::select::{
    NeighbourChoice, Obstacle, Query, Reach, ReachBy, Selection, SelectionReason, select,
};
use crate::source::Span;

/// A constraint of a [`chain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainLink {
    pub later: StackIndex,
    pub earlier: StackIndex,
    pub origin: Origin,
}

/// Returns a shortest chain of constraints by which `later` runs after `earlier`, starting at `later`; `None`
/// if there is none.
pub fn chain(graph: &Graph, later: StackIndex, earlier: StackIndex) -> Option<Vec<ChainLink>> {
    let steps = graph.neighbours([later], SearchDirection::Dependencies, None);
    let mut links = Vec::new();
    let mut at = earlier;
    loop {
        let step = steps.get(&at)?;
        links.push(ChainLink {
            later: step.from,
            earlier: at,
            origin: step.origin,
        });
        at = step.from;
        if at == later {
            links.reverse();
            return Some(links);
        }
    }
}

/// The question why a stack is selected or not.
pub struct WhyQuestion<'a> {
    pub project: &'a Project,
    pub references: &'a References,
    pub graph: &'a Graph,
    pub query: &'a Query,
    pub selection: &'a Selection,
    pub stack: StackIndex,
}

/// The answer: why a query selects a stack or not.
pub struct Why {
    /// The reasons against it, in the order of the pipeline; empty if it is selected.
    pub obstacles: Vec<Obstacle>,
    pub inputs: Vec<Input>,
    /// The stacks that it runs after, selected or not, by path, each with the origins of the constraints.
    pub after: BTreeMap<StackIndex, Vec<Origin>>,
    pub before: BTreeMap<StackIndex, Vec<Origin>>,
    /// The selected stacks that it runs after only through unselected ones.
    pub after_through: Vec<RelatedStack>,
    /// The selected stacks that it runs before only through unselected ones.
    pub before_through: Vec<RelatedStack>,
    /// Flags whose removal selects the stack, if no obstacle is a filter.
    pub in_the_way: Vec<BlockingFlag>,
    /// What would select it then, besides passing the filters.
    pub ways: Vec<Alternative>,
}

/// A flag that excludes stacks regardless of what selects them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockingFlag {
    /// `--exclude` with this argument.
    Exclude(String),
    /// A flag that keeps only neighbours, or drops them.
    Neighbours(Reach),
}

/// Something that would select a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alternative {
    /// To select this stack, which wants it there.
    Wants(StackIndex, Span),
    /// To select this stack, which it names there in `wanted_by`.
    WantedBy(StackIndex, Span),
    /// To add this flag: the stack is a neighbour of this one, which the earlier steps select. It replaces
    /// the same flag with a smaller depth, if there is one.
    Neighbour(Reach, StackIndex, Option<Reach>),
}

impl Alternative {
    fn is(&self, reason: &SelectionReason) -> bool {
        match (self, reason) {
            (Alternative::Wants(_, way), SelectionReason::Wants(_, taken))
            | (Alternative::WantedBy(_, way), SelectionReason::WantedBy(_, taken)) => way == taken,
            _ => false,
        }
    }
}

impl WhyQuestion<'_> {
    /// Answers the question, given the inputs of the stack.
    pub fn answer(&self, inputs: Vec<Input>) -> Why {
        let WhyQuestion {
            project,
            graph,
            query,
            selection,
            stack,
            ..
        } = *self;
        let is_selected = selection.contains(stack);
        let mut obstacles = match selection.dropped(stack) {
            _ if is_selected => Vec::new(),
            Some(obstacle) => vec![obstacle.clone()],
            None => query.obstacles(stack, &project.stacks[stack]),
        };
        let mut in_the_way = Vec::new();
        let mut ways = Vec::new();
        if is_selected {
            // With neighbour flags, `wants` alone does not select it; and reasons are not repeated.
            if self
                .reaches(&[NeighbourChoice::Only, NeighbourChoice::Exclude])
                .next()
                .is_none()
            {
                ways = self.wanted();
            }
            let reasons = selection.reasons(stack);
            ways.retain(|way| !reasons.iter().any(|reason| way.is(reason)));
        } else if let Some(flags) = self.enough_to_leave_out(&obstacles) {
            in_the_way = flags;
            obstacles.retain(|obstacle| !obstacle.is_filter());
            if obstacles.is_empty() {
                let reaches = in_the_way.iter().filter_map(|flag| match flag {
                    BlockingFlag::Neighbours(reach) => Some(*reach),
                    BlockingFlag::Exclude(_) => None,
                });
                obstacles.push(Obstacle::Unreached(reaches.collect()));
            }
        } else {
            in_the_way = excludes(&obstacles);
            in_the_way.extend(self.reaches(&[NeighbourChoice::Only, NeighbourChoice::Exclude]));
            ways = self.wanted();
            ways.extend(self.by_neighbours());
        }
        let after = graph.constraints(stack, SearchDirection::Dependencies);
        let before = graph.constraints(stack, SearchDirection::Dependents);
        Why {
            obstacles,
            inputs,
            after_through: self.through(SearchDirection::Dependencies, &after),
            before_through: self.through(SearchDirection::Dependents, &before),
            after,
            before,
            in_the_way,
            ways,
        }
    }

    /// Returns the selected stacks that are ordered with this one only through unselected stacks.
    fn through(
        &self,
        towards: SearchDirection,
        next: &BTreeMap<StackIndex, Vec<Origin>>,
    ) -> Vec<RelatedStack> {
        let is_selected = |stack| self.selection.contains(stack);
        let mut relatives = self.graph.relatives(self.stack, towards, is_selected);
        relatives.retain(|relative| !next.contains_key(&relative.stack));
        relatives
    }

    /// Returns flags whose removal selects the stack, of as few kinds as possible.
    fn enough_to_leave_out(&self, obstacles: &[Obstacle]) -> Option<Vec<BlockingFlag>> {
        let excludes = excludes(obstacles);
        let verbs: [&[NeighbourChoice]; 4] = [
            &[],
            &[NeighbourChoice::Exclude],
            &[NeighbourChoice::Only],
            &[NeighbourChoice::Only, NeighbourChoice::Exclude],
        ];
        let mut tried = Vec::new();
        verbs.into_iter().find_map(|verbs| {
            let mut flags = excludes.clone();
            flags.extend(self.reaches(verbs));
            if flags.is_empty() || tried.contains(&flags) {
                return None;
            }
            let query = self.without(&flags);
            let WhyQuestion { project, .. } = self;
            let selection = select(&project.stacks, self.references, self.graph, &query);
            tried.push(flags.clone());
            selection.contains(self.stack).then_some(flags)
        })
    }

    fn without(&self, flags: &[BlockingFlag]) -> Query {
        let mut query = self.query.clone();
        for flag in flags {
            match flag {
                BlockingFlag::Exclude(glob) => query.exclude.retain(|it| it.to_string() != *glob),
                BlockingFlag::Neighbours(reach) => query.neighbours.retain(|it| it != reach),
            }
        }
        query
    }

    fn reaches(&self, verbs: &[NeighbourChoice]) -> impl Iterator<Item = BlockingFlag> {
        let reaches = self
            .query
            .neighbours
            .iter()
            .filter(|reach| verbs.contains(&reach.verb));
        reaches.map(|&reach| BlockingFlag::Neighbours(reach))
    }

    /// Returns the references by which another stack would select this one.
    fn wanted(&self) -> Vec<Alternative> {
        let WhyQuestion {
            project: Project { stacks, .. },
            references,
            stack,
            ..
        } = *self;
        let can_be_selected =
            |other: StackIndex| other != stack && !self.query.excludes(&stacks[other]);
        let ways = references.list.iter().filter_map(|reference| {
            let (from, span) = (reference.from, reference.span);
            match reference.kind {
                ReferenceKind::Wants => {
                    let names_it = references.names(reference, stack, stacks);
                    (names_it && can_be_selected(from)).then_some(Alternative::Wants(from, span))
                }
                ReferenceKind::WantedBy if from == stack => {
                    let named = references.named(reference, stacks);
                    let named = named.into_iter().find(|&named| can_be_selected(named))?;
                    Some(Alternative::WantedBy(named, span))
                }
                _ => None,
            }
        });
        ways.collect()
    }

    /// Returns the flags that would select the stack as a neighbour of a selected one.
    fn by_neighbours(&self) -> Vec<Alternative> {
        // The flags start from the selection without any of them.
        let without;
        let start = if self.query.neighbours.is_empty() {
            self.selection
        } else {
            let neighbours = Vec::new();
            let query = Query {
                neighbours,
                ..self.query.clone()
            };
            without = select(&self.project.stacks, self.references, self.graph, &query);
            &without
        };
        let ways = [
            (SearchDirection::Dependencies, SearchDirection::Dependents),
            (SearchDirection::Dependents, SearchDirection::Dependencies),
        ];
        let ways = ways.into_iter().filter_map(|(there, back)| {
            let around = self
                .graph
                .neighbours([self.stack], there, None)
                .into_iter()
                .filter(|&(it, _)| it != self.stack && start.contains(it));
            let (other, step) = around.min_by_key(|&(it, step)| (step.distance, it))?;
            let reach = Reach {
                verb: NeighbourChoice::Include,
                by: ReachBy::Order,
                towards: back,
                // The smallest depth that reaches the stack.
                depth: NonZeroU32::new(step.distance),
            };
            let mut reaches = self.query.neighbours.iter();
            let is_same =
                |it: &&Reach| (it.verb, it.by, it.towards) == (reach.verb, reach.by, reach.towards);
            Some(Alternative::Neighbour(
                reach,
                other,
                reaches.find(is_same).copied(),
            ))
        });
        ways.collect()
    }
}

fn excludes(obstacles: &[Obstacle]) -> Vec<BlockingFlag> {
    let globs = obstacles.iter().filter_map(|obstacle| match obstacle {
        Obstacle::Excluded(globs) => Some(globs),
        _ => None,
    });
    globs
        .flatten()
        .cloned()
        .map(BlockingFlag::Exclude)
        .collect()
}
