//! Stacks in the state that this commit lacks. With proof of removal, they are destroyed with the
//! code of the commit that last applied them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::PlanRequest;
use super::ask::AskedTools;
use super::subjects::RecordedState;
use crate::change::{MissingStack, RemovedBy};
use crate::context::Context;
use crate::driver::DriverAnswer;
use crate::git::CommitId;
use crate::notice::Notices;
use crate::path::StackPath;
use crate::plan::entry::{PlanEntry, PlanMode, PlanReason, PlannedAction, ReasonSource, Removed};
use crate::plan::protection::DestroyedPart;
use crate::plan::removal::RemovedStack;
use crate::plan::stale::{Stale, record_of, record_of_generation};
use crate::plan::succession::LeavingUser;
use crate::plan::{FailedAsk, SavedStack, UnplannedRemovals};
use crate::printable::printable;
use crate::selection::select::Query;
use crate::state::document::{AttemptOutcome, Document, Entry, RunAction as Written};

const MAX_WARNINGS: usize = 10;

/// A recorded stack that this commit lacks, in the scope of a plan.
pub struct Removal<'d> {
    pub path: StackPath,
    pub entry: Cow<'d, Entry>,
    pub removed: Removed,
    /// The commit whose code destroys it, if its removal is proven.
    pub seen: Option<CommitId>,
    /// Why it is kept, and the fix.
    pub blocked: Option<BlockedRemoval>,
    /// Its backend according to its commit's driver.
    pub(super) backend_there: Option<String>,
    pub(super) decided: Option<DecidedRemoval>,
    /// Whether it is a generation that is current until the plan is applied.
    pub(super) is_planned: bool,
    /// The stacks that may use this old generation until they are applied.
    pub leaving: Vec<LeavingUser>,
}

pub struct BlockedRemoval {
    pub why: String,
    pub fix: String,
}

pub(super) struct DecidedRemoval {
    pub(super) action: PlannedAction,
    pub(super) reason: PlanReason,
    pub(super) answer: Option<DriverAnswer>,
    pub(super) driver: String,
}

#[derive(Default)]
pub struct Removals<'d> {
    /// By path.
    pub all: Vec<Removal<'d>>,
    pub(super) unplanned: UnplannedRemovals,
    /// The stacks whose tools could not be asked, with the reason.
    pub(super) failed: BTreeMap<StackPath, String>,
    /// The keys of stacks that an existing plan only removes from the state.
    forgotten: BTreeSet<String>,
    /// The keys of recorded stacks that this commit lacks without proof of removal.
    absent: BTreeSet<String>,
}

/// Returns the outcome of a later apply that failed and may be of another commit.
fn failed_since(entry: &Entry, seen: &CommitId) -> Option<String> {
    let intent = entry.intent.as_ref();
    if intent.is_some_and(|intent| intent.action == Written::Apply) {
        return Some("its last apply was interrupted".to_owned());
    }
    let last = entry.last.as_ref()?;
    let has_failed = last.action == Written::Apply && last.outcome != AttemptOutcome::Succeeded;
    let commit = last.commit.as_deref().and_then(CommitId::new);
    let applied = entry.applied.as_ref()?.commit.as_deref();
    let commit =
        commit.filter(|commit| has_failed && commit != seen && applied != Some(commit.as_str()))?;
    Some(format!(
        "its last apply, of commit {}, failed",
        commit.short()
    ))
}

fn absent(missing: &BTreeMap<String, MissingStack>) -> BTreeSet<String> {
    let absent = missing.iter().filter(|(_, it)| it.evidence.is_err());
    absent.map(|(key, _)| key.clone()).collect()
}

