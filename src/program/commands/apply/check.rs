//! Checks that a plan still holds.

use std::path::Path;

use orch::change::{Counted, Standings};
use orch::context::follow_all;
use orch::exit::ExitStatus;
use orch::plan::SavedPlan;
use orch::plan::entry::PlanMode;
use orch::plan::planner::{Removals, refuse, refuse_left_behind};
use orch::plan::progress::AppliedPlan;
use orch::plan::protection::Destroyer;
use orch::plan::stale::{OperationKey, Progress};
use orch::plan::verify::{Todo, Verification, removals_of, to_do, unknown_progress};
use orch::record::journal::UncommittedFile;
use orch::run::session::StateLock;
use orch::selection::select::Selection;
use orch::state::document::Document;

use super::carrying::Carrying;
use super::followed::{NowPolicies, earlier_workflow};
use crate::program::commands::policy_files::LoadedPolicies;
use crate::program::commands::{CyclesAre, Loaded, ReadStatus, Reads};
use crate::program::error::Result;

/// What is there now, and the plan holds.
pub(super) struct Now {
    pub(super) loaded: Loaded,
    /// What is on record, if the project keeps a state.
    pub(super) document: Option<Document>,
    /// How the stacks stand, if the plan is about any that were removed.
    pub(super) standings: Option<Standings>,
    /// What is not committed, if that is known.
    pub(super) uncommitted: Option<Vec<UncommittedFile>>,
    /// What has been done of the plan.
    pub(super) progress: Progress,
    /// What runs on this machine have applied of it, if it comes from a file.
    pub(super) applied: Option<AppliedPlan>,
    /// What is known for the policies that follow the apply, if any does.
    pub(super) policies: Option<NowPolicies>,
}

