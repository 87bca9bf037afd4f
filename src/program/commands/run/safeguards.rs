//! The safeguards of `orch run`: what the user disables, and what violates the others.

use anyhow::Context as _;
use orch::change::base::{self, BaseQuery, BaseUnknown};
use orch::context::GitState;
use orch::git::{CommitId, GitError, Repository};
use orch::project::config::{Safeguard, SafeguardKeyword};
use orch::record::journal::UncommittedFile;
use orch::run::resume;
use orch::run::safeguard::{self, Behind, Disabled, Relation, Violation};
use tracing::debug;

use super::RunArgs;
use super::safeguard_flags::SafeguardArgs;
use crate::program::commands::Loaded;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// The variables that disable safeguards where the command line does not; the first that is set counts.
const VARIABLES: [&str; 2] = ["ORCH_DISABLE_SAFEGUARDS", "TM_DISABLE_SAFEGUARDS"];

/// The safeguards that need to know the state of the working tree.
pub(super) const OF_STATUS: [Safeguard; 2] = [Safeguard::GitUntracked, Safeguard::GitUncommitted];

/// Reads which safeguards the user disables for this run.
pub(super) fn of_run(args: &RunArgs) -> Result<Disabled> {
    let old_names = args.disable_checks.keywords();
    disabled(&args.safeguards, old_names, args.dry_run)
}

/// Reads the same for the run that a dry run describes.
pub(super) fn in_force(args: &RunArgs) -> Result<Disabled> {
    disabled(&args.safeguards, args.disable_checks.keywords(), false)
}

/// Reads which safeguards the user disables, also by what else stands for their names.
pub(in crate::program::commands) fn disabled(
    args: &SafeguardArgs,
    others: impl Iterator<Item = SafeguardKeyword>,
    is_dry_run: bool,
) -> Result<Disabled> {
    let mut listed = args.disable_safeguards.clone();
    listed.extend(others);
    if args.disable_all_safeguards {
        if listed.contains(&SafeguardKeyword::None) {
            let message = "`-X` and `--disable-safeguards=none` exclude each other";
            return Err(ProgramError::usage(message));
        }
        listed.push(SafeguardKeyword::All);
    }
    if !listed.is_empty() {
        let disabled = Disabled::new(listed);
        return disabled
            .map_err(|bad| ProgramError::usage(format!("in --disable-safeguards: {bad}")));
    }
    if is_dry_run {
        // No safeguard plays a part, so what a variable says of them does not either.
        return Ok(Disabled::default());
    }
    let set = VARIABLES.into_iter().find_map(|name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some((name, value.to_string_lossy().into_owned()))
    });
    let Some((name, value)) = set else {
        return Ok(Disabled::default());
    };
    let mut listed = Vec::new();
    for word in value.split(',').map(str::trim) {
        let Some(keyword) = SafeguardKeyword::parse(word) else {
            let message = format!(
                "in {name}: `{word}` is not a safeguard; possible values: {}",
                SafeguardKeyword::NAMES.join(", ")
            );
            return Err(ProgramError::usage(message));
        };
        listed.push(keyword);
    }
    Disabled::new(listed).map_err(|bad| ProgramError::usage(format!("in {name}: {bad}")))
}

impl Loaded {
    /// Returns whether the repository is in a state to run commands in, and shows what is wrong with it.
    pub(in crate::program::commands) fn is_safe(&mut self, disabled: &Disabled) -> bool {
        self.is_still_safe(disabled, true)
    }

    /// Returns the same some time after the first look; if the working tree has not changed since, it is not
    /// looked at again.
    pub(in crate::program::commands) fn is_still_safe(
        &mut self,
        disabled: &Disabled,
        has_changed: bool,
    ) -> bool {
        let configured = &self.project.settings.safeguards;
        let is_on = |safeguard: &Safeguard| safeguard::is_on(*safeguard, disabled, configured);
        let of_status = OF_STATUS.into_iter().filter(|_| has_changed);
        let of_status: Vec<Safeguard> = of_status.filter(is_on).collect();
        let is_synced = is_on(&Safeguard::GitOutOfSync);
        let violations = match self.violations(of_status.clone(), is_synced, disabled) {
            Ok(violations) => violations,
            Err(error) => {
                let mut on = of_status;
                on.extend(is_synced.then_some(Safeguard::GitOutOfSync));
                vec![Violation::StatusUnknown { on, error }]
            }
        };
        debug!(violations = violations.len(), "safeguards checked");
        for violation in &violations {
            console::error(violation);
            console::help(&violation.help());
        }
        if !violations.is_empty() {
            console::note("nothing was run");
        }
        violations.is_empty()
    }

