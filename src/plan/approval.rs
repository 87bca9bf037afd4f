//! Approval of resources that an apply destroys inside stacks that it keeps. Whole destroyed stacks
//! have their own approval. This module does not ask and does not know what is approved.

use super::Plan;
use super::entry::PlanEntry;
use crate::path::StackPath;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestroyedResources<'p> {
    pub stack: &'p StackPath,
    /// In the tool's order.
    pub addresses: Vec<&'p str>,
    /// Destroyed resources that the driver counts without naming them.
    pub unnamed: u64,
}

impl DestroyedResources<'_> {
    pub fn count(&self) -> u64 {
        self.addresses.len() as u64 + self.unnamed
    }
}

impl PlanEntry {
    /// Returns the resources that the apply destroys, unless it destroys the whole stack.
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
    pub fn destroyed_resources(&self) -> impl Iterator<Item = DestroyedResources<'_>> {
        let entries = self.entries.iter();
        entries.filter_map(PlanEntry::destroyed_resources)
    }
}
