//! The differences from the applied inputs, and those that `ignore_changes` leaves out.
//!
//! Digests show that something differs, and git shows which files changed since the applied commit. If the
//! list of ignored inputs itself changed, digests cannot be compared, and git decides as far as it can.

use std::collections::{BTreeSet, HashMap};

use crate::change::cause::ChangeCause;
use crate::change::error::ChangeError;
use crate::change::files::ChangedFiles;
use crate::change::ignored::IgnoreList;
use crate::change::inputs::{InputProblems, Tree, owners};
use crate::change::present::CurrentProject;
use crate::change::unchanged::{files_since, is_unchanged};
use crate::git::{ChangedFile, CommitId, FileChange};
use crate::path::ProjectPath;
use crate::project::stack::StackIndex;
use crate::state::document::{Applied, Inputs};

/// The part of a digest for the stack's own directory.
const OWN: &str = "own";

/// The beginning of the names of parts that variables make.
const ENVIRONMENT: &str = "environment ";

/// Whether the differences of a stack are ignored.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DifferenceVerdict {
    /// All of them are ignored.
    Ignored(Vec<String>),
    /// At least one of them counts.
    Differs,
    Unknown,
}

/// The files that changed since some commits.
pub(super) struct FilesSince<'a> {
    present: CurrentProject<'a>,
    files: HashMap<CommitId, Option<Vec<ChangedFile>>>,
}

impl<'a> FilesSince<'a> {
    pub(super) fn new(present: CurrentProject<'a>) -> Self {
        FilesSince {
            present,
            files: HashMap::new(),
        }
    }

    /// Returns the counted files that changed since a commit; `None` if the commit is not in this clone.
    fn files(&mut self, commit: &CommitId) -> Result<Option<&[ChangedFile]>, ChangeError> {
        if !self.files.contains_key(commit) {
            let files = self.ask(commit)?;
            self.files.insert(commit.clone(), files);
        }
        Ok(self.files[commit].as_deref())
    }

    fn ask(&self, commit: &CommitId) -> Result<Option<Vec<ChangedFile>>, ChangeError> {
        let present = self.present;
        if present.repository.commit(commit.as_str())?.as_ref() != Some(commit) {
            return Ok(None);
        }
        let files = files_since(present, commit)?;
        Ok(Some(files.iter().cloned().collect()))
    }

    /// Returns the names of ignored differences: files where git knows them, otherwise parts of the digest.
    pub(super) fn named(
        &mut self,
        stack: StackIndex,
        list: &IgnoreList,
        (applied, commit): (&Applied, Option<&CommitId>),
        now: &Inputs,
    ) -> Result<Vec<String>, ChangeError> {
        let mut names = Vec::new();
        let present = self.present;
        let stacks = &present.project.stacks;
        for part in differing(applied.inputs.as_ref(), now) {
            if let Some(variable) = part.strip_prefix(ENVIRONMENT) {
                names.push(format!("env.{variable}"));
                continue;
            }
            let files = match commit.filter(|_| part == OWN) {
                Some(commit) => self.files(commit)?.unwrap_or_default(),
                None => &[],
            };
            let before = names.len();
            for file in files {
                let is_own = owners(stacks, &file.path).first() == Some(stack);
                if !is_own {
                    continue;
                }
                let is_named = if list.is_all() {
                    !is_unchanged(present, commit, file, list.variables())?
                } else {
                    is_ignored(list, file)
                };
                if is_named {
                    names.push(file.path.relative().to_owned());
                }
            }
            if names.len() == before {
                names.push(part);
            }
        }
        Ok(names)
    }

    /// Returns the change that makes a stack differ, given one that `--changed` names and that may be
    /// ignored. If it is, returns another one in the stack's directory, if there is one.
    pub(super) fn reason(
        &mut self,
        stack: StackIndex,
        list: Option<&IgnoreList>,
        commit: &CommitId,
        cause: ChangeCause,
    ) -> Result<Option<ChangeCause>, ChangeError> {
        let Some(list) = list else {
            return Ok(Some(cause));
        };
        let present = self.present;
        let stacks = &present.project.stacks;
        let counts = |file: &ChangedFile| -> Result<bool, ChangeError> {
            let says_the_same = || is_unchanged(present, Some(commit), file, list.variables());
            Ok(!is_ignored(list, file) && !says_the_same()?)
        };
        if counts(&cause.file)? {
            return Ok(Some(cause));
        }
        for file in self.files(commit)?.unwrap_or_default() {
            if owners(stacks, &file.path).first() == Some(stack) && counts(file)? {
                let file = file.clone();
                let chain = Vec::new();
                return Ok(Some(ChangeCause { file, chain }));
            }
        }
        Ok(None)
    }

    /// Decides whether all differences are ignored where the list of ignored inputs has changed since the
    /// apply.
    pub(super) fn decide(
        &mut self,
        stack: StackIndex,
        list: &IgnoreList,
        (applied, commit): (&Applied, Option<&CommitId>),
        now: &Inputs,
    ) -> Result<DifferenceVerdict, ChangeError> {
        let present = self.present;
        let stacks = &present.project.stacks;
        let mut names = Vec::new();
        for part in differing(applied.inputs.as_ref(), now) {
            if let Some(variable) = part.strip_prefix(ENVIRONMENT) {
                if !list.variables().contains(variable) {
                    return Ok(DifferenceVerdict::Differs);
                }
                names.push(format!("env.{variable}"));
                continue;
            }
            let Some(commit) = commit else {
                return Ok(DifferenceVerdict::Unknown);
            };
            let Some(files) = self.files(commit)? else {
                return Ok(DifferenceVerdict::Unknown);
            };
            let mut is_elsewhere = false;
            for file in files {
                if is_ignored(list, file) {
                    names.push(file.path.relative().to_owned());
                } else if !is_unchanged(present, Some(commit), file, list.variables())? {
                    if part == OWN && owners(stacks, &file.path).first() == Some(stack) {
                        return Ok(DifferenceVerdict::Differs);
                    }
                    is_elsewhere = true;
                }
            }
            // The other files that changed may belong to the part, or, for the stack's own directory, be
            // linked from it.
            if is_elsewhere && (part != OWN || has_links(present, stack)) {
                return Ok(DifferenceVerdict::Unknown);
            }
        }
        names.sort_unstable();
        names.dedup();
        Ok(DifferenceVerdict::Ignored(names))
    }
}

fn is_ignored(list: &IgnoreList, file: &ChangedFile) -> bool {
    list.ignores(&file.path, file.change == FileChange::Repository)
}

/// Returns the names of the parts that differ from the recorded ones.
pub(super) fn differing(recorded: Option<&Inputs>, now: &Inputs) -> Vec<String> {
    let Some(recorded) = recorded else {
        return Vec::new();
    };
    let names: BTreeSet<&String> = recorded.parts.keys().chain(now.parts.keys()).collect();
    let differing = names
        .into_iter()
        .filter(|it| recorded.parts.get(*it) != now.parts.get(*it));
    differing.cloned().collect()
}

/// Returns whether the directory of a stack has links.
fn has_links(present: CurrentProject<'_>, stack: StackIndex) -> bool {
    let problems = InputProblems::default();
    let nothing = ChangedFiles::default();
    let tree = Tree::new(&present.project.root, present.listing, &nothing, &problems);
    let directory: &ProjectPath = present.project.stacks[stack].path.directory();
    tree.links().links_below(directory).next().is_some()
}
