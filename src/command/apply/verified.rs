//! A valid plan: the stage between planning and approval. Conditions are checked as far as possible before it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::Apply;
use super::part::OpenPart;
use super::policies::ApplyPolicies;
use crate::change::{CountedStates, StackStatuses};
use crate::command::load::KeptProject;
use crate::context::{Context, CyclesAre, follow_all};
use crate::error::{Error, ErrorContext as _, Result};
use crate::exit::ExitStatus;
use crate::path::StackPath;
use crate::plan::checks::{Checked, Checker, MentionedStacks, SelfValue, StackOutputs, mentioned};
use crate::plan::entry::{AskedAction, PlanMode};
use crate::plan::planner::{OutputReader, Removals, RunOrigin, refuse, refuse_left_behind};
use crate::plan::progress::PlanProgress;
use crate::plan::protection::Destroyer;
use crate::plan::stale::{DoneOperations, OperationKey};
use crate::plan::verify::{RemainingWork, Verification, removals_of, to_do};
use crate::plan::{Purpose, SavedPlan};
use crate::project::Problems;
use crate::project::lifecycle::ConditionKind;
use crate::project::stack::StackIndex;
use crate::record::journal::UncommittedFile;
use crate::run::policies::LoadedPolicies;
use crate::run::state_lock::StateLock;
use crate::selection::select::Selection;
use crate::state::document::Document;

/// The current project and state, against which the plan is valid.
pub(super) struct VerifiedPlan {
    pub(super) context: Context,
    /// The recorded state, if the project keeps one.
    pub(super) document: Option<Document>,
    /// The statuses of the stacks, if the plan has removed stacks.
    pub(super) statuses: Option<StackStatuses>,
    /// The uncommitted files, if known.
    pub(super) uncommitted: Option<Vec<UncommittedFile>>,
    pub(super) progress: DoneOperations,
    /// If the plan comes from a file: its progress according to runs on this machine.
    pub(super) applied: Option<PlanProgress>,
    /// The policies that follow the apply, if any.
    pub(super) policies: Option<ApplyPolicies>,
    /// The part that is applied, if not all.
    pub(super) part: Option<OpenPart>,
    /// The stacks that are not recorded, because they have changed since the plan.
    pub(super) outdated: BTreeSet<StackPath>,
}

/// A project, as an apply reads it.
pub(super) struct LoadedProject {
    pub(super) context: Context,
    policies: Option<LoadedPolicies>,
    /// Whether an earlier job of a worker has loaded and checked it, and digested its inputs.
    is_kept: bool,
}

