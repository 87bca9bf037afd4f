//! The rules by which a base is found, in order.

use std::collections::HashMap;

use super::ci::MergeTarget;
use super::remedy::refuse;
use super::remote;
use super::{Base, BaseQuery, BaseRule, BaseUnknown, Remedy, is_branch_name};
use crate::git::{CommitId, Repository, is_hexadecimal};

pub(super) struct Finder<'a> {
    pub(super) repository: &'a Repository,
    pub(super) query: &'a BaseQuery,
    pub(super) head: CommitId,
}

impl Finder<'_> {
    fn base(&self, commit: CommitId, rule: BaseRule, mut reason: String) -> Base {
        if commit == self.head {
            reason += ", which is HEAD itself";
        }
        Base {
            commit,
            rule,
            reason,
        }
    }

    /// Returns the base that the user names: that commit itself, even if it is unrelated to HEAD.
    pub(super) fn named(&self, revision: &str) -> Result<Base, BaseUnknown> {
        if let Some(commit) = self.repository.commit(revision)? {
            return Ok(self.base(commit, BaseRule::Named, format!("--base {revision}")));
        }
        let mut problem = format!("there is no revision `{revision}`");
        // Several remotes are no problem here.
        let remote = match self.remote() {
            Err(BaseUnknown::Refused { .. }) => None,
            remote => remote?,
        };
        if let Some(remote) = &remote {
            // As in `git switch`, a branch that exists only on the remote means the remote's.
            let qualified = format!("{remote}/{revision}");
            let reference = format!("refs/remotes/{qualified}");
            if let Some(commit) = self.repository.commit(&reference)? {
                let reason = format!("--base {revision}, which is {qualified}");
                return Ok(self.base(commit, BaseRule::Named, reason));
            }
        }
        if self.repository.is_shallow()? {
            problem += " in this shallow clone";
        }
        let remedy = match remote {
            Some(remote) => self.remedy_for_name(revision, &remote)?,
            None => None,
        };
        match remedy {
            Some(remedy) => refuse(problem).remedy(remedy),
            None => refuse(problem).advise("name a commit, branch or tag that exists"),
        }
    }

    /// Returns the fix for a revision that is missing from the clone; `None` if there is none.
    fn remedy_for_name(&self, revision: &str, remote: &str) -> Result<Option<Remedy>, BaseUnknown> {
        let is_shallow = self.repository.is_shallow()?;
        // `v1~2` resolves only once `v1` exists.
        let name = revision.split(['~', '^', ':']).next().unwrap_or(revision);
        let known = match name {
            "" => None,
            name => self.repository.commit(name)?,
        };
        if let Some(known) = known {
            let is_ancestor = revision[name.len()..].starts_with(['~', '^']);
            return Ok(if !is_shallow || !is_ancestor {
                None
            } else if known == self.head {
                Some(Remedy::history(remote, None, &self.head_on(remote)?))
            } else {
                Some(Remedy::history(remote, None, &[known]))
            });
        }
        let branch = name.strip_prefix(&format!("{remote}/"));
        if !is_branch_name(branch.unwrap_or(name)) {
            return Ok(None);
        }
        let looks_like_commit = name.len() >= 7 && is_hexadecimal(name);
        Ok(Some(match branch {
            Some(branch) => self.fetch_one(remote, &[&refspec(remote, branch)])?,
            None if looks_like_commit => self.fetch_commit(remote, name)?,
            // Fetching all tags at one depth would also truncate all branches. Only the remote knows whether
            // this is a tag or a branch.
            None if is_shallow && is_version(name) => self.fetch_one(remote, &["tag", name])?,
            None if is_shallow => self.fetch_one(remote, &[&refspec(remote, name)])?,
            None => Remedy::all(remote),
        }))
    }

    /// Returns the fix that fetches one commit, branch or tag, in a shallow clone without its history.
    fn fetch_one(&self, remote: &str, what: &[&str]) -> Result<Remedy, BaseUnknown> {
        // A depth would make a complete clone shallow.
        let depth = if self.repository.is_shallow()? {
            &["--depth=1"][..]
        } else {
            &[]
        };
        let words = [depth, &[remote], what].concat();
        Ok(Remedy::Fetch(
            words.into_iter().map(str::to_owned).collect(),
        ))
    }

    fn fetch_commit(&self, remote: &str, commit: &str) -> Result<Remedy, BaseUnknown> {
        Ok(if is_full_name(commit) {
            self.fetch_one(remote, &[commit])?
        } else if self.repository.is_shallow()? {
            Remedy::history(remote, None, &self.head_on(remote)?)
        } else {
            Remedy::all(remote)
        })
    }

    /// Returns the commit that the provider names as the base, even if it is unrelated to HEAD.
    pub(super) fn exactly(&self, name: &str, reason: String) -> Result<Base, BaseUnknown> {
        if let Some(commit) = self.repository.commit(name)? {
            return Ok(self.base(commit, BaseRule::Ci, reason));
        }
        self.missing(name, &reason)
    }

    fn missing<T>(&self, commit: &str, what: &str) -> Result<T, BaseUnknown> {
        let clone = if self.repository.is_shallow()? {
            "this shallow clone"
        } else {
            "this clone"
        };
        let problem = format!("commit {commit} is not in {clone}: {what}");
        match self.remote()? {
            Some(remote) => refuse(problem).remedy(self.fetch_commit(&remote, commit)?),
            None => refuse(problem).advise("name another base with `--base REV`"),
        }
    }

    /// Returns commits of a remote whose history contains what a shallow clone lacks of HEAD's: HEAD itself,
    /// or the ends of the local history if the remote may lack local commits.
    fn head_on(&self, remote: &str) -> Result<Vec<CommitId>, BaseUnknown> {
        let is_of_remote = match self.repository.branch()? {
            Some(branch) => {
                let reference = format!("refs/remotes/{remote}/{branch}");
                self.repository.commit(&reference)?.as_ref() == Some(&self.head)
            }
            None => true,
        };
        Ok(if is_of_remote {
            vec![self.head.clone()]
        } else {
            self.repository.ends(&self.head)?
        })
    }

    /// Returns the commit at which a proposed change branched off its target.
    pub(super) fn target(&self, target: &MergeTarget, provider: &str) -> Result<Base, BaseUnknown> {
        let parents = self.repository.parents(&self.head)?;
        if let ([first, second], Some(proposal)) = (&*parents, &target.proposal)
            && second.as_str() == proposal
        {
            let reason = format!("first parent of the merge commit of {provider}");
            return self.exactly(first.as_str(), reason);
        }
        let remote = self.remote()?;
        let mut missing = None;
        let mut found = Vec::new();
        // The branch may have moved since, and HEAD may have merged the new commits, which makes it a better
        // base. It is useless once it contains HEAD.
        if let (Some(branch), Some(remote)) = (&target.branch, &remote) {
            match self
                .repository
                .commit(&format!("refs/remotes/{remote}/{branch}"))?
            {
                Some(commit) => found.push((commit, format!("{remote}/{branch}"))),
                None => missing = Some(refspec(remote, branch)),
            }
        }
        if let Some(name) = &target.commit {
            match self.repository.commit(name)? {
                Some(commit) => {
                    let branch = target.branch.as_deref().unwrap_or("the target branch");
                    let what = format!("{branch} at {}", commit.short());
                    found.push((commit, what));
                }
                None if is_full_name(name) => missing = Some(name.clone()),
                None => {}
            }
        }
        let mut holds_head = None;
        for (commit, what) in &found {
            match self.repository.merge_base(&self.head, commit)? {
                Some(base) if base == self.head => holds_head = holds_head.or(Some(what)),
                Some(base) => {
                    let reason = format!("merge base of HEAD and {what} ({provider})");
                    return Ok(self.base(base, BaseRule::Ci, reason));
                }
                None => {}
            }
        }
        if let Some(what) = holds_head {
            let head = self.head.short();
            let problem = format!(
                "HEAD ({head}) is part of {what}, so it is not the change that {provider} checks"
            );
            return refuse(problem)
                .advise("check out the change itself, or name a base with `--base REV`");
        }
        if let Some((commit, what)) = found.first() {
            return self.unrelated(commit, what, remote.as_deref());
        }
        let what = target
            .branch
            .as_ref()
            .or(target.commit.as_ref())
            .map_or("the target", String::as_str);
        let problem =
            format!("the target of this change, `{what}`, is not in this clone ({provider})");
        self.fetch_history(problem, remote, missing)
    }

    pub(super) fn by_default_branch(&self) -> Result<Base, BaseUnknown> {
        let remote = self.remote()?;
        let (branch, shown, reference) = if let Some(remote) = &remote {
            let branch = remote::default_branch(self.repository, self.query, remote)?;
            let shown = format!("{remote}/{branch}");
            let reference = format!("refs/remotes/{shown}");
            (branch, shown, reference)
        } else {
            let Some(branch) = remote::local_branch(self.repository, self.query)? else {
                return refuse(remote::NO_DEFAULT)
                    .advise("set `config.git.default_branch`, or name a base with `--base REV`");
            };
            let reference = format!("refs/heads/{branch}");
            (branch.clone(), branch, reference)
        };
        let Some(tip) = self.repository.commit(&reference)? else {
            let Some(remote) = remote else {
                let problem = format!("the default branch `{branch}` does not exist");
                return refuse(problem)
                    .advise("set `config.git.default_branch`, or name a base with `--base REV`");
            };
            let problem = format!("the default branch `{shown}` is not in this clone");
            let missing = refspec(&remote, &branch);
            return self.fetch_history(problem, Some(remote), Some(missing));
        };
        let current = self.repository.branch()?;
        let built = self.query.ci.as_ref().and_then(|ci| ci.branch.as_ref());
        let is_on_it = match (&current, built) {
            (Some(current), _) => *current == branch,
            (None, Some(built)) => *built == branch,
            (None, None) => self.head == tip,
        };
        if is_on_it && self.head == tip {
            let reason = format!("first parent of HEAD, which is at {shown}");
            return self.first_parent(reason);
        }
        let Some(base) = self.repository.merge_base(&self.head, &tip)? else {
            return self.unrelated(&tip, &shown, remote.as_deref());
        };
        // A provider may build a commit of the default branch after the branch has moved on.
        if base == self.head
            && let (Some(ci), true) = (&self.query.ci, built == Some(&branch))
        {
            let reason = format!(
                "first parent of HEAD, a commit of {shown} ({})",
                ci.provider
            );
            return self.first_parent(reason);
        }
        if base == self.head && current.is_none() && built.is_none() {
            return self.behind(&tip, &shown);
        }
        let reason = format!("merge base of HEAD and {shown}");
        Ok(self.base(base, BaseRule::MergeBase, reason))
    }

    /// Returns the base for a detached HEAD that the default branch has passed, as in a job that starts after
    /// the next push. Its merge base with that branch is HEAD itself, which shows no change.
    fn behind(&self, tip: &CommitId, shown: &str) -> Result<Base, BaseUnknown> {
        let newer = self.repository.history(tip, Some(&self.head))?;
        let first_parents: HashMap<&CommitId, &CommitId> = newer
            .iter()
            .filter_map(|commit| {
                let parent = commit.parents.first()?;
                Some((&commit.id, parent))
            })
            .collect();
        let mut commit = tip;
        while let Some(parent) = first_parents.get(commit) {
            commit = parent;
        }
        if *commit == self.head {
            let reason = format!("first parent of HEAD, a commit of {shown}");
            return self.first_parent(reason);
        }
        let head = self.head.short();
        let problem = format!("HEAD ({head}) is not on a branch, and {shown} has merged it");
        refuse(problem).advise("check out a branch, or name the base with `--base REV`")
    }

    fn first_parent(&self, reason: String) -> Result<Base, BaseUnknown> {
        let parents = self.repository.parents(&self.head)?;
        let Some(parent) = parents.first() else {
            return refuse(
                "HEAD is the first commit of the repository and has no parent to compare with",
            )
            .advise("remove `--changed` to select all stacks, or name a base with `--base REV`");
        };
        match self.repository.commit(parent.as_str())? {
            Some(commit) => Ok(self.base(commit, BaseRule::FirstParent, reason)),
            None => self.missing(parent.as_str(), &reason),
        }
    }

    fn unrelated<T>(
        &self,
        tip: &CommitId,
        shown: &str,
        remote: Option<&str>,
    ) -> Result<T, BaseUnknown> {
        let problem = format!("HEAD and {shown} have no common commit");
        match remote {
            Some(remote) if self.repository.is_shallow()? => {
                let problem = format!("{problem} in this shallow clone");
                let mut of = self.head_on(remote)?;
                of.push(tip.clone());
                refuse(problem).remedy(Remedy::history(remote, None, &of))
            }
            _ => refuse(problem).advise("name a base with `--base REV`"),
        }
    }

    fn fetch_history<T>(
        &self,
        problem: String,
        remote: Option<String>,
        missing: Option<String>,
    ) -> Result<T, BaseUnknown> {
        let (Some(remote), Some(missing)) = (remote, missing) else {
            return refuse(problem).advise("name a base with `--base REV`");
        };
        refuse(problem).remedy(if self.repository.is_shallow()? {
            let of = self.head_on(&remote)?;
            Remedy::history(&remote, Some(missing), &of)
        } else {
            Remedy::Fetch(vec![remote, missing])
        })
    }

    /// Returns the remote whose default branch is used; `None` without a remote.
    fn remote(&self) -> Result<Option<String>, BaseUnknown> {
        remote::chosen(self.repository, self.query)
    }
}

/// Returns the refspec that updates this clone's copy of a remote branch.
pub(super) fn refspec(remote: &str, branch: &str) -> String {
    format!("+refs/heads/{branch}:refs/remotes/{remote}/{branch}")
}

/// Returns whether a text looks like a version, as most tags do.
fn is_version(text: &str) -> bool {
    let number = text.strip_prefix('v').unwrap_or(text);
    number.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns whether a text is a full commit id: remotes do not resolve abbreviations.
fn is_full_name(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && is_hexadecimal(text)
}
