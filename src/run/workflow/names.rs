//! The names by which policies ask for stacks.

use std::collections::{BTreeSet, HashMap};

use crate::path::StackPath;
use crate::project::stack::{StackIndex, Stacks};

/// How policies know the stacks of a project: by its id, or else by its path.
#[derive(Debug, Clone)]
pub struct StackNames {
    paths: Vec<StackPath>,
    by_name: HashMap<String, StackIndex>,
    excluded: BTreeSet<StackIndex>,
}

impl StackNames {
    /// Returns the names of all stacks. Those that are excluded never follow.
    pub fn new(stacks: &Stacks, excluded: BTreeSet<StackIndex>) -> Self {
        let mut by_name = HashMap::with_capacity(stacks.len());
        for (index, stack) in stacks.iter() {
            by_name.insert(stack.path.to_string(), index);
            if let Some(id) = &stack.id {
                // Ids are compared ignoring case, and no path is one: a path begins with `/`.
                by_name.insert(id.value.to_ascii_lowercase(), index);
            }
        }
        StackNames {
            paths: stacks.iter().map(|(_, stack)| stack.path.clone()).collect(),
            by_name,
            excluded,
        }
    }

    /// Returns the stack that a policy asks for.
    pub fn find(&self, name: &str) -> Option<StackIndex> {
        let found = self.by_name.get(name);
        found
            .or_else(|| {
                self.by_name
                    .get(&name.to_ascii_lowercase())
                    .filter(|_| !name.starts_with('/'))
            })
            .copied()
    }

    /// Returns how many stacks there are.
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
