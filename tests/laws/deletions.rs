//! Which commit deletes a stack, against a model that looks at every snapshot of the whole history.

use std::collections::BTreeSet;
use std::sync::Arc;

use orch::change::{CommitRange, Deletion, RangeCommit, RemovedDirectory, deletions};
use orch::git::Holds;
use proptest::prelude::*;
use proptest::sample::Index;

/// How many directories a history is about.
const N_DIRECTORIES: usize = 3;

/// A history whose commits come after their parents. The last commit is the tip.
#[derive(Debug, Clone)]
struct History {
    parents: Vec<Vec<usize>>,
    snapshots: Vec<[Holds; N_DIRECTORIES]>,
}

/// How the snapshot of a commit comes about.
#[derive(Debug, Clone, Copy)]
enum Content {
    /// As in one of the parents, as `merge -s ours` does.
    Of(usize),
    /// What both sides have: what one deletes is gone.
    Merged,
    /// As in the first parent, but for one directory.
    Edited(usize, Holds),
    /// Something else, as after an evil merge.
    Other([Holds; N_DIRECTORIES]),
}

fn holds() -> impl Strategy<Value = Holds> {
    prop_oneof![
        5 => Just(Holds::Wanted),
        5 => Just(Holds::NoDirectory),
        1 => Just(Holds::Nothing),
        1 => Just(Holds::Unknown),
    ]
}

fn snapshot() -> impl Strategy<Value = [Holds; N_DIRECTORIES]> {
    [holds(), holds(), holds()]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        2 => (0..2_usize).prop_map(Content::Of),
        4 => Just(Content::Merged),
        6 => (0..N_DIRECTORIES, holds()).prop_map(|(at, holds)| Content::Edited(at, holds)),
        1 => snapshot().prop_map(Content::Other),
    ]
}

fn history() -> impl Strategy<Value = History> {
    let parents = prop::collection::vec((any::<Index>(), 0..3_usize), 0..3);
    let commits = prop::collection::vec((parents, content()), 2..14);
    (snapshot(), commits).prop_map(|(first, commits)| {
        let mut history = History {
            parents: vec![Vec::new()],
            snapshots: vec![first],
        };
        let n_commits = commits.len();
        for (at, (chosen, content)) in commits.into_iter().enumerate() {
            let number = history.parents.len();
            // Mostly recent commits, so that histories are long rather than wide.
            let parent = |(index, back): (Index, usize)| match back {
                0 => index.index(number),
                back => number - back.min(number),
            };
            let mut parents: Vec<usize> = chosen.into_iter().map(parent).collect();
            let is_root = parents.is_empty() && at % 3 > 0;
            if (parents.is_empty() && !is_root) || at + 1 == n_commits {
                parents.push(number - 1);
            }
            parents.dedup();
            let of = |parent: usize| history.snapshots[parent];
            let first = parents.first().map_or(of(0), |&parent| of(parent));
            let last = parents.last().map_or(of(0), |&parent| of(parent));
            let snapshot = match content {
                Content::Of(side) => [first, last][side],
                Content::Merged => {
                    let mut merged = first;
                    for (holds, other) in merged.iter_mut().zip(last) {
                        if *holds == Holds::Wanted {
                            *holds = other;
                        }
                    }
                    merged
                }
                Content::Edited(at, holds) => {
                    let mut edited = first;
                    edited[at] = holds;
                    edited
                }
                Content::Other(other) => other,
            };
            history.parents.push(parents);
            history.snapshots.push(snapshot);
        }
        history
    })
}

/// Returns a commit and all its ancestors.
fn ancestors(parents: &[Vec<usize>], of: usize) -> BTreeSet<usize> {
    let mut all = BTreeSet::from([of]);
    loop {
        let more = all.iter().flat_map(|&commit| &parents[commit]).copied();
        let more: BTreeSet<usize> = more.collect();
        let before = all.len();
        all.extend(more);
        if all.len() == before {
            return all;
        }
    }
}

fn may_hold(history: &History, commit: usize, directory: usize) -> bool {
    let holds = history.snapshots[commit][directory];
    holds == Holds::Wanted || holds == Holds::Unknown
}

/// The commits that delete a directory since another commit, and those of them after which it never comes
/// back.
fn model(history: &History, seen: usize, directory: usize) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let tip = history.parents.len() - 1;
    let all = ancestors(&history.parents, tip);
    let earlier = ancestors(&history.parents, seen);
    let deleting = all.difference(&earlier).copied().filter(|&commit| {
        // Against each of its parents.
        let parents = &history.parents[commit];
        let mut before = parents.iter().map(|&parent| history.snapshots[parent]);
        !parents.is_empty()
            && !may_hold(history, commit, directory)
            && before.all(|before| before[directory] == Holds::Wanted)
    });
    let deleting: BTreeSet<usize> = deleting.collect();
    let lasting = deleting.iter().copied().filter(|&deletion| {
        all.iter().all(|&later| {
            !ancestors(&history.parents, later).contains(&deletion)
                || !may_hold(history, later, directory)
        })
    });
    let lasting = lasting.collect();
    (deleting, lasting)
}

