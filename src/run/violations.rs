//! Checks the safeguards of a project now: asks git, and the remote where a safeguard needs it.

use std::sync::Arc;

use tracing::debug;

use super::resume;
use super::safeguard::{self, Disabled, HeadRelation, OutdatedHead, Violation};
use crate::change::base::{self, BaseQuery, BaseUnknown};
use crate::context::Context;
use crate::error::{ErrorContext as _, Result};
use crate::git::{CommitId, GitError, Repository};
use crate::project::config::Safeguard;
use crate::record::journal::UncommittedFile;

/// The safeguards that need to know the state of the working tree.
pub const OF_STATUS: [Safeguard; 2] = [Safeguard::GitUntracked, Safeguard::GitUncommitted];

impl Context {
    /// Returns the violations of the enabled safeguards. An unchanged working tree is not checked again.
    fn violations(&mut self, disabled: &Disabled, has_changed: bool) -> Vec<Violation> {
        let configured = &self.project.settings.safeguards;
        let is_on = |safeguard: &Safeguard| safeguard::is_on(*safeguard, disabled, configured);
        let of_status: Vec<Safeguard> = OF_STATUS
            .into_iter()
            .filter(|_| has_changed)
            .filter(is_on)
            .collect();
        let is_synced = is_on(&Safeguard::GitOutOfSync);
        let violations = match self.find_violations(of_status.clone(), is_synced, disabled) {
            Ok(violations) => violations,
            Err(error) => {
                let mut on = of_status;
                on.extend(is_synced.then_some(Safeguard::GitOutOfSync));
                vec![Violation::StatusUnknown {
                    on,
                    error: error.into(),
                }]
            }
        };
        debug!(violations = violations.len(), "safeguards checked");
        violations
    }

    /// Finds the violations of these safeguards, which check the working tree, and, if `is_synced`, of the one that
    /// asks the remote.
    fn find_violations(
        &mut self,
        of_status: Vec<Safeguard>,
        is_synced: bool,
        disabled: &Disabled,
    ) -> Result<Vec<Violation>, GitError> {
        if of_status.is_empty() && !is_synced {
            return Ok(Vec::new());
        }
        let mut violations = Vec::new();
        let git = match self.git() {
            // Outside of a repository there are no safeguards.
            Err(GitError::NoRepository(_)) => return Ok(Vec::new()),
            git => git?,
        };
        match &git.status {
            Ok(files) => violations = safeguard::violations(&of_status, files),
            Err(_) if of_status.is_empty() => {}
            Err(error) => violations.push(Violation::StatusUnknown {
                on: of_status,
                error: Arc::clone(error),
            }),
        }
        let repository = &git.repository;
        let is_unborn = (is_synced || !violations.is_empty()) && repository.is_unborn()?;
        if is_unborn {
            debug!("nothing is committed yet");
            violations.clear();
        } else if is_synced {
            let is_demanded = disabled.is_on(Safeguard::GitOutOfSync);
            let repository = &self.git.known().expect("it was read").repository;
            violations.extend(self.out_of_sync(repository, is_demanded));
        }
        Ok(violations)
    }

    /// Returns the uncommitted files for a journal, if known. Call it after the safeguards have passed.
    pub fn uncommitted(&mut self) -> Option<Vec<UncommittedFile>> {
        self.git().ok()?;
        let files = self.git.known()?.status.as_ref().ok();
        files.map(|files| resume::uncommitted(&self.project.root, files))
    }

    /// Returns whether the safeguards pass. Shows their violations.
    pub fn is_safe(&mut self, disabled: &Disabled) -> bool {
        self.is_still_safe(disabled, true)
    }

    /// Returns the same after an earlier check. An unchanged working tree is not checked again.
    pub fn is_still_safe(&mut self, disabled: &Disabled, has_changed: bool) -> bool {
        let violations = self.violations(disabled, has_changed);
        for violation in &violations {
            self.notices.error(violation);
            self.notices.help(&violation.help(disabled));
        }
        if !violations.is_empty() {
            self.notices.note("nothing was run");
        }
        violations.is_empty()
    }

