//! What git proves about a stack that is on record and not here, or why it proves nothing.

use std::fmt;

use crate::change::base::{RemoteBranch, fetch_command};
use crate::git::CommitId;
use crate::language::value::{Value, to_hcl};
use crate::path::{ProjectPath, StackPath};
use crate::printable::printable;

/// A stack that was removed on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The newest commit that is known to have what was applied: its code destroys the stack. None only where
    /// nothing is to be destroyed.
    pub seen: Option<CommitId>,
    /// What removed the stack.
    pub by: RemovedBy,
}

/// What removed a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovedBy {
    /// This commit deletes its block, against each of its parents.
    Commit(CommitId),
    /// Its directory is still there, but `for_each` no longer has its key at HEAD.
    Key,
    /// This `removed` block of HEAD, which may stand for a commit.
    Block(RemovingBlock),
}

/// A `removed` block that removed a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovingBlock {
    /// The file, relative to the project root.
    pub file: String,
    /// The line in it, from 1.
    pub line: usize,
    /// Whether what the stack has made is destroyed.
    pub destroys: bool,
}

/// As `file:line`.
impl fmt::Display for RemovingBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl RemovedBy {
    /// Returns the block that says that what the stack has made stays, if one does.
    pub fn leaving(&self) -> Option<&RemovingBlock> {
        match self {
            RemovedBy::Block(block) if !block.destroys => Some(block),
            _ => None,
        }
    }
}

/// Why nothing proves that a stack was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoEvidence {
    /// Its key on record is not the path of a stack.
    NotAPath,
    /// Nothing is committed.
    NoHead,
    /// HEAD still has this file of it.
    CodeStillThere(ProjectPath),
    /// HEAD still has the stack, and its deletion is not committed.
    NotCommitted,
    /// HEAD still has this file of the stack, and a sparse checkout leaves it out.
    SparseCheckout(ProjectPath),
    /// This file cannot be parsed, here or as this commit has it, so what it declares is unknown.
    Broken(Option<CommitId>, ProjectPath),
    /// It was applied with inputs that were not committed.
    AppliedDirty,
    /// No apply of it has succeeded, so no commit is known to have made what is there.
    NeverApplied,
    /// It was applied from a commit that was not on the default branch of the remote, or from none.
    NeverPublished,
    /// The commit that was applied is not in this clone.
    NotInClone {
        /// The commit.
        commit: CommitId,
        /// Whether the clone lacks parts of its history.
        is_shallow: bool,
        /// The remote to fetch the commit from.
        remote: Option<String>,
    },
    /// The commit that was applied is here, but not all of the history between it and HEAD.
    Unconnected {
        /// The commit.
        commit: CommitId,
        /// The remote to fetch the history from.
        remote: Option<String>,
    },
    /// The default branch of the remote has the commit that was applied, and HEAD lacks it.
    BranchBehind {
        /// The commit.
        commit: CommitId,
        /// The branch.
        branch: RemoteBranch,
    },
    /// HEAD lacks the commit that was applied.
    OtherHistory(CommitId),
    /// The commit that is said to have been applied does not have the stack.
    NotInSeen(CommitId),
    /// The first commit deleted it, and the second has it again.
    CameBack(CommitId, CommitId),
    /// No commit since this one deletes it against each of its parents.
    NeverDeleted(CommitId),
    /// `for_each` has no value at this commit, or one that depends on the environment.
    UnknownKeys(CommitId),
    /// Its directory has a stack without `for_each` now.
    NoLongerForEach(ProjectPath),
    /// A file of it lies in this directory now, whose stack is not on record.
    LooksMoved {
        /// The stack.
        from: StackPath,
        /// The directory.
        to: ProjectPath,
    },
    /// A `moved` block, whose place this is, says that it is this stack now, which is not here either.
    MovedAway(StackPath, String),
    /// HEAD does not have the `removed` block at this place, or has a stack that the block says is gone.
    BlockNotCommitted(String),
}

