//! Whether configuration files have the same canonical text as in a commit.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use rayon::prelude::*;

use super::canonical::{canonical_body, canonical_text, text};
use super::error::ChangeError;
use super::files::ChangedFiles;
use super::present::{CurrentProject, UncommittedChanges};
use super::trigger;
use super::uncounted::IgnoreEntries;
use crate::git::{ChangedFile, CommitId, FileChange, FileState, GitError};
use crate::language::syntax::Body;
use crate::path::ProjectPath;
use crate::project::discover::is_configuration;
use crate::project::pool;

/// Returns the files that differ from a commit and count, without triggers.
pub(super) fn files_since(
    present: CurrentProject<'_>,
    commit: &CommitId,
) -> Result<ChangedFiles, ChangeError> {
    let mut files = match present.repository.commit("HEAD")? {
        Some(head) => present.repository.differences(commit, &head)?,
        None => Vec::new(),
    };
    let UncommittedChanges {
        status, counted, ..
    } = present.uncommitted;
    let counts = |file: &&ChangedFile| counted.off(file.state).is_none();
    files.extend(status.iter().filter(counts).cloned());
    let (files, _) = ChangedFiles::new(files).without(&trigger::directory());
    let (files, _) = IgnoreEntries::of(present.project).split(files);
    Ok(files)
}

/// Marks the configuration files with the same canonical text as in a commit, among those of interest.
pub(super) fn mark_unchanged(
    present: CurrentProject<'_>,
    commit: &CommitId,
    files: ChangedFiles,
    concerns: impl Fn(&ChangedFile) -> bool,
) -> Result<ChangedFiles, ChangeError> {
    let concerning = files.iter().filter(|file| concerns(file));
    let same = unchanged(present, commit, concerning, &BTreeSet::new())?;
    Ok(files.with_unchanged(same))
}

/// Returns whether a configuration file has the same canonical text as in a commit, without some variables of
/// `run.env`.
pub(super) fn is_unchanged(
    present: CurrentProject<'_>,
    commit: Option<&CommitId>,
    file: &ChangedFile,
    variables: &BTreeSet<String>,
) -> Result<bool, ChangeError> {
    let Some(commit) = commit else {
        return Ok(false);
    };
    Ok(!unchanged(present, commit, [file].into_iter(), variables)?.is_empty())
}

/// Returns the configuration files with the same canonical text, whatever their permissions. A file that does
/// not parse differs.
fn unchanged<'f>(
    present: CurrentProject<'_>,
    commit: &CommitId,
    files: impl Iterator<Item = &'f ChangedFile>,
    variables: &BTreeSet<String>,
) -> Result<BTreeSet<ProjectPath>, ChangeError> {
    let is_compared = |file: &&ChangedFile| {
        use FileChange::{Added, Deleted, Modified};
        // git cannot be asked for a name that is not UTF-8.
        let has_name = !file.path.as_str().contains(char::REPLACEMENT_CHARACTER);
        is_configuration(file.path.basename().as_ref())
            && matches!(file.change, Added | Modified | Deleted)
            && has_name
    };
    let files: Vec<&ChangedFile> = files.filter(is_compared).collect();
    if files.is_empty() {
        return Ok(BTreeSet::new());
    }
    let before = files.iter().filter(|file| file.change != FileChange::Added);
    let before = texts_at(present, commit, before.map(|file| &file.path))?;
    let now = texts_now(present, &files)?;
    let bodies: HashMap<&ProjectPath, &Body> = present.listing.whole_files().collect();
    let nothing = Cow::Borrowed("");
    let is_same = |file: &&&ChangedFile| {
        let missing = |change: FileChange| (file.change == change).then_some(&nothing);
        let before = missing(FileChange::Added).or_else(|| before.get(&file.path));
        // A deleted file may exist again in the working tree.
        let now = now.get(&file.path).or(missing(FileChange::Deleted));
        let (Some(before), Some(now)) = (before, now) else {
            return false;
        };
        // The loader has already parsed the working tree.
        let said_now = match (now, bodies.get(&file.path)) {
            (Cow::Borrowed(_), Some(body)) => Some(canonical_body(body, variables)),
            _ => canonical_text(now, variables),
        };
        said_now.is_some_and(|now| canonical_text(before, variables) == Some(now))
    };
    pool()?.install(|| {
        let same = files.par_iter().filter(is_same);
        Ok(same.map(|file| file.path.clone()).collect())
    })
}

