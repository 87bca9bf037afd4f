//! Which of the recorded stacks that the project lacks were removed on purpose, according to git.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::at_commit::{CommitContent, broken_file};
use super::default_branch::{RemovedFromHead, still_there};
use super::deletions::{Deletion, RemovedDirectory, deletions};
use super::proof::{NoProof, ProvenRemoval, RemovedBy, RemovingBlock};
use super::range::AppliedRange;
use super::similarity::{RemovedEntry, Similarity, destinations, moved};
use crate::change::base::{self, BaseQuery};
use crate::change::error::ChangeError;
use crate::change::present::CurrentProject;
use crate::git::{BranchWith, CommitId, CommitTree, GitError, Holds, Repository};
use crate::path::{ProjectPath, StackPath};
use crate::project::relocation::RemovedBlock;
use crate::project::{Problems, Project};
use crate::state::document::{Document, Entry};

/// For each stack, the proof of its removal, or why there is none.
pub(super) type Proofs<'e> = BTreeMap<&'e str, Result<ProvenRemoval, NoProof>>;

/// Returns the proof for some recorded stacks that the project lacks, or why there is none.
pub(super) fn evidence<'e>(
    present: CurrentProject<'_>,
    document: &Document,
    missing: &[(&'e str, &'e Entry)],
) -> Result<Proofs<'e>, ChangeError> {
    let none = |why: NoProof| missing.iter().map(move |(key, _)| (*key, Err(why.clone())));
    let repository = present.repository;
    let Some(head) = repository.commit("HEAD")? else {
        return Ok(none(NoProof::NoHead).collect());
    };
    if let Some(broken) = broken(present, &head)? {
        return Ok(none(broken).collect());
    }
    let stacks: Vec<(&'e str, &'e Entry, StackPath)> = missing
        .iter()
        .filter_map(|(key, entry)| {
            let path = StackPath::parse(key)?;
            Some((*key, *entry, path))
        })
        .collect();
    let given_up = RelocationBlocks::read(present, &head, stacks.iter().map(|(.., path)| path))?;
    let directories: BTreeSet<&ProjectPath> = stacks
        .iter()
        .flat_map(|(.., path)| given_up.places(path))
        .map(StackPath::directory)
        .collect();
    let directories: Vec<ProjectPath> = directories.into_iter().cloned().collect();
    // Stacks that are not destroyed need no code, but their history must not contradict the block.
    let known = stacks.iter().filter_map(|(_, entry, path)| {
        let leaves = given_up.leaves(path);
        if leaves {
            last_commit(entry)
        } else {
            newest_commit_with_inputs(entry)
        }
    });
    let seens = AppliedCommits::new(present, &head, known)?;
    let since = AppliedRange::read(repository, &head, &seens.in_head, &directories)?;
    let there: Vec<ProjectPath> = directories
        .iter()
        .zip(since.head.iter())
        .filter(|(_, holds)| **holds != Holds::NoDirectory)
        .map(|(directory, _)| directory.clone())
        .collect();
    let at_head = CommitContent::read(present, &head, there)?;

    // The answers that need no history, by index.
    let known = RemovalFacts {
        given_up: &given_up,
        at_head: &at_head,
        seens: &seens,
        since: &since,
        directories: &directories,
    };
    let mut decided: Vec<Option<Proof>> = stacks
        .iter()
        .map(|(_, entry, path)| known.decide(entry, path))
        .collect::<Result<_, ChangeError>>()?;
    let undecided = || (0..stacks.len()).filter(|&at| decided[at].is_none());
    let gone: Vec<RemovedDirectory> = undecided()
        .map(|at| {
            let (_, entry, path) = &stacks[at];
            let seen = seens.of(entry).ok();
            RemovedDirectory {
                directory: known.place(path),
                seen: seen.and_then(|seen| since.places.get(seen).copied()),
            }
        })
        .collect();
    let found: Vec<(usize, Deletion)> = undecided().zip(deletions(&since.range, &gone)).collect();
    for (at, deletion) in found {
        let id = |commit: usize| since.ids[commit].clone();
        let (_, entry, _) = &stacks[at];
        let evidence = seens.of(entry).and_then(|seen| match deletion {
            Deletion::By(commit) => Ok(ProvenRemoval {
                seen: Some(seen.clone()),
                by: RemovedBy::Commit(id(commit)),
            }),
            Deletion::Undone(deleted, again) => Err(NoProof::CameBack(id(deleted), id(again))),
            Deletion::Never => Err(NoProof::NeverDeleted(seen.clone())),
            Deletion::Unknown => Err(NoProof::Unconnected {
                commit: seen.clone(),
                remote: seens.remote.clone(),
            }),
        });
        decided[at] = Some(evidence);
    }
    let mut evidence: Proofs<'e> = none(NoProof::NotAPath).collect();
    for ((key, ..), decided) in stacks.iter().zip(decided) {
        if let Some(decided) = decided {
            evidence.insert(*key, decided);
        }
    }
    block_moved(present, &head, document, &stacks, &mut evidence)?;
    block_on_default_branch(present, &head, document, &given_up, &stacks, &mut evidence)?;
    Ok(evidence)
}

