//! The stacks that are planned, with what is known of each before its tool is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::PlanRequest;
use crate::change::{Counted, Pairs, Rollback, Standings};
use crate::context::Context;
use crate::driver::{Driver, ToolsOnPath, driver_of};
use crate::error::{Error, Result};
use crate::path::{Generation, StackPath};
use crate::plan::entry::Reason;
use crate::plan::made_first::extend_as_recorded;
use crate::printable::printable;
use crate::project::stack::{StackIndex, Stacks};
use crate::run::execute::ProgramFinder;
use crate::selection::select::Selection;
use crate::state::document;

/// What is on record, and how the stacks stand according to it.
pub struct OnRecord {
    pub document: document::Document,
    pub standings: Standings,
}

/// A stack that is planned.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Subject<'p> {
    pub(super) stack: StackIndex,
    pub(super) driver: Driver<'p>,
    pub(super) is_replaced: bool,
    /// Whether it is on record, was to be replaced, and nothing of it exists.
    pub(super) is_gone: bool,
    /// Why it is replaced by `replace_triggered_by`, if it is.
    pub(super) trigger: Option<Reason>,
    /// What replaces it if it changes, which is known during the apply.
    pub(super) open_triggers: Vec<String>,
    /// Whether its tool is not asked yet, since preconditions of it have not been decided.
    pub(super) is_waiting: bool,
    /// Why nothing may be done with it.
    pub(super) blocked: Option<String>,
    /// Where its driver keeps its own state, if the block of the driver says so.
    pub(super) backend: Option<String>,
    /// Which outputs differ from those that it was applied with, if any do: in words.
    pub(super) outputs_differ: Option<String>,
    /// The key that it has on record, if that is not its path, or if it has become another stack.
    pub(super) previous_path: Option<String>,
    /// Whether it is not on record, and is known to be another stack on record that was moved.
    pub(super) is_moved: bool,
    /// The commit that was applied to it according to the record.
    pub(super) source_commit: Option<String>,
    /// What is made of it before the old one is destroyed, if it is replaced in that order.
    pub(super) next: Option<Next>,
    /// The commit that it reverts, in words, if the flags allow that.
    pub(super) puts_back: Option<String>,
    /// Whether drift was accepted since it was applied.
    pub(super) accepts_drift: bool,
    /// Whether it is planned because it calls a module that was released.
    pub(super) is_released: bool,
}

/// The generation that a stack gets if it is made anew before the old one is destroyed.
pub(super) struct Next {
    pub(super) generation: Generation,
    /// Where its driver keeps its state, if the block of the driver says so.
    pub(super) backend: Option<String>,
    /// Whether it is made, as far as is known.
    pub(super) is_made: bool,
}

impl Subject<'_> {
    /// Returns the generation that is made of it before the old one is destroyed, if one is.
    pub(super) fn made(&self) -> Option<&Next> {
        self.next.as_ref().filter(|next| next.is_made)
    }
}

impl Subjects<'_> {
    /// Blocks the stacks at whose paths others are on record.
    pub(super) fn block_taken(&mut self, stacks: &Stacks, document: &document::Document) {
        let mut taken = taken(stacks, document);
        for subject in &mut self.all {
            if let Some(why) = taken.remove(&subject.stack) {
                subject.blocked.get_or_insert(why);
            }
        }
    }
}

/// Returns the stacks at whose paths others are on record, each with why nothing may be done with it.
pub fn taken(stacks: &Stacks, document: &document::Document) -> BTreeMap<StackIndex, String> {
    let pairs = Pairs::new(stacks, document);
    // Those of stacks that have moved make room.
    let leaving: BTreeSet<&str> = pairs.iter().map(|(_, key)| key).collect();
    let taken = stacks.iter().filter_map(|(stack, of_stack)| {
        let path = of_stack.path.as_str();
        let taken = document.stacks.get(path)?;
        let is_free = pairs.key(stack).is_some() || leaving.contains(path);
        let id = taken.id.as_deref().map(printable).unwrap_or_default();
        let why = format!("another stack is on record at its path, with the id `{id}`");
        (!is_free).then_some((stack, why))
    });
    taken.collect()
}

/// The stacks that are planned.
pub(super) struct Subjects<'p> {
    /// By path.
    pub(super) all: Vec<Subject<'p>>,
    /// How many selected stacks have no driver.
    pub(super) without_driver: usize,
}

/// Returns whether a program is on our `PATH`.
fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH");
    let nowhere = Path::new("/");
    ProgramFinder::new(program)
        .find(nowhere, path.as_deref())
        .is_ok()
}

/// Returns which tools are on our `PATH`.
pub(super) fn tools_on_path() -> ToolsOnPath {
    ToolsOnPath {
        terraform: is_on_path("terraform"),
        tofu: is_on_path("tofu"),
    }
}

/// Finds the drivers of stacks.
pub struct Drivers<'l, 'd> {
    context: &'l Context,
    /// What is on record, and of which stack.
    recorded: Option<(&'d document::Document, Pairs<'d>)>,
    on_path: ToolsOnPath,
}

impl<'l, 'd> Drivers<'l, 'd> {
    pub fn new(context: &'l Context, document: Option<&'d document::Document>) -> Self {
        let pairs = |document| Pairs::new(&context.project.stacks, document);
        Drivers {
            context,
            recorded: document.map(|document| (document, pairs(document))),
            on_path: tools_on_path(),
        }
    }

