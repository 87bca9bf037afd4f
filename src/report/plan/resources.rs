//! The resources below a row.

use super::row::Row;
use crate::driver::ResourceChange;
use crate::plan::PlanRow;
use crate::plan::entry::{PlanEntry, PlanMode, PlannedAction};
use crate::printable::printable;

#[derive(Debug, Clone, Copy)]
pub(super) struct Resource<'a> {
    change: &'a ResourceChange,
    entry: &'a PlanEntry,
}

impl<'a> Resource<'a> {
    /// Returns the resources that are worth a line of their own, in the order of the tool.
    pub(super) fn of_row(row: &Row<'a>, mode: PlanMode) -> Vec<Self> {
        let Row::Entry(PlanRow { entry, old }) = *row else {
            return Vec::new();
        };
        // Drift of a stack that is only read is no change.
        let is_read = entry.action == PlannedAction::Read && mode != PlanMode::RefreshOnly;
        let entries = [entry].into_iter().chain(old);
        entries
            .filter(|entry| entry.blocked.is_none() && !entry.is_undecided() && !is_read)
            .flat_map(Resource::of_entry)
            .collect()
    }

    pub(super) fn of_entry(entry: &'a PlanEntry) -> impl Iterator<Item = Self> {
        let changes = entry.resources.iter();
        changes.map(move |change| Resource { change, entry })
    }

    pub(super) fn is_destroyed(&self) -> bool {
        self.change.destroys()
    }

    pub(super) fn sign(&self) -> &'static str {
        let actions: Vec<&str> = self.change.actions.iter().map(String::as_str).collect();
        match *actions {
            // Its tool plans only the destruction.
            ["delete"] if self.is_recreated() => "-/+",
            ["create"] => "+",
            ["update"] => "~",
            ["delete"] => "-",
            ["delete", "create"] => "-/+",
            ["create", "delete"] => "+/-",
            ["read"] => "<=",
            ["forget"] => ".",
            ["move"] => ">",
            ["import"] => "=",
            _ if self.change.destroys() => "-",
            _ => "~",
        }
    }

    fn is_recreated(&self) -> bool {
        self.entry.action == PlannedAction::Replace && self.entry.destroys()
    }

    /// Returns the address, with the previous one if it moved, whether it is imported, and with the generation if that is
    /// not the current one.
    pub(super) fn address(&self) -> String {
        let mut address = printable(&self.change.address).into_owned();
        if let Some(previous) = &self.change.previous_address {
            address += &format!(" (moved from {})", printable(previous));
        }
        if self.change.is_imported && self.change.action() != "import" {
            address += " (imported)";
        }
        if let Some(generation) = self.entry.stack.generation() {
            address += &format!(" (generation {generation})");
        }
        address
    }
}

/// Returns at most as many resources as may be listed. If there are more, the destroyed ones come
/// first.
pub(super) fn listed(mut resources: Vec<Resource<'_>>, most: usize) -> Vec<Resource<'_>> {
    if resources.len() > most {
        resources.sort_by_key(|it| !it.is_destroyed());
        resources.truncate(most);
    }
    resources
}

/// Returns a line for each resource, its sign first.
pub(super) fn lines<'a>(resources: &'a [Resource<'_>]) -> impl Iterator<Item = String> + 'a {
    let width = resources
        .iter()
        .map(|it| it.sign().len())
        .max()
        .unwrap_or_default();
    resources
        .iter()
        .map(move |it| format!("{:>width$} {}", it.sign(), it.address()))
}

/// Describes how many resources are not listed, and how many of these are destroyed; `None` if all
/// are listed.
pub(super) fn more(all: &[Resource<'_>], listed: &[Resource<'_>]) -> Option<String> {
    let count = |it: &[Resource<'_>]| it.iter().filter(|it| it.is_destroyed()).count();
    let (more, destroyed) = (all.len() - listed.len(), count(all) - count(listed));
    match (more, destroyed) {
        (0, _) => None,
        (_, 0) => Some(format!("{more} more")),
        (_, _) if more == destroyed => Some(format!("{more} more to destroy")),
        (..) => Some(format!("{more} more, {destroyed} of them to destroy")),
    }
}
