//! Warnings of a plan: triggers without effect, conditions that two stacks have on the same infrastructure, stacks that a
//! destroy keeps although they depend on destroyed ones, and stacks on which `--replace` has no effect.

use std::collections::{BTreeMap, BTreeSet};

use super::ask::AskedTools;
use super::subjects::{Drivers, StacksToPlan};
use crate::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::driver::Outputs;
use crate::error::{Error, Result};
use crate::notice::Notices;
use crate::path::StackPath;
use crate::plan::backends::StackBackend;
use crate::plan::checks::list_of_outputs;
use crate::plan::entry::{PlanEntry, PlannedAction};
use crate::plan::order::NamedConstraints;
use crate::plan::removal::is_only_forgotten;
use crate::plan::{DestroyOutcome, LeftBehind, Plan, left_behind};
use crate::printable::printable;
use crate::project::driver::DriverStep;
use crate::project::lifecycle::Condition;
use crate::project::stack::{StackIndex, StackMode};
use crate::project::tag::TagFilter;
use crate::selection::reference::{ReferenceKind, ReferenceTarget};
use crate::selection::select::{PathFilter, Selection};
use crate::state::document::Document;

impl Context {
    /// Warns of outputs in `replace_triggered_by` that are known not to exist.
    pub(super) fn warn_of_missing_outputs(
        &self,
        subjects: &StacksToPlan<'_>,
        document: Option<&Document>,
        asked: &AskedTools,
    ) {
        let drivers = Drivers::new(self, document);
        let planned: BTreeSet<StackIndex> = subjects.all.iter().map(|it| it.stack).collect();
        let mut warnings = Vec::new();
        for reference in &self.references.list {
            let (Some(output), ReferenceTarget::Stack(named)) =
                (&reference.output, &reference.target)
            else {
                continue;
            };
            if reference.kind != ReferenceKind::ReplaceTriggeredBy
                || !planned.contains(&reference.from)
            {
                continue;
            }
            let path = &self.project.stacks[*named].path;
            let warn = |message: String, label: &str| {
                let warning = Diagnostic::warning(Code::UnknownName, message);
                warning.label(reference.span, format!("{label}, so this replaces nothing"))
            };
            if let Some(driver) = drivers.of(*named)
                && !driver.has(DriverStep::Outputs)
            {
                let message = format!("the outputs of `{path}` are unknown");
                let label = format!("its driver `{}` has no `outputs`", driver.name);
                warnings.push(warn(message, &label));
                continue;
            }
            let answer = asked.answers.get(path).and_then(|it| it.as_ref().ok());
            let now = answer.and_then(|answer| answer.outputs.as_ref());
            let before = answer.and_then(|answer| answer.outputs_before.as_ref());
            let recorded = drivers.entry(*named).and_then(|it| it.1.known_outputs());
            if now.is_none() && recorded.is_none() {
                continue;
            }
            let read = now.into_iter().chain(before).flat_map(Outputs::names);
            let recorded = recorded
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str());
            let known: BTreeSet<&str> = read.chain(recorded).collect();
            if known.contains(output.as_str()) {
                continue;
            }
            let note = list_of_outputs(known.iter().copied());
            let message = format!("`{path}` has no output `{output}`");
            let warning = warn(message, "it has no such output").note(note);
            warnings.push(warning.did_you_mean(output, known));
        }
        self.notices.annotated(&warnings, &self.project.sources);
    }

    /// Warns of conditions on read-only stacks that the managing stacks have, too. Those of the
    /// managing stack are enough, since reading waits for it. Conditions that both inherit do not
    /// count.
    pub(super) fn warn_of_readers(
        &self,
        subjects: &StacksToPlan<'_>,
        places: &BTreeMap<StackIndex, StackBackend>,
    ) {
        let mode = |stack: StackIndex| self.project.stacks[stack].mode;
        let conditions = |stack: StackIndex| self.project.rules_of(stack).conditions;
        let readers: Vec<(StackIndex, &str)> = subjects
            .all
            .iter()
            .map(|subject| subject.stack)
            .filter(|&it| mode(it) == StackMode::Read)
            .filter(|&it| !conditions(it).is_empty())
            .filter_map(|it| Some((it, places.get(&it)?.backend()?)))
            .collect();
        if readers.is_empty() {
            return;
        }
        let managed: BTreeMap<&str, StackIndex> = places
            .iter()
            .filter_map(|(&stack, place)| {
                let is_managed = mode(stack) == StackMode::Manage;
                Some((place.backend().filter(|_| is_managed)?, stack))
            })
            .collect();
        let pairs = readers.into_iter().filter_map(|(reader, backend)| {
            let &keeper = managed.get(backend)?;
            let (of_reader, of_keeper) = (conditions(reader), conditions(keeper));
            let has_own = |own: &[&Condition], others: &[&Condition]| {
                let is_shared =
                    |it: &&Condition| others.iter().any(|other| std::ptr::eq(*it, *other));
                !own.iter().all(is_shared)
            };
            let both = has_own(&of_reader, &of_keeper) && has_own(&of_keeper, &of_reader);
            both.then_some((reader, keeper, backend))
        });
        let path = |stack: StackIndex| &self.project.stacks[stack].path;
        for (reader, keeper, backend) in pairs.take(MAX_WARNINGS) {
            let (reader, keeper) = (path(reader), path(keeper));
            self.notices.warning(&printable(&format!(
                "{reader} and {keeper} have conditions on the same infrastructure, `{backend}`; keep those of {keeper}, and let {reader} run after it"
            )));
        }
    }
}

