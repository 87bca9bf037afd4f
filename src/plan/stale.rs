//! Whether a plan is still valid: compares the facts that it depends on with the current ones.
//!
//! Contents count, not commits: a merge or squash makes a new commit with the same files. If
//! someone else has applied the same inputs since, the entry counts as done. This module does no
//! I/O.

mod done;
mod reason;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::done::{failed_beside, last_run};
pub use self::reason::Stale;
use super::saved::{SavedPlan, SavedStack};
use crate::change::{EntryIndex, InputDigests, MissingStack, part_label};
use crate::context::upstream::Upstream;
use crate::context::used_outputs::UsedOutputs;
use crate::path::{Generation, StackPath};
use crate::plan::entry::PlannedAction;
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::run::turn::Operation;
use crate::selection::graph::{Graph, Precedence, SearchDirection};
use crate::selection::reference::References;
use crate::state::document::{Document, Entry, INTERRUPTED, Inputs, RunAction as Written};

#[derive(Debug, Clone, Copy)]
pub struct CurrentFacts<'a> {
    pub project: &'a Project,
    pub graph: &'a Graph,
    pub references: &'a References,
    /// The inputs of its stacks; `None` outside of git.
    pub digests: Option<&'a InputDigests>,
    pub document: Option<&'a Document>,
    /// The recorded stacks that this commit lacks, if the plan covers any.
    pub missing: Option<&'a BTreeMap<String, MissingStack>>,
    /// Whether the plan may be outdated: then the facts that it was made from must be known.
    pub is_later: bool,
    /// Whether stacks without work are recorded after all others. A run of a whole plan records them first.
    pub records_last: bool,
}

pub struct PlanFacts<'a> {
    present: CurrentFacts<'a>,
    pairs: Option<EntryIndex<'a>>,
    order: Upstream,
    records: Option<Upstream>,
    /// The recorded outputs, digested on first use.
    outputs: Option<UsedOutputs<'a>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DoneOperations {
    pub done: BTreeSet<(StackPath, OperationKey)>,
    /// Operations that are done according to journals; the state takes precedence.
    pub journaled: BTreeSet<(StackPath, OperationKey)>,
    /// Stacks that it has applied, and that others have destroyed or forgotten since.
    pub gone: BTreeSet<StackPath>,
    /// Whether it has begun, as far as known.
    pub has_begun: bool,
    /// Its runs that policies have followed, by id. Their follow-ups belong neither to the plan nor
    /// to others.
    pub followed: BTreeSet<String>,
    pub last_run: Option<LastRun>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastRun {
    pub run: String,
    /// The time of its last event.
    pub at: Timestamp,
    /// Whether it has succeeded, so that nothing is left to decide.
    pub has_succeeded: bool,
}

impl DoneOperations {
    /// Returns whether the last operation on a stack was in a run of the plan.
    fn is_in_its_runs(&self, entry: &Entry) -> bool {
        let intent = entry.intent.as_ref().map(|intent| Some(&intent.run));
        let last = entry.last.as_ref().map(|last| last.run.as_ref());
        let run = intent.or(last).flatten();
        run.is_some_and(|run| self.followed.contains(run))
    }
}

/// An operation of a plan; destroys sort first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKey {
    Destroy,
    /// [`Operation::Apply`], or only recording the stack.
    Apply,
}

impl From<Operation> for OperationKey {
    fn from(operation: Operation) -> Self {
        match operation {
            Operation::Destroy => OperationKey::Destroy,
            Operation::Run | Operation::Plan | Operation::Apply => OperationKey::Apply,
        }
    }
}

/// Returns the mark of a stack's record. Removing a killed run's lock gives finished operations a
/// serial and marks unfinished ones as interrupted; the mark survives that.
fn mark(entry: &Entry) -> String {
    let of_run = |run: Option<&String>, at: &Timestamp| {
        let run = run.map_or("", String::as_str);
        format!("{run} {at}")
    };
    let applied = entry.applied.as_ref();
    let applied = applied.map(|applied| of_run(applied.run.as_ref(), &applied.at));
    let last = match (&entry.intent, &entry.last) {
        (Some(intent), _) => Some(intent.run.clone()),
        (None, Some(last)) if last.failure.as_deref() == Some(INTERRUPTED) => last.run.clone(),
        (None, last) => last
            .as_ref()
            .map(|last| of_run(last.run.as_ref(), &last.at)),
    };
    let refreshed = entry
        .refreshed
        .as_ref()
        .map(|it| format!("{} ", of_run(Some(&it.run), &it.at)))
        .unwrap_or_default();
    let is_tainted = entry.tainted.is_some();
    format!("{refreshed}{applied:?} {last:?} {is_tainted}")
}

