//! The changes of an applied commit that HEAD lacks, and whether a stack had them as inputs.
//!
//! The project alone does not show that: the stack, or a module of it, may have had another path. Its entry
//! shows which inputs it had. This module does not know what follows from the answer.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::digest::InputDigests;
use super::files::ChangedFiles;
use super::present::CurrentProject;
use super::trigger;
use super::uncounted::IgnoreEntries;
use crate::git::{ChangedFile, CommitId, FileChange, FileState, GitError};
use crate::git::{RecordedFile, RecordedMode, Repository};
use crate::on_disk::if_there;
use crate::path::{ProjectPath, StackPath};
use crate::pattern::FilePattern;
use crate::project::discover::is_configuration;
use crate::project::stack::StackIndex;
use crate::state::document::Inputs;

/// The files that a commit has changed since a merge base and that differ now.
pub(super) struct RevertedFiles {
    /// Where they are now, or were at the commit.
    pub(super) files: ChangedFiles,
    /// Those that the commit has, in path order.
    changed: Vec<RevertedFile>,
    /// Those that the commit deleted, and that are not at their paths now either.
    deleted: Vec<ProjectPath>,
    /// Whether a symbolic link differs: its target is an input that no part names.
    has_links: bool,
}

struct RevertedFile {
    path: ProjectPath,
    /// Whether it no longer exists, and may have been renamed before the commit changed it.
    is_missing: bool,
    /// The new files with the same name and content.
    copies: Vec<ProjectPath>,
}

impl RevertedFiles {
    pub(super) fn find(
        present: CurrentProject<'_>,
        parting: &CommitId,
        commit: &CommitId,
    ) -> Result<Self, GitError> {
        let CurrentProject {
            project,
            repository,
            uncommitted,
            ..
        } = present;
        let head = repository.commit("HEAD")?;
        let at_head = match &head {
            Some(head) => repository.differences(commit, head)?,
            None => Vec::new(),
        };
        let mut now: BTreeMap<ProjectPath, ChangedFile> = BTreeMap::new();
        for file in at_head.iter().chain(&uncommitted.status) {
            let before = now.insert(file.path.clone(), file.clone());
            let was_added = before.is_some_and(|it| it.change == FileChange::Added);
            if was_added && file.change.is_deletion() {
                now.remove(&file.path);
            }
        }
        let changed = ChangedFiles::new(repository.differences(parting, commit)?);
        let (changed, _) = changed.without(&trigger::directory());
        let (changed, _) = IgnoreEntries::of(project).split(changed);
        let mut found = RevertedFiles {
            files: ChangedFiles::default(),
            changed: Vec::new(),
            deleted: Vec::new(),
            has_links: false,
        };
        let mut files = Vec::new();
        let mut missing = Vec::new();
        for file in changed.iter() {
            let Some(now) = now.get(&file.path) else {
                // HEAD may have it under another path.
                if file.change.is_deletion() {
                    found.deleted.push(file.path.clone());
                }
                continue;
            };
            files.push(file.clone());
            let is_gone = now.change.is_deletion();
            if is_gone {
                missing.push(file.path.clone());
            }
            // A file that the commit added cannot have been renamed before, unless with its directory.
            let directory = file.path.parent().unwrap_or_else(ProjectPath::root);
            let may_be_renamed =
                file.change != FileChange::Added || !directory.to_host(&project.root).is_dir();
            found.changed.push(RevertedFile {
                path: file.path.clone(),
                is_missing: is_gone && may_be_renamed,
                copies: Vec::new(),
            });
        }
        if missing.is_empty() && found.deleted.is_empty() {
            found.files = ChangedFiles::new(files);
            return Ok(found);
        }
        let added = now.values().filter(|it| it.change == FileChange::Added);
        let new = NewFiles::find(repository, head.as_ref(), added)?;
        for file in repository.recorded_files(commit, &missing)? {
            let reverted = found.changed.binary_search_by(|it| it.path.cmp(&file.path));
            if let Ok(reverted) = reverted {
                let copies = new.with_content(&file).iter();
                let copies = copies.filter(|it| it.basename() == file.path.basename());
                found.changed[reverted].copies = copies.cloned().collect();
            }
        }
        for file in repository.recorded_files(parting, &found.deleted)? {
            files.extend(new.with_content(&file).iter().map(|path| ChangedFile {
                path: path.clone(),
                change: FileChange::Modified,
                state: FileState::Committed,
            }));
        }
        found.files = ChangedFiles::new(files);
        if !missing.is_empty() {
            let all: Vec<ProjectPath> = now.into_keys().collect();
            let mut all = repository.recorded_files(commit, &all)?.into_iter();
            found.has_links = all.any(|file| file.mode == RecordedMode::Link);
        }
        Ok(found)
    }
}

/// The paths of added files, by content.
struct NewFiles(HashMap<String, Vec<ProjectPath>>);

