//! The proof from git that a recorded stack was removed, or why there is none.

use std::fmt;

use crate::change::base::{DefaultTip, Remedy, RemoteBranch, fetch_command};
use crate::git::{BranchWith, CommitId, RENAME_LIMIT};
use crate::language::value::{Value, to_hcl};
use crate::path::{ProjectPath, StackPath};
use crate::printable::printable;

/// A stack that was removed on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenRemoval {
    /// The newest commit known to have the applied configuration, whose code destroys the stack. `None` only
    /// where nothing will be destroyed.
    pub seen: Option<CommitId>,
    pub by: RemovedBy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovedBy {
    /// A commit that deletes its block, against each of its parents.
    Commit(CommitId),
    /// `for_each` no longer has its key at HEAD, and its directory still exists.
    Key,
    /// A `removed` block of HEAD.
    Block(RemovingBlock),
}

/// A `removed` block that removed a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovingBlock {
    /// Relative to the project root.
    pub file: String,
    /// From 1.
    pub line: usize,
    pub destroys: bool,
}

/// As `file:line`.
impl fmt::Display for RemovingBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl RemovedBy {
    /// Returns the block that keeps the stack's resources, if one does.
    pub fn leaving(&self) -> Option<&RemovingBlock> {
        match self {
            RemovedBy::Block(block) if !block.destroys => Some(block),
            _ => None,
        }
    }
}

/// Why nothing proves that a stack was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoProof {
    NotAPath,
    /// Nothing is committed.
    NoHead,
    /// HEAD still has this file of the stack.
    CodeStillThere(ProjectPath),
    /// HEAD still has the stack, and its deletion is not committed.
    NotCommitted,
    /// HEAD still has this file of the stack, and a sparse checkout leaves it out.
    SparseCheckout(ProjectPath),
    /// This file does not parse, in the project or in this commit, so its stacks are unknown.
    Broken(Option<CommitId>, ProjectPath),
    /// It was applied with inputs that were not committed.
    AppliedDirty,
    /// No apply succeeded, so no commit is known to have created its resources.
    NeverApplied,
    /// It was applied, but without a recorded commit.
    NoCommit,
    /// The applied commit is not in this clone.
    NotInClone {
        commit: CommitId,
        /// Whether the clone lacks parts of its history.
        is_shallow: bool,
        /// The remote to fetch the commit from.
        remote: Option<String>,
        /// Whether the remote was asked and does not have it either.
        is_lost: bool,
    },
    /// The applied commit is in this clone, but not all of the history between it and HEAD.
    Unconnected {
        commit: CommitId,
        /// The remote to fetch the history from.
        remote: Option<String>,
    },
    /// The remote's default branch has the applied commit, and HEAD does not.
    BranchBehind {
        commit: CommitId,
        branch: RemoteBranch,
    },
    /// Neither HEAD nor the remote's default branch has the applied commit.
    OtherHistory(CommitId, BranchWith),
    OnDefaultBranch {
        tip: DefaultTip,
        /// A file or directory of the stack there.
        place: ProjectPath,
        /// Whether HEAD is an ancestor of the branch.
        is_behind: bool,
    },
    /// The tip of the default branch is unknown, so the branch may have the stack.
    NoDefaultBranch {
        problem: String,
        remedy: Remedy,
    },
    /// The commit recorded as applied does not have the stack.
    NotInSeen(CommitId),
    /// The first commit deleted it, and the second restored it.
    CameBack(CommitId, CommitId),
    /// No commit since this one deletes it against each of its parents.
    NeverDeleted(CommitId),
    /// `for_each` has no value at this commit, or one that depends on the environment.
    UnknownKeys(CommitId),
    /// Its directory now has a stack without `for_each`.
    NoLongerForEach(ProjectPath),
    /// Most of its content is now in this directory, which has a stack.
    LooksMoved {
        from: StackPath,
        to: ProjectPath,
        /// Whether that stack is recorded, so that no `moved` block may name it.
        is_recorded: bool,
    },
    /// Too many files differ from the applied commit to show whether the stack was moved.
    TooManyFiles(StackPath),
    /// A `moved` block at this place moves it to this stack, which is missing too.
    MovedAway(StackPath, String),
    /// HEAD lacks the `removed` block at this place, or still has a stack that the block covers.
    BlockNotCommitted(String),
}

