//! The stacks that a run has updated, and the stacks that it must therefore replace.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::plan::triggers::named_outputs;
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::selection::reference::{Reference, ReferenceKind, References};

pub(super) struct UpdatedStacks<'p> {
    project: &'p Project,
    references: &'p References,
    triggers: HashMap<StackIndex, Vec<&'p Reference>>,
    /// The outputs of each stack that are triggers.
    named: BTreeMap<StackIndex, BTreeSet<String>>,
    /// The sequence number of each stack's last update, and the digests of its outputs, if known.
    stacks: BTreeMap<StackIndex, (usize, Option<BTreeMap<String, String>>)>,
    /// The number of updates when a stack was applied. Later updates may still replace it.
    seen: HashMap<StackIndex, usize>,
    n_updates: usize,
}

impl<'p> UpdatedStacks<'p> {
    pub(super) fn new(project: &'p Project, references: &'p References) -> Self {
        let mut triggers: HashMap<StackIndex, Vec<&Reference>> = HashMap::new();
        for reference in &references.list {
            if reference.kind == ReferenceKind::ReplaceTriggeredBy {
                triggers.entry(reference.from).or_default().push(reference);
            }
        }
        UpdatedStacks {
            project,
            references,
            triggers,
            named: named_outputs(references),
            stacks: BTreeMap::new(),
            seen: HashMap::new(),
            n_updates: 0,
        }
    }

    /// Returns the stacks that have triggers, by path.
    pub(super) fn triggered(&self) -> impl Iterator<Item = StackIndex> {
        let stacks = self.project.stacks.iter().map(|(stack, _)| stack);
        stacks.filter(|stack| self.triggers.contains_key(stack))
    }

    pub(super) fn named(&self, stack: StackIndex) -> &BTreeSet<String> {
        static NONE: BTreeSet<String> = BTreeSet::new();
        self.named.get(&stack).unwrap_or(&NONE)
    }

    pub(super) fn project(&self) -> &'p Project {
        self.project
    }

    pub(super) fn add(&mut self, stack: StackIndex, outputs: Option<BTreeMap<String, String>>) {
        self.n_updates += 1;
        self.stacks.insert(stack, (self.n_updates, outputs));
    }

    /// Marks all updates so far as seen by a stack that was applied.
    pub(super) fn sees_all(&mut self, stack: StackIndex) {
        self.seen.insert(stack, self.n_updates);
    }

    /// Returns the trigger that replaces a stack, if any. `known`: the outputs of its last apply.
    pub(super) fn trigger_of(
        &self,
        stack: StackIndex,
        known: &BTreeMap<String, String>,
    ) -> Option<String> {
        let triggers = self.triggers.get(&stack)?;
        let seen = self.seen.get(&stack).copied().unwrap_or_default();
        triggers.iter().find_map(|reference| {
            let stacks = &self.project.stacks;
            let mut updated = self.stacks.iter();
            updated.find_map(|(&named, (number, outputs))| {
                if *number <= seen {
                    return None;
                }
                if !self.references.names(reference, named, stacks) {
                    return None;
                }
                let path = &stacks[named].path;
                let Some(output) = &reference.output else {
                    return Some(path.to_string());
                };
                let name = format!("{path}#{output}");
                let now = outputs.as_ref()?.get(output).map_or("", String::as_str);
                (known.get(&name)? != now).then_some(name)
            })
        })
    }
}