    /// Finds what violates the safeguards that are on: these that look at the working tree, and, if
    /// `is_synced`, the one that asks the remote.
    fn violations(
        &mut self,
        of_status: Vec<Safeguard>,
        is_synced: bool,
        disabled: &Disabled,
    ) -> Result<Vec<Violation>, GitError> {
        if of_status.is_empty() && !is_synced {
            return Ok(Vec::new());
        }
        let mut violations = Vec::new();
        let GitState {
            repository,
            status,
            is_rough,
        } = match self.read() {
            // Outside of a repository there are no safeguards.
            Err(GitError::NoRepository(_)) => return Ok(Vec::new()),
            read => read?,
        };
        let status = match status {
            Ok(files) => {
                violations = safeguard::violations(&of_status, &files);
                Ok(files)
            }
            Err(error) if of_status.is_empty() => Err(error),
            Err(error) => {
                let on = of_status;
                violations.push(Violation::StatusUnknown { on, error });
                Ok(Vec::new())
            }
        };
        let is_unborn = (is_synced || !violations.is_empty()) && repository.is_unborn()?;
        if is_unborn {
            debug!("nothing is committed yet");
            violations.clear();
        } else if is_synced {
            let is_demanded = disabled.is_on(Safeguard::GitOutOfSync);
            violations.extend(self.out_of_sync(&repository, is_demanded));
        }
        // The journal names what is not committed.
        self.read = Some(GitState {
            repository,
            status,
            is_rough,
        });
        Ok(violations)
    }

    /// Returns what is not committed, as a journal names it, if that is known; to be called when nothing
    /// is in the way of the run.
    pub(in crate::program::commands) fn uncommitted(&mut self) -> Option<Vec<UncommittedFile>> {
        let read = self.read().ok()?;
        let files = read.status.as_ref().ok();
        let uncommitted = files.map(|files| resume::uncommitted(&self.project.root, files));
        self.read = Some(read);
        uncommitted
    }

    /// Warns if HEAD lacks the tip of the remote's default branch, as this clone knows it: an apply may revert what
    /// that has. Where the safeguard is switched on it asks the remote and refuses; where it is off, nobody looks.
    pub(in crate::program::commands) fn warn_if_behind(
        &mut self,
        disabled: &Disabled,
    ) -> Result<()> {
        let configured = &self.project.settings.safeguards;
        if safeguard::switched(Safeguard::GitOutOfSync, disabled, configured).is_some() {
            return Ok(());
        }
        let read = match self.read() {
            Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => return Ok(()),
            read => read.context("failed to ask git")?,
        };
        let behind = self.known_behind(&read.repository);
        self.read = Some(read);
        let behind = behind.context("failed to compare HEAD with the default branch")?;
        if let Some((what, remedy)) = behind.and_then(|it| it.known_here()) {
            console::warning(&format!("{what}: the apply may revert newer changes"));
            console::help(&format!(
                "{remedy}; to refuse such applies, set `enable_safeguards = [\"git-out-of-sync\"]` in `config`"
            ));
        }
        Ok(())
    }

    /// Compares HEAD with the remote's default branch as this clone knows it; `None` if HEAD has all of it, or the
    /// branch is not known.
    fn known_behind(&self, repository: &Repository) -> Result<Option<Behind>, GitError> {
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
        Ok(Some(Behind {
            head: Some(head),
            upstream,
            tip,
            relation,
        }))
    }

    /// Asks the remote whether HEAD is out of date. Without a remote it is not, unless the user demands
    /// that the remote be asked.
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
                None => Relation::Unrelated,
            };
            Ok(Some(Violation::OutOfSync(Behind {
                head,
                upstream,
                tip,
                relation,
            })))
        });
        compared.unwrap_or_else(|error| Some(Violation::SyncUnknown(error)))
    }
}

/// Finds how HEAD is related to a commit that it does not have. That commit may not even be in this
/// clone; then it goes on from where the remote's branch was when it was last seen.
fn relation(
    repository: &Repository,
    head: &CommitId,
    tip: &CommitId,
    last_seen: &str,
) -> Result<Relation, GitError> {
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
        Some(base) if base == *head => Relation::FastForward,
        Some(_) if !repository.is_shallow()? => Relation::Diverged,
        _ if repository.is_shallow()? => Relation::Shallow,
        None if is_present => Relation::Unrelated,
        _ => Relation::Diverged,
    })
}
