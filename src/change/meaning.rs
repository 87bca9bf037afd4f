//! Whether configuration files still say what a commit has, apart from what is no input: comments, layout, order, tags
//! and lifecycle rules.

use std::collections::{BTreeSet, HashMap};
use std::str;

use super::digest::said;
use super::error::ChangeError;
use super::files::ChangedFiles;
use super::present::Present;
use crate::git::{ChangedFile, CommitId, FileChange};
use crate::path::ProjectPath;
use crate::project::discover::is_configuration;

/// Returns the files without the configuration files that say the same as in a commit.
pub(super) fn without_same(
    present: Present<'_>,
    commit: &CommitId,
    files: &ChangedFiles,
) -> Result<ChangedFiles, ChangeError> {
    let nothing = BTreeSet::new();
    let same = same(present, commit, files.iter(), &nothing)?;
    let others = files.iter().filter(|file| !same.contains(&file.path));
    Ok(ChangedFiles::new(others.cloned().collect()))
}

/// Returns whether a configuration file says the same as in a commit, also without some variables of `run.env`.
pub(super) fn says_the_same(
    present: Present<'_>,
    commit: Option<&CommitId>,
    file: &ChangedFile,
    variables: &BTreeSet<String>,
) -> Result<bool, ChangeError> {
    let Some(commit) = commit else {
        return Ok(false);
    };
    Ok(!same(present, commit, [file].into_iter(), variables)?.is_empty())
}

/// Returns the configuration files that say the same; a file that cannot be parsed says something else.
fn same<'f>(
    present: Present<'_>,
    commit: &CommitId,
    files: impl Iterator<Item = &'f ChangedFile>,
    variables: &BTreeSet<String>,
) -> Result<BTreeSet<ProjectPath>, ChangeError> {
    let is_compared = |file: &&ChangedFile| {
        use FileChange::{Added, Deleted, Modified};
        is_configuration(file.path.basename().as_ref())
            && matches!(file.change, Added | Modified | Deleted)
    };
    let files: Vec<&ChangedFile> = files.filter(is_compared).collect();
    if files.is_empty() {
        return Ok(BTreeSet::new());
    }
    let before = files.iter().filter(|file| file.change != FileChange::Added);
    let before: Vec<ProjectPath> = before.map(|file| file.path.clone()).collect();
    let contents = present.repository.read(commit, &before)?;
    let before: HashMap<ProjectPath, Vec<u8>> = before.into_iter().zip(contents).collect();
    let sources = present.project.sources.files();
    let now: HashMap<&ProjectPath, &str> = sources
        .map(|source| (&source.path, &*source.text))
        .collect();
    let is_same = |file: &&&ChangedFile| {
        let was = match before.get(&file.path) {
            None => Some(String::new()),
            Some(bytes) => str::from_utf8(bytes)
                .ok()
                .and_then(|text| said(text, variables)),
        };
        let is = match file.change {
            FileChange::Deleted => Some(String::new()),
            _ => now.get(&file.path).and_then(|text| said(text, variables)),
        };
        was.is_some() && was == is
    };
    let same = files.iter().filter(is_same);
    Ok(same.map(|file| file.path.clone()).collect())
}
