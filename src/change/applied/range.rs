//! The history since the applied commits, restricted to some directories.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rayon::prelude::*;

use super::deletions::{CommitRange, RangeCommit};
use crate::change::error::ChangeError;
use crate::git::{CommitId, GitError, HistoryCommit, Holds, Repository, Search};
use crate::path::ProjectPath;
use crate::project::discover::{CONFIGURATION, is_configuration};
use crate::project::{has_stack_block, pool};

/// The commits since some applied commits, and the directories with `stack` blocks in each.
pub(super) struct AppliedRange {
    pub(super) range: CommitRange,
    pub(super) ids: Vec<CommitId>,
    /// The index of each applied commit in the range.
    pub(super) places: HashMap<CommitId, usize>,
    pub(super) head: Arc<[Holds]>,
    /// What the directories hold in each applied commit.
    pub(super) seen: HashMap<CommitId, Arc<[Holds]>>,
}

impl AppliedRange {
    /// Reads the history of HEAD since `seen`, a set of its ancestors.
    pub(super) fn read(
        repository: &Repository,
        head: &CommitId,
        seen: &BTreeSet<CommitId>,
        directories: &[ProjectPath],
    ) -> Result<Self, ChangeError> {
        let seen: Vec<CommitId> = seen.iter().cloned().collect();
        let (commits, in_base) = commits_since(repository, head, &seen)?;
        // Each commit once: HEAD is usually the first of the range.
        let mut ids: Vec<CommitId> = commits.iter().map(|commit| commit.id.clone()).collect();
        let n_since = ids.len();
        ids.extend(in_base);
        let n_range = ids.len();
        let known: HashSet<&CommitId> = ids.iter().collect();
        let others: Vec<CommitId> = seen
            .iter()
            .chain([head])
            .filter(|it| !known.contains(it))
            .cloned()
            .collect();
        ids.extend(others);
        let holdings = holdings(repository, &ids, directories)?;
        let places: HashMap<CommitId, usize> = ids
            .iter()
            .cloned()
            .enumerate()
            .map(|(at, id)| (id, at))
            .collect();
        let of = |commit: &CommitId| Arc::clone(&holdings[places[commit]]);
        let since = commits.iter().zip(&holdings).map(|(commit, holds)| {
            let parents = commit.parents.iter().map(|parent| places[parent]);
            RangeCommit {
                parents: parents.collect(),
                holds: Arc::clone(holds),
                is_in_base: false,
            }
        });
        let in_base = holdings[n_since..n_range].iter().map(|holds| RangeCommit {
            parents: Vec::new(),
            holds: Arc::clone(holds),
            is_in_base: true,
        });
        let range = CommitRange {
            commits: since.chain(in_base).collect(),
            is_shallow: repository.is_shallow()?,
        };
        let (head, seen) = (
            of(head),
            seen.iter().map(|it| (it.clone(), of(it))).collect(),
        );
        ids.truncate(n_range);
        let places = places.into_iter().filter(|(_, at)| *at < n_range).collect();
        Ok(AppliedRange {
            range,
            ids,
            places,
            head,
            seen,
        })
    }
}

/// Returns the commits of HEAD that are not ancestors of every commit in `seen`, children before parents, and
/// those of their parents that are.
fn commits_since(
    repository: &Repository,
    head: &CommitId,
    seen: &[CommitId],
) -> Result<(Vec<HistoryCommit>, Vec<CommitId>), GitError> {
    let Some(mut base) = repository.earliest(seen)? else {
        return Ok((Vec::new(), Vec::new()));
    };
    let mut commits = sorted(repository.history(head, Some(&base))?, head);
    // Usually the earliest commit is an ancestor of all others.
    let mut later: HashSet<&CommitId> = HashSet::from([&base]);
    for commit in commits.iter().rev() {
        if commit.parents.iter().any(|parent| later.contains(parent)) {
            later.insert(&commit.id);
        }
    }
    let apart: Vec<CommitId> = seen
        .iter()
        .filter(|seen| !later.contains(seen))
        .cloned()
        .collect();
    if !apart.is_empty() {
        for seen in apart {
            let Some(common) = repository.merge_base(&base, &seen)? else {
                // Unrelated histories were merged: both count entirely.
                return Ok(with_base(sorted(repository.history(head, None)?, head)));
            };
            base = common;
        }
        commits = sorted(repository.history(head, Some(&base))?, head);
    }
    Ok(with_base(commits))
}

fn with_base(commits: Vec<HistoryCommit>) -> (Vec<HistoryCommit>, Vec<CommitId>) {
    let known: HashSet<&CommitId> = commits.iter().map(|commit| &commit.id).collect();
    let parents = commits.iter().flat_map(|commit| &commit.parents);
    let others: BTreeSet<&CommitId> = parents.filter(|parent| !known.contains(parent)).collect();
    let others = others.into_iter().cloned().collect();
    (commits, others)
}

/// Sorts the ancestors of a tip, children before parents and merged commits before the mainline, independent
/// of their input order.
fn sorted(commits: Vec<HistoryCommit>, tip: &CommitId) -> Vec<HistoryCommit> {
    let places: HashMap<CommitId, usize> = commits
        .iter()
        .enumerate()
        .map(|(at, commit)| (commit.id.clone(), at))
        .collect();
    let mut n_children = vec![0_usize; commits.len()];
    for commit in &commits {
        for parent in commit.parents.iter().filter_map(|it| places.get(it)) {
            n_children[*parent] += 1;
        }
    }
    let mut commits: Vec<Option<HistoryCommit>> = commits.into_iter().map(Some).collect();
    let mut order = Vec::with_capacity(commits.len());
    let mut ready: Vec<usize> = places.get(tip).copied().into_iter().collect();
    while let Some(at) = ready.pop() {
        let Some(commit) = commits[at].take() else {
            continue;
        };
        for parent in commit.parents.iter().filter_map(|it| places.get(it)) {
            n_children[*parent] -= 1;
            if n_children[*parent] == 0 {
                ready.push(*parent);
            }
        }
        order.push(commit);
    }
    order
}

/// Returns the directories with `stack` blocks in each commit.
pub(super) fn holdings(
    repository: &Repository,
    commits: &[CommitId],
    directories: &[ProjectPath],
) -> Result<Vec<Arc<[Holds]>>, ChangeError> {
    let pool = pool()?;
    let holds = |contents: Vec<Vec<u8>>| -> Vec<Holds> {
        let meaning = |content: Vec<u8>| match has_stack_block(content) {
            Some(true) => Holds::Wanted,
            Some(false) => Holds::Nothing,
            None => Holds::Unknown,
        };
        pool.install(|| contents.into_par_iter().map(meaning).collect())
    };
    let reads =
        |name: &[u8]| str::from_utf8(name).is_ok_and(|name| is_configuration(name.as_ref()));
    let search = Search {
        directories,
        reads: &reads,
        holds: &holds,
        max_bytes: CONFIGURATION.bytes,
    };
    Ok(repository.holdings(commits, &search)?)
}
