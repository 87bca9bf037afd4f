//! The changes of an applied commit that HEAD lacks, and whether a stack had them as inputs.
//!
//! The project alone does not show that: the stack, or a module of it, may have had another path. Its entry
//! shows which inputs it had. This module does not know what follows from the answer.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::digest::InputDigests;
use super::files::ChangedFiles;
use super::present::CurrentProject;
use super::trigger;
use super::uncounted::IgnoreEntries;
use crate::git::{ChangedFile, CommitId, FileChange, FileState, GitError};
use crate::git::{RecordedFile, RecordedMode, Repository};
use crate::path::{ProjectPath, StackPath};
use crate::pattern::FilePattern;
use crate::project::discover::is_configuration;
use crate::project::stack::StackIndex;
use crate::state::document::Inputs;

/// The files that a commit has changed since a merge base and that differ now.
pub(super) struct RevertedFiles {
    /// Where they are now, or were at the commit.
    pub(super) files: ChangedFiles,
    /// Those of the commit whose content is not elsewhere now.
    lost: Vec<ProjectPath>,
    /// Those of them that no longer exist: they may have been renamed before the commit changed them.
    missing: Vec<ProjectPath>,
    /// Whether a symbolic link differs: its target is an input that no part names.
    has_links: bool,
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
            lost: Vec::new(),
            missing: Vec::new(),
            has_links: false,
        };
        let mut lacking = Vec::new();
        let mut deleted = Vec::new();
        for file in changed.iter() {
            match now.get(&file.path) {
                Some(now) => {
                    lacking.push(file.clone());
                    found.lost.push(file.path.clone());
                    if now.change.is_deletion() {
                        found.missing.push(file.path.clone());
                    }
                }
                // HEAD may have it under another path.
                None if file.change.is_deletion() => deleted.push(file.path.clone()),
                None => {}
            }
        }
        if found.missing.is_empty() && deleted.is_empty() {
            found.files = ChangedFiles::new(lacking);
            return Ok(found);
        }
        let names = found.missing.iter().chain(&deleted);
        let names: HashSet<&str> = names.map(ProjectPath::basename).collect();
        let added = now.values().filter(|file| {
            file.change == FileChange::Added && names.contains(file.path.basename())
        });
        let new = NewPlaces::find(repository, head.as_ref(), added)?;
        let at_commit = repository.recorded_files(commit, &found.missing)?;
        let moved = at_commit.iter().filter(|file| !new.of(file).is_empty());
        let moved: HashSet<&ProjectPath> = moved.map(|file| &file.path).collect();
        found.lost.retain(|path| !moved.contains(path));
        found.missing.retain(|path| !moved.contains(path));
        for file in repository.recorded_files(parting, &deleted)? {
            lacking.extend(new.of(&file).iter().map(|path| ChangedFile {
                path: path.clone(),
                change: FileChange::Modified,
                state: FileState::Committed,
            }));
        }
        found.files = ChangedFiles::new(lacking);
        if !found.missing.is_empty() {
            let all: Vec<ProjectPath> = now.into_keys().collect();
            let mut all = repository.recorded_files(commit, &all)?.into_iter();
            found.has_links = all.any(|file| file.mode == RecordedMode::Link);
        }
        Ok(found)
    }
}

/// The paths of added files, by name and content.
struct NewPlaces(HashMap<(String, String), Vec<ProjectPath>>);

impl NewPlaces {
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
        let mut places: HashMap<(String, String), Vec<ProjectPath>> = HashMap::new();
        let mut add = |path: ProjectPath, id: String| {
            let content = (path.basename().to_owned(), id);
            places.entry(content).or_default().push(path);
        };
        if let Some(head) = head {
            for file in repository.recorded_files(head, &committed)? {
                add(file.path, file.id);
            }
        }
        let ids = repository.ids_on_disk(&on_disk)?;
        for (path, id) in on_disk.into_iter().zip(ids) {
            if let Some(id) = id {
                add(path, id);
            }
        }
        Ok(NewPlaces(places))
    }

    fn of(&self, file: &RecordedFile) -> &[ProjectPath] {
        let content = (file.path.basename().to_owned(), file.id.clone());
        self.0.get(&content).map_or(&[], Vec::as_slice)
    }
}

/// The inputs of a stack at an applied commit, as far as they are known.
pub(super) struct EarlierInputs<'d> {
    pub(super) stack: StackIndex,
    /// Its directory then, if it has moved.
    moved_from: Option<ProjectPath>,
    /// The recorded inputs, if they are those of the commit.
    recorded: Option<&'d Inputs>,
}

impl<'d> EarlierInputs<'d> {
    /// `key` is the key under which the entry was read.
    pub(super) fn new(
        present: CurrentProject<'_>,
        stack: StackIndex,
        key: &str,
        recorded: Option<&'d Inputs>,
    ) -> Self {
        let now = present.project.stacks[stack].path.directory();
        let then = StackPath::parse(key).map(|path| path.directory().clone());
        EarlierInputs {
            stack,
            moved_from: then.filter(|then| then != now),
            recorded: recorded.filter(|inputs| !inputs.parts.is_empty()),
        }
    }

    /// Returns whether the stack had one of the files as an input, or may have had one that no longer exists.
    pub(super) fn may_have(&self, lacking: &RevertedFiles, digests: &InputDigests) -> bool {
        let missing = &lacking.missing;
        let is_of_directory = |file: &ProjectPath| {
            let is_above = |directory: &ProjectPath| {
                let above = file.parent();
                is_configuration(file.basename().as_ref())
                    && above.is_some_and(|above| directory.is_at_or_below(&above))
            };
            let directory = self.moved_from.as_ref();
            directory.is_some_and(|it| file.is_at_or_below(it) || is_above(it))
        };
        if missing.iter().any(is_of_directory) {
            return true;
        }
        let Some(recorded) = self.recorded.filter(|_| !lacking.has_links) else {
            return !missing.is_empty();
        };
        let now = digests.stacks.get(&self.stack).map(|digest| &digest.inputs);
        let is_same = |part: &str, digest: &String| {
            now.is_some_and(|now| {
                now.rules == recorded.rules && now.parts.get(part) == Some(digest)
            })
        };
        let parts = recorded.parts.iter();
        let others = parts.filter(|(part, digest)| !is_same(part, digest));
        // The part of the stack's own files names no place.
        let mut places = others.filter_map(|(part, _)| part.split_once(' '));
        places.any(|(word, place)| {
            // The inputs of a module have no parts of their own.
            let leads_on = !matches!(word, "read" | "watch");
            leads_on && !missing.is_empty() || lacking.lost.iter().any(|file| is_in(file, place))
        })
    }
}

/// Returns whether a file belongs to the place of a recorded part.
fn is_in(file: &ProjectPath, place: &str) -> bool {
    file.is_at_or_below(&ProjectPath::from_normal(place))
        || FilePattern::is_pattern(place)
            && FilePattern::new(&ProjectPath::root(), place).map_or(true, |it| it.matches(file))
}