impl Carrying<'_> {
    /// Reads what is there now and checks that the plan still holds. Under the lock of the state, what is on record is what it was when that was taken.
    ///
    /// `earlier` is what was found the first time. A plan that has just been made is checked against the
    /// safeguards then, except for what its tools have left behind while they planned.
    pub(super) fn now(&self, earlier: Option<&Now>, lock: Option<&mut StateLock>) -> Result<Now> {
        let (mut loaded, policies) = self.load(earlier.is_some())?;
        // A plan that has just been made has asked the remote.
        loaded.fetches_seen =
            self.rollback.fetches && (self.is_from_file || earlier.is_some()) && self.removes();
        let uncommitted = loaded.uncommitted();
        let is_safe = match earlier {
            _ if self.is_from_file => loaded.is_safe(self.disabled),
            None => true,
            Some(earlier) => {
                let has_changed = earlier.uncommitted != uncommitted;
                loaded.is_still_safe(self.disabled, has_changed)
            }
        };
        if !is_safe {
            return Err(ExitStatus::Refused.into());
        }
        if self.is_from_file && earlier.is_none() {
            loaded.warn_if_behind(self.disabled)?;
        }
        loaded.digest_grounds()?;
        let applied = self.applied(&loaded.project.root)?;
        let mut progress = match &applied {
            Some(applied) => applied.progress.clone(),
            None => Progress::default(),
        };
        let mut document = None;
        if loaded.project.settings.state.is_some() {
            document = Some(if let Some(lock) = lock {
                lock.look_again(&mut loaded)?;
                lock.follow(&loaded.project.stacks, &self.saved.moves());
                lock.document().clone()
            } else {
                let mut read = loaded.read_and_digest(Counted::default())?;
                follow_all(&loaded.project.stacks, &self.saved.moves(), &mut read);
                read
            });
            // What is on record counts more than what happened on this machine.
            progress.told = std::mem::take(&mut progress.done);
        }
        if let Some(document) = &document {
            loaded.set_generations(document);
        }
        loaded.sweep();
        let standings = match &document {
            Some(document) if self.removes() => Some(self.standings(&mut loaded, document)?),
            _ => None,
        };
        self.verification().check(
            &loaded,
            document.as_ref(),
            standings.as_ref(),
            &mut progress,
        )?;
        let mut protected = loaded.protected_in(self.saved, document.as_ref());
        protected.retain(|it| {
            let mut done = [OperationKey::Destroy, OperationKey::Apply].into_iter();
            !done.any(|operation| progress.done.contains(&(it.stack.clone(), operation)))
        });
        if !protected.is_empty() {
            return Err(refuse(&loaded, Destroyer::Plan, &protected).into());
        }
        let policies = match policies {
            Some(policies) => Some(NowPolicies {
                earlier: earlier_workflow(&loaded, document.as_ref(), &progress)?,
                policies,
            }),
            None => None,
        };
        Ok(Now {
            loaded,
            document,
            standings,
            uncommitted,
            progress,
            applied,
            policies,
        })
    }

    /// Reads what runs on this machine have applied of a plan in a file.
    fn applied(&self, root: &Path) -> Result<Option<AppliedPlan>> {
        if !self.is_from_file {
            return Ok(None);
        }
        let read = AppliedPlan::read(root, &self.saved.plan.id);
        Ok(Some(read.map_err(unknown_progress)?))
    }

    /// Returns whether the plan is about stacks that were removed.
    fn removes(&self) -> bool {
        let mut entries = self.saved.plan.entries.iter();
        entries.any(|entry| entry.removed.is_some() && entry.blocked.is_none())
    }

    /// Returns how the stacks stand.
    pub(super) fn standings(&self, loaded: &mut Loaded, document: &Document) -> Result<Standings> {
        let address = self.saved.plan.state.as_ref();
        let address = address.map_or_else(String::new, |state| state.address.clone());
        Ok(loaded.standings_in(document, address, Counted::default(), false)?)
    }

    /// Loads the project as it is now, and the policies that follow. `is_again` says whether its warnings have been shown.
    fn load(&self, is_again: bool) -> Result<(Loaded, Option<LoadedPolicies>)> {
        let reads = Reads::CONFIGURATION
            .with_listing()
            .with_status(ReadStatus::Exact);
        let mut loaded = Loaded::new(self.chdir, None, reads)?;
        loaded.check(None)?;
        let entries = self.saved.plan.entries.iter();
        let stacks = entries.filter_map(|entry| loaded.project.stacks.find(&entry.stack));
        let selection = Selection::recorded(stacks.collect::<Vec<_>>());
        loaded.check_cycles(CyclesAre::ErrorsWithin(&selection));
        let policies = match self.saved.plan.mode {
            // A refresh has no follow-ups.
            PlanMode::RefreshOnly => None,
            PlanMode::Normal | PlanMode::Destroy => loaded.apply_policies(&self.policies)?,
        };
        loaded.report_unless_shown(is_again || !self.is_from_file)?;
        Ok((loaded, policies))
    }

    /// Refuses to destroy what something that stays runs after.
    pub(super) fn check_left_behind(
        &self,
        loaded: &Loaded,
        document: Option<&Document>,
    ) -> Result<()> {
        if self.saved.plan.mode != PlanMode::Destroy {
            return Ok(());
        }
        match refuse_left_behind(&loaded.left_behind(&self.saved.plan, document)) {
            Some(refused) => Err(refused.into()),
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

impl Now {
    /// Returns what is left to do of a plan.
    pub(super) fn to_do<'s>(&'s self, saved: &'s SavedPlan) -> Todo<'s> {
        to_do(&self.loaded, saved, self.document.as_ref(), &self.progress)
    }

    /// Returns the removed stacks that are to be destroyed.
    pub(super) fn removals<'d>(&'d self, to_do: &Todo<'_>) -> Removals<'d> {
        self.recorded()
            .map(|(document, standings)| removals_of(document, standings, to_do))
            .unwrap_or_default()
    }

    /// Returns what is recorded, and how the recorded stacks stand, if the plan destroys removed stacks.
    pub(super) fn recorded(&self) -> Option<(&Document, &Standings)> {
        self.document.as_ref().zip(self.standings.as_ref())
    }
}