pub fn record_of(entry: &Entry) -> String {
    mark(entry)
}

/// Returns the mark of a generation, which survives its replacement.
pub fn record_of_generation(entry: &Entry) -> String {
    let applied = entry.applied.as_ref();
    let commit = applied.and_then(|applied| applied.commit.as_deref());
    format!("{} {commit:?} {:?}", entry.generation, entry.backend)
}

fn shows_taint(mark: &str) -> bool {
    mark.ends_with(" true")
}

/// Returns a plan's last operation on a stack, unless others have touched the stack since.
fn last_of_plan<'e>(entry: &'e Entry, plan: &str) -> Option<&'e Written> {
    let intent = entry.intent.as_ref();
    let intent = intent.map(|intent| (intent.plan.as_deref(), &intent.action));
    let last = entry.last.as_ref();
    let last = last.map(|last| (last.plan.as_deref(), &last.action));
    let (of, action) = intent.or(last)?;
    (of == Some(plan)).then_some(action)
}

fn is_of_plan(entry: &Entry, plan: &str) -> bool {
    last_of_plan(entry, plan).is_some()
}

/// Returns whether the last attempt at a stack was made by a plan.
pub fn has_attempted(entry: &Entry, plan: &str) -> bool {
    is_of_plan(entry, plan)
}

fn is_up_to_date(entry: &Entry) -> bool {
    entry.has_succeeded() && entry.intent.is_none()
}

fn serial(saved: &SavedPlan) -> u64 {
    saved.plan.state.as_ref().map_or(0, |state| state.serial)
}

impl<'a> PlanFacts<'a> {
    pub fn new(present: CurrentFacts<'a>) -> Self {
        let CurrentFacts {
            project,
            graph,
            document,
            ..
        } = present;
        let stacks = &project.stacks;
        let paths = stacks.iter().map(|(_, stack)| Some(stack.path.to_string()));
        let pairs = document.map(|document| EntryIndex::new(stacks, document));
        let records = document.zip(pairs.as_ref()).map(|(document, pairs)| {
            let own = |stack| pairs.key(stack).map(|key| mark(&document.stacks[key]));
            let own = stacks.iter().map(|(stack, _)| own(stack)).collect();
            Upstream::new(graph, stacks, own)
        });
        PlanFacts {
            order: Upstream::new(graph, stacks, paths.collect()),
            present,
            pairs,
            records,
            outputs: None,
        }
    }

    /// Returns a digest of a stack's direct predecessors.
    pub fn order(&mut self, stack: StackIndex) -> String {
        self.order.of(stack)
    }

    pub fn record(&self, stack: StackIndex) -> Option<String> {
        self.entry(stack).map(mark)
    }

    /// Returns a digest of the direct predecessors' records, if there is a state.
    pub fn records_before(&mut self, stack: StackIndex) -> Option<String> {
        let records = self.records.as_mut()?;
        Some(records.of(stack))
    }

    pub fn inputs(&self, stack: StackIndex) -> Option<Inputs> {
        let digests = self.present.digests?;
        let digest = digests.stacks.get(&stack)?;
        Some(digest.recorded())
    }

