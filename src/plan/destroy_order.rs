//! The `destroy-order` safeguard: does a run destroy stacks before, or without, their dependents?

use std::collections::BTreeSet;

use super::order::NamedConstraints;
use super::removal::is_only_forgotten;
use super::{DestroyOutcome, left_behind};
use crate::change::EntryIndex;
use crate::project::Project;
use crate::project::driver::NONE;
use crate::project::stack::{StackIndex, StackMode};
use crate::run::order::Direction;
use crate::run::safeguard::{EarlyDestroy, Violation};
use crate::selection::graph::{Graph, SearchDirection};
use crate::state::document::Document;

pub struct DestroyingRun {
    pub destroyed: BTreeSet<StackIndex>,
    /// The stacks in which it runs other commands.
    pub others: BTreeSet<StackIndex>,
    /// The stacks that the resumed run has destroyed.
    pub done: BTreeSet<StackIndex>,
    pub direction: Direction,
}

impl DestroyingRun {
    /// Returns the violations. Without a document, all stacks of the project count as existing.
    pub fn violations(
        &self,
        project: &Project,
        graph: &Graph,
        document: Option<&Document>,
    ) -> Vec<Violation> {
        let mut violations = Vec::new();
        if self.direction == Direction::Forward {
            let early = self.destroyed_first(project, graph);
            if !early.is_empty() {
                violations.push(Violation::DestroyedFirst(early));
            }
        }
        let kept = self.dependents_kept(project, graph, document);
        if !kept.is_empty() {
            let is_removed = |pair: &EarlyDestroy| project.stacks.named(&pair.dependent).is_none();
            violations.push(Violation::DependentsKept {
                has_removed: kept.iter().any(is_removed),
                pairs: kept,
            });
        }
        violations
    }

    /// Returns stacks destroyed after one that they depend on, each with the closest such stack.
    fn destroyed_first(&self, project: &Project, graph: &Graph) -> Vec<EarlyDestroy> {
        let is_destroyed = |stack: &StackIndex| self.destroyed.contains(stack);
        let start = self.destroyed.iter().copied();
        let after = graph.neighbours(start, SearchDirection::Dependents, None);
        let late = after.iter().filter(|(stack, _)| is_destroyed(stack));
        let path = |stack: StackIndex| project.stacks[stack].path.to_string();
        let pairs = late.map(|(&dependent, step)| {
            let mut before = step.from;
            while !is_destroyed(&before) {
                before = after[&before].from;
            }
            EarlyDestroy {
                dependent: path(dependent),
                destroyed: path(before),
            }
        });
        pairs.collect()
    }

    /// Returns stacks that are kept although a stack that they depend on is destroyed.
    fn dependents_kept(
        &self,
        project: &Project,
        graph: &Graph,
        document: Option<&Document>,
    ) -> Vec<EarlyDestroy> {
        let pairs = document.map(|document| (document, EntryIndex::new(&project.stacks, document)));
        let exists = |stack: StackIndex| {
            if let Some((document, pairs)) = &pairs {
                let entry = pairs.key(stack).and_then(|key| document.stacks.get(key));
                entry.is_some_and(|entry| !is_only_forgotten(entry))
            } else {
                let stack = &project.stacks[stack];
                let driver = stack.driver.as_ref().map(|driver| driver.value.as_str());
                stack.mode != StackMode::Read && driver != Some(NONE)
            }
        };
        let fate = |stack: StackIndex| {
            if self.destroyed.contains(&stack) {
                DestroyOutcome::Destroyed
            } else if self.others.contains(&stack) {
                // The run may create it.
                DestroyOutcome::Kept
            } else if document.is_none() && self.done.contains(&stack) || !exists(stack) {
                DestroyOutcome::Missing
            } else {
                DestroyOutcome::Kept
            }
        };
        let of_gone = |key: &str| {
            let entry = document.and_then(|document| document.stacks.get(key));
            if entry.is_some_and(is_only_forgotten) {
                DestroyOutcome::Missing
            } else {
                DestroyOutcome::Kept
            }
        };
        let record = NamedConstraints::new(project, graph, document);
        let kept = left_behind(project, graph, &record, fate, of_gone)
            .into_iter()
            .map(|pair| EarlyDestroy {
                dependent: pair.kept,
                destroyed: pair.destroyed,
            });
        kept.collect()
    }
}
