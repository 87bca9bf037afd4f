//! The base: the commit that changes are measured from, and why it is that one.
//!
//! It is the first of these that applies: the revision that the user names; what the CI provider
//! knows; on the default branch at the remote's tip, the first parent of HEAD; the merge base of HEAD
//! and the default branch. If the base cannot be determined, `orch` refuses and says what to do: a guess
//! would silently select everything or nothing.

pub mod ci;
mod finder;
mod refusal;
mod remedy;
mod remote;

use std::fmt;

use tracing::debug;

use self::ci::{BaseHint, CiContext, CiUnclear};
use self::finder::Finder;
use self::refusal::refuse;
pub use self::remedy::{Remedy, fetch_command};
use crate::git::{CommitId, GitError, Repository};
use crate::project::config::ProjectSettings;

/// The commit that changes are measured from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    pub commit: CommitId,
    /// The rule that chose it.
    pub rule: BaseRule,
    /// Why it is this commit, for people.
    pub reason: String,
}

/// The rule by which a base is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseRule {
    /// The user names it.
    Named,
    /// The CI provider knows it.
    Ci,
    /// It is the first parent of HEAD, on the default branch.
    FirstParent,
    /// It is the merge base of HEAD and the default branch.
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

/// What the choice of a base depends on, besides the repository.
#[derive(Debug, Default)]
pub struct BaseQuery {
    /// The revision that the user names.
    pub revision: Option<String>,
    /// What the CI provider says.
    pub ci: Option<CiContext>,
    /// `config.git.default_remote`.
    pub remote: Option<String>,
    /// `config.git.default_branch`.
    pub branch: Option<String>,
}

impl BaseQuery {
    /// Returns what a project says of the base.
    pub fn of(settings: &ProjectSettings) -> Self {
        BaseQuery {
            remote: settings.default_remote.clone(),
            branch: settings.default_branch.clone(),
            ..BaseQuery::default()
        }
    }
}

/// Why the base cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum BaseUnknown {
    /// The clone lacks commits or references that are needed.
    #[error("{problem}")]
    Refused {
        /// What is missing.
        problem: String,
        /// What to do about it.
        remedy: Remedy,
    },
    /// What the CI provider says is unclear.
    #[error(transparent)]
    Unclear(#[from] CiUnclear),
    /// git did not answer.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Finds the base.
pub fn find(repository: &Repository, query: &BaseQuery) -> Result<Base, BaseUnknown> {
    let Some(head) = repository.commit("HEAD")? else {
        return refuse("the repository has no commit yet, so nothing can have changed since one")
            .advise("commit first, or leave out `--changed` to act on all stacks");
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
    /// What the remote calls the branch.
    pub branch: String,
}

impl fmt::Display for RemoteBranch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.remote, self.branch)
    }
}

impl RemoteBranch {
    /// Returns the arguments of the `git fetch` that brings this clone's copy of the branch up to date.
    pub fn fetch(&self) -> Vec<String> {
        vec![
            self.remote.clone(),
            finder::refspec(&self.remote, &self.branch),
        ]
    }
}

/// Where the default branch is, as this clone knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultTip {
    /// The branch, as git names it: `origin/main`, or `main` where there is no remote.
    pub branch: String,
    pub commit: CommitId,
    /// The arguments of the `git fetch` that brings the branch up to date; `None` where there is no remote.
    pub fetch: Option<Vec<String>>,
}

/// Returns where the default branch is. Where there is no remote, a local branch is the default one if the
/// configuration names it, or if its name is usual.
///
/// # Errors
///
/// If it is unknown which branch it is, or if it is not in this clone.
pub fn default_tip(repository: &Repository, query: &BaseQuery) -> Result<DefaultTip, BaseUnknown> {
    const ADD: &str = "run `git remote add origin URL`";
    const ADD_OR_SET: &str = "run `git remote add origin URL`, or set `config.git.default_branch`";
    let (branch, reference, fetch) = if let Some(branch) = default_branch(repository, query)? {
        let reference = format!("refs/remotes/{branch}");
        (branch.to_string(), reference, Some(branch.fetch()))
    } else if repository.commit("FETCH_HEAD")?.is_some() {
        // Its branches are elsewhere, whatever is called `main` here.
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

/// Returns the remote branch that is the default one according to the remote; `None` where there is no remote. The
/// configuration comes first. This needs the network, unless the configuration names the branch.
///
/// # Errors
///
/// If it is unknown which remote it is, or if that cannot be asked.
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

/// Returns the default branch of the remote; `None` where there is no remote.
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

/// Returns the default branch of the remote; `None` where there is no remote, and where nobody knows which branch it
/// is.
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
