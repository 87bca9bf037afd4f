//! The stacks that a run has updated, and the stacks that it must therefore replace.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::ApplyStack;
use crate::change::EntryIndex;
use crate::plan::triggers::{FiredTrigger, named_outputs, noted_outputs, recorded_trigger};
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::run::state::{Effect, Findings};
use crate::selection::reference::{Reference, ReferenceKind, References};
use crate::state::document::{Document, Entry, are_known};

pub(super) struct UpdatedStacks<'a, 'p> {
    project: &'p Project,
    references: &'p References,
    triggers: HashMap<StackIndex, Vec<&'p Reference>>,
    /// The outputs of each stack that are triggers.
    named: BTreeMap<StackIndex, BTreeSet<String>>,
    stacks: BTreeMap<StackIndex, Update>,
    /// The outputs of the stacks whose turns have ended; `None` if unknown.
    outputs: BTreeMap<StackIndex, Option<BTreeMap<String, String>>>,
    /// The state before the run.
    recorded: Option<(&'a Document, EntryIndex<'a>)>,
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
    /// Whether its turn failed, and may have updated it.
    is_unknown: bool,
}

impl<'a, 'p> UpdatedStacks<'a, 'p> {
    pub(super) fn new(
        project: &'p Project,
        references: &'p References,
        document: Option<&'a Document>,
    ) -> Self {
        let mut triggers: HashMap<StackIndex, Vec<&Reference>> = HashMap::new();
        for reference in &references.list {
            if reference.kind == ReferenceKind::ReplaceTriggeredBy {
                triggers.entry(reference.from).or_default().push(reference);
            }
        }
        UpdatedStacks {
            recorded: document.map(|it| (it, EntryIndex::new(&project.stacks, it))),
            project,
            references,
            triggers,
            named: named_outputs(references),
            stacks: BTreeMap::new(),
            outputs: BTreeMap::new(),
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

    fn entry(&self, stack: StackIndex) -> Option<(&'a str, &'a Entry)> {
        let (document, pairs) = self.recorded.as_ref()?;
        let key = pairs.key(stack)?;
        Some((key, document.stacks.get(key)?))
    }

    /// Returns the digests of a stack's outputs that others were applied with.
    pub(super) fn noted(&self, stack: StackIndex) -> BTreeMap<String, String> {
        let key = self.entry(stack).map(|(key, _)| key);
        let recorded = self.recorded.as_ref().zip(key);
        recorded
            .map(|((document, _), key)| noted_outputs(document, key))
            .unwrap_or_default()
    }

    /// Adds the outputs of a stack that is recorded without a turn.
    pub(super) fn set_outputs(
        &mut self,
        stack: StackIndex,
        outputs: Option<BTreeMap<String, String>>,
    ) {
        self.outputs.insert(stack, outputs.filter(are_known));
    }

    /// Adds the update of a turn that has ended, if it was one. `attempted` is the serial of an earlier attempt, which may
    /// have done what the tool no longer finds.
    pub(super) fn follow(
        &mut self,
        stack: StackIndex,
        findings: &Findings,
        attempted: Option<u64>,
    ) {
        self.set_outputs(stack, findings.outputs.clone());
        let is_updated = findings.effect == Effect::Updated;
        if !is_updated && attempted.is_none() {
            return;
        }
        self.n_updates += 1;
        let update = Update {
            number: self.n_updates,
            attempted: attempted.filter(|_| !is_updated),
            is_unknown: false,
        };
        self.stacks.insert(stack, update);
    }

    /// Adds a turn that failed and may have updated the stack.
    pub(super) fn lose(&mut self, stack: StackIndex) {
        self.set_outputs(stack, None);
        self.n_updates += 1;
        let update = Update {
            number: self.n_updates,
            attempted: None,
            is_unknown: true,
        };
        self.stacks.insert(stack, update);
    }

    /// Marks all updates so far as seen by a stack that was applied.
    pub(super) fn sees_all(&mut self, stack: StackIndex) {
        self.seen.insert(stack, self.n_updates);
    }

    /// Returns the trigger that replaces a stack, if any. `of_turn`: the stack, if it has a turn.
    pub(super) fn trigger_of(
        &self,
        stack: StackIndex,
        of_turn: Option<&ApplyStack<'_>>,
    ) -> Option<FiredTrigger> {
        let triggers = self.triggers.get(&stack)?;
        let found = triggers.iter().find_map(|reference| {
            let mut updated = self.stacks.iter();
            updated.find_map(|(&named, update)| {
                let is_named = self
                    .references
                    .names(reference, named, &self.project.stacks);
                let is_named = is_named && self.is_newer(update, stack);
                is_named.then(|| self.updated_trigger(reference, (named, update), of_turn))?
            })
        });
        let is_open = of_turn.is_some_and(|it| it.has_open_triggers);
        found.or_else(|| {
            // Other runs may have updated the named stacks since the plan was made.
            let is_open = is_open && !self.seen.contains_key(&stack);
            let mut triggers = triggers.iter().filter(|_| is_open);
            triggers.find_map(|reference| self.recorded_trigger(stack, reference))
        })
    }

    /// Returns whether a stack was applied before an update.
    fn is_newer(&self, update: &Update, stack: StackIndex) -> bool {
        let applied = self.entry(stack).and_then(|(_, it)| it.applied.as_ref());
        let applied = applied.map(|applied| applied.serial);
        let is_older = update.attempted.is_some_and(|it| Some(it) <= applied);
        update.number > self.seen.get(&stack).copied().unwrap_or_default() && !is_older
    }

    /// Returns the trigger that an update has fired, if it has.
    fn updated_trigger(
        &self,
        reference: &Reference,
        (named, update): (StackIndex, &Update),
        of_turn: Option<&ApplyStack<'_>>,
    ) -> Option<FiredTrigger> {
        let path = &self.project.stacks[named].path;
        let Some(output) = &reference.output else {
            return Some(FiredTrigger {
                name: path.to_string(),
                is_unknown: update.is_unknown,
            });
        };
        let name = format!("{path}#{output}");
        let noted = of_turn?.triggered_by.get(&name)?;
        let outputs = self.outputs.get(&named).and_then(Option::as_ref);
        let now = outputs.map(|outputs| outputs.get(output).map_or("", String::as_str));
        (now != Some(noted)).then(|| FiredTrigger {
            name,
            is_unknown: now.is_none(),
        })
    }

    /// Returns the trigger that earlier runs have fired according to the state, if any.
    fn recorded_trigger(&self, stack: StackIndex, reference: &Reference) -> Option<FiredTrigger> {
        let stacks = &self.project.stacks;
        let (_, entry) = self.entry(stack)?;
        let applied = entry.applied.as_ref()?;
        let named = self.references.named(reference, stacks).into_iter();
        let is_newer = |named: &StackIndex| {
            let update = self.stacks.get(named);
            update.is_some_and(|update| self.is_newer(update, stack))
        };
        let mut others = named.filter(|named| !is_newer(named));
        others.find_map(|named| {
            let (key, entry) = self.entry(named)?;
            let outputs = match self.outputs.get(&named) {
                Some(outputs) => outputs.as_ref(),
                None => entry.known_outputs(),
            };
            recorded_trigger(applied, reference, (&stacks[named], key, entry), outputs)
        })
    }
}