impl<'d> Removal<'d> {
    fn new(path: StackPath, entry: &'d Entry, missing: &MissingStack) -> Self {
        let (removed, seen, mut blocked) = match &missing.evidence {
            Ok(removal) => {
                let removed = match &removal.by {
                    RemovedBy::Commit(commit) => Removed::Commit(commit.to_string()),
                    RemovedBy::Key => Removed::Key,
                    RemovedBy::Block(block) => Removed::Block {
                        file: block.file.clone(),
                        line: block.line,
                        destroys: block.destroys,
                    },
                };
                (removed, removal.seen.clone(), None)
            }
            Err(none) => {
                let blocked = BlockedRemoval {
                    why: none.to_string(),
                    fix: none.fix(),
                };
                let removed = if none.is_doubt() {
                    Removed::Doubtful
                } else if none.is_unknown() {
                    Removed::Unknown
                } else {
                    Removed::Unproven
                };
                (removed, None, Some(blocked))
            }
        };
        // With a recorded backend, a later change of it is detected.
        if let (Some(seen), None) = (&seen, &entry.backend)
            && !removed.leaves()
            && let Some(why) = failed_since(entry, seen)
        {
            blocked = Some(BlockedRemoval {
                why,
                fix: "restore it, run `orch destroy` on it, and delete it again".to_owned(),
            });
        }
        Removal {
            blocked,
            ..Removal::open(path, Cow::Borrowed(entry), removed, seen)
        }
    }

    /// Returns a removal about which nothing is decided.
    pub(super) fn open(
        path: StackPath,
        entry: Cow<'d, Entry>,
        removed: Removed,
        seen: Option<CommitId>,
    ) -> Self {
        Removal {
            path,
            entry,
            removed,
            seen,
            blocked: None,
            backend_there: None,
            decided: None,
            is_planned: false,
            leaving: Vec::new(),
        }
    }

    pub(super) fn known(&self) -> RemovedStack<'_> {
        RemovedStack {
            entry: &self.entry,
            removed: &self.removed,
        }
    }

    pub(super) fn block(&mut self, why: impl Into<String>, fix: impl Into<String>) {
        self.blocked.get_or_insert_with(|| BlockedRemoval {
            why: why.into(),
            fix: fix.into(),
        });
    }

    pub(super) fn backend(&self) -> Option<&str> {
        let answer = self.decided.as_ref().and_then(|it| it.answer.as_ref());
        let answered = answer.and_then(|answer| answer.backend.as_deref());
        let there = self.backend_there.as_deref();
        self.entry.backend.as_deref().or(answered).or(there)
    }

    /// Returns whether it may be destroyed, as far as known.
    pub(super) fn may_be_destroyed(&self) -> bool {
        let decided = self.decided.as_ref();
        self.blocked.is_none() && decided.is_none_or(|it| it.action == PlannedAction::Delete)
    }

    pub(super) fn needs_code(&self) -> bool {
        self.blocked.is_none() && self.decided.is_none()
    }

    /// Returns whether its resources are certainly its own, whichever command destroys them.
    pub(super) fn is_unmistakable(&self) -> bool {
        self.entry.backend.is_some()
            || self.path.generation().is_some()
            || matches!(self.removed, Removed::Block { .. })
    }

    pub(super) fn destroyed(&self) -> Option<DestroyedPart<'_>> {
        let decided = self.decided.as_ref().filter(|_| self.blocked.is_none())?;
        match &decided.answer {
            Some(answer) => DestroyedPart::of_answer(decided.action, answer, false),
            None => (decided.action == PlannedAction::Delete).then(DestroyedPart::unknown),
        }
    }

    pub(super) fn because(&self) -> String {
        let decided = self.decided.as_ref();
        decided.map_or_else(String::new, |decided| decided.reason.text.clone())
    }

    /// Returns whether it is only forgotten and its resources are kept.
    pub(super) fn keeps_resources(&self) -> bool {
        self.blocked.is_none() && self.removed.leaves()
    }

    pub(super) fn is_kept(&self) -> bool {
        self.blocked.is_some() || self.keeps_resources()
    }

    pub(super) fn action(&self) -> Option<PlannedAction> {
        let decided = self.decided.as_ref().filter(|_| self.blocked.is_none());
        decided.map(|decided| decided.action)
    }
}

