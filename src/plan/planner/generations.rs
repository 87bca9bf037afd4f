//! Generations of stacks that are created before the old ones are destroyed. Generations that are
//! not current are destroyed with the code of their own commits.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::entries::Decisions;
use super::removals::{Removal, Removals};
use super::subjects::{NextGeneration, StacksToPlan};
use super::{AskedTools, Planning};
use crate::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::error::Result;
use crate::exit::ExitStatus;
use crate::git::CommitId;
use crate::path::{Generation, StackPath};
use crate::plan::backends::StackBackend;
use crate::plan::entry::{PlanMode, PlannedAction, Removed};
use crate::printable::printable;
use crate::project::stack::StackIndex;
use crate::state::document::{Document, Entry};

/// The fix if two generations share a backend.
const OWN_PLACE: &str = "give each generation a state of its own, as with `TF_WORKSPACE = orch.stack.generation == 1 ? \"default\" : \"g${orch.stack.generation}\"` in `run.env`; see `orch help generations`";

impl<'d> Removal<'d> {
    /// Returns a generation that exists and is not current, or will not be after the plan.
    pub fn of_generation(path: &StackPath, entry: &Entry, by: Generation) -> Option<Self> {
        let generation = path.generation()?;
        let old = entry.of_generation(generation)?;
        let applied = old.applied.as_ref();
        let seen = applied.and_then(|it| it.seen.as_deref().or(it.commit.as_deref()));
        let seen = seen.and_then(CommitId::new);
        let removed = if generation < by {
            Removed::Replaced { by }
        } else {
            Removed::Unfinished
        };
        let mut removal = Removal::open(path.clone(), Cow::Owned(old), removed, seen);
        if removal.seen.is_none() {
            removal.block("its applied commit is not recorded", "destroy it by hand");
        }
        Some(removal)
    }

    pub(super) fn deposed<'a>(
        path: &'a StackPath,
        entry: &'a Entry,
    ) -> impl Iterator<Item = Removal<'d>> + use<'a, 'd> {
        // The state may have been edited by hand: the current generation never counts as old.
        let deposed = entry
            .deposed
            .iter()
            .filter(|it| it.generation != entry.generation);
        deposed.filter_map(move |deposed| {
            let path = path.of_generation(deposed.generation);
            Removal::of_generation(&path, entry, entry.generation)
        })
    }
}

impl Removals<'_> {
    fn add(&mut self, removal: Removal<'static>) {
        if let Err(at) = self.all.binary_search_by(|it| it.path.cmp(&removal.path)) {
            self.all.insert(at, removal);
        }
    }

    /// Returns the document with generations to destroy as separate stacks, if there are any.
    pub fn with_generations(&self, document: Option<&Document>) -> Option<Document> {
        let paths = self.all.iter().map(|removal| &removal.path);
        let mut generations = paths.filter(|path| path.generation().is_some()).peekable();
        generations.peek()?;
        document.map(|document| document.with_generations(generations))
    }

    /// Drops the generations that remain current after all.
    pub(super) fn keep_current(&mut self, context: &Context, settled: &Decisions) {
        self.all.retain(|removal| {
            let Some(stack) = context.project.stacks.find(&removal.path.current()) else {
                return true;
            };
            !removal.is_planned || settled.action(stack) == Some(PlannedAction::Replace)
        });
    }
}

impl StacksToPlan<'_> {
    /// Marks the stacks of which nothing exists. Returns those that were not marked before.
    pub(super) fn find_removed(&mut self, gone: &BTreeSet<StackIndex>) -> Vec<StackIndex> {
        let all = self.all.iter_mut();
        let found = all.filter(|it| gone.contains(&it.stack) && !it.is_missing);
        found
            .map(|subject| {
                subject.is_missing = true;
                subject.stack
            })
            .collect()
    }

    /// Returns the stacks that their drivers want to replace by new generations. Their tools are
    /// asked for these.
    pub(super) fn find_made_by_driver(&mut self, settled: &Decisions) -> Vec<StackIndex> {
        let mut found = Vec::new();
        for subject in &mut self.all {
            let is_made = subject.next.as_ref().is_none_or(|next| next.is_made);
            if is_made || settled.action(subject.stack) != Some(PlannedAction::Replace) {
                continue;
            }
            subject.trigger = settled.reason(subject.stack).cloned();
            found.push(subject.stack);
        }
        found
    }
}