    /// Warns if HEAD lacks the tip of the remote's default branch, as this clone knows it: an apply may revert its
    /// changes. If the safeguard is on, it asks the remote and refuses; if it is explicitly off, nothing is checked.
    pub fn warn_if_behind(&mut self, disabled: &Disabled) -> Result<()> {
        let configured = &self.project.settings.safeguards;
        if safeguard::switched(Safeguard::GitOutOfSync, disabled, configured).is_some() {
            return Ok(());
        }
        match self.git() {
            Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => return Ok(()),
            git => _ = git.context("failed to ask git")?,
        }
        let behind = self
            .known_behind(&self.known_git()?.repository)
            .context("failed to compare HEAD with the default branch")?;
        if let Some((what, remedy)) = behind.and_then(|it| it.known_here()) {
            self.notices
                .warning(&format!("{what}: the apply may revert newer changes"));
            self.notices.help(&format!(
                "{remedy}; to refuse such applies, set `enable_safeguards = [\"git-out-of-sync\"]` in `config`"
            ));
        }
        Ok(())
    }

    /// Compares HEAD with the remote's default branch as this clone knows it; `None` if HEAD has all of it, or the
    /// branch is not known.
    fn known_behind(&self, repository: &Repository) -> Result<Option<OutdatedHead>, GitError> {
        let upstream =
            match base::default_branch(repository, &BaseQuery::of(&self.project.settings)) {
                Ok(Some(upstream)) => upstream,
                Err(BaseUnknown::Git(error)) => return Err(error),
                Ok(None) | Err(_) => return Ok(None),
            };
        let tracking = format!("refs/remotes/{upstream}");
        let (Some(head), Some(tip)) = (repository.commit("HEAD")?, repository.commit(&tracking)?)
        else {
            return Ok(None);
        };
        if repository.is_ancestor(&tip, &head)? {
            return Ok(None);
        }
        let relation = relation(repository, &head, &tip, &tracking)?;
        Ok(Some(OutdatedHead {
            head: Some(head),
            upstream,
            tip,
            relation,
        }))
    }

    /// Asks the remote whether HEAD is out of date. Without a remote it is not, unless the user demands the check.
    fn out_of_sync(&self, repository: &Repository, is_demanded: bool) -> Option<Violation> {
        let query = BaseQuery::of(&self.project.settings);
        let upstream = match base::default_branch(repository, &query) {
            Err(unknown) => return Some(Violation::NoUpstream(unknown)),
            Ok(None) => return is_demanded.then_some(Violation::NoRemote),
            Ok(Some(upstream)) => upstream,
        };
        debug!(%upstream, "asking the remote");
        let tip = match repository.remote_tip(&upstream.remote, &upstream.branch) {
            Err(error) => return Some(Violation::SyncUnknown(error)),
            Ok(None) => return Some(Violation::NoBranch(upstream)),
            Ok(Some(tip)) => tip,
        };
        let compared = repository.commit("HEAD").and_then(|head| {
            let relation = match &head {
                Some(head) if repository.is_ancestor(&tip, head)? => return Ok(None),
                Some(head) => {
                    let tracking = format!("refs/remotes/{upstream}");
                    relation(repository, head, &tip, &tracking)?
                }
                None => HeadRelation::Unrelated,
            };
            Ok(Some(Violation::OutOfSync(OutdatedHead {
                head,
                upstream,
                tip,
                relation,
            })))
        });
        compared.unwrap_or_else(|error| Some(Violation::SyncUnknown(error)))
    }
}

/// Finds the relation of HEAD to a commit that it lacks. If this clone lacks the commit too, the last known commit of
/// the remote's branch is used.
fn relation(
    repository: &Repository,
    head: &CommitId,
    tip: &CommitId,
    last_seen: &str,
) -> Result<HeadRelation, GitError> {
    let present = repository.commit(tip.as_str())?;
    let is_present = present.as_ref() == Some(tip);
    let known = match present.filter(|_| is_present) {
        Some(tip) => Some(tip),
        None => repository.commit(last_seen)?,
    };
    let base = match &known {
        Some(known) => repository.merge_base(head, known)?,
        None => None,
    };
    Ok(match base {
        Some(base) if base == *head => HeadRelation::FastForward,
        Some(_) if !repository.is_shallow()? => HeadRelation::Diverged,
        _ if repository.is_shallow()? => HeadRelation::Shallow,
        None if is_present => HeadRelation::Unrelated,
        _ => HeadRelation::Diverged,
    })
}
