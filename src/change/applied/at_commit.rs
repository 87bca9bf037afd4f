//! The content that a commit still has of stacks that the project lacks.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::proof::{NoProof, ProvenRemoval, RemovedBy};
use crate::change::error::ChangeError;
use crate::change::present::CurrentProject;
use crate::git::{
    CommitId, CommitTree, FileChange, FileState, GitError, Holds, Repository, TreeScope,
};
use crate::path::{ProjectPath, StackPath};
use crate::project::discover::{CONFIGURATION, FileTree as _, is_configuration};
use crate::project::{self, LoadTreeError, StacksOfTree, is_parsable, pool};

/// The files and stacks of a commit in the directories of missing stacks.
pub(super) struct CommitContent<'p> {
    present: CurrentProject<'p>,
    commit: CommitId,
    /// The files that the commit still has in those directories.
    files: BTreeMap<ProjectPath, Vec<ProjectPath>>,
    stacks: StacksAtCommit,
    /// The stacks of directories at other commits, read on first use.
    at_others: RefCell<HashMap<(CommitId, ProjectPath), Rc<StacksAtCommit>>>,
}

/// What still speaks for the existence of a stack in a commit.
pub(super) enum Remainder {
    /// The stack, and this file or directory of it.
    Stack(ProjectPath),
    /// Another reason not to count the stack as removed.
    Other(NoProof),
}

#[derive(Default)]
struct StacksAtCommit {
    paths: BTreeSet<StackPath>,
    /// The directories with a stack, with or without instances.
    directories: BTreeSet<ProjectPath>,
    with_for_each: BTreeSet<ProjectPath>,
    unknown: BTreeSet<ProjectPath>,
    broken: Vec<ProjectPath>,
}

impl<'p> CommitContent<'p> {
    pub(super) fn read(
        present: CurrentProject<'p>,
        commit: &CommitId,
        directories: Vec<ProjectPath>,
    ) -> Result<Self, ChangeError> {
        let mut files: BTreeMap<ProjectPath, Vec<ProjectPath>> = BTreeMap::new();
        let mut stacks = StacksAtCommit::default();
        if !directories.is_empty() {
            let mut found = present.repository.recorded_below(commit, &directories)?;
            found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
            let directories: BTreeSet<ProjectPath> = directories.into_iter().collect();
            for file in &found {
                for above in file.path.ancestors() {
                    if let Some(directory) = directories.get(above) {
                        let of_directory = files.entry(directory.clone()).or_default();
                        of_directory.push(file.path.clone());
                    }
                }
            }
            stacks = StacksAtCommit::read(present, commit, &directories)?;
        }
        Ok(CommitContent {
            present,
            commit: commit.clone(),
            files,
            stacks,
            at_others: RefCell::default(),
        })
    }

    /// Checks HEAD like [`Self::rest`], and returns why the stack does not count as removed there.
    pub(super) fn check(&self, path: &StackPath, holds: Holds) -> Result<bool, NoProof> {
        self.rest(path, holds).map_err(|rest| match rest {
            Remainder::Stack(file) => self.why_not_here(path.directory(), &file),
            Remainder::Other(why) => why,
        })
    }

    /// Returns true if the commit still has the directory of an instance as a stack, given what the
    /// directory holds there, and false if nothing is left. The error is what the commit still has
    /// of the stack.
    pub(super) fn rest(&self, path: &StackPath, holds: Holds) -> Result<bool, Remainder> {
        let directory = path.directory();
        let files = self.files.get(directory).map_or(&[][..], Vec::as_slice);
        let is_own_configuration = |file: &&ProjectPath| {
            file.parent().as_ref() == Some(directory) && is_configuration(file.basename().as_ref())
        };
        let still_there =
            |file: &ProjectPath| Remainder::Other(NoProof::CodeStillThere(file.clone()));
        match holds {
            Holds::NoDirectory => Ok(false),
            Holds::Nothing => {
                let mut files = files.iter();
                match files.find(|file| !self.is_of_nested(directory, file)) {
                    Some(file) => Err(still_there(file)),
                    None => Ok(false),
                }
            }
            Holds::Unknown => {
                let file = files.iter().find(is_own_configuration).or(files.first());
                Err(still_there(file.unwrap_or(directory)))
            }
            Holds::Wanted => {
                let file = files.iter().find(is_own_configuration);
                let stack = || Remainder::Stack(file.unwrap_or(directory).clone());
                if path.key().is_none() || self.stacks.paths.contains(path) {
                    return Err(stack());
                }
                if let Some(broken) = self.stacks.broken_in(directory) {
                    let why = NoProof::Broken(Some(self.commit.clone()), broken.clone());
                    return Err(Remainder::Other(why));
                }
                if self.stacks.with_for_each.contains(directory) {
                    Ok(true)
                } else if self.stacks.unknown.contains(directory) {
                    let why = NoProof::UnknownKeys(self.commit.clone());
                    Err(Remainder::Other(why))
                } else if self.stacks.directories.contains(directory) {
                    let why = NoProof::NoLongerForEach(directory.clone());
                    Err(Remainder::Other(why))
                } else {
                    Err(stack())
                }
            }
        }
    }

    /// Returns why a stack that HEAD has is missing from the project, given one of its files.
    fn why_not_here(&self, directory: &ProjectPath, file: &ProjectPath) -> NoProof {
        let mut status = self.present.uncommitted.status.iter();
        let is_touched = status.any(|changed| {
            changed.path.parent().as_ref() == Some(directory)
                && is_configuration(changed.path.basename().as_ref())
        });
        let host = file.to_host(&self.present.project.root);
        if is_touched {
            NoProof::NotCommitted
        } else if host.symlink_metadata().is_ok() {
            NoProof::CodeStillThere(file.clone())
        } else {
            NoProof::SparseCheckout(file.clone())
        }
    }