impl Apply<'_> {
    /// Reads the current facts and checks that the plan is still valid. If this run holds the lock
    /// of the state, the document cannot change any more.
    ///
    /// `earlier` is the result of the first check. A plan that was just made is then also checked
    /// against the safeguards, ignoring files that its tools wrote while planning.
    pub(super) fn verify(
        &self,
        earlier: Option<VerifiedPlan>,
        lock: Option<&mut StateLock>,
    ) -> Result<VerifiedPlan> {
        let is_first = earlier.is_none();
        let uncommitted_before = earlier.map(|earlier| self.end(earlier));
        let LoadedProject {
            mut context,
            policies,
            is_kept,
        } = self.load(!is_first)?;
        // A plan that was just made has already fetched.
        context.state.fetches_seen =
            self.rollback.fetches && (self.is_from_file() || !is_first) && self.removes();
        let uncommitted = context.uncommitted();
        let is_safe = match uncommitted_before {
            _ if is_kept => true,
            _ if self.is_from_file() => context.is_safe(self.disabled),
            None => true,
            Some(before) => {
                let has_changed = before != uncommitted;
                context.is_still_safe(self.disabled, has_changed)
            }
        };
        if !is_safe {
            return Err(ExitStatus::Refused.into());
        }
        if self.is_from_file() && is_first && !is_kept {
            context.warn_if_behind(self.disabled)?;
        }
        if self.part.is_some() && context.project.settings.state.is_none() {
            return Err(Error::refused(
                "the jobs of a plan share a state, and this project keeps none",
            )
            .hint("see `orch help state`, or apply the plan on one machine"));
        }
        if !is_kept {
            context.digest_inputs()?;
            context.sweep();
        }
        let applied = self.applied(&context.project.root)?;
        let mut progress = match &applied {
            Some(applied) => applied.progress.clone(),
            None => DoneOperations::default(),
        };
        let mut document = None;
        if context.project.settings.state.is_some() {
            document = Some(if let Some(lock) = lock {
                lock.look_again(&mut context)?;
                lock.follow(&context.project.stacks, &self.saved.moves());
                lock.document().clone()
            } else {
                let mut read = context.read_and_digest(CountedStates::default())?;
                follow_all(&context.project.stacks, &self.saved.moves(), &mut read);
                read
            });
            // The state takes precedence over journals on this machine.
            progress.journaled = std::mem::take(&mut progress.done);
        }
        if let Some(document) = &document {
            context.set_generations(document);
            let planned = self.saved.plan.state.as_ref().map_or(0, |it| it.serial);
            if let Some(part) = self.part.filter(|_| document.may_lack_stacks(planned)) {
                part.add_gone(&context, document, &mut progress)?;
            }
        }
        let statuses = match &document {
            Some(document) if self.removes() => Some(self.statuses(&mut context, document)?),
            _ => None,
        };
        // Follow-ups run instead of the plan, whatever has happened since.
        let mut outdated = BTreeSet::new();
        if self.ended_order.is_none() {
            let recorded = (document.as_ref(), statuses.as_ref());
            outdated = self.check_holds(&context, is_kept, recorded, &mut progress)?;
        }
        let policies = match policies {
            Some(policies) => {
                Some(self.policies_with(policies, &mut context, document.as_ref(), &progress)?)
            }
            None => None,
        };
        let nothing = self.ended_order.map(|_| OpenPart::default());
        let part = self.part.zip(document.as_ref()).map(|(part, document)| {
            let plan = &self.saved.plan.id;
            part.open(&context.project.stacks, document, plan, &progress)
        });
        let part = part.or(nothing);
        Ok(VerifiedPlan {
            context,
            document,
            statuses,
            uncommitted,
            progress,
            applied,
            policies,
            part,
            outdated,
        })
    }

    /// Checks that the plan holds, and destroys nothing that is protected. Adds what the state has of it to the progress.
    /// Returns the stacks that it does not hold for, if it only records them.
    fn check_holds(
        &self,
        context: &Context,
        is_environment_known: bool,
        (document, statuses): (Option<&Document>, Option<&StackStatuses>),
        progress: &mut DoneOperations,
    ) -> Result<BTreeSet<StackPath>> {
        let verification = Verification {
            is_environment_known,
            ..self.verification()
        };
        let outdated = verification.check(context, document, statuses, progress)?;
        let mut protected = context.protected_in(self.saved, document);
        protected.retain(|it| {
            let mut done = [OperationKey::Destroy, OperationKey::Apply].into_iter();
            !done.any(|operation| progress.done.contains(&(it.stack.clone(), operation)))
        });
        if protected.is_empty() {
            return Ok(outdated);
        }
        Err(refuse(context, Destroyer::Plan, &protected).into())
    }

    fn applied(&self, root: &Path) -> Result<Option<PlanProgress>> {
        // The jobs of a work order share the state, not this machine.
        if !self.is_from_file() || self.part.is_some() || self.ended_order.is_some() {
            return Ok(None);
        }
        let read = PlanProgress::read(root, &self.saved.plan.id);
        read.map(Some)
    }

    fn removes(&self) -> bool {
        let mut entries = self.saved.plan.entries.iter();
        entries.any(|entry| entry.removed.is_some() && entry.blocked.is_none())
    }

    pub(super) fn statuses(
        &self,
        context: &mut Context,
        document: &Document,
    ) -> Result<StackStatuses> {
        let address = self
            .saved
            .plan
            .state
            .as_ref()
            .map_or_else(String::new, |state| state.address.clone());
        context.statuses_in(document, address, CountedStates::default(), false)
    }

    /// Ends the use of a verified plan. The next job of a worker has the same project. Returns the
    /// uncommitted files.
    pub(super) fn end(&self, verified: VerifiedPlan) -> Option<Vec<UncommittedFile>> {
        if let Some(kept) = self.kept {
            kept.keep(verified.context);
        }
        verified.uncommitted
    }

    /// Loads the current project and its policies. `is_resumed` says whether its warnings have been
    /// shown.
    pub(super) fn load(&self, is_resumed: bool) -> Result<LoadedProject> {
        let kept = self.kept.map(KeptProject::take).transpose()?.flatten();
        if let Some(mut context) = kept {
            let policies = context.apply_policies(&self.policies)?;
            context.report()?;
            return Ok(LoadedProject {
                context,
                policies,
                is_kept: true,
            });
        }
        let mut context = match self.kept {
            Some(kept) => kept.load(|| self.terminal.load())?,
            None => self.terminal.load()?,
        };
        let entries = self.saved.plan.entries.iter();
        let stacks = entries.filter_map(|entry| context.project.stacks.find(&entry.stack));
        let selection = Selection::recorded(stacks.collect::<Vec<_>>());
        context.check_cycles(CyclesAre::ErrorsWithin(&selection));
        let policies = context.apply_policies(&self.policies)?;
        if (is_resumed || !self.is_from_file()) && !context.problems.has_errors() {
            context.problems = Problems::default();
        }
        context.report()?;
        Ok(LoadedProject {
            context,
            policies,
            is_kept: false,
        })
    }

    /// Refuses to destroy stacks that kept ones depend on.
    pub(super) fn check_left_behind(
        &self,
        context: &Context,
        document: Option<&Document>,
    ) -> Result<()> {
        if self.saved.plan.mode != PlanMode::Destroy {
            return Ok(());
        }
        match refuse_left_behind(&context.left_behind(&self.saved.plan, document)) {
            Some(refused) => Err(refused),
            None => Ok(()),
        }
    }

    pub(super) fn verification(&self) -> Verification<'_> {
        Verification {
            saved: self.saved,
            is_from_file: self.is_from_file(),
            is_environment_known: false,
            // The work of the last job of a work order is done, whatever has happened since.
            records_last: self.part.is_some_and(|part| part.records),
        }
    }
}

