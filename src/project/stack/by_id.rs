//! Stacks by their ids.

use std::collections::HashMap;

use super::{StackIndex, Stacks};

/// The stacks that have ids, which are compared ignoring case.
pub struct StacksById(HashMap<String, StackIndex>);

impl StacksById {
    pub fn new(stacks: &Stacks) -> Self {
        let ids = stacks.iter().filter_map(|(index, stack)| {
            let id = stack.id.as_ref()?;
            Some((id.value.to_ascii_lowercase(), index))
        });
        StacksById(ids.collect())
    }

    pub fn find(&self, id: &str) -> Option<StackIndex> {
        self.0.get(&id.to_ascii_lowercase()).copied()
    }

    /// Returns the ids in lower case, in any order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