/// The proof of one removal, or why there is none.
type Proof = Result<ProvenRemoval, NoProof>;

/// The facts about missing stacks, apart from the history.
struct RemovalFacts<'k, 'p> {
    given_up: &'k RelocationBlocks<'p>,
    at_head: &'k CommitContent<'p>,
    seens: &'k AppliedCommits,
    since: &'k AppliedRange,
    /// The sorted directories of the stacks.
    directories: &'k [ProjectPath],
}

impl RemovalFacts<'_, '_> {
    fn place(&self, path: &StackPath) -> usize {
        let found = self.directories.binary_search(path.directory());
        found.expect("it is the directory of a missing stack")
    }

    /// Returns the proof for a stack; `None` if only the history since its apply can provide it.
    fn decide(&self, entry: &Entry, path: &StackPath) -> Result<Option<Proof>, ChangeError> {
        let leaves = self.given_up.leaves(path);
        let mut places = self.given_up.places(path);
        let by_key = places.try_fold(false, |any, path| {
            match self.since.head[self.place(path)] {
                // The files may belong to another stack now.
                Holds::Nothing if leaves => Ok(any),
                holds => Ok(self.at_head.check(path, holds)? || any),
            }
        });
        let said = self.given_up.block(path);
        let (block, by_key) = match said.and_then(|block| Ok((block, by_key?))) {
            Ok(known) => known,
            Err(why) => return Ok(Some(Err(why))),
        };
        if leaves && let Some(by) = block {
            return Ok(Some(self.left(entry, by)));
        }
        let seen = match self.seens.of(entry) {
            Ok(seen) if self.since.seen[seen][self.place(path)] == Holds::Wanted => seen,
            Ok(seen) => return Ok(Some(Err(NoProof::NotInSeen(seen.clone())))),
            Err(why) => return Ok(Some(Err(why))),
        };
        let by_key = if by_key {
            Some(self.at_head.key_at(path, seen)?)
        } else {
            None
        };
        Ok(match (by_key, block) {
            (Some(Err(why)), _) => Some(Err(why)),
            (_, Some(by)) => Some(Ok(ProvenRemoval {
                seen: Some(seen.clone()),
                by,
            })),
            (by_key, None) => by_key,
        })
    }

    /// Returns the proof for a stack that a block only removes from the state. That needs no code, but must
    /// not undo later commits.
    fn left(&self, entry: &Entry, by: RemovedBy) -> Proof {
        let last = last_commit(entry)
            .map(|commit| self.seens.in_head(commit))
            .transpose()?;
        Ok(ProvenRemoval {
            seen: newest_commit_with_inputs(entry).filter(|seen| last == Some(seen)),
            by,
        })
    }
}

/// Returns a configuration file that does not parse in the project or at HEAD. A file equal to HEAD's was
/// parsed with the project.
fn broken(present: CurrentProject<'_>, head: &CommitId) -> Result<Option<NoProof>, ChangeError> {
    if let Some(file) = present.project.broken.first() {
        return Ok(Some(NoProof::Broken(None, file.clone())));
    }
    let broken = broken_file(present, head)?;
    Ok(broken.map(|file| NoProof::Broken(Some(head.clone()), file)))
}

type CommitPair = (CommitId, CommitId);

/// Withdraws the proof of stacks that seem to have moved, by HEAD or in the deleting commit: the content may
/// have changed since.
fn block_moved<'e>(
    present: CurrentProject<'_>,
    head: &CommitId,
    document: &Document,
    stacks: &[(&'e str, &'e Entry, StackPath)],
    evidence: &mut Proofs<'e>,
) -> Result<(), GitError> {
    let repository = present.repository;
    let mut by_commits: BTreeMap<CommitPair, Vec<RemovedEntry<'e>>> = BTreeMap::new();
    for (key, entry, path) in stacks {
        if let Some(Ok(ProvenRemoval {
            seen: Some(seen),
            by: RemovedBy::Commit(deletion),
        })) = evidence.get(key)
        {
            let parent = repository.commit(&format!("{deletion}^"))?;
            let by_deletion = parent.map(|parent| (parent, deletion.clone()));
            for commits in [Some((seen.clone(), head.clone())), by_deletion] {
                let Some(commits) = commits else { continue };
                let removed = by_commits.entry(commits).or_default();
                removed.push((*key, path.directory().clone(), *entry));
            }
        }
    }
    if by_commits.is_empty() {
        return Ok(());
    }
    let destinations = destinations(&present.project.stacks, document);
    let paths: HashMap<&str, &StackPath> =
        stacks.iter().map(|(key, _, path)| (*key, path)).collect();
    for ((old, later), removed) in by_commits {
        for (key, likeness) in moved(repository, (&old, &later), &removed, &destinations)? {
            let why = match likeness {
                Similarity::Moved(to) => NoProof::LooksMoved {
                    from: paths[key].clone(),
                    is_recorded: destinations[&to].is_recorded,
                    to,
                },
                Similarity::Unknown => NoProof::TooManyFiles(paths[key].clone()),
            };
            evidence.insert(key, Err(why));
        }
    }
    Ok(())
}

