//! Detects stacks whose state moved to another backend, or shares a backend with another stack.

use std::collections::{BTreeMap, BTreeSet};

use crate::path::StackPath;
use crate::printable::command_line;
use crate::project::Project;
use crate::project::stack::{StackIndex, StackMode};

#[derive(Debug, Clone, Default)]
pub struct StackBackend {
    /// The recorded backend, with the key of the entry.
    pub recorded: Option<(String, String)>,
    /// The driver's current backend; `None` if it was not asked or does not know.
    pub now: Option<String>,
    /// If a `moved` block moved the stack: its recorded path, and the tool's program.
    pub moved: Option<(String, Option<&'static str>)>,
    /// Whether `now` belongs to a newer generation than the recorded backend.
    pub is_new_generation: bool,
}

impl StackBackend {
    pub fn backend(&self) -> Option<&str> {
        let recorded = self.recorded.as_ref().map(|(_, backend)| backend);
        self.now.as_ref().or(recorded).map(String::as_str)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockedStacks {
    pub stacks: BTreeMap<StackIndex, String>,
    /// Problems with their fixes.
    pub warnings: Vec<String>,
}

/// Returns the planned stacks that must not be touched, given the backends of all stacks. Stacks
/// that are only read are never blocked.
pub fn blocked(
    project: &Project,
    places: &BTreeMap<StackIndex, StackBackend>,
    planned: &BTreeSet<StackIndex>,
) -> BlockedStacks {
    let path = |stack: StackIndex| &project.stacks[stack].path;
    let is_managed = |stack: StackIndex| project.stacks[stack].mode == StackMode::Manage;
    let mut blocked = BlockedStacks::default();
    let mut by_place: BTreeMap<&str, Vec<StackIndex>> = BTreeMap::new();
    for (&stack, place) in places.iter().filter(|(stack, _)| is_managed(**stack)) {
        if let Some(backend) = place.backend() {
            by_place.entry(backend).or_default().push(stack);
        }
        let (Some((key, recorded)), Some(now)) = (&place.recorded, &place.now) else {
            continue;
        };
        if now == recorded || place.is_new_generation || !planned.contains(&stack) {
            continue;
        }
        if let Some((before, program)) = &place.moved {
            // Until the state is migrated, no other stack may use that backend.
            by_place.entry(recorded).or_default().push(stack);
            let why = format!("moved from {before}, but its backend was not");
            blocked.stacks.insert(stack, why);
            let init = match program {
                Some(program) => format!(" with `{program} init -migrate-state` in its directory"),
                None => String::new(),
            };
            let path = path(stack);
            let word = command_line(&[path.as_str().into()]);
            blocked.warnings.push(format!(
                "the state of {path}, which was {before}, is in `{recorded}`, and its backend is now `{now}`; move it there{init}, then run `orch state adopt --match {word}`"
            ));
        } else {
            let why = "its backend differs from the recorded one".to_owned();
            blocked.stacks.insert(stack, why);
            blocked.warnings.push(format!(
                "the state of {} is in `{now}`, and the recorded backend is `{recorded}`; if it was moved on purpose, run `orch state forget {key}`",
                path(stack)
            ));
        }
    }
    for (backend, stacks) in by_place {
        if stacks.len() < 2 || !stacks.iter().any(|stack| planned.contains(stack)) {
            continue;
        }
        for &stack in stacks.iter().filter(|stack| planned.contains(stack)) {
            let first = stacks
                .iter()
                .find(|other| **other != stack)
                .map_or_else(String::new, |other| path(*other).to_string());
            let more = more_than(2, stacks.len());
            let why = format!("it has the same backend as {first}{more}");
            blocked.stacks.entry(stack).or_insert(why);
        }
        let [first, second]: [&StackPath; 2] = [path(stacks[0]), path(stacks[1])];
        let more = more_than(2, stacks.len());
        blocked.warnings.push(format!(
            "{first} and {second}{more} have the same backend, `{backend}`; give each its own, or set `mode = \"read\"` in all but one"
        ));
    }
    blocked
}

fn more_than(named: usize, all: usize) -> String {
    match all - named {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}
