//! The default remote and branch, compared with if nothing better is known.

use super::remedy::refuse;
use super::{BaseQuery, BaseUnknown, is_branch_name};
use crate::git::{GitError, Repository};

/// Returns the remote whose default branch is used; `None` without a remote.
pub(super) fn chosen(
    repository: &Repository,
    query: &BaseQuery,
) -> Result<Option<String>, BaseUnknown> {
    let remotes = repository.remotes()?;
    let exists = |name: &String| remotes.contains(name);
    if let Some(configured) = &query.remote {
        // Only a configured remote may become an argument of `git fetch`.
        if !exists(configured) {
            let problem = format!(
                "the repository has no remote `{configured}`, which `config.git.default_remote` names"
            );
            return refuse(problem).advise(format!(
                "run `git remote add {} URL`, or correct the configuration",
                shell_words::quote(configured)
            ));
        }
        return Ok(Some(configured.clone()));
    }
    let origin = "origin".to_owned();
    if exists(&origin) {
        return Ok(Some(origin));
    }
    match &*remotes {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        several => {
            let branch = repository.branch()?;
            let upstream = match branch {
                Some(branch) => repository
                    .config(&format!("branch.{branch}.remote"))?
                    .filter(exists),
                None => None,
            };
            if upstream.is_some() {
                return Ok(upstream);
            }
            let names = several.join("`, `");
            let problem = format!("the repository has several remotes, `{names}`");
            refuse(problem).advise("choose one: `config.git.default_remote` in the configuration")
        }
    }
}

pub(super) fn default_branch(
    repository: &Repository,
    query: &BaseQuery,
    remote: &str,
) -> Result<String, BaseUnknown> {
    if let Some(branch) = &query.branch {
        return checked_branch(branch);
    }
    if let Some(branch) = repository.remote_head(remote)? {
        return Ok(branch);
    }
    let usual = usual_branches(repository)?;
    for branch in &usual {
        let reference = format!("refs/remotes/{remote}/{branch}");
        if repository.commit(&reference)?.is_some() {
            return Ok(branch.clone());
        }
    }
    Ok("main".to_owned())
}

/// Returns the default branch without a remote: the known one, otherwise the only one; `None` if it is
/// unknown.
pub(super) fn local_branch(
    repository: &Repository,
    query: &BaseQuery,
) -> Result<Option<String>, BaseUnknown> {
    let known = known_local_branch(repository, query)?;
    let mut branches = repository.branches()?.into_iter();
    let only = branches.next().filter(|_| branches.next().is_none());
    Ok(known.or(only))
}

/// Returns the local branch with the configured or a usual name.
pub(super) fn known_local_branch(
    repository: &Repository,
    query: &BaseQuery,
) -> Result<Option<String>, BaseUnknown> {
    if let Some(branch) = &query.branch {
        return checked_branch(branch).map(Some);
    }
    let branches = repository.branches()?;
    let mut usual = usual_branches(repository)?.into_iter();
    Ok(usual.find(|branch| branches.contains(branch)))
}

/// The problem if the default branch is unknown.
pub(super) const NO_DEFAULT: &str =
    "the default branch is unknown: there is neither a remote nor a branch `main` or `master`";

/// The same for a repository whose commits were fetched.
pub(super) const ONLY_FETCHED: &str =
    "the default branch is unknown: commits were fetched here, but there is no remote";

fn usual_branches(repository: &Repository) -> Result<Vec<String>, GitError> {
    let configured = repository.config("init.defaultBranch")?;
    let mut names: Vec<String> = configured.into_iter().collect();
    names.extend(["main", "master"].map(str::to_owned));
    names.retain(|name| is_branch_name(name));
    Ok(names)
}

/// Returns the configured branch if the name is valid.
fn checked_branch(name: &str) -> Result<String, BaseUnknown> {
    if is_branch_name(name) {
        return Ok(name.to_owned());
    }
    let problem = format!("`config.git.default_branch` is `{name}`, which cannot be a branch");
    refuse(problem).advise("correct the configuration")
}
