//! Which of the stacks that are on record and not here were removed on purpose, as far as git shows it.

use std::collections::BTreeSet;

use crate::change::error::ChangeError;
use crate::git::{CommitId, CommitTree, Repository};
use crate::path::StackPath;
use crate::project::{self, Project};
use crate::state::document::Entry;

/// Returns which of some stacks on record, none of which is here, were removed: HEAD does not have them
/// either, and its history has the commit that was last seen to have them. The others are only absent.
///
/// # Errors
///
/// If git cannot answer.
pub(super) fn removed_since_applied<'e>(
    project: &Project,
    repository: &Repository,
    head: &CommitId,
    missing: impl Iterator<Item = (&'e str, &'e Entry)>,
) -> Result<BTreeSet<&'e str>, ChangeError> {
    let seen = missing.filter_map(|(key, entry)| {
        let seen = entry.applied.as_ref()?.seen.as_deref();
        Some((key, CommitId::new(seen?)?))
    });
    let seen: Vec<(&str, CommitId)> = seen.collect();
    if seen.is_empty() {
        return Ok(BTreeSet::new());
    }
    let tree = CommitTree::new(Repository::open(&project.root)?, head.clone());
    let committed = project::stacks_of_tree(&project.root, &tree)?;
    let stacks: BTreeSet<&str> = committed.stacks.iter().map(StackPath::as_str).collect();
    let mut removed = BTreeSet::new();
    for (key, seen) in seen {
        if stacks.contains(key) || repository.commit(seen.as_str())?.is_none() {
            continue;
        }
        if repository.is_ancestor(&seen, head)? {
            removed.insert(key);
        }
    }
    Ok(removed)
}
