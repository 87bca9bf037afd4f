//! The stacks of a plan, with the facts that are known before their tools are asked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::PlanRequest;
use crate::change::{CountedStates, EntryIndex, Rollback, StackStatus, StackStatuses};
use crate::context::{Context, RollbackFlags, follow_all};
use crate::driver::{Driver, ToolsOnPath, driver_of};
use crate::error::{Error, Result};
use crate::path::{Generation, StackPath};
use crate::plan::entry::{PlanMode, PlanReason};
use crate::plan::order::NamedConstraints;
use crate::plan::triggers::named_outputs;
use crate::printable::printable;
use crate::project::stack::{StackIndex, StackMode, Stacks};
use crate::project::{ForcedCreateBeforeDestroy, Project};
use crate::run::execute::ProgramFinder;
use crate::selection::create_before_destroy::reached;
use crate::selection::graph::Graph;
use crate::selection::select::Selection;
use crate::source::Span;
use crate::state::document;
use crate::state::document::Document;

/// The state, and the status of each stack in it.
pub struct RecordedState {
    pub document: document::Document,
    pub statuses: StackStatuses,
}

impl RecordedState {
    /// Returns whether a key is that of a recorded stack which this commit lacks, or has elsewhere.
    pub fn lacks(&self, key: &str) -> bool {
        let mut renamed = self.document.renamed();
        self.statuses.missing.contains_key(key) || renamed.any(|(_, as_read)| as_read == key)
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct StackToPlan<'p> {
    pub(super) stack: StackIndex,
    pub(super) driver: Driver<'p>,
    pub(super) is_replaced: bool,
    /// Whether it is recorded as being replaced, and nothing of it exists.
    pub(super) is_missing: bool,
    /// The `replace_triggered_by` that replaces it, if any.
    pub(super) trigger: Option<PlanReason>,
    /// Triggers that may replace it during the apply.
    pub(super) open_triggers: Vec<String>,
    /// Whether its tool waits because preconditions are undecided.
    pub(super) is_waiting: bool,
    pub(super) blocked: Option<String>,
    /// The backend in its driver's block.
    pub(super) backend: Option<String>,
    /// Describes the outputs that differ from those of its last apply, if any.
    pub(super) outputs_differ: Option<String>,
    /// The changed inputs that `ignore_changes` leaves out.
    pub(super) ignored_inputs: Vec<String>,
    /// Its recorded key, if that is not its path, or if it has become another stack.
    pub(super) previous_path: Option<String>,
    /// The recorded commit of the last apply.
    pub(super) source_commit: Option<String>,
    /// The generation that a replace would create first.
    pub(super) next: Option<NextGeneration>,
    /// Describes the commit that it reverts, if the flags allow that.
    pub(super) reverts: Option<String>,
    pub(super) accepts_drift: bool,
    /// Whether its outputs are unknown, and a stack was applied with one that replaces it.
    pub(super) lacks_outputs: bool,
    pub(super) is_released: bool,
}

/// A new generation that is created before the old one is destroyed.
pub(super) struct NextGeneration {
    pub(super) generation: Generation,
    /// The backend in its driver's block.
    pub(super) backend: Option<String>,
    /// Whether it is created, as far as known.
    pub(super) is_made: bool,
}

impl StackToPlan<'_> {
    pub(super) fn made(&self) -> Option<&NextGeneration> {
        self.next.as_ref().filter(|next| next.is_made)
    }
}

impl StacksToPlan<'_> {
    /// Blocks the stacks whose paths belong to other stacks in the state.
    pub(super) fn block_taken(&mut self, stacks: &Stacks, document: &document::Document) {
        let mut taken = taken(stacks, document);
        for subject in &mut self.all {
            if let Some(why) = taken.remove(&subject.stack) {
                subject.blocked.get_or_insert(why);
            }
        }
    }
}

