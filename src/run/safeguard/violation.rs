//! Violations of safeguards, and their fixes, in words.

use std::fmt;
use std::sync::Arc;

use super::Disabled;
use crate::change::base::{BaseUnknown, Remedy, RemoteBranch};
use crate::git::{self, ChangedFile, CommitId, FileChange, GitError};
use crate::printable::printable;
use crate::project::config::Safeguard;

/// How many files a violation names; the rest are only counted.
const N_SHOWN: usize = 20;

/// What to do if HEAD is compared with the wrong branch.
const DEFAULT_BRANCH: &str =
    "set `config.git.default_remote` and `default_branch` to the branch to compare HEAD with";

/// How many pairs of stacks a violation names.
const N_PAIRS: usize = 10;

#[derive(Debug, thiserror::Error)]
pub enum Violation {
    #[error("refused: {}", Untracked(.0))]
    Untracked(Vec<ChangedFile>),
    #[error("refused: {}", Uncommitted(.0))]
    Uncommitted(Vec<ChangedFile>),
    /// HEAD lacks commits of the remote.
    #[error("refused: {}", OutOfSync(.0))]
    OutOfSync(OutdatedHead),
    /// The remote does not have the branch to compare HEAD with.
    #[error("refused: the remote `{}` has no branch `{}` {}", .0.remote, .0.branch, rule(Safeguard::GitOutOfSync))]
    NoBranch(RemoteBranch),
    #[error(
        "refused: no remote to compare HEAD with {}",
        rule(Safeguard::GitOutOfSync)
    )]
    NoRemote,
    /// The branch of the remote is unknown.
    #[error(
        "refused: the branch to compare HEAD with is unknown {}",
        rule(Safeguard::GitOutOfSync)
    )]
    NoUpstream(#[source] BaseUnknown),
    /// git cannot determine whether HEAD is up to date.
    #[error(
        "refused: failed to check whether HEAD is up to date {}",
        rule(Safeguard::GitOutOfSync)
    )]
    SyncUnknown(#[source] GitError),
    /// git cannot say what state the working tree is in.
    #[error("refused: the status of the working tree is unknown {}", rules(.on))]
    StatusUnknown {
        /// The safeguards that need it.
        on: Vec<Safeguard>,
        #[source]
        error: Arc<GitError>,
    },
    /// Stacks are destroyed before others that run after them.
    #[error("refused: the run destroys stacks before others that run after them {}{}", rule(Safeguard::DestroyOrder), named_pairs(.0))]
    DestroyedFirst(Vec<EarlyDestroy>),
    /// Stacks are destroyed, and others that run after them are kept.
    #[error("refused: the run destroys stacks and keeps others that run after them {}{}", rule(Safeguard::DestroyOrder), named_pairs(.pairs))]
    DependentsKept {
        pairs: Vec<EarlyDestroy>,
        /// Whether one of them was removed from the project, so that no run destroys it.
        has_removed: bool,
    },
}

/// Two stacks, of which one is to be destroyed too early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlyDestroy {
    pub dependent: String,
    pub destroyed: String,
}

/// Returns a line for each of the first pairs.
fn named_pairs(all: &[EarlyDestroy]) -> String {
    let named = all.iter().take(N_PAIRS).map(|pair| {
        let (dependent, destroyed) = (printable(&pair.dependent), printable(&pair.destroyed));
        format!("\n    {dependent} runs after {destroyed}")
    });
    let mut text: String = named.collect();
    if let Some(more @ 1..) = all.len().checked_sub(N_PAIRS) {
        text += &format!("\n    and {more} more");
    }
    text
}

/// HEAD, and the commits that it lacks.
#[derive(Debug)]
pub struct OutdatedHead {
    /// HEAD; `None` if nothing is committed on its branch.
    pub head: Option<CommitId>,
    pub upstream: RemoteBranch,
    pub tip: CommitId,
    pub relation: HeadRelation,
}

/// How HEAD is related to a commit that it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadRelation {
    /// HEAD has no commits of its own.
    FastForward,
    /// Each has commits that the other lacks.
    Diverged,
    /// They have no commit in common.
    Unrelated,
    /// The shallow clone has too little history.
    Shallow,
}

fn rule(safeguard: Safeguard) -> String {
    rules(&[safeguard])
}

