//! The stacks that a run has updated, and the stacks that it must therefore replace.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::change::EntryIndex;
use crate::plan::triggers::named_outputs;
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::run::state::{Effect, Findings};
use crate::selection::reference::{Reference, ReferenceKind, References};
use crate::state::document::Document;

pub(super) struct UpdatedStacks<'p> {
    project: &'p Project,
    references: &'p References,
    triggers: HashMap<StackIndex, Vec<&'p Reference>>,
    /// The outputs of each stack that are triggers.
    named: BTreeMap<StackIndex, BTreeSet<String>>,
    stacks: BTreeMap<StackIndex, Update>,
    /// The serials of the last applies before the run, of stacks with triggers.
    applied: HashMap<StackIndex, u64>,
    /// The number of updates when a stack was applied. Later updates may still replace it.
    seen: HashMap<StackIndex, usize>,
    n_updates: usize,
}

/// The last update of a stack.
struct Update {
    /// Its sequence number.
    number: usize,
    /// The serial of the earlier attempt that may have updated the stack, if the run has not.
    attempted: Option<u64>,
    /// The digests of its outputs, if known.
    outputs: Option<BTreeMap<String, String>>,
}

impl<'p> UpdatedStacks<'p> {
    pub(super) fn new(
        project: &'p Project,
        references: &'p References,
        document: Option<&Document>,
    ) -> Self {
        let mut triggers: HashMap<StackIndex, Vec<&Reference>> = HashMap::new();
        for reference in &references.list {
            if reference.kind == ReferenceKind::ReplaceTriggeredBy {
                triggers.entry(reference.from).or_default().push(reference);
            }
        }
        let pairs = document.map(|document| (document, EntryIndex::new(&project.stacks, document)));
        let applied = |stack: &StackIndex| {
            let (document, pairs) = pairs.as_ref()?;
            let entry = document.stacks.get(pairs.key(*stack)?)?;
            Some((*stack, entry.applied.as_ref()?.serial))
        };
        UpdatedStacks {
            applied: triggers.keys().filter_map(applied).collect(),
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

    /// Adds the update of a turn that has ended, if it was one. `attempted` is the serial of an earlier attempt, which may
    /// have done what the tool no longer finds.
    pub(super) fn follow(
        &mut self,
        stack: StackIndex,
        findings: &Findings,
        attempted: Option<u64>,
    ) {
        let is_updated = findings.effect == Effect::Updated;
        if !is_updated && attempted.is_none() {
            return;
        }
        self.n_updates += 1;
        let update = Update {
            number: self.n_updates,
            attempted: attempted.filter(|_| !is_updated),
            outputs: findings.outputs.clone(),
        };
        self.stacks.insert(stack, update);
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
            updated.find_map(|(&named, update)| {
                let applied = self.applied.get(&stack).copied();
                let is_older = update.attempted.is_some_and(|it| Some(it) <= applied);
                if update.number <= seen || is_older {
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
                let now = update
                    .outputs
                    .as_ref()?
                    .get(output)
                    .map_or("", String::as_str);
                (known.get(&name)? != now).then_some(name)
            })
        })
    }
}