/// Returns the stacks whose paths belong to other stacks in the state, each with the reason to
/// block it.
pub fn taken(stacks: &Stacks, document: &document::Document) -> BTreeMap<StackIndex, String> {
    let pairs = EntryIndex::new(stacks, document);
    // Moved stacks free their old paths.
    let leaving: BTreeSet<&str> = pairs.iter().map(|(_, key)| key).collect();
    let taken = stacks.iter().filter_map(|(stack, of_stack)| {
        let path = of_stack.path.as_str();
        let taken = document.stacks.get(path)?;
        let is_free = pairs.key(stack).is_some() || leaving.contains(path);
        let id = taken.id.as_deref().map(printable).unwrap_or_default();
        let why = format!("another stack is recorded at its path, with the id `{id}`");
        (!is_free).then_some((stack, why))
    });
    taken.collect()
}

pub(super) struct StacksToPlan<'p> {
    /// By path.
    pub(super) all: Vec<StackToPlan<'p>>,
    pub(super) without_driver: usize,
    /// The present outputs that differ from the recorded ones, as digests; `None` if they are unknown.
    pub(super) outputs: BTreeMap<StackIndex, Option<BTreeMap<String, String>>>,
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH");
    let nowhere = Path::new("/");
    ProgramFinder::new(program)
        .find(nowhere, path.as_deref())
        .is_ok()
}

pub(super) fn tools_on_path() -> ToolsOnPath {
    ToolsOnPath {
        terraform: is_on_path("terraform"),
        tofu: is_on_path("tofu"),
    }
}

pub struct Drivers<'l, 'd> {
    context: &'l Context,
    recorded: Option<(&'d document::Document, EntryIndex<'d>)>,
    on_path: ToolsOnPath,
}

impl<'l, 'd> Drivers<'l, 'd> {
    pub fn new(context: &'l Context, document: Option<&'d document::Document>) -> Self {
        let pairs = |document| EntryIndex::new(&context.project.stacks, document);
        Drivers {
            context,
            recorded: document.map(|document| (document, pairs(document))),
            on_path: tools_on_path(),
        }
    }

    pub fn entry(&self, stack: StackIndex) -> Option<(&'d str, &'d document::Entry)> {
        let (document, pairs) = self.recorded.as_ref()?;
        let key = pairs.key(stack)?;
        Some((key, document.stacks.get(key)?))
    }

    pub fn of(&self, stack: StackIndex) -> Option<Driver<'l>> {
        let recorded = self
            .entry(stack)
            .and_then(|(_, entry)| entry.driver.as_deref());
        let context = self.context;
        driver_of(
            &context.project,
            &context.listing,
            stack,
            recorded,
            self.on_path,
        )
    }
}

impl Context {
    /// Returns the state if the project keeps one. Otherwise, prints a note once.
    pub fn recorded_state(
        &mut self,
        request: &PlanRequest<'_>,
        selection: &Selection,
    ) -> Result<Option<RecordedState>> {
        if self.project.settings.state.is_none() {
            if request.only.is_none() {
                self.notices.note(
                    "the project keeps no state: the tools of all selected stacks are asked, and stacks that were removed go unnoticed",
                );
            }
            return Ok(None);
        }
        let counted = CountedStates::default();
        let mut document = self.read_and_digest(counted)?;
        if request.is_verification {
            self.forget_applies(request.only.unwrap_or_default(), &mut document);
        }
        let address = self.opened()?.backend.address();
        let recorded = self.compared_with(address, document)?;
        if request.is_verification {
            return Ok(Some(recorded));
        }
        // Before tools are asked, only drivers with a `backend` show that a stack has moved.
        let moves = self.configured_moves(&selection.stacks().collect(), &recorded);
        Ok(Some(match self.rekeyed(&recorded.document, &moves) {
            Some(document) => self.compared_with(recorded.statuses.base.address, document)?,
            None => recorded,
        }))
    }

    /// Returns the document with entries assigned to the moved stacks that they belong to (`moves`:
    /// from stack to key); `None` if that changes nothing.
    pub(super) fn rekeyed(
        &self,
        document: &Document,
        moves: &BTreeMap<StackIndex, String>,
    ) -> Option<Document> {
        if moves.is_empty() {
            return None;
        }
        let mut rekeyed = document.clone();
        let stacks = &self.project.stacks;
        let moves = moves
            .iter()
            .map(|(&stack, key)| (stacks[stack].path.clone(), key.clone()));
        follow_all(stacks, &moves.collect::<Vec<_>>(), &mut rekeyed);
        (rekeyed != *document).then_some(rekeyed)
    }