    fn key(&self, stack: StackIndex) -> Option<&'a str> {
        self.pairs.as_ref()?.key(stack)
    }

    fn entry(&self, stack: StackIndex) -> Option<&'a Entry> {
        self.present.document?.stacks.get(self.key(stack)?)
    }

    fn stack(&self, path: &StackPath) -> Option<StackIndex> {
        self.present.project.stacks.find(path)
    }

    /// Checks a plan that may have been applied partially, and adds operations that others have
    /// done. The error has all facts that have changed.
    pub fn check(
        &mut self,
        saved: &SavedPlan,
        driver: &dyn Fn(StackIndex) -> Option<String>,
        progress: &mut DoneOperations,
    ) -> Result<(), Vec<Stale>> {
        let stale: Vec<Stale> = self.check_project(saved).into_iter().collect();
        if !stale.is_empty() {
            return Err(stale);
        }
        let mut stale = Vec::new();
        // First determine what is done: others do not wait for that.
        let mut here = Vec::new();
        for of_stack in &saved.stacks {
            let entry = saved.plan.entry(&of_stack.stack);
            let action = entry.map_or(PlannedAction::NoOp, |entry| entry.action);
            let has_turn = entry.is_some_and(|entry| {
                entry.action.is_work() || entry.is_undecided() || saved.plan.accepts_drift(entry)
            });
            if !has_turn && self.present.document.is_none() {
                // It was asked and nothing is recorded, so its facts do not matter.
                continue;
            }
            if entry.is_some_and(|entry| entry.removed.is_some()) {
                stale.extend(self.check_removed(saved, of_stack, progress));
                continue;
            }
            match self.stack(&of_stack.stack) {
                None => stale.push(Stale::Gone(of_stack.stack.clone())),
                Some(stack) => {
                    self.add_done(saved, of_stack, stack, action, progress);
                    here.push((of_stack, stack));
                }
            }
        }
        self.add_silent(saved, &here, progress);
        let changed = self.changed_before(saved, progress);
        for (of_stack, stack) in here {
            stale.extend(self.check_stack(saved, of_stack, stack, driver, progress, &changed));
        }
        if stale.is_empty() {
            return Ok(());
        }
        Err(stale)
    }

    fn check_project(&self, saved: &SavedPlan) -> Option<Stale> {
        let (planned, now) = match (&saved.project, self.present.document) {
            (None, None) => return None,
            (Some(planned), Some(now)) => (planned, now),
            (planned, _) => {
                let was_kept = planned.is_some();
                return Some(Stale::State { was_kept });
            }
        };
        let name = |project: &str, namespace: &str| format!("{project}/{namespace}");
        if (&planned.project, &planned.namespace) != (&now.project, &now.namespace) {
            return Some(Stale::Project {
                planned: name(&planned.project, &planned.namespace),
                now: name(&now.project, &now.namespace),
            });
        }
        (planned.lineage != now.lineage).then_some(Stale::Lineage)
    }

    fn is_tainted_since(&self, saved: &SavedPlan, entry: &Entry) -> bool {
        let (Some(document), Some(taint)) = (self.present.document, &entry.tainted) else {
            return false;
        };
        let mut writes = document.history.iter().rev();
        writes.any(|write| write.serial > serial(saved) && write.at == taint.at)
    }

    /// Returns whether a plan may create a generation of a stack: its number must be unused.
    fn may_make(&self, made: Generation, stack: StackIndex, plan: &str) -> bool {
        self.entry(stack).is_some_and(|entry| {
            let mut deposed = entry.deposed.iter();
            let is_begun = deposed.any(|deposed| deposed.generation == made);
            made > entry.generation && (!is_begun || is_of_plan(entry, plan))
        })
    }

    fn check_stack(
        &mut self,
        saved: &SavedPlan,
        of_stack: &SavedStack,
        stack: StackIndex,
        driver: &dyn Fn(StackIndex) -> Option<String>,
        progress: &DoneOperations,
        changed: &ChangedBefore,
    ) -> Option<Stale> {
        let path = of_stack.stack.clone();
        let apply = (path.clone(), OperationKey::Apply);
        if progress.done.contains(&apply) {
            return None;
        }
        match self.inputs(stack) {
            None if of_stack.inputs.is_none() && !self.present.is_later => {}
            None => return Some(Stale::Unknown(path)),
            Some(now) if !same(of_stack.inputs.as_ref(), &now) => {
                let part = difference(of_stack.inputs.as_ref(), &now);
                return Some(Stale::Inputs(path, part));
            }
            Some(_) => {}
        }
        if driver(stack).as_ref() != Some(&of_stack.driver) {
            return Some(Stale::Driver(path));
        }
        if self.order(stack) != of_stack.order {
            return Some(Stale::Order(path));
        }
        let plan = saved.plan.id.as_str();
        if let Some(made) = saved.plan.entry(&path).and_then(|entry| entry.generation)
            && !self.may_make(made, stack, plan)
        {
            return Some(Stale::Record(path));
        }
        let record = self.record(stack);
        let destroyed = (path.clone(), OperationKey::Destroy);
        let is_ours = match self.entry(stack) {
            Some(entry) => {
                let saw_taint = of_stack.record.as_deref().is_some_and(shows_taint);
                let is_tainted = entry.tainted.is_some() && !saw_taint;
                let is_tainted = is_tainted || self.is_tainted_since(saved, entry);
                let action = saved.plan.entry(&path).map(|entry| entry.action);
                // A destroyed stack would be destroyed again.
                let is_followed = !action.is_some_and(|action| done::destroys(saved, action))
                    && progress.is_in_its_runs(entry);
                (is_of_plan(entry, plan) || is_followed) && !is_tainted
            }
            None => progress.done.contains(&destroyed),
        };
        if record != of_stack.record && !is_ours {
            return Some(Stale::Record(path));
        }
        self.check_before(saved, &path, stack, progress, changed)
    }
}

