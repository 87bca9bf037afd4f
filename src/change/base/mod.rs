//! The base: the commit that changes are measured from, and why it is that one.
//!
//! It is the first of these that applies: the revision that the user names; what the CI provider
//! knows; on the default branch at the remote's tip, the first parent of HEAD; the merge base of HEAD
//! and the default branch. If the base cannot be determined, `orch` refuses and says what to do: a guess
//! would silently select everything or nothing.

pub mod ci;
mod finder;
mod remedy;
mod remote;

use std::fmt;

use tracing::debug;

use self::ci::{BaseHint, CiContext, CiUnclear};
use self::finder::Finder;
use self::remedy::refuse;
pub use self::remedy::{Remedy, fetch_command};
use crate::git::{CommitId, GitError, Repository};
use crate::project::config::ProjectSettings;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    pub commit: CommitId,
    pub rule: BaseRule,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseRule {
    Named,
    Ci,
    FirstParent,
    MergeBase,
}

impl fmt::Display for BaseRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BaseRule::Named => "named",
            BaseRule::Ci => "ci",
            BaseRule::FirstParent => "first-parent",
            BaseRule::MergeBase => "merge-base",
        })
    }
}

/// The parameters of the choice, besides the repository.
#[derive(Debug, Default)]
pub struct BaseQuery {
    pub revision: Option<String>,
    pub ci: Option<CiContext>,
    /// `config.git.default_remote`.
    pub remote: Option<String>,
    /// `config.git.default_branch`.
    pub branch: Option<String>,
}

impl BaseQuery {
    /// Returns the parameters from the configuration.
    pub fn of(settings: &ProjectSettings) -> Self {
        BaseQuery {
            remote: settings.default_remote.clone(),
            branch: settings.default_branch.clone(),
            ..BaseQuery::default()
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BaseUnknown {
    /// The clone lacks commits or references.
    #[error("{problem}")]
    Refused { problem: String, remedy: Remedy },
    #[error(transparent)]
    Unclear(#[from] CiUnclear),
    #[error(transparent)]
    Git(#[from] GitError),
}

pub fn find(repository: &Repository, query: &BaseQuery) -> Result<Base, BaseUnknown> {
    let Some(head) = repository.commit("HEAD")? else {
        return refuse("the repository has no commit yet to compare with")
            .advise("commit first, or remove `--changed` to select all stacks");
    };
    let finder = Finder {
        repository,
        query,
        head,
    };
    if let Some(revision) = &query.revision {
        return finder.named(revision);
    }
    if let Some(ci) = &query.ci {
        debug!(?ci, "CI provider");
        match &ci.hint {
            Some(BaseHint::Commit { commit, what }) => {
                let reason = format!("{what} ({})", ci.provider);
                return finder.exactly(commit, reason);
            }
            Some(BaseHint::Target(target)) => return finder.target(target, ci.provider),
            None => {}
        }
    }
    finder.by_default_branch()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteBranch {
    pub remote: String,
    /// The name of the branch on the remote.
    pub branch: String,
}

impl fmt::Display for RemoteBranch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.remote, self.branch)
    }
}

impl RemoteBranch {
    /// Returns the arguments of the `git fetch` that updates this clone's copy of the branch.
    pub fn fetch(&self) -> Vec<String> {
        vec![
            self.remote.clone(),
            finder::refspec(&self.remote, &self.branch),
        ]
    }
}

/// The tip of the default branch, as this clone knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultTip {
    /// As git names it: `origin/main`, or `main` without a remote.
    pub branch: String,
    pub commit: CommitId,
    /// The arguments of the `git fetch` that updates it; `None` without a remote.
    pub fetch: Option<Vec<String>>,
}

/// Returns the tip of the default branch. Without a remote, a local branch with a configured or
/// usual name is the default one. Fails if the branch is unknown, or missing from this clone.
pub fn default_tip(repository: &Repository, query: &BaseQuery) -> Result<DefaultTip, BaseUnknown> {
    const ADD: &str = "run `git remote add origin URL`";
    const ADD_OR_SET: &str = "run `git remote add origin URL`, or set `config.git.default_branch`";
    let (branch, reference, fetch) = if let Some(branch) = default_branch(repository, query)? {
        let reference = format!("refs/remotes/{branch}");
        (branch.to_string(), reference, Some(branch.fetch()))
    } else if repository.commit("FETCH_HEAD")?.is_some() {
        // Its branches are on the remote, even if a local one is called `main`.
        return refuse(remote::ONLY_FETCHED).advise(ADD);
    } else if let Some(branch) = remote::known_local_branch(repository, query)? {
        let reference = format!("refs/heads/{branch}");
        (branch, reference, None)
    } else {
        return refuse(remote::NO_DEFAULT).advise(ADD_OR_SET);
    };
    if let Some(commit) = repository.commit(&reference)? {
        return Ok(DefaultTip {
            branch,
            commit,
            fetch,
        });
    }
    let problem = format!("the default branch `{branch}` is not in this clone");
    match fetch {
        Some(fetch) => refuse(problem).remedy(Remedy::Fetch(fetch)),
        None => refuse(problem).advise(ADD_OR_SET),
    }
}

/// Returns the remote's default branch; `None` without a remote. Asks the remote unless the
/// configuration names the branch. Fails if the remote is ambiguous or cannot be asked.
pub fn ask_default_branch(
    repository: &Repository,
    query: &BaseQuery,
) -> Result<Option<RemoteBranch>, BaseUnknown> {
    let Some(known) = default_branch(repository, query)? else {
        return Ok(None);
    };
    if query.branch.is_some() {
        return Ok(Some(known));
    }
    let asked = repository.ask_remote_head(&known.remote)?;
    Ok(Some(match asked.filter(|branch| is_branch_name(branch)) {
        Some(branch) => RemoteBranch { branch, ..known },
        None => known,
    }))
}

/// Returns the remote's default branch; `None` without a remote.
pub fn default_branch(
    repository: &Repository,
    query: &BaseQuery,
) -> Result<Option<RemoteBranch>, BaseUnknown> {
    let Some(remote) = remote::chosen(repository, query)? else {
        return Ok(None);
    };
    let branch = remote::default_branch(repository, query, &remote)?;
    Ok(Some(RemoteBranch { remote, branch }))
}

/// Returns the remote's default branch; `None` without a remote, or if the branch is unknown.
pub fn known_default_branch(
    repository: &Repository,
    query: &BaseQuery,
) -> Result<Option<RemoteBranch>, GitError> {
    match default_branch(repository, query) {
        Ok(branch) => Ok(branch),
        Err(BaseUnknown::Git(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

fn is_branch_name(text: &str) -> bool {
    git2::Branch::name_is_valid(text).unwrap_or(false)
}