/// The texts of files; one that is not UTF-8 is missing.
type Texts<'a> = HashMap<ProjectPath, Cow<'a, str>>;

fn texts_at<'p>(
    present: CurrentProject<'_>,
    commit: &CommitId,
    paths: impl Iterator<Item = &'p ProjectPath>,
) -> Result<Texts<'static>, GitError> {
    let paths: Vec<ProjectPath> = paths.cloned().collect();
    if paths.is_empty() {
        return Ok(Texts::new());
    }
    let (paths, contents) = match present.repository.read(commit, &paths) {
        Ok(contents) => (paths, contents),
        // Files that were staged and then deleted are not in a commit.
        Err(error) => {
            let there = in_commit(present, commit, &paths)?;
            if there.len() == paths.len() {
                return Err(error);
            }
            let contents = present.repository.read(commit, &there)?;
            (there, contents)
        }
    };
    let texts = paths
        .into_iter()
        .zip(contents)
        .filter_map(|(path, bytes)| Some((path, Cow::Owned(text(bytes)?))));
    Ok(texts.collect())
}

fn in_commit(
    present: CurrentProject<'_>,
    commit: &CommitId,
    paths: &[ProjectPath],
) -> Result<Vec<ProjectPath>, GitError> {
    let directories: Vec<ProjectPath> = paths.iter().filter_map(ProjectPath::parent).collect();
    let names = present.repository.files_in(commit, &directories)?;
    let has = |(path, names): &(&ProjectPath, Vec<String>)| {
        names.iter().any(|name| name == path.basename())
    };
    let found = paths.iter().zip(names).filter(has);
    Ok(found.map(|(path, _)| path.clone()).collect())
}

/// Returns the texts of the working tree, and those of HEAD where the uncommitted change does not count.
/// Files that the project does not read are missing.
fn texts_now<'a>(
    present: CurrentProject<'a>,
    files: &[&ChangedFile],
) -> Result<Texts<'a>, GitError> {
    let uncommitted = present.uncommitted;
    let off: HashSet<&ProjectPath> = uncommitted
        .status
        .iter()
        .filter(|file| uncommitted.counted.off(file.state).is_some())
        .map(|file| &file.path)
        .collect();
    // Files of nested projects are read only to detect these.
    let nested = present.project.nested_projects.iter();
    let nested: HashSet<&str> = nested.map(ProjectPath::as_str).collect();
    let is_read =
        |file: &ProjectPath| nested.is_empty() || !file.ancestors().any(|it| nested.contains(it));
    let sources = present.project.sources.files();
    let sources: HashMap<&ProjectPath, &str> =
        sources.map(|file| (&file.path, &*file.text)).collect();
    let mut texts = Texts::new();
    let mut of_head: Vec<&ProjectPath> = Vec::new();
    for file in files.iter().filter(|file| is_read(&file.path)) {
        let is_off = off.contains(&file.path);
        match file.change {
            FileChange::Deleted if is_off => {}
            _ if is_off && file.state == FileState::Committed => of_head.push(&file.path),
            _ => {
                let text = sources.get(&file.path);
                texts.extend(text.map(|text| (file.path.clone(), Cow::Borrowed(*text))));
            }
        }
    }
    if let Some(head) = present.repository.commit("HEAD")? {
        texts.extend(texts_at(present, &head, of_head.into_iter())?);
    }
    Ok(texts)
}
