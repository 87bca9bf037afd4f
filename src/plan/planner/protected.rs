//! Protected stacks in a plan: they refuse it, or are kept with the stacks that they depend on.

use std::collections::{BTreeMap, BTreeSet};

use super::entries::Decisions;
use super::protection::Protections;
use super::removals::Removals;
use super::subjects::{Drivers, StacksToPlan};
use crate::context::Context;
use crate::plan::entry::PlannedAction;
use crate::plan::order::{NamedConstraints, RecordNode};
use crate::plan::protection::{ProtectedStack, Protection, ProtectionRefusal};
use crate::plan::removal::{RemovalRole, held};
use crate::printable::printable;
use crate::project::stack::{StackIndex, StackMode};
use crate::state::document::Document;

const FIX: &str = "`orch plan` without `--skip-protected` shows its rule";

impl Context {
    /// Returns the protected stacks, by path, that a plan would destroy in whole or in part. Notes
    /// those that are only removed from the state.
    pub(super) fn protected(
        &self,
        settled: &Decisions,
        subjects: &StacksToPlan<'_>,
        removals: &Removals<'_>,
        document: Option<&Document>,
    ) -> Vec<ProtectedStack> {
        let stacks = &self.project.stacks;
        let protections = Protections::new(self, document);
        let here = settled
            .destroyed(subjects)
            .filter_map(|(stack, reason, destroyed)| {
                Some(ProtectedStack {
                    stack: stacks[stack].path.clone(),
                    because: reason.text.clone(),
                    refusal: protections.refuse_here(stack, &destroyed)?,
                })
            });
        let mut protected: Vec<ProtectedStack> = here.collect();
        for removal in &removals.all {
            let here = removal
                .path
                .generation()
                .and_then(|_| stacks.find(&removal.path.current()));
            match removal.destroyed() {
                Some(destroyed) => {
                    let refusal = match here {
                        Some(stack) => protections.refuse_here(stack, &destroyed),
                        None => ProtectionRefusal::new(
                            Protection::of_removed(&self.project, &removal.path, &removal.entry),
                            &destroyed,
                        ),
                    };
                    // A replaced stack is already listed.
                    let is_new = |it: &ProtectionRefusal| !(removal.is_planned && it.is_of_stack());
                    let stack = if removal.is_planned {
                        removal.path.current()
                    } else {
                        removal.path.clone()
                    };
                    protected.extend(refusal.filter(is_new).map(|refusal| ProtectedStack {
                        stack,
                        because: removal.because(),
                        refusal,
                    }));
                }
                None if removal.action() == Some(PlannedAction::Forget) && here.is_none() => {
                    let rules =
                        Protection::of_removed(&self.project, &removal.path, &removal.entry);
                    if let Some(protection) = rules.first() {
                        self.notices.note(&format!(
                            "`{}` was {}; nothing is destroyed",
                            printable(removal.path.as_str()),
                            protection.text()
                        ));
                    }
                }
                None => {}
            }
        }
        protected.sort_by(|a, b| a.stack.cmp(&b.stack));
        protected
    }

    /// Notes the updates that `prevent_resource_destroy` cannot cover.
    pub(super) fn note_unreported(&self, settled: &Decisions) {
        let has_rule = |stack: &StackIndex| {
            let rule = self.project.rules_of(*stack).prevent_resource_destroy;
            rule.is_some_and(|rule| !rule.value.is_empty())
        };
        let mut unreported = settled.unreported().filter(has_rule);
        let Some(first) = unreported.next() else {
            return;
        };
        let first = printable(self.project.stacks[first].path.as_str());
        self.notices.note(&match unreported.count() {
            0 => format!(
                "`prevent_resource_destroy` doesn't cover the update of `{first}`: its driver doesn't report what it destroys"
            ),
            more => format!(
                "`prevent_resource_destroy` doesn't cover the updates of `{first}` and {more} more: their drivers don't report what they destroy"
            ),
        });
    }

    /// Keeps protected stacks and those that they run after; adds them to `blocked`.
    pub(super) fn skip_protected(
        &self,
        protected: &[ProtectedStack],
        settled: &mut Decisions,
        removals: &mut Removals<'_>,
        document: Option<&Document>,
        blocked: &mut BTreeMap<StackIndex, String>,
    ) {
        let record = NamedConstraints::new(&self.project, &self.graph, document);
        let drivers = Drivers::new(self, document);
        let going: BTreeSet<StackIndex> = settled.going().collect();
        let is_protected = |path: &str| {
            let found = protected.binary_search_by(|it| it.stack.as_str().cmp(path));
            found.is_ok()
        };
        let actions = removals.going();
        let part = |node: usize| {
            let stack = match record.node(node) {
                RecordNode::Here(stack) => stack,
                RecordNode::Group(_) => return RemovalRole::Missing,
                RecordNode::Removed(key) => {
                    return match actions.get(key) {
                        _ if is_protected(key) => RemovalRole::Untouched,
                        Some(PlannedAction::Delete) => RemovalRole::Destroyed,
                        Some(_) => RemovalRole::Missing,
                        None => RemovalRole::Updated,
                    };
                }
            };
            let here = &self.project.stacks[stack];
            if is_protected(here.path.as_str()) {
                RemovalRole::Untouched
            } else if going.contains(&stack) {
                RemovalRole::Destroyed
            } else if here.mode == StackMode::Manage
                && (document.is_none() || drivers.entry(stack).is_some())
            {
                RemovalRole::Updated
            } else {
                RemovalRole::Missing
            }
        };
        let held = held(&record.recorded, part);
        let holder = |kept: usize| {
            let mut holder = kept;
            while let Some(&next) = held.get(&holder) {
                holder = next;
            }
            record.name(&self.project, holder)
        };
        let kept = held.keys().map(|&kept| {
            let why = format!("kept: protected {} runs after it", holder(kept));
            (kept, why)
        });
        let mut all: Vec<(usize, String)> = kept.collect();
        for protected in protected {
            let why = protected.refusal.protection().text();
            let of_gone = || record.removed_node(protected.stack.as_str());
            let here = self.project.stacks.find(&protected.stack);
            let node = here.map(StackIndex::get).or_else(of_gone);
            all.extend(node.map(|node| (node, why)));
        }
        for (node, why) in all {
            match record.node(node) {
                RecordNode::Removed(key) => {
                    if let Some(removal) = removals.of_key(key) {
                        removal.block(why, FIX);
                    }
                }
                RecordNode::Here(stack) => {
                    settled.block(stack, &why);
                    blocked.insert(stack, why);
                }
                RecordNode::Group(_) => {}
            }
        }
    }
}
