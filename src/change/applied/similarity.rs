//! Whether a removed stack seems to have moved: the directory in which git finds most of its content.
//!
//! Configuration files do not count, since those of small stacks look alike. Git must pair at least half of
//! the other files, by size, with new files of one stack, by the rules of `git log --follow`: a pair shares
//! at least half of its content.

use std::collections::{BTreeMap, BTreeSet};

use super::entry_index::EntryIndex;
use crate::git::{CommitId, FileChange, GitError, RENAME_LIMIT, Repository};
use crate::path::ProjectPath;
use crate::project::discover::is_configuration;
use crate::project::driver::NONE;
use crate::project::stack::Stacks;
use crate::state::document::{Document, Entry, READ};

/// `terraform init` writes this file, and it is the same in many stacks.
const LOCK_FILE: &str = ".terraform.lock.hcl";

/// A directory with a stack, to which another stack may have been moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct MoveTarget {
    has_ids: bool,
    /// Whether the state has a stack in it.
    pub(super) is_recorded: bool,
    is_applied: bool,
}

pub(super) type MoveTargets = BTreeMap<ProjectPath, MoveTarget>;

/// Returns the directories of some stacks, given the recorded ones.
pub(super) fn destinations(stacks: &Stacks, document: &Document) -> MoveTargets {
    let pairs = EntryIndex::new(stacks, document);
    let mut found = MoveTargets::new();
    for (index, stack) in stacks.iter() {
        let entry = pairs.key(index).and_then(|key| document.stacks.get(key));
        let is_applied = entry.is_some_and(|entry| entry.applied.is_some());
        let directory = stack.path.directory().clone();
        let destination = found.entry(directory).or_insert(MoveTarget {
            has_ids: true,
            is_recorded: false,
            is_applied: true,
        });
        destination.has_ids &= stack.id.is_some();
        destination.is_recorded |= entry.is_some();
        destination.is_applied &= is_applied;
    }
    found
}

impl MoveTarget {
    /// Returns whether it may be the recorded stack after a move. An applied stack is a different one if the
    /// backend of the recorded stack is known, since its tool distinguishes them.
    fn may_be(self, entry: &Entry) -> bool {
        let is_only_forgotten =
            entry.mode.as_deref() == Some(READ) || entry.driver.as_deref() == Some(NONE);
        let is_told_apart = entry.backend.is_some() || is_only_forgotten;
        let is_other = entry.id.is_some() && self.has_ids;
        !(is_other || self.is_applied && is_told_apart)
    }
}

/// A removed stack: its key, directory and entry.
pub(super) type RemovedEntry<'e> = (&'e str, ProjectPath, &'e Entry);

/// Where a removed stack may have been moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Similarity {
    /// Most of its content is in this directory.
    Moved(ProjectPath),
    /// Too many files differ for git to compare them all.
    Unknown,
}

/// Returns the removed stacks that moved, or may have moved, between two commits.
pub(super) fn moved<'e>(
    repository: &Repository,
    (old, new): (&CommitId, &CommitId),
    removed: &[RemovedEntry<'e>],
    destinations: &MoveTargets,
) -> Result<BTreeMap<&'e str, Similarity>, GitError> {
    let gone: BTreeSet<&ProjectPath> = removed.iter().map(|(_, directory, _)| directory).collect();
    let stack_of = |file: &ProjectPath| nearest(file, |it| destinations.contains_key(it));
    let added: Vec<ProjectPath> = repository
        .differences(old, new)?
        .iter()
        .filter(|file| file.change == FileChange::Added && counts(&file.path))
        .filter_map(|file| stack_of(&file.path))
        .collect();
    let n_added = added.len();
    let added: BTreeSet<ProjectPath> = added.into_iter().collect();
    if added.is_empty() {
        return Ok(BTreeMap::new());
    }
    let places: Vec<ProjectPath> = gone
        .iter()
        .copied()
        .chain(&added)
        .cloned()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let mut all: BTreeMap<ProjectPath, u64> = BTreeMap::new();
    let mut found: BTreeMap<ProjectPath, BTreeMap<ProjectPath, u64>> = BTreeMap::new();
    let departures = repository.departures(old, new, &places)?;
    let n_gone = departures.len();
    // libgit2 limits the comparisons for each new file, git the pairs in total.
    let is_complete =
        n_gone <= RENAME_LIMIT && n_gone.saturating_mul(n_added) <= RENAME_LIMIT * RENAME_LIMIT;
    for file in departures {
        let from = nearest(&file.from, |it| gone.contains(it));
        let Some(from) = from.filter(|_| counts(&file.from)) else {
            continue;
        };
        *all.entry(from.clone()).or_default() += file.bytes;
        let to = file.to.filter(counts).and_then(|to| stack_of(&to));
        if let Some(to) = to {
            *found.entry(from).or_default().entry(to).or_default() += file.bytes;
        }
    }
    let moved = removed.iter().filter_map(|(key, directory, entry)| {
        let all = all.get(directory).copied().filter(|all| *all > 0)?;
        let mut found = found.get(directory).into_iter().flatten();
        let found =
            found.find(|(to, bytes)| **bytes >= all.div_ceil(2) && destinations[*to].may_be(entry));
        if let Some((to, _)) = found {
            return Some((*key, Similarity::Moved(to.clone())));
        }
        let may_be = |to: &ProjectPath| destinations[to].may_be(entry);
        let is_unknown = !is_complete && added.iter().any(may_be);
        is_unknown.then_some((*key, Similarity::Unknown))
    });
    Ok(moved.collect())
}

/// Returns whether a file distinguishes stacks.
fn counts(file: &ProjectPath) -> bool {
    let name = file.basename();
    !is_configuration(name.as_ref()) && name != LOCK_FILE
}

/// Returns the nearest directory above a file that satisfies a predicate.
fn nearest(file: &ProjectPath, is_one: impl Fn(&ProjectPath) -> bool) -> Option<ProjectPath> {
    let mut above = file.ancestors().map(ProjectPath::from_normal);
    above.find(|directory| is_one(directory))
}