impl Context {
    /// Returns the recorded stacks in a plan's scope that this commit lacks.
    pub fn removals<'d>(
        &self,
        request: &PlanRequest<'_>,
        query: &Query,
        recorded: Option<&'d RecordedState>,
    ) -> Removals<'d> {
        if request.only.is_some() {
            return Removals::default();
        }
        let Some(recorded) = recorded.filter(|_| request.options.mode != PlanMode::RefreshOnly)
        else {
            return Removals::default();
        };
        let statuses = &recorded.statuses;
        let mut removals = Removals {
            absent: absent(&statuses.missing),
            ..Removals::default()
        };
        for (key, missing) in &statuses.missing {
            let entry = recorded.document.stacks.get(key);
            let (Some(path), Some(entry)) = (StackPath::parse(key), entry) else {
                self.notices.warning(&format!(
                    "the recorded key `{}` is not a stack path: the plan leaves it as it is",
                    printable(key)
                ));
                continue;
            };
            // A stack of this commit at the same path reports the entry.
            if self.project.stacks.find(&path).is_some() {
                continue;
            }
            if !query.passes_missing(key, missing) {
                removals.unplanned.out_of_scope += 1;
            } else if request.no_removals {
                removals.unplanned.left_out += 1;
            } else {
                let removal = Removal::new(path, entry, missing);
                let deposed = Removal::deposed(&removal.path, entry).map(|mut deposed| {
                    if let Some(blocked) = &removal.blocked {
                        deposed.block(blocked.why.clone(), blocked.fix.clone());
                    }
                    if removal.removed.leaves() {
                        deposed.removed = removal.removed.clone();
                    }
                    deposed
                });
                removals.all.extend(deposed.collect::<Vec<_>>());
                removals.all.push(removal);
            }
        }
        removals.all.sort_by(|a, b| a.path.cmp(&b.path));
        for removal in &mut removals.all {
            if removal.blocked.is_none()
                && let Some((action, reason)) = removal.known().forgotten()
            {
                removal.decided = Some(DecidedRemoval {
                    action,
                    reason,
                    answer: None,
                    driver: removal.entry.driver.clone().unwrap_or_default(),
                });
            }
        }
        removals
    }
}

