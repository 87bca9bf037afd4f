//! Checks whether a saved plan is still valid, and finds the remaining work.
//!
//! Compares the plan with the current project, git and state: also everything that could have kept a removed stack, and
//! drift that cannot be accepted. Asks for no approval.

mod environment;
mod recording;
mod todo;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub use self::recording::{ApplyRecording, RecordedOutputs, recorded_outputs, used_outputs};
pub use self::todo::{RecordOnly, RemainingWork, ToDestroy, to_do};
use super::SavedPlan;
use super::planner::Drivers;
use super::stale::{CurrentFacts, DoneOperations, PlanFacts, Stale};
use crate::change::{CountedStates, StackStatuses, causes_since};
use crate::context::Context;
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::git::CommitId;
use crate::path::StackPath;
use crate::plan::backends::StackBackend;
use crate::plan::entry::PlannedAction;
use crate::plan::planner::{RemovalCode, Removals};
use crate::printable::{first_of, printable};
use crate::project::Project;
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
            references: &context.references,
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

const MOST: usize = 5;

impl Verification<'_> {
    /// Refuses to accept drift if a driver has no command for that.
    pub fn check_drift(&self, project: &Project) -> Result<()> {
        let saved = self.saved;
        let drifted = saved
            .plan
            .entries
            .iter()
            .filter(|entry| saved.plan.accepts_drift(entry));
        let lacking = drifted.filter_map(|entry| {
            let name = saved.stack(&entry.stack)?.driver.as_str();
            let driver = Driver::named(project, name)?;
            // The path of the plan does not matter.
            let is_lacking = driver.accepting_drift(Path::new("")).is_none();
            is_lacking.then_some((name, printable(entry.stack.as_str())))
        });
        let lacking: Vec<_> = lacking.collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let drivers: BTreeSet<String> = lacking.iter().map(|it| format!("`{}`", it.0)).collect();
        let drivers: Vec<String> = drivers.into_iter().collect();
        Err(Error::refused(format!(
            "drift cannot be accepted in {}: the driver {} has no command for it",
            first_of(lacking.iter().map(|it| &it.1), MOST),
            drivers.join(", ")
        ))
        .hint("leave these stacks out with `--exclude`; only Terraform, OpenTofu and Terragrunt can accept drift, unless their `driver` block has `read` or `apply`"))
    }
}

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
