//! Checks that a plan still holds.

use std::path::Path;

use orch::change::{Counted, Standings, causes_since};
use orch::context::follow_all;
use orch::error::ErrorKind;
use orch::exit::ExitStatus;
use orch::git::CommitId;
use orch::plan::entry::PlanMode;
use orch::plan::planner::{Drivers, refuse, refuse_left_behind};
use orch::plan::progress::{AppliedPlan, ProgressError};
use orch::plan::protection::Destroyer;
use orch::plan::stale::{Grounds, OperationKey, Present, Progress, Stale};
use orch::project::stack::StackIndex;
use orch::record::journal::UncommittedFile;
use orch::run::session::StateLock;
use orch::selection::select::Selection;
use orch::state::document::Document;

use super::carrying::Carrying;
use super::followed::{NowPolicies, earlier_workflow};
use crate::program::commands::policy_files::LoadedPolicies;
use crate::program::commands::{CyclesAre, Loaded, ReadStatus, Reads};
use crate::program::error::{ProgramError, Result};

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
        self.check(
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

    /// Checks that the plan still holds.
    pub(super) fn check(
        &self,
        loaded: &Loaded,
        document: Option<&Document>,
        standings: Option<&Standings>,
        progress: &mut Progress,
    ) -> Result<()> {
        let project = &loaded.project;
        let present = Present {
            project,
            graph: &loaded.graph,
            digests: loaded.grounds.as_deref(),
            document,
            missing: standings.map(|standings| &standings.missing),
            is_later: self.is_from_file,
        };
        let drivers = Drivers::new(loaded, document);
        let driver = |stack: StackIndex| Some(drivers.of(stack)?.name.to_owned());
        let mut grounds = Grounds::new(present);
        let checked = grounds.check(self.saved, &driver, progress);
        let mut stale = self.named(loaded, checked.err().unwrap_or_default());
        if self.is_from_file {
            let keeps_state = document.is_some();
            stale.extend(self.other_environments(loaded, keeps_state, progress));
            if stale.is_empty() {
                stale = self.other_versions(loaded, keeps_state, progress)?;
            }
        }
        if stale.is_empty() {
            return Ok(());
        }
        Err(explained(&stale))
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

    /// Names the files that differ from the commit of the plan, as far as this clone has it.
    fn named(&self, loaded: &Loaded, mut stale: Vec<Stale>) -> Vec<Stale> {
        let commit = self.saved.plan.commit.as_deref().and_then(CommitId::new);
        let differing = stale.iter().filter_map(|why| match why {
            Stale::Inputs(path, _) => loaded.project.stacks.find(path),
            _ => None,
        });
        let differing: Vec<StackIndex> = differing.collect();
        let Some(commit) = commit.filter(|_| !differing.is_empty()) else {
            return stale;
        };
        let causes = loaded.with_present(Counted::default(), |present| {
            causes_since(present, &commit, &differing)
        });
        // A commit that is not here explains nothing.
        let causes = causes
            .ok()
            .and_then(std::result::Result::ok)
            .unwrap_or_default();
        for why in &mut stale {
            if let Stale::Inputs(path, part) = why
                && let Some(stack) = loaded.project.stacks.find(path)
                && let Some(cause) = causes.get(&stack)
            {
                cause.file.path.relative().clone_into(part);
            }
        }
        stale
    }
}

/// Explains that it cannot be known, or kept, what was applied of a plan.
pub(super) fn unknown_progress(error: ProgressError) -> ProgramError {
    let hint = match error {
        ProgressError::Unusable(_) => {
            "give this user the right to read and write it, or make a new plan"
        }
        ProgressError::Newer { .. } => "use that version of orch, or make a new plan",
        ProgressError::Changed => "run the same command again",
        ProgressError::Damaged { .. } | ProgressError::Id(_) => "make a new plan",
    };
    let error = match error {
        ProgressError::Changed => anyhow::Error::new(error),
        error => anyhow::Error::new(error).context("it is not known what was applied of this plan"),
    };
    ProgramError::new(ErrorKind::Refused, error).hint(hint)
}

/// Says why a plan does not hold any more.
pub(super) fn explained(stale: &[Stale]) -> ProgramError {
    /// How many reasons are told.
    const MOST: usize = 20;
    let told = stale.iter().take(MOST).map(|why| format!("\n  {why}"));
    let mut text: String = told.collect();
    if stale.len() > MOST {
        text += &format!("\n  and {} more", stale.len() - MOST);
    }
    ProgramError::refused(format!(
        "the plan does not hold any more, and nothing was run:{text}"
    ))
    .hint("make a new plan")
}