/// In short, as after `blocked: `.
impl fmt::Display for NoEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoEvidence::NotAPath => f.write_str("its key on record is not the path of a stack"),
            NoEvidence::NoHead => f.write_str("the repository has no commit yet"),
            NoEvidence::CodeStillThere(file) => {
                write!(f, "its code is still there: HEAD has `{}`", file.relative())
            }
            NoEvidence::NotCommitted => f.write_str("its deletion is not committed"),
            NoEvidence::SparseCheckout(file) => write!(
                f,
                "the sparse checkout leaves it out: HEAD has `{}`",
                file.relative()
            ),
            NoEvidence::Broken(None, file) => write!(f, "`{}` cannot be parsed", file.relative()),
            NoEvidence::Broken(Some(commit), file) => write!(
                f,
                "`{}` cannot be parsed as it is in commit {}",
                file.relative(),
                commit.short()
            ),
            NoEvidence::AppliedDirty => {
                f.write_str("it was applied with inputs that were not committed")
            }
            NoEvidence::NeverApplied => {
                f.write_str("no apply of it has succeeded, so nothing tells whose code made it")
            }
            NoEvidence::NeverPublished => {
                f.write_str("it was applied from a commit that was never published")
            }
            NoEvidence::NotInClone {
                commit, is_shallow, ..
            } => write!(
                f,
                "commit {}, which was applied, is not in this {}clone",
                commit.short(),
                if *is_shallow { "shallow " } else { "" }
            ),
            NoEvidence::Unconnected { commit, .. } => write!(
                f,
                "this shallow clone does not show what happened since commit {}, which was applied",
                commit.short()
            ),
            NoEvidence::BranchBehind { commit, branch } => write!(
                f,
                "HEAD is behind {branch}: it lacks commit {}, which was applied",
                commit.short()
            ),
            NoEvidence::OtherHistory(commit) => {
                write!(f, "HEAD lacks commit {}, which was applied", commit.short())
            }
            NoEvidence::NotInSeen(commit) => write!(
                f,
                "commit {}, which was applied, does not have it",
                commit.short()
            ),
            NoEvidence::CameBack(deleted, again) => write!(
                f,
                "commit {} deleted it, but {} has it again, and no commit deletes it after that",
                deleted.short(),
                again.short()
            ),
            NoEvidence::NeverDeleted(seen) => {
                write!(
                    f,
                    "no commit since {} deletes it, at most a merge loses it",
                    seen.short()
                )
            }
            NoEvidence::UnknownKeys(commit) => write!(
                f,
                "its `for_each` has no value without the environment in commit {}",
                commit.short()
            ),
            NoEvidence::NoLongerForEach(directory) => write!(
                f,
                "its code is still there: the stack `{directory}` no longer has `for_each`"
            ),
            NoEvidence::LooksMoved { to, .. } => write!(f, "it looks moved to `{to}`"),
            NoEvidence::MovedAway(to, place) => {
                write!(
                    f,
                    "{place} says that it was moved to `{to}`, where no stack is"
                )
            }
            NoEvidence::BlockNotCommitted(place) => {
                write!(f, "the `removed` block at {place} is not committed")
            }
        }
    }
}