    /// Compares all stacks with a document at an address.
    pub(super) fn compared_with(
        &mut self,
        address: String,
        document: Document,
    ) -> Result<RecordedState> {
        let statuses = self.statuses_in(&document, address, CountedStates::default(), true)?;
        self.set_generations(&document);
        let (workspace, _) = self.parts();
        extend_as_recorded(&mut workspace.project, &workspace.graph, &document);
        Ok(RecordedState { document, statuses })
    }

    /// Drops the recorded applies of stacks, so that only their resources count.
    fn forget_applies(&self, paths: &[StackPath], document: &mut document::Document) {
        let stacks = &self.project.stacks;
        let found: BTreeSet<StackIndex> =
            paths.iter().filter_map(|path| stacks.find(path)).collect();
        let pairs = EntryIndex::new(stacks, document);
        let keys: Vec<String> = pairs
            .iter()
            .filter(|(stack, _)| found.contains(stack))
            .map(|(_, key)| key.to_owned())
            .collect();
        for key in keys {
            let Some(entry) = document.stacks.get_mut(&key) else {
                continue;
            };
            *entry = document::Entry {
                id: entry.id.take(),
                name: std::mem::take(&mut entry.name),
                driver: entry.driver.take(),
                generation: entry.generation,
                deposed: std::mem::take(&mut entry.deposed),
                ..document::Entry::default()
            };
        }
    }

    /// Returns whether a replace of the stack creates the new one first.
    pub(super) fn is_created_first(&self, stack: StackIndex) -> bool {
        let rule = self.project.rules_of(stack).create_before_destroy;
        rule.is_some_and(|rule| rule.value)
    }

