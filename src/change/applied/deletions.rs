//! The commit that deletes the content of a directory, decided by the shape of the history alone.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::git::Holds;

/// All commits that a tip has and a base lacks, and their parents.
pub struct CommitRange {
    /// The commits, children before parents.
    pub commits: Vec<RangeCommit>,
    /// Whether history is missing from the clone, so that a commit without known parents may have some.
    pub is_shallow: bool,
}

#[derive(Debug, Clone)]
pub struct RangeCommit {
    /// The indices of its parents in the range; empty if it has none or they are unknown.
    pub parents: Vec<usize>,
    /// What each directory holds in it.
    pub holds: Arc<[Holds]>,
    pub is_in_base: bool,
}

/// A directory that no longer holds what it held at a commit.
#[derive(Debug, Clone, Copy)]
pub struct RemovedDirectory {
    /// Its index in [`RangeCommit::holds`].
    pub directory: usize,
    /// The index of the commit that had it; `None` if that is the base itself and no commit of the range has
    /// it as a parent.
    pub seen: Option<usize>,
}

/// The commit that deletes the content of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The first commit in the range that deletes it against each parent, with no later commit that restores
    /// it.
    By(usize),
    /// The first deletes it, and the second, a later one, restores it.
    Undone(usize, usize),
    Never,
    /// A shallow clone lacks commits, one of which may delete it.
    Unknown,
}

/// Returns which commit of `SEEN..TIP` deletes the content of each directory.
///
/// Unknown content counts against a deletion: as missing before it and as present after it.
pub fn deletions(range: &CommitRange, gone: &[RemovedDirectory]) -> Vec<Deletion> {
    let commits = &range.commits;
    let seen: BTreeSet<Option<usize>> = gone.iter().map(|gone| gone.seen).collect();
    let since: HashMap<Option<usize>, CommitsSince> = seen
        .into_iter()
        .map(|seen| (seen, CommitsSince::new(range, seen)))
        .collect();
    let mut found: Vec<Deletion> = gone
        .iter()
        .map(|gone| {
            if since[&gone.seen].is_cut_off {
                Deletion::Unknown
            } else {
                Deletion::Never
            }
        })
        .collect();
    let may_hold = |commit: &RangeCommit, gone: &RemovedDirectory| {
        matches!(commit.holds[gone.directory], Holds::Wanted | Holds::Unknown)
    };
    // A merge that lacks what one side lacks either merges that deletion or drops the other side's content. A
    // merge that lacks what all sides have deletes it: no conflict leads there.
    let deletes = |commit: &RangeCommit, gone: &RemovedDirectory| {
        let mut before = commit.parents.iter();
        let had = |parent: &usize| commits[*parent].holds[gone.directory] == Holds::Wanted;
        !commit.parents.is_empty() && !may_hold(commit, gone) && before.all(had)
    };
    // For each commit and each removed directory, a later commit that restores it.
    let mut again: Vec<Option<Box<[Option<usize>]>>> = vec![None; commits.len()];
    for (number, commit) in commits.iter().enumerate() {
        if commit.is_in_base {
            continue;
        }
        let mut later = again[number].take();
        for (at, gone) in gone.iter().enumerate() {
            let is_open = matches!(found[at], Deletion::Never | Deletion::Undone(..));
            let has_again = later.as_ref().and_then(|later| later[at]);
            if is_open && deletes(commit, gone) && since[&gone.seen].has(number) {
                match (has_again, found[at]) {
                    (None, _) => found[at] = Deletion::By(number),
                    (Some(again), Deletion::Never) => found[at] = Deletion::Undone(number, again),
                    _ => {}
                }
            }
            if is_open && has_again.is_none() && may_hold(commit, gone) {
                let empty = || vec![None; found.len()].into_boxed_slice();
                later.get_or_insert_with(empty)[at] = Some(number);
            }
        }
        let Some(later) = later else { continue };
        for &parent in &commit.parents {
            match &mut again[parent] {
                Some(known) => {
                    for (known, later) in known.iter_mut().zip(&later) {
                        *known = known.or(*later);
                    }
                }
                unknown => *unknown = Some(later.clone()),
            }
        }
    }
    found
}

/// The commits of `SEEN..TIP`.
struct CommitsSince {
    is_since: Vec<bool>,
    /// Whether a shallow clone hides some of them or their parents.
    is_cut_off: bool,
}

impl CommitsSince {
    fn new(range: &CommitRange, seen: Option<usize>) -> Self {
        let commits = &range.commits;
        let mut is_since: Vec<bool> = commits.iter().map(|commit| !commit.is_in_base).collect();
        if let Some(seen) = seen {
            let mut is_earlier = vec![false; commits.len()];
            is_earlier[seen] = true;
            for number in seen..commits.len() {
                if is_earlier[number] {
                    is_since[number] = false;
                    for &parent in &commits[number].parents {
                        is_earlier[parent] = true;
                    }
                }
            }
        }
        let mut since = CommitsSince {
            is_since,
            is_cut_off: false,
        };
        if range.is_shallow {
            let hidden = |(number, commit): (usize, &RangeCommit)| {
                since.has(number) && commit.parents.is_empty()
            };
            since.is_cut_off = commits.iter().enumerate().any(hidden);
            // Others may be ancestors through commits outside of the range.
            let mut is_later = vec![false; commits.len()];
            for (number, commit) in commits.iter().enumerate().rev() {
                let mut parents = commit.parents.iter();
                is_later[number] = parents.any(|&it| Some(it) == seen || is_later[it]);
                since.is_since[number] &= is_later[number];
            }
        }
        since
    }

    fn has(&self, commit: usize) -> bool {
        self.is_since[commit]
    }
}