fn rules(safeguards: &[Safeguard]) -> String {
    let names: Vec<&str> = safeguards.iter().map(|one| one.name()).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("(safeguard{plural} `{}`)", names.join("`, `"))
}

/// Writes the files of a violation, one a line.
fn files(
    f: &mut fmt::Formatter<'_>,
    files: &[ChangedFile],
    what: impl Fn(FileChange) -> Option<&'static str>,
) -> fmt::Result {
    for file in files.iter().take(N_SHOWN) {
        write!(f, "\n    {}", printable(file.path.relative()))?;
        if let Some(what) = what(file.change) {
            write!(f, " ({what})")?;
        }
    }
    match files.len().saturating_sub(N_SHOWN) {
        0 => Ok(()),
        more => write!(f, "\n    and {more} more"),
    }
}

struct Untracked<'a>(&'a [ChangedFile]);

impl fmt::Display for Untracked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = rule(Safeguard::GitUntracked);
        match self.0.len() {
            1 => write!(f, "1 file is untracked {rule}")?,
            n => write!(f, "{n} files are untracked {rule}")?,
        }
        files(f, self.0, |change| {
            (change == FileChange::Repository).then_some("repository")
        })
    }
}

struct Uncommitted<'a>(&'a [ChangedFile]);

impl fmt::Display for Uncommitted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = rule(Safeguard::GitUncommitted);
        match self.0.len() {
            1 => write!(f, "1 file has uncommitted changes {rule}")?,
            n => write!(f, "{n} files have uncommitted changes {rule}")?,
        }
        files(f, self.0, |change| Some(change.word()))
    }
}

struct OutOfSync<'a>(&'a OutdatedHead);

impl fmt::Display for OutOfSync<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutdatedHead {
            head,
            upstream,
            tip,
            relation,
        } = self.0;
        let tip = tip.short();
        match head {
            None => write!(f, "HEAD has no commit, and {upstream} is at {tip}")?,
            Some(head) => {
                let head = head.short();
                match relation {
                    HeadRelation::Unrelated => {
                        write!(
                            f,
                            "HEAD ({head}) and {upstream} ({tip}) have no common commit"
                        )?;
                    }
                    _ => write!(
                        f,
                        "HEAD ({head}) is out of date: it lacks {tip}, the tip of {upstream}"
                    )?,
                }
            }
        }
        write!(f, " {}", rule(Safeguard::GitOutOfSync))
    }
}

impl OutdatedHead {
    /// Describes a HEAD that lacks the tip of a branch, as far as the clone knows: a clause, and the fix.
    pub fn known_here(&self) -> Option<(String, String)> {
        let head = self.head.as_ref()?.short();
        let tip = self.tip.short();
        let upstream = &self.upstream;
        let is_known = matches!(
            self.relation,
            HeadRelation::FastForward | HeadRelation::Diverged
        );
        let command = self.commands().filter(|_| is_known)?;
        Some((
            format!("HEAD ({head}) lacks {tip}, the tip of {upstream} as this clone knows it"),
            format!("run `{command}`"),
        ))
    }

    /// Returns the commands that bring HEAD up to date, as a user would type them.
    fn commands(&self) -> Option<String> {
        let RemoteBranch { remote, branch } = &self.upstream;
        let then = |words: &[&str]| {
            let fetch = git::command_line(["fetch", remote, branch]);
            // FETCH_HEAD works with any refspec.
            let then = git::command_line(words.iter().chain(&["FETCH_HEAD"]));
            Some(format!("{fetch} && {then}"))
        };
        match self.relation {
            _ if self.head.is_none() => None,
            HeadRelation::FastForward => then(&["merge", "--ff-only"]),
            HeadRelation::Diverged => then(&["rebase"]),
            HeadRelation::Unrelated => None,
            HeadRelation::Shallow => {
                Some(git::command_line(["fetch", "--unshallow", remote, branch]))
            }
        }
    }
}