impl VerifiedPlan {
    /// Returns the work that is left of the whole plan.
    pub(super) fn all_to_do<'s>(&'s self, saved: &'s SavedPlan) -> RemainingWork<'s> {
        to_do(&self.context, saved, self.document.as_ref(), &self.progress)
    }

    /// Returns the work that is left of this part of the plan.
    pub(super) fn to_do<'s>(&'s self, saved: &'s SavedPlan) -> RemainingWork<'s> {
        let mut to_do = self.all_to_do(saved);
        if let Some(part) = &self.part {
            to_do.keep_only(&self.context.project, &part.open);
            if !part.records {
                to_do.keep_records();
            }
        }
        to_do.leave_out(&self.context.project, &self.outdated);
        to_do
    }

    pub(super) fn removals<'d>(&'d self, to_do: &RemainingWork<'_>) -> Removals<'d> {
        self.recorded()
            .map(|(document, statuses)| removals_of(document, statuses, to_do))
            .unwrap_or_default()
    }

    /// Returns the document and the statuses of recorded stacks, if the plan destroys removed
    /// stacks.
    pub(super) fn recorded(&self) -> Option<(&Document, &StackStatuses)> {
        self.document.as_ref().zip(self.statuses.as_ref())
    }
}

impl Apply<'_> {
    /// Checks the conditions of stacks with turns, and reports failed preconditions. Reads the
    /// outputs of stacks without turns that conditions need, or may need. Marks the turns that make
    /// other outputs known. Returns the checker for the rest of the run, if needed. Destroyed
    /// and refreshed stacks have no conditions to check. `may_add` says whether turns may be added.
    pub(super) fn check_conditions<'l>(
        &self,
        context: &'l Context,
        document: Option<&Document>,
        to_do: &mut RemainingWork<'_>,
        may_add: bool,
    ) -> Result<Option<Checker<'l>>> {
        let applied: Vec<StackIndex> = to_do
            .stacks
            .iter()
            .filter(|it| it.work.apply)
            .filter_map(|it| it.stack.here())
            .collect();
        let has_any = |stack: &StackIndex| !context.project.rules_of(*stack).conditions.is_empty();
        let has_own = self.saved.plan.mode == PlanMode::Normal && applied.iter().any(has_any);
        // Any stack may be added.
        let mut others = context.project.stacks.iter().map(|(stack, _)| stack);
        let may_have = may_add && others.any(|stack| has_any(&stack));
        if !has_own && !may_have {
            return Ok(None);
        }
        let applied = if has_own { applied } else { Vec::new() };
        let reader = OutputReader {
            context,
            tools: &self.tools(),
            jobs: self.jobs,
            document,
            origin: RunOrigin {
                purpose: Purpose::Plan,
                base: None,
                // A job reads beside others, which may read the same.
                is_recorded: self.part.is_none(),
            },
        };
        let generations = Arc::new(self.generations(context));
        let environments = context.evaluator().in_generations(generations);
        let mut checker = context.checker(&environments)?;
        for &stack in &applied {
            checker.set(stack, StackOutputs::Later);
        }
        let kinds = [
            (ConditionKind::Precondition, SelfValue::Nothing),
            (ConditionKind::Postcondition, SelfValue::Later),
        ];
        let mut looked_at = BTreeSet::new();
        let mut unknown = BTreeSet::new();
        for (kind, itself) in kinds {
            let stacks: Vec<_> = applied.iter().map(|&stack| (stack, itself)).collect();
            let found = decided(&reader, &mut checker, kind, &stacks)?;
            for (stack, of_stack) in &found {
                let MentionedStacks {
                    stacks,
                    itself,
                    computes,
                } = mentioned(&context.project, *stack, &of_stack.open);
                looked_at.extend(itself.then_some(*stack));
                looked_at.extend(applied.iter().filter(|it| computes || stacks.contains(it)));
                unknown.extend(stacks.into_iter().filter(|it| !checker.knows(*it)));
            }
            if kind == ConditionKind::Precondition {
                context.show_failed(found.values().flat_map(|it| &it.failed));
                note_failed(to_do, &found);
            }
        }
        reader.read(&unknown, &mut checker)?;
        checker.end_reading();
        for stack in &mut to_do.stacks {
            if let Some(here) = stack.stack.here() {
                // An added stack may name any other.
                stack.checks.needs_outputs = may_have || looked_at.contains(&here);
                stack.checks.has_postconditions = stack.asked != AskedAction::Refresh
                    && checker.has_any(here, ConditionKind::Postcondition);
            }
        }
        Ok(Some(checker))
    }
}

/// Checks conditions, reading the outputs that they need. Returns those that do not all hold.
fn decided<'l>(
    reader: &OutputReader<'_, '_>,
    checker: &mut Checker<'l>,
    kind: ConditionKind,
    stacks: &[(StackIndex, SelfValue)],
) -> Result<BTreeMap<StackIndex, Checked<'l>>> {
    loop {
        let found = checker
            .check_all(kind, stacks)
            .context("failed to check conditions")?;
        let needed: BTreeSet<StackIndex> =
            found.values().flat_map(|it| &it.needed).copied().collect();
        if needed.is_empty() {
            return Ok(found);
        }
        reader.read(&needed, checker)?;
    }
}

/// Stores in stacks why their preconditions fail.
fn note_failed(to_do: &mut RemainingWork<'_>, checked: &BTreeMap<StackIndex, Checked<'_>>) {
    for stack in &mut to_do.stacks {
        let checked = stack.stack.here().and_then(|here| checked.get(&here));
        let failed = checked.and_then(|checked| checked.failed.first());
        stack.checks.failed = failed.map(|check| check.text.clone());
    }
}
