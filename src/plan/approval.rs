//! The resources of a plan that need approval besides the destroyed stacks: those that are
//! destroyed inside stacks that are kept.
//!
//! This module does not ask for approval, and does not know what was approved.

use super::Plan;
use super::entry::PlanEntry;
use crate::path::StackPath;

/// Resources of a stack that an apply destroys or replaces while the stack is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestroyedResources<'p> {
    pub stack: &'p StackPath,
    /// Their addresses, as the tool orders them.
    pub addresses: Vec<&'p str>,
    /// How many more the driver counts but does not name.
    pub unnamed: u64,
}

impl DestroyedResources<'_> {
    /// Returns how many resources there are.
    pub fn count(&self) -> u64 {
        self.addresses.len() as u64 + self.unnamed
    }
}

impl PlanEntry {
    /// Returns the resources that an apply of it destroys; none if it destroys the whole stack,
    /// which has its own approval.
    pub fn destroyed_resources(&self) -> Option<DestroyedResources<'_>> {
        if self.destroys() || !self.action.is_work() {
            return None;
        }
        let destroyed = self.resources.iter().filter(|resource| resource.destroys());
        let addresses: Vec<&str> = destroyed.map(|it| it.address.as_str()).collect();
        let removed = self.counts.map_or(0, |counts| counts.remove);
        let unnamed = if self.resources.is_empty() {
            removed
        } else {
            0
        };
        let found = DestroyedResources {
            stack: &self.stack,
            addresses,
            unnamed,
        };
        (found.count() > 0).then_some(found)
    }
}

impl Plan {
    /// Returns the resources that an apply of it destroys inside stacks that are kept, by stack.
    pub fn destroyed_resources(&self) -> impl Iterator<Item = DestroyedResources<'_>> {
        let entries = self.entries.iter();
        entries.filter_map(PlanEntry::destroyed_resources)
    }
}
