//! A plan that still holds: the stage between a plan and its approval.

use std::path::Path;

use super::Apply;
use super::followed::{ApplyPolicies, earlier_workflow};
use crate::change::{CountedStates, Standings};
use crate::context::{Context, CyclesAre, follow_all};
use crate::error::Result;
use crate::exit::ExitStatus;
use crate::plan::SavedPlan;
use crate::plan::entry::PlanMode;
use crate::plan::planner::{Removals, refuse, refuse_left_behind};
use crate::plan::progress::PlanProgress;
use crate::plan::protection::Destroyer;
use crate::plan::stale::{DoneOperations, OperationKey};
use crate::plan::verify::{RemainingWork, Verification, removals_of, to_do, unknown_progress};
use crate::project::Problems;
use crate::record::journal::UncommittedFile;
use crate::run::policies::LoadedPolicies;
use crate::run::state_lock::StateLock;
use crate::selection::select::Selection;
use crate::state::document::Document;

/// The project as it is now, in which the plan still holds.
pub(super) struct VerifiedPlan {
    pub(super) context: Context,
    /// What is on record, if the project keeps a state.
    pub(super) document: Option<Document>,
    /// How the stacks stand, if the plan is about any that were removed.
    pub(super) standings: Option<Standings>,
    /// What is not committed, if that is known.
    pub(super) uncommitted: Option<Vec<UncommittedFile>>,
    /// What has been done of the plan.
    pub(super) progress: DoneOperations,
    /// What runs on this machine have applied of it, if it comes from a file.
    pub(super) applied: Option<PlanProgress>,
    /// What is known for the policies that follow the apply, if any does.
    pub(super) policies: Option<ApplyPolicies>,
}

impl Apply<'_> {
    /// Reads what is there now and checks that the plan still holds. Under the lock of the state, what is on record is what it was when that was taken.
    ///
    /// `earlier` is what was found the first time. A plan that has just been made is checked against the
    /// safeguards then, except for what its tools have left behind while they planned.
    pub(super) fn verify(
        &self,
        earlier: Option<&VerifiedPlan>,
        lock: Option<&mut StateLock>,
    ) -> Result<VerifiedPlan> {
        let (mut context, policies) = self.load(earlier.is_some())?;
        // A plan that has just been made has asked the remote.
        context.fetches_seen =
            self.rollback.fetches && (self.is_from_file || earlier.is_some()) && self.removes();
        let uncommitted = context.uncommitted();
        let is_safe = match earlier {
            _ if self.is_from_file => context.is_safe(self.disabled),
            None => true,
            Some(earlier) => {
                let has_changed = earlier.uncommitted != uncommitted;
                context.is_still_safe(self.disabled, has_changed)
            }
        };
        if !is_safe {
            return Err(ExitStatus::Refused.into());
        }
        if self.is_from_file && earlier.is_none() {
            context.warn_if_behind(self.disabled)?;
        }
        context.digest_inputs()?;
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
            // What is on record counts more than what happened on this machine.
            progress.journaled = std::mem::take(&mut progress.done);
        }
        if let Some(document) = &document {
            context.set_generations(document);
        }
        context.sweep();
        let standings = match &document {
            Some(document) if self.removes() => Some(self.standings(&mut context, document)?),
            _ => None,
        };
        self.verification().check(
            &context,
            document.as_ref(),
            standings.as_ref(),
            &mut progress,
        )?;
        let mut protected = context.protected_in(self.saved, document.as_ref());
        protected.retain(|it| {
            let mut done = [OperationKey::Destroy, OperationKey::Apply].into_iter();
            !done.any(|operation| progress.done.contains(&(it.stack.clone(), operation)))
        });
        if !protected.is_empty() {
            return Err(refuse(&context, Destroyer::Plan, &protected).into());
        }
        let policies = match policies {
            Some(policies) => Some(ApplyPolicies {
                earlier: earlier_workflow(&context, document.as_ref(), &progress)?,
                policies,
            }),
            None => None,
        };
        Ok(VerifiedPlan {
            context,
            document,
            standings,
            uncommitted,
            progress,
            applied,
            policies,
        })
    }

    /// Reads what runs on this machine have applied of a plan in a file.
    fn applied(&self, root: &Path) -> Result<Option<PlanProgress>> {
        if !self.is_from_file {
            return Ok(None);
        }
        let read = PlanProgress::read(root, &self.saved.plan.id);
        read.map(Some).map_err(unknown_progress)
    }

    /// Returns whether the plan is about stacks that were removed.
    fn removes(&self) -> bool {
        let mut entries = self.saved.plan.entries.iter();
        entries.any(|entry| entry.removed.is_some() && entry.blocked.is_none())
    }

    /// Returns how the stacks stand.
    pub(super) fn standings(
        &self,
        context: &mut Context,
        document: &Document,
    ) -> Result<Standings> {
        let address = self
            .saved
            .plan
            .state
            .as_ref()
            .map_or_else(String::new, |state| state.address.clone());
        context.standings_in(document, address, CountedStates::default(), false)
    }

    /// Loads the project as it is now, and the policies that follow. `is_resumed` says whether its warnings have been shown.
    fn load(&self, is_resumed: bool) -> Result<(Context, Option<LoadedPolicies>)> {
        let mut context = self.terminal.load()?;
        let entries = self.saved.plan.entries.iter();
        let stacks = entries.filter_map(|entry| context.project.stacks.find(&entry.stack));
        let selection = Selection::recorded(stacks.collect::<Vec<_>>());
        context.check_cycles(CyclesAre::ErrorsWithin(&selection));
        let policies = match self.saved.plan.mode {
            // A refresh has no follow-ups.
            PlanMode::RefreshOnly => None,
            PlanMode::Normal | PlanMode::Destroy => context.apply_policies(&self.policies)?,
        };
        if (is_resumed || !self.is_from_file) && !context.problems.has_errors() {
            context.problems = Problems::default();
        }
        context.report()?;
        Ok((context, policies))
    }

    /// Refuses to destroy what something that stays runs after.
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

    /// Returns what checks that the plan still holds.
    pub(super) fn verification(&self) -> Verification<'_> {
        Verification {
            saved: self.saved,
            is_from_file: self.is_from_file,
        }
    }
}

impl VerifiedPlan {
    /// Returns what is left to do of a plan.
    pub(super) fn to_do<'s>(&'s self, saved: &'s SavedPlan) -> RemainingWork<'s> {
        to_do(&self.context, saved, self.document.as_ref(), &self.progress)
    }

    /// Returns the removed stacks that are to be destroyed.
    pub(super) fn removals<'d>(&'d self, to_do: &RemainingWork<'_>) -> Removals<'d> {
        self.recorded()
            .map(|(document, standings)| removals_of(document, standings, to_do))
            .unwrap_or_default()
    }

    /// Returns what is recorded, and how the recorded stacks stand, if the plan destroys removed stacks.
    pub(super) fn recorded(&self) -> Option<(&Document, &Standings)> {
        self.document.as_ref().zip(self.standings.as_ref())
    }
}
