//! Checks whether a saved plan is still valid, and finds the remaining work.
//!
//! Compares the plan with the current project, git and state. Asks for no approval.

mod drift;
mod environment;
mod recording;
mod removals;
mod todo;

pub use self::recording::{ApplyRecording, used_outputs};
pub use self::removals::removals_of;
pub use self::todo::{RecordOnly, RemainingWork, ToDestroy, to_do};
use std::collections::BTreeSet;

use super::SavedPlan;
use super::planner::Drivers;
use super::stale::{CurrentFacts, DoneOperations, PlanFacts, Stale};
use crate::change::{CountedStates, StackStatuses, causes_since};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::git::CommitId;
use crate::path::StackPath;
use crate::project::stack::StackIndex;
use crate::state::document::Document;

/// The comparison of a plan with the current facts.
#[derive(Clone, Copy)]
pub struct Verification<'a> {
    pub saved: &'a SavedPlan,
    /// Whether it comes from a file, or was just made.
    pub is_from_file: bool,
    /// Whether this process has already compared the environment and the versions of the tools.
    pub is_environment_known: bool,
    /// Whether it only records the stacks without work, after all others: those that have changed are left out.
    pub records_last: bool,
}

impl Verification<'_> {
    /// Returns the stacks that are left out.
    pub fn check(
        &self,
        context: &Context,
        document: Option<&Document>,
        statuses: Option<&StackStatuses>,
        progress: &mut DoneOperations,
    ) -> Result<BTreeSet<StackPath>> {
        let project = &context.project;
        let present = CurrentFacts {
            project,
            graph: &context.graph,
            digests: context.state.input_digests.as_deref(),
            document,
            missing: statuses.map(|statuses| &statuses.missing),
            is_later: self.is_from_file,
            records_last: self.records_last,
        };
        let drivers = Drivers::new(context, document);
        let driver = |stack: StackIndex| Some(drivers.of(stack)?.name.to_owned());
        let mut input_digests = PlanFacts::new(present);
        let checked = input_digests.check(self.saved, &driver, progress);
        let mut stale = self.named(context, checked.err().unwrap_or_default());
        if self.is_from_file && !self.is_environment_known {
            let keeps_state = document.is_some();
            stale.extend(self.other_environments(context, keeps_state, progress));
            if stale.is_empty() || self.records_last {
                stale.extend(self.other_versions(context, keeps_state, progress)?);
            }
        }
        let outdated = stale.iter().map(|why| {
            let stack = why.stack().filter(|_| self.records_last);
            stack.cloned()
        });
        // A fact of the whole plan cannot be left out.
        outdated
            .collect::<Option<_>>()
            .ok_or_else(|| explained(&stale))
    }

    /// Names the files that differ from the plan's commit, as far as this clone has it.
    fn named(&self, context: &Context, mut stale: Vec<Stale>) -> Vec<Stale> {
        let commit = self.saved.plan.commit.as_deref().and_then(CommitId::new);
        let differing: Vec<StackIndex> = stale
            .iter()
            .filter_map(|why| match why {
                Stale::Inputs(path, _) => context.project.stacks.find(path),
                _ => None,
            })
            .collect();
        let Some(commit) = commit.filter(|_| !differing.is_empty()) else {
            return stale;
        };
        let causes = context.with_present(CountedStates::default(), |present| {
            causes_since(present, &commit, &differing)
        });
        // A missing commit explains nothing.
        let causes = causes
            .ok()
            .and_then(std::result::Result::ok)
            .unwrap_or_default();
        for why in &mut stale {
            if let Stale::Inputs(path, part) = why
                && let Some(stack) = context.project.stacks.find(path)
                && let Some(cause) = causes.get(&stack)
            {
                cause.file.path.relative().clone_into(part);
            }
        }
        stale
    }
}

fn explained(stale: &[Stale]) -> Error {
    const MOST: usize = 20;
    let lines = stale.iter().take(MOST).map(|why| format!("\n  {why}"));
    let mut text: String = lines.collect();
    if stale.len() > MOST {
        text += &format!("\n  and {} more", stale.len() - MOST);
    }
    Error::refused(format!(
        "the plan no longer holds, and nothing was run:{text}"
    ))
    .hint("make a new plan")
}
