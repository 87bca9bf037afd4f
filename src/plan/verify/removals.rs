//! Checks removed stacks again when a plan is applied: everything that could have kept them.

use std::collections::{BTreeMap, BTreeSet};

use super::todo::{RemainingWork, ToDestroy};
use super::{Verification, explained};
use crate::change::StackStatuses;
use crate::context::Context;
use crate::error::Result;
use crate::path::StackPath;
use crate::plan::backends::StackBackend;
use crate::plan::entry::PlannedAction;
use crate::plan::planner::{RemovalCode, Removals};
use crate::plan::stale::Stale;
use crate::project::stack::StackIndex;
use crate::state::document::Document;

/// Returns the removed stacks to destroy, given the status of recorded stacks.
pub fn removals_of<'d>(
    document: &'d Document,
    statuses: &StackStatuses,
    to_do: &RemainingWork<'_>,
) -> Removals<'d> {
    let stacks = to_do.removed.iter().map(|it| &it.entry.stack);
    // The kept resources of a forgotten stack need the stacks that it ran after.
    let leaves = |stack: &&StackPath| {
        let missing = statuses.missing.get(stack.as_str());
        missing.is_some_and(|missing| missing.leaving().is_some())
    };
    let gone = to_do.forgotten.iter().filter(|stack| !leaves(stack));
    Removals::to_destroy(document, &statuses.missing, stacks).forgetting(gone)
}

impl Verification<'_> {
    /// Checks that nothing keeps the removed stacks, given their code. If it fails, nothing may
    /// run.
    pub fn check_removals(
        &self,
        context: &Context,
        recorded: Option<(&Document, &StackStatuses)>,
        to_do: &RemainingWork<'_>,
        removals: &mut Removals<'_>,
        codes: &[RemovalCode<'_, '_>],
    ) -> Result<()> {
        let path = |it: &ToDestroy<'_>| it.entry.stack.clone();
        let unknown: Vec<Stale> = to_do
            .removed
            .iter()
            .map(path)
            .filter(|path| !removals.all.iter().any(|it| it.path == *path))
            .map(Stale::Record)
            .collect();
        if !unknown.is_empty() {
            return Err(explained(&unknown));
        }
        let Some((document, statuses)) = recorded else {
            return Ok(());
        };
        let stacks = &context.project.stacks;
        let mut planned: BTreeMap<StackIndex, PlannedAction> = BTreeMap::new();
        for entry in self
            .saved
            .plan
            .entries
            .iter()
            .filter(|it| it.blocked.is_none())
        {
            if let Some(stack) = stacks.find(&entry.stack) {
                planned.insert(stack, entry.action);
            }
        }
        let mut places: BTreeMap<StackIndex, StackBackend> = BTreeMap::new();
        for of_stack in &self.saved.stacks {
            if let Some(stack) = stacks.find(&of_stack.stack) {
                let now = of_stack.backend.clone();
                let entry = self.saved.plan.entry(&of_stack.stack);
                let is_new_generation = entry.is_some_and(|entry| entry.generation.is_some());
                places.insert(
                    stack,
                    StackBackend {
                        now,
                        is_new_generation,
                        ..StackBackend::default()
                    },
                );
            }
        }
        for (stack, (key, entry)) in context.entries_of(document) {
            if let Some(backend) = &entry.backend {
                let recorded = Some((key.to_owned(), backend.clone()));
                places.entry(stack).or_default().recorded = recorded;
            }
        }
        context.block_by_backends(removals, &places, document, statuses);
        let with_generations = removals.with_generations(Some(document));
        let document = Some(with_generations.as_ref().unwrap_or(document));
        let applied: BTreeSet<StackIndex> = to_do
            .stacks
            .iter()
            .filter_map(|it| it.stack.here())
            .collect();
        context.keep_old_generations(removals, document, &planned, &applied);
        context.keep_needed(removals, document, &planned);
        context.keep_old_generations(removals, document, &planned, &applied);
        let mut stale = removals.stale();
        for code in codes {
            // Blocked stacks have no code.
            let to_destroy = &to_do.removed[code.removal];
            if code.driver.name != to_destroy.rest.driver {
                stale.push(Stale::Driver(to_destroy.entry.stack.clone()));
            }
        }
        if stale.is_empty() {
            Ok(())
        } else {
            Err(explained(&stale))
        }
    }
}