const MAX_WARNINGS: usize = 10;

const MAX_NAMED: usize = 10;

impl Context {
    /// Returns the kept stacks, by path, that run after destroyed ones.
    ///
    /// With a state, recorded stacks exist, even after a failed apply. Without one, every stack
    /// with a driver exists. A stack that the plan found missing does not exist. Stacks with the
    /// driver `none`, and stacks that are only read, are never destroyed.
    pub fn left_behind(&self, plan: &Plan, document: Option<&Document>) -> Vec<LeftBehind> {
        let stacks = &self.project.stacks;
        let mut destroyed = BTreeSet::new();
        let mut is_found = BTreeMap::new();
        for entry in &plan.entries {
            let Some(stack) = stacks.find(&entry.stack) else {
                continue;
            };
            if entry.action == PlannedAction::Delete && entry.blocked.is_none() {
                destroyed.insert(stack);
            }
            is_found.insert(stack, entry.blocked.is_some());
        }
        let is_missing =
            |entry: &PlanEntry| entry.removed.is_some() && entry.action == PlannedAction::Delete;
        if destroyed.is_empty() && !plan.entries.iter().any(is_missing) {
            return Vec::new();
        }
        let drivers = Drivers::new(self, document);
        let exists = |stack: StackIndex| {
            let driver = drivers.of(stack);
            if stacks[stack].mode == StackMode::Read || driver.is_some_and(|it| it.is_none()) {
                return false;
            }
            // The tools of blocked stacks were not asked.
            is_found.get(&stack).copied().unwrap_or(true)
                && match document {
                    Some(_) => drivers.entry(stack).is_some(),
                    None => driver.is_some(),
                }
        };
        let fate = |stack| {
            if destroyed.contains(&stack) {
                DestroyOutcome::Destroyed
            } else if exists(stack) {
                DestroyOutcome::Kept
            } else {
                DestroyOutcome::Missing
            }
        };
        let record = NamedConstraints::new(&self.project, &self.graph, document);
        let of_gone = |key: &str| {
            let entry = StackPath::parse(key).and_then(|path| plan.entry(&path));
            let action = entry.filter(|it| it.blocked.is_none()).map(|it| it.action);
            let recorded = document.and_then(|document| document.stacks.get(key));
            match action {
                Some(PlannedAction::Delete) => DestroyOutcome::Destroyed,
                Some(PlannedAction::Forget) => DestroyOutcome::Missing,
                _ if recorded.is_some_and(is_only_forgotten) => DestroyOutcome::Missing,
                _ => DestroyOutcome::Kept,
            }
        };
        left_behind(&self.project, &self.graph, &record, fate, of_gone)
    }
}

/// The fix if a stack is kept.
const FIX: &str = "add `--include-dependents` to destroy them too; if they no longer exist, run `orch state forget`";

/// Refuses the apply if any stack is kept.
pub fn refuse_left_behind(left_behind: &[LeftBehind]) -> Option<Error> {
    let first = left_behind.first()?;
    let (kept, destroyed) = (printable(&first.kept), printable(&first.destroyed));
    let dependents = left_behind
        .iter()
        .filter(|it| it.destroyed == first.destroyed)
        .count();
    let depend = match dependents - 1 {
        0 => format!("`{kept}` depends on it"),
        more => format!("{dependents} stacks depend on it: `{kept}` and {more} more"),
    };
    let others = match left_behind.len() - dependents {
        0 => String::new(),
        more => format!("; {more} more stacks depend on others that would be destroyed"),
    };
    let what = format!("cannot destroy `{destroyed}`: {depend}{others}");
    Some(Error::refused(what).hint(FIX))
}

