//! Whether a document belongs to this project although none of its recorded stacks exist here.

use std::collections::{BTreeMap, BTreeSet};

use super::range::holdings;
use crate::change::error::ChangeError;
use crate::git::{CommitId, Holds, Repository};
use crate::path::{ProjectPath, StackPath};
use crate::state::document::{Document, Entry};

/// Returns whether the history of HEAD contains a recorded stack: an applied commit has its block at the same
/// path below the project root.
pub fn had_stack_on_record(
    repository: &Repository,
    document: &Document,
) -> Result<bool, ChangeError> {
    let Some(head) = repository.commit("HEAD")? else {
        return Ok(false);
    };
    let mut by_commit: BTreeMap<CommitId, BTreeSet<ProjectPath>> = BTreeMap::new();
    for (key, entry) in &document.stacks {
        let Some(path) = StackPath::parse(key) else {
            continue;
        };
        for commit in applied_commits(entry) {
            let directories = by_commit.entry(commit).or_default();
            directories.insert(path.directory().clone());
        }
    }
    let mut here = Vec::new();
    for commit in by_commit.keys() {
        if repository.commit(commit.as_str())?.as_ref() == Some(commit) {
            here.push(commit.clone());
        }
    }
    let lacking = repository.not_in_history(&here, &head)?;
    for commit in here.iter().filter(|commit| !lacking.contains(commit)) {
        let directories: Vec<ProjectPath> = by_commit[commit].iter().cloned().collect();
        let found = holdings(repository, std::slice::from_ref(commit), &directories)?;
        if found.iter().any(|holds| holds.contains(&Holds::Wanted)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn applied_commits(entry: &Entry) -> impl Iterator<Item = CommitId> {
    let applied = entry.applied.iter();
    let commits = applied.flat_map(|applied| [applied.seen.as_deref(), applied.commit.as_deref()]);
    commits.flatten().filter_map(CommitId::new)
}
