//! What a plan over all stacks would do with removed stacks, as far as the state shows.

use std::collections::{BTreeMap, BTreeSet};

use super::ask::AskedTools;
use super::commits::Commits;
use super::removals::Removals;
use super::subjects::{Drivers, RecordedState, StacksToPlan};
use crate::context::Context;
use crate::error::Result;
use crate::path::StackPath;
use crate::plan::entry::PlannedAction;
use crate::plan::order::{NamedConstraints, RecordNode, StackWork};
use crate::plan::removal::is_only_forgotten;
use crate::plan::ties::Ties;
use crate::plan::{DestroyOutcome, PlannedOrder};
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
        let nothing = StacksToPlan {
            all: Vec::new(),
            without_driver: 0,
        };
        let recorded_places = self.places(&nothing, &entries, &AskedTools::none(self));
        let places = self.with_configured(&recorded_places, document);
        for (stack, key) in self.moved_by_backend(&places, &entries, Some(recorded)) {
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
        self.keep_needed(removals, Some(document), &self.plannable(document));
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