impl<'d> Removals<'d> {
    pub fn to_destroy<'s>(
        document: &'d Document,
        missing: &BTreeMap<String, MissingStack>,
        stacks: impl Iterator<Item = &'s StackPath>,
    ) -> Self {
        let mut all: Vec<Removal<'d>> = stacks
            .filter_map(|path| {
                if path.generation().is_some() {
                    let entry = document.stacks.get(path.current().as_str())?;
                    let is_current = path.generation() == Some(entry.generation);
                    let by = if is_current {
                        entry.next_generation()
                    } else {
                        entry.generation
                    };
                    return Removal::of_generation(path, entry, by);
                }
                let key = path.as_str();
                let (entry, missing) = (document.stacks.get(key)?, missing.get(key)?);
                Some(Removal::new(path.clone(), entry, missing))
            })
            .collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Removals {
            all,
            absent: absent(missing),
            ..Removals::default()
        }
    }

    /// Adds stacks that the same plan only removes from the state.
    #[must_use]
    pub fn forgetting<'s>(mut self, stacks: impl Iterator<Item = &'s StackPath>) -> Self {
        let keys = stacks.map(StackPath::to_string);
        self.forgotten.extend(keys);
        self
    }

    pub(super) fn absent(&self) -> impl Iterator<Item = &String> {
        self.absent.iter()
    }

    /// Returns the same removals with owned entries.
    pub(super) fn into_owned(self) -> Removals<'static> {
        let all = self.all.into_iter();
        Removals {
            all: all
                .map(|removal| Removal {
                    entry: Cow::Owned(removal.entry.into_owned()),
                    ..removal
                })
                .collect(),
            ..self
        }
    }

    /// Returns why stacks must not be destroyed, by path.
    pub fn stale(&self) -> Vec<Stale> {
        let blocked = self
            .all
            .iter()
            .filter_map(|it| Some((it.path.clone(), it.blocked.as_ref()?)));
        let stale = blocked.map(|(path, blocked)| Stale::NotRemoved(path, blocked.why.clone()));
        stale.collect()
    }

    pub(super) fn of_key(&mut self, key: &str) -> Option<&mut Removal<'d>> {
        let path = StackPath::parse(key)?;
        let found = self.all.binary_search_by(|it| it.path.cmp(&path));
        self.all.get_mut(found.ok()?)
    }

    /// Returns whether the plan only removes the stack from the state.
    pub(super) fn is_forgotten(&self, key: &str) -> bool {
        self.forgotten.contains(key)
    }

    /// Returns the actions by key; undecided stacks count as destroyed.
    pub(super) fn going(&self) -> BTreeMap<String, PlannedAction> {
        let going = self
            .all
            .iter()
            .filter(|removal| removal.may_be_destroyed())
            .map(|removal| (removal.path.to_string(), PlannedAction::Delete));
        going.chain(self.actions()).collect()
    }

    pub(super) fn actions(&self) -> BTreeMap<String, PlannedAction> {
        let all = self
            .all
            .iter()
            .filter_map(|removal| Some((removal.path.to_string(), removal.action()?)));
        let forgotten = self.forgotten.iter().cloned();
        all.chain(forgotten.map(|key| (key, PlannedAction::Forget)))
            .collect()
    }

    pub(super) fn warn(&self, notices: &Notices) {
        let blocked: Vec<(&StackPath, &BlockedRemoval)> = self
            .all
            .iter()
            .filter_map(|it| Some((&it.path, it.blocked.as_ref()?)))
            .collect();
        for (removal, BlockedRemoval { why, fix }) in blocked.iter().take(MAX_WARNINGS) {
            let path = printable(removal.as_str());
            let why = printable(why);
            notices.warning(&if removal.generation().is_some() {
                format!("`{path}` is not destroyed: {why}")
            } else {
                format!("`{path}` is recorded but not in the project, and is not destroyed: {why}")
            });
            if !fix.is_empty() {
                notices.help(fix);
            }
        }
        if let Some(more @ 1..) = blocked.len().checked_sub(MAX_WARNINGS) {
            notices.warning(&format!(
                "{more} more recorded stacks are kept for such reasons"
            ));
        }
    }

    pub(super) fn add_to(&self, entries: &mut Vec<PlanEntry>, failed: &mut Vec<FailedAsk>) {
        for removal in &self.all {
            if let Some(why) = self.failed.get(&removal.path) {
                failed.push(FailedAsk {
                    stack: removal.path.clone(),
                    why: why.clone(),
                    conditions: Vec::new(),
                });
                continue;
            }
            let blocked = removal.blocked.as_ref().map(|blocked| blocked.why.clone());
            let decided = removal.decided.as_ref().filter(|_| blocked.is_none());
            // Forgetting changes no resources.
            let deleted = decided.filter(|decided| decided.action == PlannedAction::Delete);
            let answer = deleted.and_then(|decided| decided.answer.as_ref());
            let why = || blocked.clone().unwrap_or_default();
            let seen = removal.seen.as_ref().map(CommitId::to_string);
            let applied = removal.entry.applied.as_ref();
            let action = decided.map_or(PlannedAction::NoOp, |decided| decided.action);
            let reason = match decided {
                Some(decided) => decided.reason.clone(),
                None => PlanReason::new(ReasonSource::State, why()),
            };
            entries.push(PlanEntry {
                counts: answer.and_then(|answer| answer.counts),
                resources: answer.map_or_else(Vec::new, |answer| answer.resources.clone()),
                is_complete: answer.is_none_or(|answer| answer.is_complete),
                blocked,
                source_commit: seen.or_else(|| applied?.commit.clone()),
                removed: Some(removal.removed.clone()),
                ..PlanEntry::new(removal.path.clone(), action, reason)
            });
        }
        entries.sort_by(|a, b| a.stack.cmp(&b.stack));
        failed.sort_by(|a, b| a.stack.cmp(&b.stack));
    }

    /// Returns the facts that a removal with work depends on; adds its tool's plan to `plans`.
    pub(super) fn rest(
        &self,
        entry: &PlanEntry,
        asked: &AskedTools,
        plans: &mut Vec<PathBuf>,
    ) -> Option<SavedStack> {
        let found = self.all.binary_search_by(|it| it.path.cmp(&entry.stack));
        let removal = &self.all[found.ok()?];
        let decided = removal.decided.as_ref()?;
        let action = removal.action()?;
        let plan = asked
            .plan_of(&entry.stack)
            .filter(|_| action == PlannedAction::Delete);
        let plan = plan.map(|plan| {
            plans.push(plan);
            plans.len() - 1
        });
        let answer = decided.answer.as_ref();
        Some(SavedStack {
            stack: entry.stack.clone(),
            driver: decided.driver.clone(),
            inputs: None,
            order: String::new(),
            record: Some(match entry.stack.generation() {
                Some(_) => record_of_generation(&removal.entry),
                None => record_of(&removal.entry),
            }),
            records_before: None,
            backend: removal.backend().map(str::to_owned),
            outputs_before: None,
            outputs: None,
            changes: answer.and_then(|answer| answer.changes.clone()),
            plan,
            tool_version: answer.and_then(|answer| answer.tool_version.clone()),
        })
    }
}
