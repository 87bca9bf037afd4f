//! The part of the history that is not yet in another commit.

use std::collections::{BTreeMap, BTreeSet};

use super::{CommitId, GitError, Repository};
use crate::path::ProjectPath;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryCommit {
    pub id: CommitId,
    /// Its parents; none at the boundary of a shallow clone.
    pub parents: Vec<CommitId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchWith {
    /// A branch of a remote, as git names it: `origin/feature`.
    Remote(String),
    /// No branch of a remote that this clone knows, but this local one.
    Local(String),
    /// No branch that this clone knows.
    None,
    /// There is no `git` program to ask.
    Unknown,
}

impl BranchWith {
    pub fn name(&self) -> Option<&str> {
        match self {
            BranchWith::Remote(name) | BranchWith::Local(name) => Some(name),
            BranchWith::None | BranchWith::Unknown => None,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitText {
    pub author: String,
    /// When it was committed, in seconds since 1970.
    pub committed_at: i64,
    pub message: String,
}

impl Repository {
    /// Returns the texts of commits, without those that this clone lacks.
    pub fn commit_texts(
        &self,
        commits: &BTreeSet<CommitId>,
    ) -> Result<BTreeMap<CommitId, CommitText>, GitError> {
        if commits.is_empty() {
            return Ok(BTreeMap::new());
        }
        ask!(self, commit_texts(commits))
    }

    /// Returns which of these commits the history of `tip` lacks. All of them must be present.
    pub fn not_in_history(
        &self,
        commits: &[CommitId],
        tip: &CommitId,
    ) -> Result<BTreeSet<CommitId>, GitError> {
        if commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        let found: BTreeSet<CommitId> = self
            .ask(
                |library| library.reachable(commits, tip),
                |program| program.reachable(commits, tip),
            )?
            .into_iter()
            .collect();
        let lacking = commits.iter().filter(|commit| found.contains(commit));
        Ok(lacking.cloned().collect())
    }

    /// Returns the commits of the history of `tip` that the history of `base` lacks, if there is a base, in any
    /// order.
    pub fn history(
        &self,
        tip: &CommitId,
        base: Option<&CommitId>,
    ) -> Result<Vec<HistoryCommit>, GitError> {
        ask!(self, history(tip, base))
    }

    pub fn earliest(&self, commits: &[CommitId]) -> Result<Option<CommitId>, GitError> {
        if let [] | [_] = commits {
            return Ok(commits.first().cloned());
        }
        ask!(self, earliest(commits))
    }
}

/// How similar two files must be, in percent, for git to call one renamed: its own default.
pub const SIMILARITY: u16 = 50;

/// How many files on each side are compared with each other. Above that, git may pair only identical files.
pub const RENAME_LIMIT: usize = 4000;

/// A file that a later commit lacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departure {
    pub from: ProjectPath,
    pub bytes: u64,
    /// The new file that git considers the same one, if there is one.
    pub to: Option<ProjectPath>,
}

impl Repository {
    /// Returns the files at or below some directories of the project that one commit has and a later one lacks,
    /// in any order. Only new files at or below these directories count as renamed.
    pub fn departures(
        &self,
        old: &CommitId,
        new: &CommitId,
        directories: &[ProjectPath],
    ) -> Result<Vec<Departure>, GitError> {
        if old == new || directories.is_empty() {
            return Ok(Vec::new());
        }
        ask!(self, departures(old, new, &self.prefix, directories))
    }
}
