//! What is put on record of a stack: its inputs, what it declares, and whether its commit is published.

use orch::change::InputDigest;
use orch::git::{CommitId, GitError, Repository};
use orch::path::{KeyFilter, ProjectPath};
use orch::project::stack::Stack;
use orch::source::Spanned;
use orch::state::document::{Entry, Inputs};
use serde_json::Map;

/// Whether the default branch of a remote has a commit; if there is no remote, any commit counts as
/// published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::program::commands) enum Published {
    /// It does not.
    No,
    /// It does.
    Yes,
    /// The branch is at the commit.
    Tip,
}

impl Published {
    pub(in crate::program::commands) fn of(
        repository: &Repository,
        commit: &CommitId,
    ) -> Result<Self, GitError> {
        let remotes = repository.remotes()?;
        if remotes.is_empty() {
            return Ok(Published::Yes);
        }
        for remote in &remotes {
            let Some(branch) = repository.remote_head(remote)? else {
                continue;
            };
            let tip = repository.commit(&format!("refs/remotes/{remote}/{branch}"))?;
            if tip.as_ref() == Some(commit) {
                return Ok(Published::Tip);
            }
            if let Some(tip) = tip
                && repository.is_ancestor(commit, &tip)?
            {
                return Ok(Published::Yes);
            }
        }
        Ok(Published::No)
    }
}

/// Returns the inputs of a stack as they are on record.
pub(in crate::program::commands) fn inputs(rules: &str, digest: &InputDigest) -> Inputs {
    Inputs {
        rules: rules.to_owned(),
        digest: digest.digest.clone(),
        parts: digest.parts.clone(),
        other: Map::new(),
    }
}

/// Returns what a stack declares, as it is on record: paths from the project root.
pub(in crate::program::commands) fn declared(stack: &Stack) -> Entry {
    let directory = stack.path.directory();
    let absolute = |entry: &Spanned<String>| {
        let written = &entry.value;
        if written.starts_with("tag:") {
            return written.clone();
        }
        let (path, key) = KeyFilter::split(written);
        let path = directory.resolve(path);
        let path = path.as_ref().map_or(written.as_str(), ProjectPath::as_str);
        let key = key.map(|key| key.to_string());
        format!("{path}{}", key.unwrap_or_default())
    };
    Entry {
        id: stack.id.as_ref().map(|id| id.value.clone()),
        name: stack.name.clone(),
        tags: stack.tags().map(str::to_owned).collect(),
        after: stack.after.iter().map(absolute).collect(),
        before: stack.before.iter().map(absolute).collect(),
        ..Entry::default()
    }
}
