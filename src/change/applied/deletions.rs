//! Which commit deletes what a directory holds, as the shape of the history alone decides.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::git::Holds;

/// A part of the history: all commits that a tip has and a base lacks, and the parents of these.
#[derive(Debug)]
pub struct Range {
    /// The commits, children before parents.
    pub commits: Vec<RangeCommit>,
    /// Whether the clone lacks parts of the history: a commit without parents may have some.
    pub is_shallow: bool,
}

#[derive(Debug, Clone)]
pub struct RangeCommit {
    /// Its parents, by their place in the range; none if it has none, or if they are not known.
    pub parents: Vec<usize>,
    /// What each directory holds.
    pub holds: Arc<[Holds]>,
    /// Whether the base has it as well.
    pub is_in_base: bool,
}

/// A directory that does not hold what it held at a commit.
#[derive(Debug, Clone, Copy)]
pub struct Gone {
    /// The directory, by its place in [`RangeCommit::holds`].
    pub directory: usize,
    /// The commit at which it was seen, by its place in the range; none if that is the base itself, and no
    /// commit of the range has it as a parent.
    pub seen: Option<usize>,
}

/// Which commit deletes what a directory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// This commit does, against each of its parents, and no later one has it again: the first such commit
    /// in the range.
    By(usize),
    /// The first of these does, but the second, a later one, has it again.
    Undone(usize, usize),
    /// No commit does.
    Never,
    /// A shallow clone lacks commits of which one might.
    Unknown,
}

/// Returns which commit of `SEEN..TIP` deletes what each directory holds.
///
/// What is unknown counts against a deletion: as missing before it, and as there after it.
pub fn deletions(range: &Range, gone: &[Gone]) -> Vec<Deletion> {
    let commits = &range.commits;
    let seen: BTreeSet<Option<usize>> = gone.iter().map(|gone| gone.seen).collect();
    let since = seen.into_iter().map(|seen| (seen, Since::new(range, seen)));
    let since: HashMap<Option<usize>, Since> = since.collect();
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
    let may_hold = |commit: &RangeCommit, gone: &Gone| {
        matches!(commit.holds[gone.directory], Holds::Wanted | Holds::Unknown)
    };
    // A merge that lacks what one side lacks only brings that in, or loses what the other side has. One that
    // lacks what all sides have deletes it: no conflict leads there.
    let deletes = |commit: &RangeCommit, gone: &Gone| {
        let mut before = commit.parents.iter();
        let had = |parent: &usize| commits[*parent].holds[gone.directory] == Holds::Wanted;
        !commit.parents.is_empty() && !may_hold(commit, gone) && before.all(had)
    };
    // For each commit, a later one that has it again, for each of the directories that are gone.
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
struct Since {
    is_since: Vec<bool>,
    /// Whether a shallow clone hides some of them, or their parents.
    is_cut_off: bool,
}

impl Since {
    fn new(range: &Range, seen: Option<usize>) -> Self {
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
        let mut since = Since {
            is_since,
            is_cut_off: false,
        };
        if range.is_shallow {
            let hidden = |(number, commit): (usize, &RangeCommit)| {
                since.has(number) && commit.parents.is_empty()
            };
            since.is_cut_off = commits.iter().enumerate().any(hidden);
            // Others may be ancestors of it by ways that are not here.
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
