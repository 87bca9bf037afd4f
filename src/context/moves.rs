//! Gives entries of the state the current paths of their stacks.

use std::collections::BTreeSet;

use crate::change::EntryIndex;
use crate::path::StackPath;
use crate::project::stack::Stacks;
use crate::state::document::Document;

/// Rekeys the entries of moved stacks to their current paths.
pub fn follow_moves(stacks: &Stacks, document: &mut Document) {
    let moved = EntryIndex::new(stacks, document).moved(stacks);
    document.rename(moved);
}

/// A stack that a plan has found to be recorded under another key: its path and that key.
pub type FoundMove = (StackPath, String);

/// Rekeys the entries of moved stacks to their current paths: stacks with the same id, and those
/// that a plan has found.
pub fn follow_all(stacks: &Stacks, found: &[FoundMove], document: &mut Document) {
    follow_moves(stacks, document);
    let pairs = EntryIndex::new(stacks, document);
    let taken: BTreeSet<&str> = pairs.iter().map(|(_, key)| key).collect();
    let is_open = |(path, key): &&FoundMove| {
        let stack = stacks.find(path);
        let is_new = stack.is_some_and(|stack| pairs.key(stack).is_none());
        is_new && !taken.contains(key.as_str()) && document.stacks.contains_key(key)
    };
    let open: Vec<&FoundMove> = found.iter().filter(is_open).collect();
    for (path, key) in &open {
        // Whatever id it had, it is this stack now.
        let stack = stacks.find(path).map(|stack| &stacks[stack]);
        let id = stack.and_then(|stack| stack.id.as_ref());
        if let Some(entry) = document.stacks.get_mut(key) {
            entry.id = id.map(|id| id.value.clone());
        }
    }
    let keys = open.into_iter();
    document.rename(
        keys.map(|(path, key)| (key.clone(), path.to_string()))
            .collect(),
    );
}