/// A short form, to follow `blocked: `.
impl fmt::Display for NoProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoProof::NotAPath => f.write_str("its recorded key is not a stack path"),
            NoProof::NoHead => f.write_str("the repository has no commit yet"),
            NoProof::CodeStillThere(file) => {
                write!(f, "its code is still there: HEAD has `{}`", file.relative())
            }
            NoProof::NotCommitted => f.write_str("its deletion is not committed"),
            NoProof::SparseCheckout(file) => write!(
                f,
                "the sparse checkout leaves it out: HEAD has `{}`",
                file.relative()
            ),
            NoProof::Broken(None, file) => write!(f, "`{}` cannot be parsed", file.relative()),
            NoProof::Broken(Some(commit), file) => write!(
                f,
                "`{}` of commit {} cannot be parsed",
                file.relative(),
                commit.short()
            ),
            NoProof::AppliedDirty => {
                f.write_str("it was applied with inputs that were not committed")
            }
            NoProof::NeverApplied => {
                f.write_str("no apply of it succeeded, so the code that created it is unknown")
            }
            NoProof::NoCommit => {
                f.write_str("no commit is recorded for it, so its code is unknown")
            }
            NoProof::NotInClone { .. }
            | NoProof::Unconnected { .. }
            | NoProof::BranchBehind { .. }
            | NoProof::OtherHistory(..) => self.lacking(f),
            NoProof::OnDefaultBranch { tip, place, .. } => write!(
                f,
                "{} has it at commit {}: `{}`",
                tip.branch,
                tip.commit.short(),
                shown(place)
            ),
            NoProof::NoDefaultBranch { problem, .. } => f.write_str(problem),
            NoProof::NotInSeen(commit) => {
                write!(f, "the applied commit {} does not have it", commit.short())
            }
            NoProof::CameBack(deleted, again) => write!(
                f,
                "commit {} deleted it, but {} has it again, and no commit deletes it after that",
                deleted.short(),
                again.short()
            ),
            NoProof::NeverDeleted(seen) => {
                write!(
                    f,
                    "no commit since {} deletes it (a merge may have lost it)",
                    seen.short()
                )
            }
            NoProof::UnknownKeys(commit) => write!(
                f,
                "its `for_each` in commit {} needs the environment",
                commit.short()
            ),
            NoProof::NoLongerForEach(directory) => write!(
                f,
                "its code is still there: the stack `{directory}` no longer has `for_each`"
            ),
            NoProof::LooksMoved { to, .. } => write!(f, "it looks moved to `{to}`"),
            NoProof::TooManyFiles(_) => write!(
                f,
                "more than {RENAME_LIMIT} files were removed or added with it, so git cannot decide whether it was moved"
            ),
            NoProof::MovedAway(to, place) => {
                write!(f, "{place} moves it to `{to}`, where no stack is")
            }
            NoProof::BlockNotCommitted(place) => {
                write!(f, "the `removed` block at {place} is not committed")
            }
        }
    }
}

impl NoProof {
    /// Returns whether HEAD removed the stack, but other facts contradict that.
    pub fn is_doubt(&self) -> bool {
        matches!(
            self,
            NoProof::LooksMoved { .. }
                | NoProof::TooManyFiles(_)
                | NoProof::OnDefaultBranch { .. }
                | NoProof::NoDefaultBranch { .. }
        )
    }

    /// Returns whether another clone may have the history that this one lacks.
    pub fn is_unknown(&self) -> bool {
        matches!(
            self,
            NoProof::NotInClone { is_lost: false, .. } | NoProof::Unconnected { .. }
        )
    }