    pub(super) fn subjects(
        &self,
        request: &PlanRequest<'_>,
        selection: &Selection,
        recorded: Option<&RecordedState>,
        replaced: &BTreeSet<StackIndex>,
        rollbacks: &BTreeMap<StackIndex, Rollback>,
    ) -> Result<StacksToPlan<'_>> {
        let allow_rollback = request.allow_rollback;
        let outside: Vec<StackIndex> = replaced
            .iter()
            .filter(|stack| !selection.contains(**stack))
            .copied()
            .collect();
        if !outside.is_empty() {
            return Err(Error::usage(format!(
                "in --replace: {} is not selected",
                self.names(&outside)
            )));
        }
        let drivers = Drivers::new(self, recorded.map(|recorded| &recorded.document));
        let named = named_outputs(&self.references);
        let entries = recorded.iter().flat_map(|it| it.document.stacks.values());
        let applied = entries.filter_map(|entry| entry.applied.as_ref());
        let noted = applied.flat_map(|applied| applied.triggered_by.keys());
        let noted = noted.filter_map(|name| Some(name.rsplit_once('#')?.0));
        let noted: BTreeSet<&str> = noted.collect();
        let mut subjects = StacksToPlan {
            outputs: BTreeMap::new(),
            all: Vec::new(),
            without_driver: 0,
        };
        for stack in selection.stacks() {
            let (previous, entry) = drivers.entry(stack).unzip();
            let rollback = rollbacks.get(&stack);
            match drivers.of(stack) {
                Some(driver) => subjects.all.push(StackToPlan {
                    stack,
                    driver,
                    is_replaced: replaced.contains(&stack),
                    is_missing: false,
                    trigger: None,
                    open_triggers: Vec::new(),
                    is_waiting: false,
                    blocked: rollback
                        .filter(|_| !allow_rollback)
                        .map(Rollback::why_with_fetch),
                    backend: None,
                    outputs_differ: None,
                    ignored_inputs: Vec::new(),
                    previous_path: recorded
                        .zip(previous)
                        .and_then(|(recorded, key)| {
                            let own = self.project.stacks[stack].path.as_str();
                            // It may be its own path, with another id.
                            let before = recorded.document.renamed_from(key);
                            before.or_else(|| (key != own).then_some(key))
                        })
                        .map(str::to_owned),
                    source_commit: entry.and_then(|entry| entry.applied.as_ref()?.commit.clone()),
                    next: entry.filter(|_| self.is_created_first(stack)).map(|entry| {
                        NextGeneration {
                            generation: entry.next_generation(),
                            backend: None,
                            is_made: false,
                        }
                    }),
                    reverts: rollback.filter(|_| allow_rollback).map(Rollback::effect),
                    accepts_drift: entry.is_some_and(|entry| entry.refreshed.is_some()),
                    lacks_outputs: driver.tool.is_some()
                        && named.contains_key(&stack)
                        && previous.is_some_and(|key| noted.contains(key))
                        && entry.is_some_and(|entry| entry.known_outputs().is_none()),
                    is_released: request.is_release,
                }),
                None => subjects.without_driver += 1,
            }
        }
        Ok(subjects)
    }

    pub(super) fn planned_rollbacks(
        &mut self,
        request: &PlanRequest<'_>,
        selection: &Selection,
        recorded: Option<&RecordedState>,
        replaced: &BTreeSet<StackIndex>,
    ) -> Result<BTreeMap<StackIndex, Rollback>> {
        // A refresh reverts nothing.
        let is_refresh = request.options.mode == PlanMode::RefreshOnly;
        let Some(recorded) = recorded.filter(|_| !is_refresh) else {
            return Ok(BTreeMap::new());
        };
        let is_planned = |stack: &StackIndex| {
            let is_applied = recorded.statuses.stacks.get(stack) == Some(&StackStatus::Applied);
            let is_asked = !is_applied || request.options.is_full || replaced.contains(stack);
            is_asked && self.project.stacks[*stack].mode == StackMode::Manage
        };
        let stacks: Vec<StackIndex> = selection.stacks().filter(is_planned).collect();
        let flags = RollbackFlags {
            allows: request.allow_rollback,
            fetches: request.fetches,
        };
        let found = self.rollbacks(&recorded.document, &stacks, flags)?;
        if !found.is_empty() && !flags.allows && request.only.is_none() {
            self.notices.help(
                "to plan stacks last applied from a commit that HEAD lacks, add `--allow-rollback`",
            );
        }
        Ok(found)
    }
}

/// Extends `create_before_destroy` to stacks of this commit that recorded dependents with the rule
/// ran after. The rules declared in this commit are extended before.
fn extend_as_recorded(project: &mut Project, graph: &Graph, document: &Document) {
    let is_recorded = |key: &str| {
        let entry = document.stacks.get(key);
        let rule = entry.and_then(|entry| entry.lifecycle.create_before_destroy.as_ref());
        rule.is_some_and(|rule| rule.value && rule.from.is_none())
    };
    if !project.states_create_before_destroy()
        && !document.stacks.keys().any(|key| is_recorded(key))
    {
        return;
    }
    let record = NamedConstraints::new(project, graph, Some(document));
    let n_stacks = project.stacks.len();
    let mut sources: BTreeMap<usize, (StackPath, Option<Span>)> = BTreeMap::new();
    for (stack, of_stack) in project.stacks.iter() {
        let rule = project.rules_of(stack).create_before_destroy;
        if let Some(rule) = rule.filter(|rule| rule.value) {
            let from = rule.from.unwrap_or(&of_stack.path).clone();
            sources.insert(stack.get(), (from, rule.span));
        }
    }
    for (node, key) in record.removed_nodes() {
        let path = StackPath::parse(key).filter(|_| is_recorded(key));
        sources.extend(path.map(|path| (node, (path, None))));
    }
    let back = record.recorded.precedence().reversed();
    let nodes: Vec<usize> = sources.keys().copied().collect();
    for (node, source) in reached(&back, &nodes) {
        if node >= n_stacks {
            continue;
        }
        let (from, span) = sources[&source].clone();
        let extended = ForcedCreateBeforeDestroy { from, span };
        project
            .forced_create_before_destroy
            .entry(StackIndex::new(node))
            .or_insert(extended);
    }
}