/// What a clone has of the commits that the tip has and a base lacks, if there is a base. Returns which
/// commit each of the range is.
fn range(
    history: &History,
    known: &[Vec<usize>],
    base: Option<usize>,
    is_shallow: bool,
) -> (CommitRange, Vec<usize>) {
    let tip = history.parents.len() - 1;
    let in_base = base.map_or_else(BTreeSet::new, |base| ancestors(known, base));
    let all = ancestors(known, tip);
    let since = all.iter().rev().filter(|commit| !in_base.contains(commit));
    let since: Vec<usize> = since.copied().collect();
    let beside = since.iter().flat_map(|&commit| &known[commit]).copied();
    let beside: BTreeSet<usize> = beside.filter(|commit| in_base.contains(commit)).collect();
    let numbers: Vec<usize> = since.iter().chain(&beside).copied().collect();
    let place = |commit: &usize| numbers.iter().position(|it| it == commit).unwrap();
    let commits = numbers.iter().map(|&commit| {
        let is_in_base = in_base.contains(&commit);
        RangeCommit {
            parents: if is_in_base {
                Vec::new()
            } else {
                known[commit].iter().map(place).collect()
            },
            holds: Arc::new(history.snapshots[commit]),
            is_in_base,
        }
    });
    let range = CommitRange {
        commits: commits.collect(),
        is_shallow,
    };
    (range, numbers)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_first_lasting_deletion_since_a_commit_is_found(
        history in history(),
        seen in prop::collection::vec((any::<Index>(), 0..N_DIRECTORIES), 1..4),
        base in any::<Index>(),
    ) {
        let tip = history.parents.len() - 1;
        let all: Vec<usize> = ancestors(&history.parents, tip).into_iter().collect();
        let seen: Vec<(usize, usize)> =
            seen.into_iter().map(|(index, at)| (*index.get(&all), at)).collect();
        // Any common ancestor will do.
        let common = all.iter().copied().filter(|commit| {
            seen.iter().all(|(seen, _)| ancestors(&history.parents, *seen).contains(commit))
        });
        let common: Vec<Option<usize>> = common.map(Some).chain([None]).collect();
        let (range, numbers) = range(&history, &history.parents, *base.get(&common), false);
        let place = |commit: usize| numbers.iter().position(|&it| it == commit);
        let gone = seen.iter().map(|&(seen, directory)| RemovedDirectory { directory, seen: place(seen) });
        let found = deletions(&range, &gone.collect::<Vec<RemovedDirectory>>());
        for (&(seen, directory), found) in seen.iter().zip(&found) {
            let (deleting, lasting) = model(&history, seen, directory);
            match *found {
                Deletion::By(at) => {
                    prop_assert!(lasting.contains(&numbers[at]));
                    let first = lasting.iter().filter_map(|&it| place(it)).min();
                    prop_assert_eq!(Some(at), first);
                }
                Deletion::Undone(at, later) => {
                    prop_assert!(lasting.is_empty());
                    prop_assert!(deleting.contains(&numbers[at]));
                    prop_assert!(may_hold(&history, numbers[later], directory));
                    prop_assert!(
                        ancestors(&history.parents, numbers[later]).contains(&numbers[at])
                    );
                }
                Deletion::Never => prop_assert!(deleting.is_empty()),
                Deletion::Unknown => prop_assert!(false, "all of the history is here"),
            }
        }
    }

    #[test]
    fn a_shallow_clone_finds_no_deletion_that_a_complete_one_does_not(
        history in history(),
        cuts in prop::collection::vec(any::<bool>(), 14),
        seen in any::<Index>(),
        base in any::<Index>(),
        directory in 0..N_DIRECTORIES,
    ) {
        let mut known = history.parents.clone();
        for (parents, _) in known.iter_mut().zip(&cuts).filter(|(_, is_cut)| **is_cut) {
            parents.clear();
        }
        let tip = history.parents.len() - 1;
        let all: Vec<usize> = ancestors(&known, tip).into_iter().collect();
        let seen = *seen.get(&all);
        let bases: Vec<Option<usize>> =
            ancestors(&known, seen).into_iter().map(Some).chain([None]).collect();
        let (range, numbers) = range(&history, &known, *base.get(&bases), true);
        let place = numbers.iter().position(|&it| it == seen);
        let found = deletions(&range, &[RemovedDirectory { directory, seen: place }]);
        if let Deletion::By(at) = found[0] {
            let (_, lasting) = model(&history, seen, directory);
            prop_assert!(lasting.contains(&numbers[at]), "{} by {}", seen, numbers[at]);
        }
    }
}