impl NoEvidence {
    /// Returns what the user can do about it, perhaps in several lines. Nothing in it can deceive a terminal.
    pub fn way_out(&self) -> String {
        match self {
            NoEvidence::NotAPath => {
                "take it off the record with `orch state forget` if nothing of it is left".to_owned()
            }
            NoEvidence::NoHead | NoEvidence::NotCommitted => {
                "commit the deletion, or bring the files back".to_owned()
            }
            NoEvidence::CodeStillThere(_) => {
                "delete the rest of its directory and commit that, or bring its `stack` block back"
                    .to_owned()
            }
            NoEvidence::NoLongerForEach(_) => {
                "bring `for_each` back with the other keys, or say in a `moved` block what became of the instance"
                    .to_owned()
            }
            NoEvidence::SparseCheckout(file) => {
                let directory = file.parent().unwrap_or_else(ProjectPath::root);
                let directory = printable(directory.relative());
                format!("check it out with `git sparse-checkout add {}`", shell_words::quote(&directory))
            }
            NoEvidence::Broken(..) => {
                "correct the file and commit it".to_owned()
            }
            NoEvidence::AppliedDirty
            | NoEvidence::NeverApplied
            | NoEvidence::NeverPublished => {
                "bring it back, run `orch destroy` on it, and delete it again".to_owned()
            }
            NoEvidence::NotInClone { remote, .. } | NoEvidence::Unconnected { remote, .. } => {
                match (self.fetch(), remote) {
                    (Some(arguments), Some(_)) => format!(
                        "run `{}`, or let orch do so with `--fetch`",
                        fetch_command(&arguments)
                    ),
                    _ => "fetch the commit from where it was pushed".to_owned(),
                }
            }
            NoEvidence::BranchBehind { branch, .. } => {
                format!("merge or rebase onto {branch}")
            }
            NoEvidence::OtherHistory(commit) => format!(
                "check out a branch that has commit {}, or bring the stack back and run `orch destroy` on it",
                commit.short()
            ),
            NoEvidence::NotInSeen(_) | NoEvidence::CameBack(..) | NoEvidence::NeverDeleted(_) => {
                "bring it back and delete it again in a commit of its own; if nothing of it is left, take it off the record with `orch state forget`".to_owned()
            }
            NoEvidence::UnknownKeys(_) => {
                "bring the key back with a `for_each` that has the same value everywhere, and run `orch destroy` on the instance".to_owned()
            }
            NoEvidence::LooksMoved { from, to } => {
                let (from, to) = (quoted(from.as_str()), quoted(to.as_str()));
                format!(
                    "if it was moved, add this to an `.orch.hcl` file:\nmoved {{\n  from = {from}\n  to   = {to}\n}}\nif it was removed, and the other stack is new:\nremoved {{\n  from = {from}\n}}"
                )
            }
            NoEvidence::MovedAway(to, _) => format!(
                "bring that stack back; if it was removed, add this to an `.orch.hcl` file:\nremoved {{\n  from = {}\n}}",
                quoted(to.as_str())
            ),
            NoEvidence::BlockNotCommitted(_) => {
                "commit the block, together with the deletion".to_owned()
            }
        }
    }

    /// Returns the arguments of the `git fetch` that may help.
    pub fn fetch(&self) -> Option<Vec<String>> {
        match self {
            NoEvidence::NotInClone {
                commit,
                is_shallow: false,
                remote,
            } => Some(vec![remote.clone()?, commit.to_string()]),
            NoEvidence::NotInClone { remote, .. } | NoEvidence::Unconnected { remote, .. } => {
                Some(vec!["--unshallow".to_owned(), remote.clone()?])
            }
            _ => None,
        }
    }

    /// Returns a word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            NoEvidence::NotAPath => "not-a-path",
            NoEvidence::NoHead => "no-head",
            NoEvidence::CodeStillThere(_) => "code-still-there",
            NoEvidence::NotCommitted => "not-committed",
            NoEvidence::SparseCheckout(_) => "sparse-checkout",
            NoEvidence::Broken(..) => "broken",
            NoEvidence::AppliedDirty => "applied-dirty",
            NoEvidence::NeverApplied => "never-applied",
            NoEvidence::NeverPublished => "never-published",
            NoEvidence::NotInClone { .. } => "not-in-clone",
            NoEvidence::Unconnected { .. } => "unconnected",
            NoEvidence::BranchBehind { .. } => "branch-behind",
            NoEvidence::OtherHistory(_) => "other-history",
            NoEvidence::NotInSeen(_) => "not-in-seen",
            NoEvidence::CameBack(..) => "came-back",
            NoEvidence::NeverDeleted(_) => "never-deleted",
            NoEvidence::UnknownKeys(_) => "unknown-keys",
            NoEvidence::NoLongerForEach(_) => "no-longer-for-each",
            NoEvidence::LooksMoved { .. } => "looks-moved",
            NoEvidence::MovedAway(..) => "moved-away",
            NoEvidence::BlockNotCommitted(_) => "block-not-committed",
        }
    }
}

/// Returns a path as HCL has it.
fn quoted(path: &str) -> String {
    to_hcl(&Value::String(path.into()))
}