fn same(planned: Option<&Inputs>, now: &Inputs) -> bool {
    planned.is_some_and(|planned| planned.rules == now.rules && planned.digest == now.digest)
}

/// Returns the first part that differs from a plan's inputs.
fn difference(planned: Option<&Inputs>, now: &Inputs) -> String {
    let Some(planned) = planned else {
        return "an input".to_owned();
    };
    if planned.rules != now.rules {
        return "the set of input files".to_owned();
    }
    let names: BTreeSet<&String> = planned.parts.keys().chain(now.parts.keys()).collect();
    let mut names = names.into_iter();
    let differing = names.find(|name| planned.parts.get(*name) != now.parts.get(*name));
    differing
        .map_or("an input", |name| part_label(name))
        .to_owned()
}

impl PlanFacts<'_> {
    /// Checks the entry of a stack that is no longer recorded: it was destroyed or forgotten.
    fn check_unrecorded(
        &self,
        saved: &SavedPlan,
        of_stack: &SavedStack,
        progress: &mut DoneOperations,
    ) -> Option<Stale> {
        let path = of_stack.stack.clone();
        if self.is_destroyed(saved, of_stack, progress) {
            progress.done.insert((path, OperationKey::Destroy));
            None
        } else {
            Some(Stale::Record(path))
        }
    }

    /// Checks the entry of a generation that is or becomes old, and adds its progress.
    fn check_generation(
        &self,
        saved: &SavedPlan,
        of_stack: &SavedStack,
        progress: &mut DoneOperations,
    ) -> Option<Stale> {
        let path = of_stack.stack.clone();
        let generation = path.generation()?;
        let current = path.current();
        let entry = self.present.document?.stacks.get(current.as_str());
        let Some(entry) = entry else {
            return self.check_unrecorded(saved, of_stack, progress);
        };
        let Some(old) = entry.of_generation(generation) else {
            progress.done.insert((path, OperationKey::Destroy));
            return None;
        };
        let is_replaced = saved
            .plan
            .entry(&current)
            .is_some_and(|entry| entry.generation.is_some());
        if entry.generation == generation && !is_replaced {
            return Some(Stale::Back(path));
        }
        let is_same = of_stack.record.as_ref() == Some(&record_of_generation(&old));
        (!is_same).then_some(Stale::Record(path))
    }

    /// Checks the entry of a removed stack, which needs proof at HEAD, and adds its progress.
    pub(super) fn check_removed(
        &self,
        saved: &SavedPlan,
        of_stack: &SavedStack,
        progress: &mut DoneOperations,
    ) -> Option<Stale> {
        let path = of_stack.stack.clone();
        let plan = saved.plan.id.as_str();
        if self.stack(&path).is_some() {
            return Some(Stale::Back(path));
        }
        let Some(document) = self.present.document else {
            return Some(Stale::Record(path));
        };
        if path.generation().is_some() {
            return self.check_generation(saved, of_stack, progress);
        }
        let Some(entry) = document.stacks.get(path.as_str()) else {
            return self.check_unrecorded(saved, of_stack, progress);
        };
        progress.has_begun |= last_of_plan(entry, plan).is_some();
        if Some(mark(entry)) != of_stack.record && !is_of_plan(entry, plan) {
            return Some(Stale::Record(path));
        }
        let missing = self.present.missing.and_then(|it| it.get(path.as_str()));
        match missing.map(|missing| &missing.evidence) {
            // It is recorded as a stack of this commit.
            None => Some(Stale::Back(path)),
            Some(Err(none)) => Some(Stale::NotRemoved(path, none.to_string())),
            Some(Ok(removal)) => {
                let leaves = removal.by.leaving().is_some();
                let entries = &saved.plan.entries;
                let planned = entries
                    .binary_search_by(|entry| entry.stack.cmp(&path))
                    .ok()
                    .and_then(|at| entries[at].removed.as_ref());
                let is_as_planned = planned.is_some_and(|planned| planned.leaves() == leaves);
                (!is_as_planned).then(|| Stale::Inputs(path, "its `removed` block".to_owned()))
            }
        }
    }
}

/// For each stack, one that it runs after, directly or not, and that others have changed since.
#[derive(Debug, Default)]
pub(super) struct ChangedBefore {
    /// By node of the graph; empty if nothing has changed.
    of_node: Vec<Option<StackIndex>>,
}