    /// Returns whether a file belongs to a stack nested in a directory.
    fn is_of_nested(&self, directory: &ProjectPath, file: &ProjectPath) -> bool {
        let above = file.ancestors().map(ProjectPath::from_normal);
        let mut between = above.take_while(|above| above != directory);
        between.any(|above| self.stacks.directories.contains(&above))
    }

    fn stacks_at(
        &self,
        directory: &ProjectPath,
        commit: &CommitId,
    ) -> Result<Rc<StacksAtCommit>, ChangeError> {
        let key = (commit.clone(), directory.clone());
        if let Some(known) = self.at_others.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let directories = BTreeSet::from([directory.clone()]);
        let stacks = Rc::new(StacksAtCommit::read(self.present, commit, &directories)?);
        self.at_others.borrow_mut().insert(key, Rc::clone(&stacks));
        Ok(stacks)
    }

    pub(super) fn key_at(
        &self,
        path: &StackPath,
        seen: &CommitId,
    ) -> Result<Result<ProvenRemoval, NoProof>, ChangeError> {
        let directory = path.directory();
        let stacks = self.stacks_at(directory, seen)?;
        if let Some(broken) = stacks.broken_in(directory) {
            let why = NoProof::Broken(Some(seen.clone()), broken.clone());
            return Ok(Err(why));
        }
        Ok(if stacks.paths.contains(path) {
            Ok(ProvenRemoval {
                seen: Some(seen.clone()),
                by: RemovedBy::Key,
            })
        } else if stacks.unknown.contains(directory) {
            Err(NoProof::UnknownKeys(seen.clone()))
        } else {
            Err(NoProof::NotInSeen(seen.clone()))
        })
    }
}

impl StacksAtCommit {
    /// Returns a file directly in a directory that does not parse.
    fn broken_in(&self, directory: &ProjectPath) -> Option<&ProjectPath> {
        let mut broken = self.broken.iter();
        broken.find(|file| file.parent().as_ref() == Some(directory))
    }

    /// Reads a commit at and below some directories.
    fn read(
        present: CurrentProject<'_>,
        commit: &CommitId,
        directories: &BTreeSet<ProjectPath>,
    ) -> Result<Self, ChangeError> {
        let root = &present.project.root;
        // The directories above decide whether a directory is part of the project.
        let above: BTreeSet<ProjectPath> = directories
            .iter()
            .flat_map(ProjectPath::ancestors)
            .map(ProjectPath::from_normal)
            .collect();
        let is_meant = |directory: &ProjectPath| {
            directories.contains(directory)
                || directory
                    .ancestors()
                    .any(|above| directories.contains(above))
        };
        let tree = || -> Result<CommitTree, GitError> {
            Ok(CommitTree::new(Repository::open(root)?, commit.clone()))
        };
        let scope = TreeScope {
            directories: above.into_iter().collect(),
            trees: directories.iter().cloned().collect(),
        };
        let mut found = project::stacks_of_tree(root, &tree()?.within(scope))?;
        if found.unknown.iter().any(is_meant) {
            // A function may read a file outside of these directories.
            found = project::stacks_of_tree(root, &tree()?)?;
        }
        let StacksOfTree {
            stacks,
            unknown,
            with_for_each,
            broken,
        } = found;
        let paths: BTreeSet<StackPath> = stacks
            .into_iter()
            .filter(|path| is_meant(path.directory()))
            .collect();
        let of_stacks = paths.iter().map(|path| path.directory().clone());
        let directories = of_stacks.chain(with_for_each.iter().cloned()).collect();
        Ok(StacksAtCommit {
            paths,
            directories,
            // With the files that functions read, `for_each` has a value.
            unknown: unknown
                .into_iter()
                .filter(|directory| !with_for_each.contains(directory))
                .collect(),
            with_for_each: with_for_each.into_iter().collect(),
            broken,
        })
    }
}

/// Returns a configuration file that differs from HEAD and does not parse as HEAD has it.
pub(super) fn broken_file(
    present: CurrentProject<'_>,
    head: &CommitId,
) -> Result<Option<ProjectPath>, ChangeError> {
    let status = present.uncommitted.status.iter();
    let changed: BTreeSet<&ProjectPath> = status
        .filter(|file| {
            file.state == FileState::Uncommitted
                && file.change != FileChange::Added
                && is_configuration(file.path.basename().as_ref())
        })
        .map(|file| &file.path)
        .collect();
    if changed.is_empty() {
        return Ok(None);
    }
    let parents: BTreeSet<ProjectPath> = changed.iter().filter_map(|file| file.parent()).collect();
    let repository = Repository::open(&present.project.root)?;
    let scope = TreeScope {
        directories: parents.into_iter().collect(),
        trees: Vec::new(),
    };
    let tree = CommitTree::new(repository, head.clone()).within(scope);
    let entries = tree.entries().map_err(LoadTreeError::Tree)?;
    let files = entries
        .into_iter()
        .filter(|entry| !entry.is_link)
        .filter_map(|entry| {
            let path = ProjectPath::from_normal(&format!("/{}", str::from_utf8(&entry.path).ok()?));
            changed.contains(&path).then_some((path, entry.id))
        });
    let (paths, ids): (Vec<ProjectPath>, Vec<String>) = files.unzip();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let contents = tree
        .read(&ids, CONFIGURATION.bytes)
        .map_err(LoadTreeError::Tree)?;
    let is_broken = |content: Option<Vec<u8>>| !content.is_some_and(is_parsable);
    let files = paths.into_iter().zip(contents);
    Ok(pool()?.install(|| {
        let mut broken = files.filter_map(|(path, content)| is_broken(content).then_some(path));
        broken.next()
    }))
}