/// Withdraws the proof of stacks that the default branch still has.
fn block_on_default_branch<'e>(
    present: CurrentProject<'_>,
    head: &CommitId,
    document: &Document,
    given_up: &RelocationBlocks<'_>,
    stacks: &[(&'e str, &'e Entry, StackPath)],
    evidence: &mut Proofs<'e>,
) -> Result<(), ChangeError> {
    let removed: Vec<RemovedFromHead<'_>> = stacks
        .iter()
        .filter_map(|(key, entry, path)| {
            let removal = evidence.get(key)?.as_ref().ok()?.clone();
            Some(RemovedFromHead {
                key,
                entry,
                places: given_up.places(path).cloned().collect(),
                removal,
            })
        })
        .collect();
    let still_there = still_there(present, head, document, &removed)?;
    // The first reason is the plainest.
    for (key, why) in still_there.into_iter().rev() {
        evidence.insert(key, Err(why));
    }
    Ok(())
}

/// The applied commits and their relation to HEAD.
struct AppliedCommits {
    in_head: BTreeSet<CommitId>,
    /// Why the other commits prove nothing.
    others: HashMap<CommitId, NoProof>,
    /// The remote to fetch from.
    remote: Option<String>,
}

impl AppliedCommits {
    fn new(
        present: CurrentProject<'_>,
        head: &CommitId,
        known: impl Iterator<Item = CommitId>,
    ) -> Result<Self, GitError> {
        let repository = present.repository;
        let all: BTreeSet<CommitId> = known.collect();
        let (mut here, mut missing) = (Vec::new(), Vec::new());
        for seen in all {
            if repository.commit(seen.as_str())?.as_ref() == Some(&seen) {
                here.push(seen);
            } else {
                missing.push(seen);
            }
        }
        let lacking = repository.not_in_history(&here, head)?;
        let mut seens = AppliedCommits {
            in_head: here
                .into_iter()
                .filter(|it| !lacking.contains(it))
                .collect(),
            others: HashMap::new(),
            remote: None,
        };
        let is_shallow = repository.is_shallow()?;
        if lacking.is_empty() && missing.is_empty() && !is_shallow {
            return Ok(seens);
        }
        let query = BaseQuery::of(&present.project.settings);
        let branch = base::known_default_branch(repository, &query)?;
        let remote = branch.as_ref().map(|branch| branch.remote.clone());
        seens.remote.clone_from(&remote);
        let tip = match &branch {
            Some(branch) => repository.commit(&format!("refs/remotes/{branch}"))?,
            None => None,
        };
        let lacking: Vec<CommitId> = lacking.into_iter().collect();
        let lacked_by_branch = match &tip {
            Some(tip) => repository.not_in_history(&lacking, tip)?,
            None => lacking.iter().cloned().collect(),
        };
        let mut branches = repository.branches_with(&lacked_by_branch)?;
        for commit in lacking {
            let is_behind = !lacked_by_branch.contains(&commit);
            let why = match &branch {
                Some(branch) if is_behind => NoProof::BranchBehind {
                    commit: commit.clone(),
                    branch: branch.clone(),
                },
                _ if is_shallow => NoProof::Unconnected {
                    commit: commit.clone(),
                    remote: remote.clone(),
                },
                _ => {
                    let branch = branches.remove(&commit).unwrap_or(BranchWith::Unknown);
                    NoProof::OtherHistory(commit.clone(), branch)
                }
            };
            seens.others.insert(commit, why);
        }
        for commit in missing {
            let why = NoProof::NotInClone {
                commit: commit.clone(),
                is_shallow,
                remote: remote.clone(),
                is_lost: false,
            };
            seens.others.insert(commit, why);
        }
        Ok(seens)
    }

    /// Returns the applied commit if HEAD has it.
    fn of(&self, entry: &Entry) -> Result<&CommitId, NoProof> {
        let Some(seen) = newest_commit_with_inputs(entry) else {
            let is_dirty = entry.applied.as_ref().is_some_and(|applied| applied.dirty);
            return Err(if entry.applied.is_none() {
                NoProof::NeverApplied
            } else if is_dirty {
                NoProof::AppliedDirty
            } else {
                NoProof::NoCommit
            });
        };
        self.in_head(seen)
    }

