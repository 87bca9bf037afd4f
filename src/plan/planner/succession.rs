//! Old generations that are kept because stacks may still use them.

use std::collections::{BTreeMap, BTreeSet};

use super::removals::{Removal, Removals};
use super::subjects::Drivers;
use crate::context::Context;
use crate::path::StackPath;
use crate::plan::entry::{PlannedAction, Removed};
use crate::plan::order::NamedConstraints;
use crate::plan::removal::is_only_forgotten;
use crate::plan::succession::{GenerationUser, Hold, LeavingUser, UserPlan};
use crate::printable::command_line;
use crate::project::driver::NONE;
use crate::project::stack::{StackIndex, StackMode};
use crate::selection::graph::Precedence;
use crate::state::document::{Document, Entry};

/// A stack that may still use an old generation after the plan.
struct GenerationHolder {
    name: String,
    is_planned: bool,
    is_generation: bool,
}

impl GenerationHolder {
    fn why(&self) -> String {
        let GenerationHolder { name, .. } = self;
        if self.is_planned {
            format!("{name} may still use it, and has no changes")
        } else {
            format!("{name} may still use it, and is not part of the plan")
        }
    }

    fn fix(&self, of: &StackPath) -> String {
        let GenerationHolder { name, .. } = self;
        let release = format!(
            "if nothing uses it, run `{}`",
            command_line(&["orch", "state", "release", of.as_str()].map(Into::into))
        );
        if self.is_generation {
            return release;
        }
        if !self.is_planned {
            return format!("plan {name} as well; or, {release}");
        }
        format!(
            "compute a variable of {name} from `stacks[\"{of}\"].generation`, so that it uses the new generation; or, {release}"
        )
    }
}

impl Context {
    /// Returns this commit's kept stack whose old generation is destroyed.
    pub(super) fn succeeded(
        &self,
        removal: &Removal<'_>,
        planned: &BTreeMap<StackIndex, PlannedAction>,
    ) -> Option<StackIndex> {
        let is_old = matches!(removal.removed, Removed::Replaced { .. });
        let stack = self
            .project
            .stacks
            .find(&removal.path.current())
            .filter(|_| is_old && removal.path.generation().is_some())?;
        (planned.get(&stack) != Some(&PlannedAction::Delete)).then_some(stack)
    }

    /// Keeps old generations that stacks may use after the plan. Records for the others which
    /// stacks must be applied before the destroy. `planned`: this commit's planned stacks that are
    /// not blocked; `applied`: those of them with a turn.
    pub fn keep_old_generations(
        &self,
        removals: &mut Removals<'_>,
        document: Option<&Document>,
        planned: &BTreeMap<StackIndex, PlannedAction>,
        applied: &BTreeSet<StackIndex>,
    ) {
        let is_old =
            |it: &Removal<'_>| it.may_be_destroyed() && self.succeeded(it, planned).is_some();
        let Some(document) = document.filter(|_| removals.all.iter().any(is_old)) else {
            return;
        };
        let users = GenerationUsers::new(self, document, planned, applied);
        // A kept generation may use others.
        loop {
            let old: Vec<(usize, StackIndex)> = removals
                .all
                .iter()
                .enumerate()
                .filter(|(_, it)| is_old(it))
                .filter_map(|(at, it)| Some((at, self.succeeded(it, planned)?)))
                .collect();
            let mut is_kept = false;
            for (at, stack) in old {
                match users.leaving(removals, &removals.all[at], stack) {
                    Ok(leaving) => removals.all[at].leaving = leaving,
                    Err(holder) => {
                        let fix = holder.fix(&removals.all[at].path.current());
                        removals.all[at].block(holder.why(), fix);
                        is_kept = true;
                    }
                }
            }
            if !is_kept {
                return;
            }
        }
    }
}

/// Dependents in the project and in the state.
struct GenerationUsers<'a> {
    context: &'a Context,
    document: &'a Document,
    planned: &'a BTreeMap<StackIndex, PlannedAction>,
    applied: &'a BTreeSet<StackIndex>,
    drivers: Drivers<'a, 'a>,
    record: NamedConstraints<'a>,
    recorded: Precedence,
    tree: Precedence,
    /// This commit's stacks, with the stacks whose generations they use.
    used: Vec<(StackIndex, BTreeSet<StackIndex>)>,
}

impl<'a> GenerationUsers<'a> {
    fn new(
        context: &'a Context,
        document: &'a Document,
        planned: &'a BTreeMap<StackIndex, PlannedAction>,
        applied: &'a BTreeSet<StackIndex>,
    ) -> Self {
        let record = NamedConstraints::new(&context.project, &context.graph, Some(document));
        let environments = context.evaluator();
        let stacks = context.project.stacks.iter();
        let used = stacks.map(|(stack, _)| {
            let used = environments.stacks_used(stack).into_keys();
            (stack, used.collect())
        });
        GenerationUsers {
            context,
            document,
            planned,
            applied,
            drivers: Drivers::new(context, Some(document)),
            recorded: record.recorded.precedence(),
            record,
            tree: Precedence::new(&context.graph),
            used: used.collect(),
        }
    }