    /// Returns what is on record of a stack, and its key.
    pub fn entry(&self, stack: StackIndex) -> Option<(&'d str, &'d document::Entry)> {
        let (document, pairs) = self.recorded.as_ref()?;
        let key = pairs.key(stack)?;
        Some((key, document.stacks.get(key)?))
    }

    pub fn of(&self, stack: StackIndex) -> Option<Driver<'l>> {
        let recorded = self
            .entry(stack)
            .and_then(|(_, entry)| entry.driver.as_deref());
        let context = self.context;
        driver_of(
            &context.project,
            &context.listing,
            stack,
            recorded,
            self.on_path,
        )
    }
}

impl Context {
    /// Returns what is on record, if the project keeps a state. If not, a note says so, unless it was said before.
    pub fn on_record(&mut self, request: &PlanRequest<'_>) -> Result<Option<OnRecord>> {
        if self.project.settings.state.is_none() {
            if request.only.is_none() {
                self.notices.note(
                    "the project keeps no state: the tools of all selected stacks are asked, and stacks that were removed go unnoticed",
                );
            }
            return Ok(None);
        }
        let counted = Counted::default();
        let mut document = self.read_and_digest(counted)?;
        if request.is_verification {
            self.forget_applies(request.only.unwrap_or_default(), &mut document);
        }
        let address = self.opened()?.backend.address();
        let standings = self.standings_in(&document, address, counted, true)?;
        self.set_generations(&document);
        let (workspace, _) = self.parts();
        extend_as_recorded(&mut workspace.project, &workspace.graph, &document);
        Ok(Some(OnRecord {
            document,
            standings,
        }))
    }

    /// Forgets what was applied of stacks: only what is there counts.
    fn forget_applies(&self, paths: &[StackPath], document: &mut document::Document) {
        let stacks = &self.project.stacks;
        let found = paths.iter().filter_map(|path| stacks.find(path));
        let found: BTreeSet<StackIndex> = found.collect();
        let pairs = Pairs::new(stacks, document);
        let keys = pairs.iter().filter(|(stack, _)| found.contains(stack));
        let keys: Vec<String> = keys.map(|(_, key)| key.to_owned()).collect();
        for key in keys {
            let Some(entry) = document.stacks.get_mut(&key) else {
                continue;
            };
            *entry = document::Entry {
                id: entry.id.take(),
                name: std::mem::take(&mut entry.name),
                driver: entry.driver.take(),
                generation: entry.generation,
                deposed: std::mem::take(&mut entry.deposed),
                ..document::Entry::default()
            };
        }
    }

    /// Returns whether a stack is made anew before the old one is destroyed, if it is replaced.
    pub(super) fn is_made_first(&self, stack: StackIndex) -> bool {
        let rule = self.project.rules_of(stack).create_before_destroy;
        rule.is_some_and(|rule| rule.value)
    }

    /// Returns the selected stacks that have a driver.
    pub(super) fn subjects(
        &self,
        request: &PlanRequest<'_>,
        selection: &Selection,
        recorded: Option<&OnRecord>,
        replaced: &BTreeSet<StackIndex>,
        rollbacks: &BTreeMap<StackIndex, Rollback>,
    ) -> Result<Subjects<'_>> {
        let allow_rollback = request.allow_rollback;
        let outside: Vec<StackIndex> = replaced
            .iter()
            .filter(|stack| !selection.contains(**stack))
            .copied()
            .collect();
        if !outside.is_empty() {
            return Err(Error::usage(format!(
                "in --replace: {} is not selected",
                self.names(&outside)
            )));
        }
        let drivers = Drivers::new(self, recorded.map(|recorded| &recorded.document));
        let mut subjects = Subjects {
            all: Vec::new(),
            without_driver: 0,
        };
        for stack in selection.stacks() {
            let (previous, entry) = drivers.entry(stack).unzip();
            let rollback = rollbacks.get(&stack);
            match drivers.of(stack) {
                Some(driver) => subjects.all.push(Subject {
                    stack,
                    driver,
                    is_replaced: replaced.contains(&stack),
                    is_gone: false,
                    trigger: None,
                    open_triggers: Vec::new(),
                    is_waiting: false,
                    blocked: rollback
                        .filter(|_| !allow_rollback)
                        .map(Rollback::why_with_fetch),
                    backend: None,
                    outputs_differ: None,
                    previous_path: previous
                        .map(|key| self.relocated.get(key).map_or(key, String::as_str))
                        .filter(|path| *path != self.project.stacks[stack].path.as_str())
                        .map(str::to_owned),
                    is_moved: false,
                    source_commit: entry.and_then(|entry| entry.applied.as_ref()?.commit.clone()),
                    next: entry
                        .filter(|_| self.is_made_first(stack))
                        .map(|entry| Next {
                            generation: entry.next_generation(),
                            backend: None,
                            is_made: false,
                        }),
                    puts_back: rollback.filter(|_| allow_rollback).map(Rollback::effect),
                    accepts_drift: entry.is_some_and(|entry| entry.refreshed.is_some()),
                    is_released: request.is_release,
                }),
                None => subjects.without_driver += 1,
            }
        }
        Ok(subjects)
    }
}