impl Planning<'_> {
    pub(super) fn add_deposed(self, subjects: &StacksToPlan<'_>, removals: &mut Removals<'_>) {
        let is_refresh = self.request.options.mode == PlanMode::RefreshOnly;
        let Some(document) = self.document().filter(|_| !is_refresh) else {
            return;
        };
        let mut all = document.stacks.values();
        if all.all(|entry| entry.deposed.is_empty()) {
            return;
        }
        let entries = self.entries();
        for subject in &subjects.all {
            let path = &self.context.project.stacks[subject.stack].path;
            if let Some((_, entry)) = entries.get(&subject.stack) {
                Removal::deposed(path, entry).for_each(|it| removals.add(it));
            }
        }
    }

    /// Adds the current generations of stacks that are created first.
    pub(super) fn depose_replaced(
        self,
        subjects: &mut StacksToPlan<'_>,
        places: &BTreeMap<StackIndex, StackBackend>,
        asked: &AskedTools,
        removals: &mut Removals<'_>,
    ) {
        if self.recorded.is_none() {
            return;
        }
        self.find_created_first(subjects);
        if subjects.all.iter().all(|subject| subject.made().is_none()) {
            return;
        }
        let settled = self.decisions(&self.needs(subjects), subjects, places, &asked.answers);
        let entries = self.entries();
        for subject in &subjects.all {
            let Some(next) = subject.made() else { continue };
            let path = &self.context.project.stacks[subject.stack].path;
            let entry = entries.get(&subject.stack).map(|(_, entry)| entry);
            if let Some(entry) = entry
                && settled.action(subject.stack) == Some(PlannedAction::Replace)
            {
                let old = path.of_generation(entry.generation);
                let old = Removal::of_generation(&old, entry, next.generation);
                if let Some(mut old) = old {
                    old.is_planned = true;
                    removals.add(old);
                }
            }
        }
    }

    pub(super) fn refuse_shared_generations(
        self,
        subjects: &StacksToPlan<'_>,
        settled: &Decisions,
        places: &BTreeMap<StackIndex, StackBackend>,
        asked: &AskedTools,
    ) -> Result<()> {
        let context = self.context;
        let entries = self.entries();
        let replaced = subjects.all.iter().filter(|subject| {
            context.is_created_first(subject.stack)
                && settled.action(subject.stack) == Some(PlannedAction::Replace)
        });
        let refusals: Vec<Diagnostic> = replaced
            .filter_map(|subject| {
                let stack = subject.stack;
                let entry = entries.get(&stack).map(|(_, entry)| *entry);
                let now = places.get(&stack).and_then(|place| place.now.as_deref());
                let path = &context.project.stacks[stack].path;
                let answer = asked.answers.get(path).and_then(|it| it.as_ref().ok());
                let exists = answer.and_then(|answer| answer.exists) == Some(true);
                let (what, note, help) = match (subject.made(), entry) {
                    (Some(next), Some(entry)) => shared(path, next, entry, now, exists)?,
                    _ => (
                        format!("`{path}` cannot be created before the old one is destroyed"),
                        "both exist for a while, and would share one state".to_owned(),
                        "configure a state; see `orch help state`",
                    ),
                };
                let rule = context.project.rules_of(stack).create_before_destroy;
                let refusal = Diagnostic::error(Code::Conflict, what);
                let refusal = match rule.and_then(|rule| rule.span) {
                    Some(span) => refusal.label(span, "the new one is created first"),
                    None => refusal,
                };
                Some(refusal.note(note).help(help))
            })
            .collect();
        if refusals.is_empty() {
            return Ok(());
        }
        let sources = &context.project.sources;
        context.notices.diagnostics(&refusals, sources);
        Err(ExitStatus::Refused.into())
    }
}

/// Returns why a new generation has no backend of its own, with the fix. `now` is its backend and
/// `exists` whether resources exist there.
fn shared(
    path: &StackPath,
    next: &NextGeneration,
    entry: &Entry,
    now: Option<&str>,
    exists: bool,
) -> Option<(String, String, &'static str)> {
    let new = next.generation;
    let Some(now) = now else {
        return Some((
            format!(
                "generation {new} of `{path}` may have the state of generation {}",
                entry.generation
            ),
            "the backend of its driver is unknown".to_owned(),
            "add `backend` to the block of the driver; see `orch help drivers`",
        ));
    };
    let deposed = entry.deposed.iter();
    let deposed = deposed.map(|deposed| (deposed.generation, deposed.backend.as_deref()));
    let mut others = std::iter::once((entry.generation, entry.backend.as_deref())).chain(deposed);
    let shown = printable(now);
    if let Some((other, backend)) = others.find(|(_, backend)| backend.is_none_or(|it| it == now)) {
        return Some(match backend {
            Some(_) => (
                format!(
                    "generation {new} of `{path}` would have the state of generation {other}: {shown}"
                ),
                "both exist for a while".to_owned(),
                OWN_PLACE,
            ),
            None => (
                format!("generation {new} of `{path}` may have the state of generation {other}"),
                format!("the backend of generation {other} is not recorded"),
                "`orch apply --full` records it",
            ),
        });
    }
    exists.then(|| {
        (
            format!("generation {new} of `{path}` exists already: {shown}"),
            "the resources there are not recorded".to_owned(),
            "destroy them, or give the generation another state",
        )
    })
}
