//! What a plan over all stacks would do with removed stacks, as far as the state shows: some are kept, since another
//! stack may share their backend, a kept stack needs them, or they are protected.

use std::collections::{BTreeMap, BTreeSet};

use super::commits::Commits;
use super::recorded_facts::recorded_places;
use super::removals::{Removal, Removals};
use super::subjects::{Drivers, RecordedState};
use crate::change::{StackStatus, StackStatuses};
use crate::context::Context;
use crate::driver::{Driver, Tool};
use crate::error::Result;
use crate::path::StackPath;
use crate::plan::backends::StackBackend;
use crate::plan::entry::{PlannedAction, Removed};
use crate::plan::order::{NamedConstraints, RecordNode, StackWork};
use crate::plan::protection::{DestroyedPart, Protection, ProtectionRefusal};
use crate::plan::removal::{RemovalRole, held, is_only_forgotten};
use crate::plan::ties::Ties;
use crate::plan::{DestroyOutcome, PlannedOrder};
use crate::printable::command_line;
use crate::project::driver::NONE;
use crate::project::stack::{StackIndex, StackMode};
use crate::state::document::Document;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovalOutlook {
    /// Whether it is destroyed, only removed from the state, or kept.
    pub action: PlannedAction,
    /// Why it is kept although it was removed, and the fix.
    pub blocked: Option<(String, String)>,
    /// If it is destroyed: it and all destroyed stacks related to it, in the order of destruction.
    pub order: Vec<String>,
    /// The kept stacks that ran after it.
    pub users: Vec<String>,
}

impl Default for RemovalOutlook {
    fn default() -> Self {
        RemovalOutlook {
            action: PlannedAction::NoOp,
            blocked: None,
            order: Vec::new(),
            users: Vec::new(),
        }
    }
}

impl Context {
    /// Returns the outlook for recorded stacks that this commit lacks, by key. No tool is asked:
    /// one may find nothing to destroy, or a backend that another stack shares. Fails if the code
    /// of removed stacks is unreadable.
    pub fn removal_outlooks(
        &mut self,
        recorded: &RecordedState,
        keys: &[&str],
    ) -> Result<Vec<RemovalOutlook>> {
        let RecordedState { document, statuses } = recorded;
        self.set_generations(document);
        let keeps_resources = |key: &str| {
            let missing = statuses.missing.get(key);
            missing.is_some_and(|missing| missing.leaving().is_some())
        };
        let is_forgotten = |key: &str| {
            keeps_resources(key) || document.stacks.get(key).is_none_or(is_only_forgotten)
        };
        let missing = statuses.missing.keys().filter(|key| !is_forgotten(key));
        let paths = missing.filter_map(|key| StackPath::parse(key));
        // A stack of this commit at the same path reports the entry.
        let paths: Vec<StackPath> = paths
            .filter(|path| self.project.stacks.find(path).is_none())
            .collect();
        let mut removals = Removals::to_destroy(document, &statuses.missing, paths.iter());
        self.block_as_planned(&mut removals, recorded)?;
        let actions = removals.going();
        let destroyed: BTreeSet<&str> = actions.keys().map(String::as_str).collect();

        let project = &self.project;
        let no_work = vec![StackWork::default(); project.stacks.len()];
        let order = PlannedOrder::of(project, &self.graph, Some(document), &no_work, &destroyed)
            .operations(project);
        let record = NamedConstraints::new(project, &self.graph, Some(document));
        let ties = Ties::new(&record.recorded);
        let nodes: BTreeMap<&str, usize> = record
            .removed_nodes()
            .map(|(node, key)| (key, node))
            .collect();
        let drivers = Drivers::new(self, Some(document));
        let fate = |node: usize| match record.node(node) {
            RecordNode::Removed(key) if destroyed.contains(key) => DestroyOutcome::Destroyed,
            RecordNode::Removed(key) if keeps_resources(key) => DestroyOutcome::Kept,
            RecordNode::Removed(key) if is_forgotten(key) => DestroyOutcome::Missing,
            RecordNode::Removed(_) => DestroyOutcome::Kept,
            RecordNode::Here(stack) if project.stacks[stack].mode == StackMode::Read => {
                DestroyOutcome::Missing
            }
            RecordNode::Here(stack) => match drivers.entry(stack) {
                Some((_, entry)) if entry.driver.as_deref() != Some(NONE) => DestroyOutcome::Kept,
                _ => DestroyOutcome::Missing,
            },
            RecordNode::Group(_) => DestroyOutcome::Missing,
        };
        let name = |node: usize| record.name(project, node);
        let outlook = keys.iter().map(|key| {
            let is_proven = statuses
                .missing
                .get(*key)
                .is_some_and(|it| it.evidence.is_ok());
            let node = nodes.get(key).copied();
            let users = node.map(|node| ties.staying_users(node, fate));
            let mut outlook = RemovalOutlook {
                users: users.into_iter().flatten().map(name).collect(),
                ..RemovalOutlook::default()
            };
            if !is_proven {
                return outlook;
            }
            if is_forgotten(key) {
                outlook.action = PlannedAction::Forget;
                outlook.users.clear();
            } else if destroyed.contains(key) {
                let with = node.map(|node| ties.with(node)).unwrap_or_default();
                let is_tied = |path: &str| {
                    let node = nodes.get(path).copied();
                    node.is_some_and(|node| with.get(node) == Some(&true))
                };
                outlook.action = PlannedAction::Delete;
                let order = order.iter().map(|operation| operation.stack.to_string());
                outlook.order = order.filter(|path| is_tied(path)).collect();
            } else if let Some(removal) = removals.of_key(key) {
                let blocked = removal.blocked.as_ref();
                outlook.blocked = blocked.map(|it| (it.why.clone(), it.fix.clone()));
            }
            outlook
        });
        Ok(outlook.collect())
    }