    /// Returns the stacks that must be applied before an old generation is destroyed. The error is
    /// the first stack that may use it after the plan.
    fn leaving(
        &self,
        removals: &Removals<'_>,
        old: &Removal<'_>,
        stack: StackIndex,
    ) -> Result<Vec<LeavingUser>, GenerationHolder> {
        let Some((key, current)) = self.drivers.entry(stack) else {
            return Ok(Vec::new());
        };
        let deposed = current
            .deposed
            .iter()
            .find(|it| Some(it.generation) == old.path.generation());
        if deposed.is_some_and(|deposed| deposed.released) {
            return Ok(Vec::new());
        }
        let is_current = Some(current.generation) == old.path.generation();
        let starts = self.record.removed_node(old.path.as_str()).into_iter();
        let after_old = self.recorded.reached(starts.chain([stack.get()]));
        let after_stack = self.tree.reached([stack.get()].into_iter());
        let mut leaving = Vec::new();
        for (user, used) in &self.used {
            let node = user.get();
            if *user == stack || !after_old[node] && !after_stack[node] {
                continue;
            }
            let holder = |is_planned: bool| GenerationHolder {
                name: self.context.project.stacks[*user].path.to_string(),
                is_planned,
                is_generation: false,
            };
            let entry = self.drivers.entry(*user).map(|(_, entry)| entry);
            if let Some(kept) =
                entry.and_then(|entry| kept_generation(removals, self, *user, entry))
            {
                return Err(kept);
            }
            let is_new = entry.is_none() && self.planned.get(user) == Some(&PlannedAction::Create);
            if is_new || self.has_nothing(*user) {
                continue;
            }
            let plan = match self.planned.get(user) {
                Some(PlannedAction::Delete) => UserPlan::Destroyed,
                _ if self.applied.contains(user) => UserPlan::Applied,
                None => UserPlan::Absent,
                Some(_) => UserPlan::Unchanged,
            };
            let known = GenerationUser {
                plan,
                is_recorded: entry.is_some(),
                has_left: !is_current
                    && entry.is_some_and(|entry| entry.has_left_old(key, current)),
                uses_number: used.contains(&stack),
            };
            match known.hold() {
                Hold::Never => {}
                Hold::UntilApplied | Hold::UntilChanged => leaving.push(LeavingUser {
                    stack: *user,
                    must_change: known.hold() == Hold::UntilChanged,
                }),
                Hold::Beyond => return Err(holder(plan == UserPlan::Unchanged)),
            }
        }
        for (node, key) in self.record.removed_nodes() {
            if after_old[node] && self.is_kept(removals, old, key) {
                return Err(GenerationHolder {
                    name: key.to_owned(),
                    is_planned: false,
                    is_generation: key.contains("[generation "),
                });
            }
        }
        Ok(leaving)
    }

    /// Returns whether a stack has no resources: it is only read, or only recorded.
    fn has_nothing(&self, stack: StackIndex) -> bool {
        let is_read = self.context.project.stacks[stack].mode == StackMode::Read;
        let entry = self.drivers.entry(stack);
        let is_none = match self.drivers.of(stack) {
            Some(driver) => driver.is_none(),
            None => entry.is_some_and(|(_, entry)| entry.driver.as_deref() == Some(NONE)),
        };
        is_read || is_none
    }

    fn is_kept(&self, removals: &Removals<'_>, old: &Removal<'_>, key: &str) -> bool {
        let is_own = StackPath::parse(key).is_some_and(|path| path.current() == old.path.current());
        let mut all = removals.all.iter();
        match all.find(|it| it.path.as_str() == key) {
            _ if is_own => false,
            Some(removal) => removal.is_kept(),
            None => {
                let entry = self.document.stacks.get(key);
                !removals.is_forgotten(key) && entry.is_some_and(|it| !is_only_forgotten(it))
            }
        }
    }
}

/// Returns a kept old generation, if any: it may use the generations that it was applied with.
fn kept_generation(
    removals: &Removals<'_>,
    users: &GenerationUsers<'_>,
    stack: StackIndex,
    entry: &Entry,
) -> Option<GenerationHolder> {
    let path = &users.context.project.stacks[stack].path;
    let mut deposed = entry.deposed.iter();
    deposed.find_map(|deposed| {
        let path = path.of_generation(deposed.generation);
        let mut all = removals.all.iter();
        let is_removed =
            removals.is_forgotten(path.as_str()) || all.any(|it| it.path == path && !it.is_kept());
        (!is_removed).then(|| GenerationHolder {
            name: path.to_string(),
            is_planned: false,
            is_generation: true,
        })
    })
}