    /// Says which commit HEAD lacks, or may lack.
    fn lacking(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoProof::NotInClone {
                commit,
                is_lost: true,
                remote,
                ..
            } => write!(
                f,
                "the applied commit {} is neither in this clone nor on {}",
                commit.short(),
                remote.as_deref().unwrap_or("the remote")
            ),
            NoProof::NotInClone {
                commit, is_shallow, ..
            } => write!(
                f,
                "the applied commit {} is not in this {}clone",
                commit.short(),
                if *is_shallow { "shallow " } else { "" }
            ),
            NoProof::Unconnected { commit, .. } => write!(
                f,
                "this shallow clone lacks the history since the applied commit {}",
                commit.short()
            ),
            NoProof::BranchBehind { commit, branch } => write!(
                f,
                "HEAD is behind {branch}: it lacks the applied commit {}",
                commit.short()
            ),
            NoProof::OtherHistory(commit, branch) => {
                write!(f, "HEAD lacks the applied commit {}", commit.short())?;
                match branch {
                    BranchWith::Remote(branch) => write!(f, ", which is on {branch}"),
                    BranchWith::Local(branch) => {
                        write!(f, ", which is only on the local branch {branch}")
                    }
                    BranchWith::None => f.write_str(", which is on no branch in this clone"),
                    BranchWith::Unknown => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Returns the fix for the user, possibly in several lines, safe to print on a terminal.
    pub fn fix(&self) -> String {
        match self {
            NoProof::NotAPath => {
                "if nothing of it is left, run `orch state forget`".to_owned()
            }
            NoProof::NoHead | NoProof::NotCommitted => {
                "commit the deletion, or restore the files".to_owned()
            }
            NoProof::CodeStillThere(_) => {
                "delete the rest of its directory and commit that, or restore its `stack` block"
                    .to_owned()
            }
            NoProof::NoLongerForEach(_) => {
                "restore `for_each` with the other keys, or add a `moved` block for the instance"
                    .to_owned()
            }
            NoProof::SparseCheckout(file) => {
                let directory = file.parent().unwrap_or_else(ProjectPath::root);
                let directory = printable(directory.relative());
                format!("check it out with `git sparse-checkout add {}`", shell_words::quote(&directory))
            }
            NoProof::Broken(..) => {
                "correct the file and commit it".to_owned()
            }
            NoProof::AppliedDirty => {
                "in the checkout from which it was applied, commit its files and apply it again, or run `orch destroy` on it".to_owned()
            }
            NoProof::NeverApplied => {
                "on the branch that has its files, apply it or run `orch destroy` on it; if nothing of it exists, run `orch state forget`".to_owned()
            }
            NoProof::NoCommit => {
                "restore it, run `orch apply`, which records the commit, and delete it again".to_owned()
            }
            NoProof::NotInClone { is_lost: true, .. } => {
                "it was never pushed, or its branch was deleted: push it from the clone in which it was applied, or run `orch destroy` on the stack there".to_owned()
            }
            NoProof::NotInClone { remote, .. } | NoProof::Unconnected { remote, .. } => {
                match (self.fetch(), remote) {
                    (Some(arguments), Some(_)) => format!(
                        "run `{}`, or add `--fetch`",
                        fetch_command(&arguments)
                    ),
                    _ => "fetch the commit from where it was pushed".to_owned(),
                }
            }
            NoProof::BranchBehind { branch, .. } => {
                format!("merge or rebase onto {branch}")
            }
            NoProof::OtherHistory(commit, branch) => match branch {
                BranchWith::Remote(branch) | BranchWith::Local(branch) => format!(
                    "merge {branch}; if that branch is abandoned, check it out and run `orch destroy` on the stack there"
                ),
                BranchWith::None | BranchWith::Unknown => format!(
                    "check out a branch that has commit {0}; if there is none, check out commit {0} and run `orch destroy` on the stack there",
                    commit.short()
                ),
            },
            NoProof::OnDefaultBranch { tip, is_behind: true, .. } => {
                format!("merge {}, or check it out: HEAD is behind it", tip.branch)
            }
            NoProof::OnDefaultBranch { tip, .. } => {
                let merge = format!("merge the deletion into {}", tip.branch);
                match &tip.fetch {
                    Some(fetch) => format!(
                        "{merge}; if that is done, run `{}`, or add `--fetch`",
                        fetch_command(fetch)
                    ),
                    None => merge,
                }
            }
            NoProof::NoDefaultBranch { remedy, .. } => match remedy {
                Remedy::Advice(advice) => advice.clone(),
                remedy => format!(
                    "run `{}`, or add `--fetch`; if another branch is the default one, set `config.git.default_branch`",
                    remedy.command().unwrap_or_default()
                ),
            },
            NoProof::NotInSeen(_) | NoProof::CameBack(..) | NoProof::NeverDeleted(_) => {
                "restore it and delete it in a commit of its own; if nothing of it is left, run `orch state forget`".to_owned()
            }
            NoProof::UnknownKeys(_) => {
                "restore the key in a `for_each` without `env`, and run `orch destroy` on the instance".to_owned()
            }
            NoProof::LooksMoved { from, to, is_recorded } => {
                moved_or_removed(from.as_str(), to.as_str(), *is_recorded)
            }
            NoProof::TooManyFiles(path) => format!(
                "if it was moved, add a `moved` block with its new place; if not, add this to an `.orch.hcl` file:\nremoved {{\n  from = {}\n}}",
                quoted(path.as_str())
            ),
            NoProof::MovedAway(to, _) => format!(
                "restore that stack; if it was removed, add this to an `.orch.hcl` file:\nremoved {{\n  from = {}\n}}",
                quoted(to.as_str())
            ),
            NoProof::BlockNotCommitted(_) => {
                "commit the block, together with the deletion".to_owned()
            }
        }
    }

    /// Returns the arguments of the `git fetch` that may help.
    pub fn fetch(&self) -> Option<Vec<String>> {
        match self {
            NoProof::NotInClone { is_lost: true, .. } => None,
            NoProof::NotInClone {
                commit,
                is_shallow: false,
                remote,
                ..
            } => Some(vec![remote.clone()?, commit.to_string()]),
            NoProof::NotInClone { remote, .. } | NoProof::Unconnected { remote, .. } => {
                Some(vec!["--unshallow".to_owned(), remote.clone()?])
            }
            _ => None,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            NoProof::NotAPath => "not-a-path",
            NoProof::NoHead => "no-head",
            NoProof::CodeStillThere(_) => "code-still-there",
            NoProof::NotCommitted => "not-committed",
            NoProof::SparseCheckout(_) => "sparse-checkout",
            NoProof::Broken(..) => "broken",
            NoProof::AppliedDirty => "applied-dirty",
            NoProof::NeverApplied => "never-applied",
            NoProof::NoCommit => "no-commit",
            NoProof::NotInClone { .. } => "not-in-clone",
            NoProof::Unconnected { .. } => "unconnected",
            NoProof::BranchBehind { .. } => "branch-behind",
            NoProof::OtherHistory(..) => "other-history",
            NoProof::OnDefaultBranch { .. } => "on-default-branch",
            NoProof::NoDefaultBranch { .. } => "no-default-branch",
            NoProof::NotInSeen(_) => "not-in-seen",
            NoProof::CameBack(..) => "came-back",
            NoProof::NeverDeleted(_) => "never-deleted",
            NoProof::UnknownKeys(_) => "unknown-keys",
            NoProof::NoLongerForEach(_) => "no-longer-for-each",
            NoProof::LooksMoved { .. } => "looks-moved",
            NoProof::TooManyFiles(_) => "too-many-files",
            NoProof::MovedAway(..) => "moved-away",
            NoProof::BlockNotCommitted(_) => "block-not-committed",
        }
    }
}

/// Returns a path without its leading slash, except for the root.
fn shown(path: &ProjectPath) -> &str {
    match path.relative() {
        "" => path.as_str(),
        relative => relative,
    }
}

/// Returns how the user settles whether a stack was moved to another one or removed. If the other one is
/// recorded, no `moved` block may name it.
pub fn moved_or_removed(from: &str, to: &str, is_recorded: bool) -> String {
    let moved = if is_recorded {
        let word = shell_words::quote(from);
        format!("run `orch state forget {}`", printable(&word))
    } else {
        format!(
            "add this to an `.orch.hcl` file:\nmoved {{\n  from = {}\n  to   = {}\n}}",
            quoted(from),
            quoted(to)
        )
    };
    format!(
        "if it was moved, {moved}\nif it was removed, and the other stack has resources of its own{}:\nremoved {{\n  from = {}\n}}",
        if is_recorded {
            ", add this to an `.orch.hcl` file"
        } else {
            ""
        },
        quoted(from)
    )
}

/// Returns a path as HCL has it.
fn quoted(path: &str) -> String {
    to_hcl(&Value::String(path.into()))
}