    /// Keeps the stacks that a plan would keep, as far as no tool is needed for that.
    fn block_as_planned(
        &self,
        removals: &mut Removals<'_>,
        recorded: &RecordedState,
    ) -> Result<()> {
        let RecordedState { document, statuses } = recorded;
        let entries = self.entries_of(document);
        let places = self.with_configured(&recorded_places(&entries), document);
        for (stack, key) in self.moved_by_backend(&places, &entries, recorded) {
            let to = &self.project.stacks[stack].path;
            if let Some(removal) = removals.of_key(&key) {
                removal.block(
                    format!("it was moved to {to}, which has the same backend"),
                    "the next `orch apply` records that",
                );
            }
        }
        self.block_by_backends(removals, &places, document, statuses);
        let mut commits = Commits::default();
        removals.check_out(self, &mut commits)?;
        let environments = removals.environments(&commits);
        removals.codes(self, Some(document), &commits, &environments, &[]);
        // The code has the backends that are not recorded.
        self.block_by_backends(removals, &places, document, statuses);
        let planned = self.plannable(document);
        self.keep_needed(removals, Some(document), &planned);
        for removal in &mut removals.all {
            if !removal.may_be_destroyed() {
                continue;
            }
            let rules = Protection::of_removed(&self.project, &removal.path, &removal.entry);
            if let Some(refusal) = ProtectionRefusal::new(rules, &DestroyedPart::unknown()) {
                removal.block(refusal.kept_because(), refusal.fix(1));
            }
        }
        // A protected stack requires that its dependencies are kept.
        self.keep_needed(removals, Some(document), &planned);
        Ok(())
    }

    /// Returns the stacks of this commit that a plan over all stacks would cover.
    fn plannable(&self, document: &Document) -> BTreeMap<StackIndex, PlannedAction> {
        let drivers = Drivers::new(self, Some(document));
        let stacks = self.project.stacks.iter();
        let planned = stacks.filter(|(stack, _)| drivers.of(*stack).is_some());
        planned
            .map(|(stack, _)| (stack, PlannedAction::NoOp))
            .collect()
    }
}

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