pub fn warn_of_left_behind(notices: &Notices, left_behind: &[LeftBehind]) {
    for LeftBehind { kept, destroyed } in left_behind.iter().take(MAX_NAMED) {
        let (kept, destroyed) = (printable(kept), printable(destroyed));
        notices.warning(&format!(
            "`{kept}` depends on `{destroyed}`, which would be destroyed: an apply is refused"
        ));
    }
    if let Some(more @ 1..) = left_behind.len().checked_sub(MAX_NAMED) {
        notices.warning(&format!(
            "{more} more stacks are kept and depend on destroyed ones"
        ));
    }
    if !left_behind.is_empty() {
        notices.help(FIX);
    }
}

const MOST: usize = 10;

impl Context {
    /// Resolves `--replace`. Fails if a reference matches no selected stack.
    pub fn named_by(
        &self,
        written: &[String],
        selection: &Selection,
    ) -> Result<BTreeSet<StackIndex>> {
        let mut named = BTreeSet::new();
        for text in written {
            let wrong = |problem: &dyn std::fmt::Display| {
                Error::usage(format!("in --replace: `{text}`: {problem}"))
            };
            let stacks = self.project.stacks.iter();
            let mut found: Vec<StackIndex> = if let Some(tags) = text.strip_prefix("tag:") {
                let filter = TagFilter::parse(tags).map_err(|bad| wrong(&bad))?;
                let found = stacks.filter(|(_, stack)| filter.matches(|tag| stack.has_tag(tag)));
                found.map(|(stack, _)| stack).collect()
            } else {
                let filter = PathFilter::new(&self.directory, text).map_err(|bad| wrong(&bad))?;
                let found = stacks.filter(|(_, stack)| filter.matches(&stack.path));
                found.map(|(stack, _)| stack).collect()
            };
            if found.is_empty() {
                let is_path = !text.starts_with("tag:");
                let meant = is_path.then(|| self.meant_path("--replace", text));
                let meant = meant.unwrap_or_default();
                return Err(Error::usage(format!(
                    "in --replace: no stack `{text}`{meant}"
                )));
            }
            found.retain(|stack| selection.contains(*stack));
            if found.is_empty() {
                return Err(
                    Error::usage(format!("in --replace: `{text}` is not selected"))
                        .hint("select the stack too, or remove `--replace`"),
                );
            }
            named.extend(found);
        }
        Ok(named)
    }

    pub(super) fn warn_of_kept(&self, plan: &Plan, replaced: &BTreeSet<StackIndex>) {
        let kept = replaced.iter().filter_map(|stack| {
            let path = &self.project.stacks[*stack].path;
            let why = match plan.entry(path) {
                Some(entry) => kept_because(entry)?,
                // Stacks that fail to plan are reported separately.
                None if plan.failed.iter().any(|failed| failed.stack == *path) => return None,
                None => "it has no driver".to_owned(),
            };
            Some((path, why))
        });
        let kept: Vec<_> = kept.collect();
        for (path, why) in kept.iter().take(MOST) {
            self.notices.warning(&format!(
                "`--replace` has no effect on `{}`: {}",
                printable(path.as_str()),
                printable(why)
            ));
        }
        if let Some(more @ 1..) = kept.len().checked_sub(MOST) {
            self.notices
                .warning(&format!("`--replace` has no effect on {more} more stacks"));
        }
    }
}

/// Returns why an entry is not replaced, if so.
fn kept_because(entry: &PlanEntry) -> Option<String> {
    if let Some(why) = &entry.blocked {
        return Some(format!("it is blocked ({why})"));
    }
    Some(match entry.action {
        PlannedAction::Replace => return None,
        PlannedAction::Create => "the plan creates it".to_owned(),
        PlannedAction::Delete => "the plan deletes it".to_owned(),
        PlannedAction::Read => "it is only read".to_owned(),
        _ if !entry.is_planned => {
            "its tool failed; if the apply plans it again, nothing is replaced".to_owned()
        }
        _ => entry.reason.text.clone(),
    })
}