impl ChangedBefore {
    fn get(&self, stack: StackIndex) -> Option<StackIndex> {
        self.of_node.get(stack.get()).copied().flatten()
    }
}

impl PlanFacts<'_> {
    /// Returns the marks of stacks in a run that was in progress when the plan was made, or had
    /// been killed. Removing the run's lock does not change them.
    pub fn unfinished(&self) -> BTreeMap<StackPath, String> {
        let lock = self
            .present
            .document
            .and_then(|document| document.lock.as_ref());
        let Some(lock) = lock else {
            return BTreeMap::new();
        };
        let stacks = self.present.project.stacks.iter();
        let of_run = stacks.filter_map(|(stack, declared)| {
            let entry = self
                .entry(stack)
                .filter(|entry| lock.holders().any(|holder| entry.is_of(&holder.run)))?;
            Some((declared.path.clone(), mark(entry)))
        });
        of_run.collect()
    }

    fn is_newer(&self, saved: &SavedPlan, stack: StackIndex) -> bool {
        let Some(entry) = self.entry(stack) else {
            return false;
        };
        let serial = serial(saved);
        let applied = entry.applied.as_ref().map_or(0, |applied| applied.serial);
        let last = entry.last.as_ref().map_or(0, |last| last.serial);
        let refreshed = entry.refreshed.as_ref().map_or(0, |it| it.serial);
        let is_newer =
            applied > serial || last > serial || refreshed > serial || entry.intent.is_some();
        let path = &self.present.project.stacks[stack].path;
        is_newer && saved.unfinished.get(path) != Some(&mark(entry))
    }

    /// Returns whether others have changed a stack since a plan was made, given its progress.
    fn is_changed(&self, saved: &SavedPlan, progress: &DoneOperations, stack: StackIndex) -> bool {
        let path = &self.present.project.stacks[stack].path;
        let Some(entry) = self.entry(stack) else {
            return progress.gone.contains(path);
        };
        if self.is_tainted_since(saved, entry) {
            return true;
        }
        let is_done = |operation| progress.done.contains(&(path.clone(), operation));
        let is_ours = is_of_plan(entry, &saved.plan.id)
            || progress.is_in_its_runs(entry)
            || is_done(OperationKey::Apply)
            || is_done(OperationKey::Destroy);
        !is_ours && self.is_newer(saved, stack)
    }

    /// Returns for each stack the changes by others before it since a plan was made.
    pub(super) fn changed_before(
        &self,
        saved: &SavedPlan,
        progress: &DoneOperations,
    ) -> ChangedBefore {
        let stacks = self.present.project.stacks.iter().map(|(stack, _)| stack);
        let changed = stacks.filter(|&stack| self.is_changed(saved, progress, stack));
        let mut open: VecDeque<(usize, StackIndex)> =
            changed.map(|stack| (stack.get(), stack)).collect();
        if open.is_empty() {
            return ChangedBefore::default();
        }
        let precedence = Precedence::new(self.present.graph);
        let mut of_node = vec![None; precedence.n_nodes()];
        while let Some((node, changed)) = open.pop_front() {
            for successor in precedence.successors(node) {
                let next = successor.node as usize;
                if of_node[next].is_none() {
                    of_node[next] = Some(changed);
                    open.push_back((next, changed));
                }
            }
        }
        ChangedBefore { of_node }
    }

    /// Checks the stacks that one runs after. Others must not have changed them, and its direct
    /// predecessors must still be recorded.
    pub(super) fn check_before(
        &mut self,
        saved: &SavedPlan,
        path: &StackPath,
        stack: StackIndex,
        progress: &DoneOperations,
        changed: &ChangedBefore,
    ) -> Option<Stale> {
        let stacks = &self.present.project.stacks;
        if let Some(changed) = changed.get(stack) {
            let changed = stacks[changed].path.clone();
            return Some(Stale::Before(path.clone(), Some(changed)));
        }
        let planned = saved.stack(path)?.records_before.as_ref();
        if self.records_before(stack).as_ref() == planned {
            return None;
        }
        let graph = self.present.graph;
        let before = graph.relatives(stack, SearchDirection::Dependencies, |it| {
            self.entry(it).is_some()
        });
        let mut before = before.iter().map(|relative| relative.stack);
        let is_destroyed = |done: &(StackPath, OperationKey)| done.1 == OperationKey::Destroy;
        // Operations of the plan, by it or by others, explain the difference.
        let explains = before.any(|before| self.is_newer(saved, before))
            || progress.done.iter().any(is_destroyed);
        (!explains).then(|| Stale::Before(path.clone(), None))
    }
}