    fn in_head(&self, commit: CommitId) -> Result<&CommitId, NoProof> {
        match (self.in_head.get(&commit), self.others.get(&commit)) {
            (Some(commit), _) => Ok(commit),
            (None, Some(why)) => Err(why.clone()),
            (None, None) => Err(NoProof::OtherHistory(commit, BranchWith::Unknown)),
        }
    }
}

/// Returns the newest known commit of a stack: the applied one, otherwise the one of the last attempt.
fn last_commit(entry: &Entry) -> Option<CommitId> {
    let applied = entry.applied.as_ref();
    let applied = applied.and_then(|applied| applied.commit.as_deref());
    let tried = || entry.last.as_ref().and_then(|last| last.commit.as_deref());
    newest_commit_with_inputs(entry).or_else(|| CommitId::new(applied.or_else(tried)?))
}

/// Returns the newest commit known to have the applied inputs. It need not be published: HEAD and the default
/// branch decide.
fn newest_commit_with_inputs(entry: &Entry) -> Option<CommitId> {
    let applied = entry.applied.as_ref()?;
    let commit = applied.commit.as_deref().filter(|_| !applied.dirty);
    CommitId::new(applied.seen.as_deref().or(commit)?)
}

/// The `moved` and `removed` blocks that cover missing stacks.
pub(super) struct RelocationBlocks<'p> {
    project: &'p Project,
    destinations: BTreeMap<&'p StackPath, StackPath>,
    /// The `from` texts of the `removed` blocks that HEAD has too.
    committed: HashSet<String>,
}

impl<'p> RelocationBlocks<'p> {
    /// Finds the blocks that cover some stacks.
    pub(super) fn read(
        present: CurrentProject<'p>,
        head: &CommitId,
        stacks: impl Iterator<Item = &'p StackPath> + Clone,
    ) -> Result<Self, ChangeError> {
        let project = present.project;
        let mut given_up = RelocationBlocks {
            project,
            destinations: project.moves.destinations(stacks.clone()),
            committed: HashSet::new(),
        };
        let blocks: Vec<&RemovedBlock> = stacks.filter_map(|it| given_up.written(it)).collect();
        if blocks.is_empty() {
            return Ok(given_up);
        }
        // Imports of the file, and marks that hide its directory, must be committed too.
        let repository = Repository::open(&project.root)?;
        let tree = CommitTree::new(repository, head.clone());
        let at_head = Project::load_tree(&project.root, &tree, &mut Problems::default())?;
        let committed = blocks.into_iter().filter(|block| {
            let there = at_head.removed.of(&block.from.value);
            there.is_some_and(|there| there.says_the_same(block))
                && block.in_tree(&at_head.stacks).next().is_none()
        });
        given_up.committed = committed
            .map(|block| block.from.value.to_string())
            .collect();
        Ok(given_up)
    }

    /// Returns the path of a recorded stack, and its new path if a block moves it.
    pub(super) fn places<'a>(
        &'a self,
        stack: &'a StackPath,
    ) -> impl Iterator<Item = &'a StackPath> {
        std::iter::once(stack).chain(self.destinations.get(stack))
    }

    /// Returns the `removed` block that covers a stack, committed or not.
    fn written(&self, stack: &StackPath) -> Option<&'p RemovedBlock> {
        // A moved stack was not removed at its old path.
        let now = self.destinations.get(stack).unwrap_or(stack);
        self.project.removed.of(now)
    }

    /// Returns whether a `removed` block keeps the stack's resources.
    pub(super) fn leaves(&self, stack: &StackPath) -> bool {
        self.written(stack).is_some_and(|block| !block.destroy)
    }

    /// Returns what removed a stack, if a block did. Fails if a block makes it doubtful that the
    /// stack was removed.
    pub(super) fn block(&self, stack: &StackPath) -> Result<Option<RemovedBy>, NoProof> {
        let sources = &self.project.sources;
        let Some(block) = self.written(stack) else {
            let moved = self.project.moves.from(stack);
            return match (self.destinations.get(stack), moved) {
                (Some(now), Some(moved)) => {
                    Err(NoProof::MovedAway(now.clone(), sources.line(moved.span)))
                }
                _ => Ok(None),
            };
        };
        if !self.committed.contains(block.from.value.as_str()) {
            return Err(NoProof::BlockNotCommitted(sources.line(block.span)));
        }
        let (file, line) = sources.file_and_line(block.span);
        Ok(Some(RemovedBy::Block(RemovingBlock {
            file: file.to_owned(),
            line,
            destroys: block.destroy,
        })))
    }
}
