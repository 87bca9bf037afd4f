//! Which entry of the document belongs to which stack.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::range::holdings;
use crate::change::error::ChangeError;
use crate::git::{CommitId, Holds, Repository};
use crate::path::{ProjectPath, StackPath};
use crate::project::stack::{Stack, StackIndex, Stacks};
use crate::state::document::{Document, Entry};

/// The keys of the entries that belong to stacks of the project.
///
/// An entry belongs to the stack with its id. Otherwise it belongs to the stack at its path, unless both have
/// ids: then two different stacks had this path, one after the other.
pub struct EntryIndex<'d>(BTreeMap<StackIndex, &'d str>);

impl<'d> EntryIndex<'d> {
    pub fn new(stacks: &Stacks, document: &'d Document) -> Self {
        let mut by_id: HashMap<String, &'d str> = HashMap::new();
        for (key, entry) in &document.stacks {
            if let Some(id) = &entry.id {
                by_id.entry(id.to_ascii_lowercase()).or_insert(key);
            }
        }
        let mut pairs = BTreeMap::new();
        let mut taken: HashSet<&str> = HashSet::new();
        for (index, stack) in stacks.iter() {
            let id = stack.id.as_ref().map(|id| id.value.to_ascii_lowercase());
            if let Some(&key) = id.and_then(|id| by_id.get(&id)) {
                pairs.insert(index, key);
                taken.insert(key);
            }
        }
        for (index, stack) in stacks.iter() {
            if pairs.contains_key(&index) {
                continue;
            }
            let Some((key, entry)) = document.stacks.get_key_value(stack.path.as_str()) else {
                continue;
            };
            let is_other = stack.id.is_some() && entry.id.is_some();
            if !is_other && !taken.contains(key.as_str()) {
                pairs.insert(index, key);
            }
        }
        EntryIndex(pairs)
    }

    pub fn key(&self, stack: StackIndex) -> Option<&'d str> {
        self.0.get(&stack).copied()
    }

    /// Returns the stacks that have an entry, in path order, with its key.
    pub fn iter(&self) -> impl Iterator<Item = (StackIndex, &'d str)> {
        self.0.iter().map(|(&stack, &key)| (stack, key))
    }

    /// Returns whether an entry belongs to a stack of the project.
    pub fn exist(stacks: &Stacks, document: &'d Document) -> bool {
        let is_at_path = |stack: &Stack| {
            let Some(entry) = document.stacks.get(stack.path.as_str()) else {
                return false;
            };
            match (&stack.id, &entry.id) {
                (Some(id), Some(recorded)) => id.value.eq_ignore_ascii_case(recorded),
                _ => true,
            }
        };
        // Usually the first stack decides.
        stacks.iter().any(|(_, stack)| is_at_path(stack))
            || !EntryIndex::new(stacks, document).0.is_empty()
    }

    /// Returns the entries of moved stacks: the recorded key and the current path.
    pub fn moved(&self, stacks: &Stacks) -> BTreeMap<String, String> {
        let pairs = self.iter();
        let moved = pairs.filter_map(|(stack, key)| {
            let path = stacks[stack].path.as_str();
            (path != key).then(|| (key.to_owned(), path.to_owned()))
        });
        moved.collect()
    }
}

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
