//! Removed stacks that are kept: another stack may share their backend, or a kept stack needs them.

use std::collections::{BTreeMap, BTreeSet};

use super::removals::{Removal, Removals};
use super::subjects::{Drivers, StacksToPlan};
use crate::change::{StackStatus, StackStatuses};
use crate::context::Context;
use crate::driver::{Driver, Tool};
use crate::plan::backends::StackBackend;
use crate::plan::entry::{PlannedAction, Removed};
use crate::plan::order::{NamedConstraints, RecordNode};
use crate::plan::removal::{RemovalRole, held, is_only_forgotten};
use crate::printable::command_line;
use crate::project::driver::NONE;
use crate::project::stack::{StackIndex, StackMode};
use crate::state::document::Document;

/// The fix if a tool's backend is unknown.
const ASK_IT: &str = "run `orch apply --full`, which records the backends of all selected stacks";

/// The fix if a stack outside of the plan may be affected.
const PLAN_IT: &str = "plan that stack as well";

/// The fix if a stack is only forgotten.
const LEFT: &str = "its `removed` block keeps its resources: if they don't need this stack, apply that first, and plan again";

impl Context {
    /// Returns this commit's stacks with unknown backends, each with its driver. Their tools were
    /// not asked, and the recorded backend may be outdated.
    fn of_unknown_backend<'l>(
        &'l self,
        places: &BTreeMap<StackIndex, StackBackend>,
        document: &Document,
        statuses: &StackStatuses,
    ) -> Vec<(StackIndex, Driver<'l>)> {
        let drivers = Drivers::new(self, Some(document));
        let statuses = &statuses.stacks;
        let is_unknown = |stack: StackIndex, driver: &Driver<'_>| {
            let is_known = places.get(&stack).is_some_and(|place| place.now.is_some());
            let is_applied = statuses.get(&stack) == Some(&StackStatus::Applied);
            let entry = drivers.entry(stack).filter(|_| is_applied);
            // Terragrunt's backend cannot be known; what it has applied existed beside the others.
            let can_tell = driver.tool != Some(Tool::Terragrunt);
            let is_recorded = entry.is_some_and(|(_, it)| it.backend.is_some() || !can_tell);
            !is_known && !is_recorded
        };
        let stacks = self.project.stacks.iter();
        let managed = stacks.filter(|(_, it)| it.mode == StackMode::Manage);
        let with_driver = managed.filter_map(|(stack, _)| Some((stack, drivers.of(stack)?)));
        with_driver
            .filter(|(stack, driver)| is_unknown(*stack, driver))
            .collect()
    }

    /// Adds the backends in the drivers' blocks for stacks whose tools were not asked.
    pub(super) fn with_configured(
        &self,
        places: &BTreeMap<StackIndex, StackBackend>,
        document: &Document,
    ) -> BTreeMap<StackIndex, StackBackend> {
        let mut places = places.clone();
        let drivers = Drivers::new(self, Some(document));
        let environments = self.evaluator();
        for (stack, _) in self.project.stacks.iter() {
            let place = places.entry(stack).or_default();
            let driver = drivers.of(stack).filter(|_| place.now.is_none());
            let says = driver.filter(|it| it.block.is_some_and(|block| block.backend.is_some()));
            if let Some(driver) = says {
                let namespaces = environments.namespaces().of_stack(stack);
                // If it cannot be evaluated, it is unknown, like that of a tool that was not asked.
                place.now = driver.backend(&namespaces).ok().flatten();
            }
        }
        places
    }

    /// Blocks the stacks whose backends another stack has, or may have.
    pub fn block_by_backends(
        &self,
        removals: &mut Removals<'_>,
        places: &BTreeMap<StackIndex, StackBackend>,
        document: &Document,
        statuses: &StackStatuses,
    ) {
        let has_backend =
            |removal: &Removal<'_>| removal.may_be_destroyed() && removal.backend().is_some();
        if !removals.all.iter().any(has_backend) {
            return;
        }
        let places = &self.with_configured(places, document);
        let mut of_tree: BTreeMap<&str, StackIndex> = BTreeMap::new();
        for (&stack, place) in places {
            let recorded = place.recorded.as_ref().map(|(_, backend)| backend);
            // If the current backend differs from the recorded one, both have resources.
            let recorded = recorded.filter(|_| !(place.is_new_generation && place.now.is_some()));
            for backend in recorded.into_iter().chain(&place.now) {
                of_tree.insert(backend, stack);
            }
        }
        let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for key in statuses.missing.keys() {
            let entry = document.stacks.get(key);
            if let Some(backend) = entry.and_then(|entry| entry.backend.as_deref()) {
                missing.entry(backend).or_default().push(key);
            }
        }
        let mut unknown = None;
        for removal in &mut removals.all {
            let Some(backend) = removal.backend().map(str::to_owned) else {
                continue;
            };
            if !removal.may_be_destroyed() {
                continue;
            }
            let mut others = missing
                .get(backend.as_str())
                .into_iter()
                .flatten()
                .filter(|key| **key != removal.path.as_str());
            if let Some(other) = of_tree.get(backend.as_str()) {
                let other = &self.project.stacks[*other].path;
                removal.block(
                    format!("it has the same backend as {other}, which is in the project"),
                    "if its resources belong to that stack now, run `orch state forget`",
                );
            } else if let Some(other) = others.next() {
                removal.block(
                    format!("it has the same recorded backend as {other}"),
                    "remove the wrong one from the state with `orch state forget`",
                );
            } else {
                let unknown = unknown
                    .get_or_insert_with(|| self.of_unknown_backend(places, document, statuses));
                let own = removal.entry.driver.as_deref();
                let mut alike = unknown.iter().filter(|(_, driver)| is_alike(driver, own));
                if let Some((other, _)) = alike.next() {
                    let other = &self.project.stacks[*other].path;
                    removal.block(format!("{other} may have the same backend"), ASK_IT);
                }
            }
        }
    }

    /// Blocks removed stacks that another stack depends on if the plan keeps and does not touch it.
    /// `planned`: this commit's planned stacks that are not blocked.
    pub fn keep_needed(
        &self,
        removals: &mut Removals<'_>,
        document: Option<&Document>,
        planned: &BTreeMap<StackIndex, PlannedAction>,
    ) {
        let actions = removals.going();
        let mut going = actions
            .values()
            .filter(|action| **action == PlannedAction::Delete);
        let Some(document) = document.filter(|_| going.next().is_some()) else {
            return;
        };
        let record = NamedConstraints::new(&self.project, &self.graph, Some(document));
        let drivers = Drivers::new(self, Some(document));
        let moved: BTreeSet<&str> = removals.moved.values().map(String::as_str).collect();
        let left: BTreeSet<String> = removals
            .all
            .iter()
            .filter(|removal| removal.keeps_resources())
            .map(|removal| removal.path.to_string())
            .collect();
        let part = |node: usize| {
            let stack = match record.node(node) {
                RecordNode::Here(stack) => stack,
                RecordNode::Group(_) => return RemovalRole::Missing,
                RecordNode::Removed(key) => {
                    return match actions.get(key) {
                        Some(PlannedAction::Delete) => RemovalRole::Destroyed,
                        Some(_) if left.contains(key) => RemovalRole::Untouched,
                        Some(_) => RemovalRole::Missing,
                        None if moved.contains(key) => RemovalRole::Updated,
                        None if is_only_forgotten(&document.stacks[key]) => RemovalRole::Missing,
                        None => RemovalRole::Untouched,
                    };
                }
            };
            if self.project.stacks[stack].mode == StackMode::Read {
                return RemovalRole::Missing;
            }
            match planned.get(&stack) {
                Some(PlannedAction::Delete) => RemovalRole::Destroyed,
                Some(PlannedAction::NoOp) if drivers.of(stack).is_some_and(|it| it.is_none()) => {
                    RemovalRole::Missing
                }
                Some(_) => RemovalRole::Updated,
                None => match drivers.entry(stack) {
                    Some((_, entry)) if entry.driver.as_deref() != Some(NONE) => {
                        RemovalRole::Untouched
                    }
                    _ => RemovalRole::Missing,
                },
            }
        };
        let held = held(&record.recorded, part);
        let is_kept = |removals: &mut Removals<'_>, stack: usize| {
            let removal = match record.node(stack) {
                RecordNode::Removed(key) => removals.of_key(key),
                RecordNode::Here(_) | RecordNode::Group(_) => None,
            };
            held.contains_key(&stack) || removal.is_some_and(|it| it.blocked.is_some())
        };
        for (&kept, &holder) in &held {
            let RecordNode::Removed(key) = record.node(kept) else {
                continue;
            };
            let name = record.name(&self.project, holder);
            let fix = if left.contains(&name) {
                LEFT.to_owned()
            } else if is_kept(removals, holder) {
                let word = command_line(&[name.as_str().into()]);
                format!("`orch why {word}` shows why that stack is kept")
            } else {
                PLAN_IT.to_owned()
            };
            // No stack ran after an unfinished generation; old generations have their own rules.
            let is_held = |it: &&mut Removal<'_>| {
                it.removed != Removed::Unfinished && self.succeeded(it, planned).is_none()
            };
            if let Some(removal) = removals.of_key(key).filter(is_held) {
                removal.block(format!("{name} runs after it, and is kept"), fix);
            }
        }
    }
}

fn is_alike(driver: &Driver<'_>, recorded: Option<&str>) -> bool {
    let is_tool = |name: &str| matches!(name, "terraform" | "opentofu" | "terragrunt");
    match (driver.tool, recorded) {
        (_, None) => !driver.is_none(),
        (Some(_), Some(recorded)) => is_tool(recorded),
        (None, Some(recorded)) => {
            let says = driver.block.is_some_and(|block| block.backend.is_some());
            says && driver.name == recorded
        }
    }
}

impl StacksToPlan<'_> {
    /// Assigns this commit's stacks the entries that are recorded under other keys.
    pub(super) fn follow(&mut self, moves: &BTreeMap<StackIndex, String>) {
        for subject in &mut self.all {
            if let Some(key) = moves.get(&subject.stack) {
                subject.previous_path = Some(key.clone());
                subject.is_moved = true;
            }
        }
    }
}