impl Violation {
    /// Returns the fix, and how to disable the safeguard.
    pub fn help(&self, disabled: &Disabled) -> String {
        let lifted = |safeguards: &[Safeguard]| {
            let names: Vec<&str> = safeguards.iter().map(|one| one.name()).collect();
            let which = if names.len() == 1 {
                "this safeguard"
            } else {
                "these safeguards"
            };
            format!("or disable {which} with {}", disabled.fix(&names.join(",")))
        };
        let them = |files: &[ChangedFile]| if files.len() == 1 { "it" } else { "them" };
        match self {
            Violation::Untracked(files) => {
                let lifted = lifted(&[Safeguard::GitUntracked]);
                format!("commit or ignore {}, {lifted}", them(files))
            }
            Violation::Uncommitted(files) => {
                let lifted = lifted(&[Safeguard::GitUncommitted]);
                let is_conflicted = |file: &ChangedFile| file.change == FileChange::Conflicted;
                if files.iter().any(is_conflicted) {
                    format!("resolve the conflicts and commit, {lifted}")
                } else {
                    format!("commit or stash {}, {lifted}", them(files))
                }
            }
            Violation::StatusUnknown { on, error } => {
                or_lifted(error, remedy_for(error), &lifted(on))
            }
            Violation::OutOfSync(behind) => {
                let remedy = match (behind.commands(), behind.relation) {
                    (Some(command), HeadRelation::Shallow) => {
                        format!("get the history of this shallow clone with `{command}`")
                    }
                    (Some(command), _) => format!("run `{command}`"),
                    (None, _) if behind.head.is_none() => {
                        "switch to a branch that has commits".to_owned()
                    }
                    (None, _) => DEFAULT_BRANCH.to_owned(),
                };
                format!("{remedy}, {}", lifted(&[Safeguard::GitOutOfSync]))
            }
            Violation::NoBranch(_) => {
                format!("{DEFAULT_BRANCH}, {}", lifted(&[Safeguard::GitOutOfSync]))
            }
            Violation::NoRemote => {
                format!(
                    "add one with `git remote add origin URL`, {}",
                    lifted(&[Safeguard::GitOutOfSync])
                )
            }
            Violation::NoUpstream(unknown) => {
                let lifted = lifted(&[Safeguard::GitOutOfSync]);
                match unknown {
                    BaseUnknown::Refused {
                        remedy: Remedy::Advice(advice),
                        ..
                    } => format!("{advice}, {lifted}"),
                    BaseUnknown::Git(error) => or_lifted(error, remedy_for(error), &lifted),
                    _ => format!("{DEFAULT_BRANCH}, {lifted}"),
                }
            }
            Violation::DestroyedFirst(_) => {
                format!("add `--reverse`, {}", lifted(&[Safeguard::DestroyOrder]))
            }
            Violation::DependentsKept { has_removed, .. } => {
                let lifted = lifted(&[Safeguard::DestroyOrder]);
                let removed = if *has_removed {
                    "first destroy removed stacks with `orch apply`, "
                } else {
                    ""
                };
                format!("{removed}add `--include-dependents` to destroy these too, {lifted}")
            }
            Violation::SyncUnknown(error) => {
                let remedy = match error {
                    GitError::Failed { .. } | GitError::Unexpected { .. }
                        if error.remedy().is_none() =>
                    {
                        "see git's message above".to_owned()
                    }
                    error => remedy_for(error),
                };
                or_lifted(error, remedy, &lifted(&[Safeguard::GitOutOfSync]))
            }
        }
    }
}

/// Returns a remedy, and how to disable the safeguard unless git would fail for other questions too: then the run
/// could not tell which commit it applies.
fn or_lifted(error: &GitError, remedy: String, lifted: &str) -> String {
    let is_closed = error.remedy().is_some()
        || matches!(error, GitError::Unreadable(..) | GitError::Damaged(_));
    if is_closed {
        return remedy;
    }
    format!("{remedy}, {lifted}")
}

/// Returns the fix if git fails.
fn remedy_for(error: &GitError) -> String {
    match (error, error.remedy()) {
        (_, Some(command)) => format!("if you trust the repository, run `{command}`"),
        (GitError::Start(_) | GitError::Library(_), _) => {
            "install `git`, or add it to the PATH".to_owned()
        }
        (GitError::NoWorkingTree(_), _) => {
            "run `orch` in a working tree of the repository".to_owned()
        }
        (GitError::Unreadable(..), _) => "make it readable for the user who runs `orch`".to_owned(),
        _ => "run `git status` in this directory to see the cause".to_owned(),
    }
}
