//! The stacks that policies name at the release of a module.

use std::collections::BTreeMap;

use crate::project::stack::StackIndex;
use crate::release::Consumer;

/// The stacks that policies name at the release of a module.
#[derive(Debug, Clone)]
pub struct ReleasedQuery {
    pub module: String,
    pub old: String,
    pub new: String,
    /// The stacks whose calls resolve to the old version.
    pub consumers: BTreeMap<StackIndex, Consumer>,
    /// The named stacks, each with the policies that name it, by name.
    pub named: BTreeMap<StackIndex, Vec<String>>,
}

/// The relation of a stack to the release of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    pub module: String,
    pub old: String,
    pub new: String,
    /// By name.
    pub policies: Vec<String>,
    /// Its call that resolves to the old version, if it has one.
    pub consumer: Option<Consumer>,
}

impl ReleasedQuery {
    pub(super) fn of(&self, stack: StackIndex) -> Released {
        let policies = self.named.get(&stack);
        Released {
            module: self.module.clone(),
            old: self.old.clone(),
            new: self.new.clone(),
            policies: policies.cloned().unwrap_or_default(),
            consumer: self.consumers.get(&stack).cloned(),
        }
    }
}
