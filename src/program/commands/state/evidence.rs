//! What is put on record of a stack: its inputs, what it declares, and whether its commit is published.

use orch::change::InputDigest;
use orch::change::base::{self, BaseQuery, BaseUnknown};
use orch::git::{CommitId, GitError, Repository};
use orch::path::{KeyFilter, ProjectPath};
use orch::project::config::ProjectSettings;
use orch::project::stack::Stack;
use orch::source::Spanned;
use orch::state::document::{Entry, Inputs};
use serde_json::Map;

/// Whether the default branch of the remote has a commit; if there is no remote, any commit counts as
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
    /// Asks about the default branch of the remote, as `--changed` finds it.
    pub(in crate::program::commands) fn of(
        repository: &Repository,
        settings: &ProjectSettings,
        commit: &CommitId,
    ) -> Result<Self, GitError> {
        let query = BaseQuery {
            remote: settings.default_remote.clone(),
            branch: settings.default_branch.clone(),
            ..BaseQuery::default()
        };
        let upstream = match base::default_branch(repository, &query) {
            Ok(None) => return Ok(Published::Yes),
            Ok(Some(upstream)) => upstream,
            Err(BaseUnknown::Git(error)) => return Err(error),
            // Nobody knows which branch counts.
            Err(_) => return Ok(Published::No),
        };
        let Some(tip) = repository.commit(&format!("refs/remotes/{upstream}"))? else {
            return Ok(Published::No);
        };
        if tip == *commit {
            Ok(Published::Tip)
        } else if repository.is_ancestor(commit, &tip)? {
            Ok(Published::Yes)
        } else {
            Ok(Published::No)
        }
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
