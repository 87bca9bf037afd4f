//! The whole story of one stack: what selects it or leaves it out, what would select it, and what it
//! runs after and before.
//!
//! All of it is known to the other stages; here it is only put together. How it is worded is known to
//! [`crate::report`].

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::change::Input;
use crate::graph::{Graph, Origin, Towards};
use crate::project::Project;
use crate::reference::{ReferenceKind, References};
use crate::select::{Obstacle, Reach, Reason, Selection, Verb, Wish, select};
use crate::source::Span;
use crate::stack::StackIndex;

/// What is asked: why a stack is selected, or why not.
#[derive(Debug)]
pub struct Question<'a> {
    /// The project.
    pub project: &'a Project,
    /// Its references.
    pub references: &'a References,
    /// Its constraints.
    pub graph: &'a Graph,
    /// What is asked for.
    pub wish: &'a Wish,
    /// What that selects.
    pub selection: &'a Selection,
    /// The stack.
    pub stack: StackIndex,
}

/// The story of a stack under a wish.
#[derive(Debug)]
pub struct Why {
    /// What leaves it out, in the order of the pipeline; nothing if it is selected.
    pub obstacles: Vec<Obstacle>,
    /// What it depends on.
    pub inputs: Vec<Input>,
    /// The stacks that it runs after, by path, each with all who say so; selected or not.
    pub after: BTreeMap<StackIndex, Vec<Origin>>,
    /// The stacks that it runs before.
    pub before: BTreeMap<StackIndex, Vec<Origin>>,
    /// Flags that must be left out for any of the ways to lead there.
    pub in_the_way: Vec<Hindrance>,
    /// What would select it, besides passing the filters.
    pub ways: Vec<Way>,
}

/// A flag that takes stacks away, whatever selects them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hindrance {
    /// `--exclude` with this text.
    Exclude(String),
    /// A wish for neighbours only, or against them.
    Neighbours(Reach),
}

/// Something that would select a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// To select this stack, which wants it there.
    Wants(StackIndex, Span),
    /// To select what it names there in `wanted_by`.
    WantedBy(Span),
    /// To add this flag: the stack lies that way of this one, which the steps before select.
    Neighbour(Reach, StackIndex),
}

impl Way {
    /// Says whether this is what has selected the stack.
    fn is(&self, reason: &Reason) -> bool {
        match (self, reason) {
            (Way::Wants(_, way), Reason::Wants(_, taken))
            | (Way::WantedBy(way), Reason::WantedBy(_, taken)) => way == taken,
            _ => false,
        }
    }
}

impl Question<'_> {
    /// Puts the story together. The inputs are the stack's.
    pub fn answer(&self, inputs: Vec<Input>) -> Why {
        let Question {
            project,
            graph,
            wish,
            selection,
            stack,
            ..
        } = *self;
        let is_selected = selection.contains(stack);
        let obstacles = match selection.dropped(stack) {
            _ if is_selected => Vec::new(),
            Some(obstacle) => vec![obstacle.clone()],
            None => wish.obstacles(stack, &project.stacks[stack]),
        };
        let mut in_the_way = Vec::new();
        let mut ways = self.wanted();
        // That it is wanted by what is selected has been said.
        let reasons = selection.reasons(stack);
        ways.retain(|way| !reasons.iter().any(|reason| way.is(reason)));
        if !is_selected {
            let excluding = obstacles.iter().filter_map(|obstacle| match obstacle {
                Obstacle::Excluded(globs) => Some(globs),
                _ => None,
            });
            in_the_way.extend(excluding.flatten().cloned().map(Hindrance::Exclude));
            let verbs = wish.neighbours.iter();
            let verbs = verbs.filter(|reach| reach.verb != Verb::Include);
            in_the_way.extend(verbs.map(|&reach| Hindrance::Neighbours(reach)));
            ways.extend(self.by_neighbours());
        }
        Why {
            obstacles,
            inputs,
            after: graph.constraints(stack, Towards::Dependencies),
            before: graph.constraints(stack, Towards::Dependents),
            in_the_way,
            ways,
        }
    }

    /// Returns the references by which another stack would bring this one along.
    fn wanted(&self) -> Vec<Way> {
        let Question { references, .. } = self;
        let names_it = |from: StackIndex, target| {
            from != self.stack && references.means(target, self.stack, &self.project.stacks)
        };
        let ways = references.list.iter().filter_map(|reference| {
            let (from, span) = (reference.from, reference.span);
            match reference.kind {
                ReferenceKind::Wants if names_it(from, &reference.target) => {
                    Some(Way::Wants(from, span))
                }
                ReferenceKind::WantedBy if from == self.stack => Some(Way::WantedBy(span)),
                _ => None,
            }
        });
        ways.collect()
    }

    /// Returns the flags that would bring the stack along with one that is selected.
    fn by_neighbours(&self) -> Vec<Way> {
        // These flags start from what is selected without any of them.
        let without;
        let start = if self.wish.neighbours.is_empty() {
            self.selection
        } else {
            let neighbours = Vec::new();
            let wish = Wish {
                neighbours,
                ..self.wish.clone()
            };
            without = select(&self.project.stacks, self.references, self.graph, &wish);
            &without
        };
        let ways = [
            (Towards::Dependencies, Towards::Dependents),
            (Towards::Dependents, Towards::Dependencies),
        ];
        let ways = ways.into_iter().filter_map(|(there, back)| {
            let around = |depth| self.graph.neighbours([self.stack], there, depth);
            let is_start = |it: &StackIndex| *it != self.stack && start.contains(*it);
            let next = around(Some(NonZeroU32::MIN)).into_keys().find(is_start);
            let nearest = next.or_else(|| around(None).into_keys().find(is_start))?;
            let reach = Reach {
                verb: Verb::Include,
                towards: back,
                depth: None,
            };
            Some(Way::Neighbour(reach, nearest))
        });
        ways.collect()
    }
}