impl NewFiles {
    fn find<'f>(
        repository: &Repository,
        head: Option<&CommitId>,
        added: impl Iterator<Item = &'f ChangedFile>,
    ) -> Result<Self, GitError> {
        let (mut committed, mut on_disk) = (Vec::new(), Vec::new());
        for file in added {
            let paths = match file.state {
                FileState::Committed => &mut committed,
                FileState::Uncommitted | FileState::Untracked => &mut on_disk,
            };
            paths.push(file.path.clone());
        }
        let mut files: HashMap<String, Vec<ProjectPath>> = HashMap::new();
        if let Some(head) = head {
            for file in repository.recorded_files(head, &committed)? {
                files.entry(file.id).or_default().push(file.path);
            }
        }
        let ids = repository.ids_on_disk(&on_disk)?;
        for (path, id) in on_disk.into_iter().zip(ids) {
            if let Some(id) = id {
                files.entry(id).or_default().push(path);
            }
        }
        Ok(NewFiles(files))
    }

    fn with_content(&self, file: &RecordedFile) -> &[ProjectPath] {
        self.0.get(&file.id).map_or(&[], Vec::as_slice)
    }
}

/// The inputs of a stack at an applied commit, as far as they are known.
pub(super) struct EarlierInputs<'d> {
    pub(super) stack: StackIndex,
    root: &'d Path,
    directory: &'d ProjectPath,
    /// Its directory then, if it has moved.
    moved_from: Option<ProjectPath>,
    /// The recorded inputs, if they are those of the commit.
    recorded: Option<&'d Inputs>,
}

impl<'d> EarlierInputs<'d> {
    /// `key` is the key under which the entry was read.
    pub(super) fn new(
        present: CurrentProject<'d>,
        stack: StackIndex,
        key: &str,
        recorded: Option<&'d Inputs>,
    ) -> Self {
        let now = present.project.stacks[stack].path.directory();
        let then = StackPath::parse(key).map(|path| path.directory().clone());
        EarlierInputs {
            stack,
            root: &present.project.root,
            directory: now,
            moved_from: then.filter(|then| then != now),
            recorded: recorded.filter(|inputs| !inputs.parts.is_empty()),
        }
    }

    /// Returns whether the stack had one of the files as an input, or may have had one that no longer
    /// exists.
    pub(super) fn may_have(&self, reverted: &RevertedFiles, digests: &InputDigests) -> bool {
        let RevertedFiles {
            changed, deleted, ..
        } = reverted;
        if let Some(then) = &self.moved_from {
            let place_now = |file: &ProjectPath| {
                let rest = file.as_str().strip_prefix(&*then.prefix_of_below())?;
                Some(self.directory.join(rest))
            };
            let is_above = |file: &ProjectPath| {
                let above = file.parent();
                is_configuration(file.basename().as_ref())
                    && above.is_some_and(|above| then.is_at_or_below(&above))
            };
            let is_reverted = |file: &RevertedFile| match place_now(&file.path) {
                Some(now) => !file.copies.contains(&now),
                None => is_above(&file.path),
            };
            let may_exist = |now: ProjectPath| {
                let found = if_there(now.to_host(self.root).symlink_metadata());
                !matches!(found, Ok(None))
            };
            let mut returned = deleted.iter().filter_map(place_now);
            if changed.iter().any(is_reverted) || returned.any(may_exist) {
                return true;
            }
        }
        let now = digests.stacks.get(&self.stack).map(|digest| &digest.inputs);
        let parts_now = || now.into_iter().flat_map(|now| &now.parts);
        let is_input_now = |file: &ProjectPath| {
            let mut places = parts_now().filter_map(|(part, _)| part.split_once(' '));
            file.is_at_or_below(self.directory) || places.any(|(_, place)| is_in(file, place))
        };
        let mut lost = changed
            .iter()
            .filter(|file| !file.copies.iter().any(is_input_now));
        let Some(recorded) = self.recorded.filter(|_| !reverted.has_links) else {
            return lost.any(|file| file.is_missing);
        };
        let is_same = |part: &str, digest: &String| {
            now.is_some_and(|now| {
                now.rules == recorded.rules && now.parts.get(part) == Some(digest)
            })
        };
        let parts = recorded.parts.iter();
        let others = parts.filter(|(part, digest)| !is_same(part, digest));
        // The part of the stack's own files names no place.
        let places: Vec<(&str, &str)> = others
            .filter_map(|(part, _)| part.split_once(' '))
            .collect();
        // The inputs of a module have no parts of their own.
        let leads_on = places
            .iter()
            .any(|(word, _)| !matches!(*word, "read" | "watch"));
        lost.any(|file| {
            leads_on && file.is_missing || places.iter().any(|(_, place)| is_in(&file.path, place))
        })
    }
}

/// Returns whether a file belongs to the place of a recorded part.
fn is_in(file: &ProjectPath, place: &str) -> bool {
    file.is_at_or_below(&ProjectPath::from_normal(place))
        || FilePattern::is_pattern(place)
            && FilePattern::new(&ProjectPath::root(), place).map_or(true, |it| it.matches(file))
}
