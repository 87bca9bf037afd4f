//! Generations of stacks that are created before the old ones are destroyed. Old generations are destroyed with the code
//! of their own commits, and kept as long as stacks may still use them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::entries::Decisions;
use super::removals::{Removal, Removals};
use super::subjects::{Drivers, NextGeneration, StacksToPlan};
use super::{AskedTools, Planning};
use crate::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::error::Result;
use crate::exit::ExitStatus;
use crate::git::CommitId;
use crate::path::{Generation, StackPath};
use crate::plan::backends::StackBackend;
use crate::plan::entry::{PlanMode, PlannedAction, Removed};
use crate::plan::order::NamedConstraints;
use crate::plan::removal::is_only_forgotten;
use crate::plan::succession::{GenerationUser, Hold, LeavingUser, UserPlan};
use crate::printable::{command_line, printable};
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
