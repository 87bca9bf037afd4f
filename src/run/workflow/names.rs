//! The names by which policies ask for stacks.

use std::collections::{BTreeSet, HashMap};

use crate::path::StackPath;
use crate::project::stack::{StackIndex, Stacks};

/// How policies name the stacks of a project: by id, by path, or by the path without its leading `/`.
#[derive(Debug, Clone)]
pub struct StackNames {
    paths: Vec<StackPath>,
    by_path: HashMap<String, StackIndex>,
    /// Ids are compared ignoring case, so they are in lower case.
    by_id: HashMap<String, StackIndex>,
    excluded: BTreeSet<StackIndex>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedStack {
    One(StackIndex),
    /// The id of the first stack is the path of the second.
    Ambiguous(StackIndex, StackIndex),
    Unknown,
}

impl StackNames {
    /// Returns the names of all stacks. Those that are excluded never follow.
    pub fn new(stacks: &Stacks, excluded: BTreeSet<StackIndex>) -> Self {
        let paths: Vec<StackPath> = stacks.iter().map(|(_, stack)| stack.path.clone()).collect();
        let by_path = stacks
            .iter()
            .map(|(index, stack)| (stack.path.to_string(), index));
        let by_id = stacks.iter().filter_map(|(index, stack)| {
            let id = stack.id.as_ref()?;
            Some((id.value.to_ascii_lowercase(), index))
        });
        StackNames {
            by_path: by_path.collect(),
            by_id: by_id.collect(),
            paths,
            excluded,
        }
    }

    /// Returns the stack that a policy asks for.
    pub fn find(&self, name: &str) -> NamedStack {
        if name.starts_with('/') {
            let found = self.by_path.get(name);
            return found.map_or(NamedStack::Unknown, |stack| NamedStack::One(*stack));
        }
        let id = self.by_id.get(&name.to_ascii_lowercase());
        let path = self.by_path.get(&format!("/{name}"));
        match (id, path) {
            (Some(id), Some(path)) if id != path => NamedStack::Ambiguous(*id, *path),
            (Some(stack), _) | (None, Some(stack)) => NamedStack::One(*stack),
            (None, None) => NamedStack::Unknown,
        }
    }

    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub fn path(&self, stack: StackIndex) -> &StackPath {
        &self.paths[stack.get()]
    }

    pub(super) fn is_excluded(&self, stack: StackIndex) -> bool {
        self.excluded.contains(&stack)
    }
}
