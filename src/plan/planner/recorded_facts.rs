//! Recorded facts besides inputs: backends, and the outputs that stacks were applied with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::ask::AskedTools;
use super::{Planning, RecordedState, StackToPlan, StacksToPlan};
use crate::change::StackStatus;
use crate::context::used_outputs::UsedDigests;
use crate::context::used_outputs::UsedOutputs;
use crate::context::{Context, Entries};
use crate::driver::{Outputs, Tool};
use crate::error::{Error, Result};
use crate::exit::ExitStatus;
use crate::plan::backends::{BlockedStacks, StackBackend, blocked};
use crate::plan::entry::{AskedAction, Decision, PlanMode};
use crate::plan::triggers::{named_outputs, noted_outputs};
use crate::printable::printable;
use crate::project::per_stack::SharedProblems;
use crate::project::sharing::INPUT;
use crate::project::stack::{StackIndex, StackMode};
use crate::state::document::{Document, Entry, unknown_outputs};

const MAX_WARNINGS: usize = 10;

impl Context {
    pub(super) fn add_backends(&self, subjects: &mut StacksToPlan<'_>) -> Result<()> {
        let says = |subject: &&mut StackToPlan<'_>| {
            let block = subject.driver.block;
            block.is_some_and(|block| block.backend.is_some())
        };
        let next = subjects.all.iter().filter_map(|subject| {
            let path = &self.project.stacks[subject.stack].path;
            Some((path.clone(), subject.next.as_ref()?.generation))
        });
        let next = self.state.generations.planning(next);
        let mut saying = subjects.all.iter_mut().filter(says).peekable();
        if saying.peek().is_none() {
            return Ok(());
        }
        let environments = self.evaluator();
        let of_next = self.evaluator().in_generations(Arc::new(next));
        let mut problems = SharedProblems::default();
        for subject in saying {
            let namespaces = environments.namespaces().of_stack(subject.stack);
            match subject.driver.backend(&namespaces) {
                Ok(backend) => subject.backend = backend,
                Err(found) => problems.add(subject.stack, found),
            }
            let Some(next) = &mut subject.next else {
                continue;
            };
            let namespaces = of_next.namespaces().of_stack(subject.stack);
            match subject.driver.backend(&namespaces) {
                Ok(backend) => next.backend = backend,
                Err(found) => problems.add(subject.stack, found),
            }
        }
        let problems = problems.into_vec();
        if problems.is_empty() {
            return Ok(());
        }
        self.report_shared(problems);
        Err(ExitStatus::Configuration.into())
    }
}

impl<'a> Planning<'a> {
    /// Reads the outputs of read-only stacks, and finds stacks that were applied with other outputs than the known ones.
    /// Returns the answers, and the outputs that stacks use; `None` if no recorded stack used any.
    pub(super) fn read_first(
        self,
        subjects: &mut StacksToPlan<'_>,
        entries: &Entries<'_>,
    ) -> Result<(AskedTools, Option<UsedOutputs<'a>>)> {
        let mut read = AskedTools::none(self.context);
        let is_normal = self.request.options.mode == PlanMode::Normal;
        let upstream_of = |entry: &Entry| entry.applied.as_ref()?.upstream.clone();
        let mut recorded = entries.values().map(|(_, entry)| upstream_of(entry));
        if !is_normal || self.recorded.is_none() || recorded.all(|it| it.is_none()) {
            return Ok((read, None));
        }
        let project = &self.context.project;
        let earlier = |stack| entries.get(&stack)?.1.outputs.as_ref();
        let mut used = UsedOutputs::new(project, &self.context.graph, earlier);
        let mut needs = self.needs(subjects);
        needs.retain(|it| project.stacks[it.subject.stack].mode == StackMode::Read);
        read = self.ask(&needs, read)?;
        drop(needs);
        self.note_outputs(subjects, entries, &mut used, &read)?;
        self.compare_outputs(subjects, entries, &mut used);
        Ok((read, Some(used)))
    }

    /// Notes the present outputs of stacks without work that differ from the recorded ones: somebody else has applied
    /// them. Returns whether there are new ones.
    pub(super) fn note_outputs(
        self,
        subjects: &mut StacksToPlan<'_>,
        entries: &Entries<'_>,
        used: &mut UsedOutputs<'_>,
        asked: &AskedTools,
    ) -> Result<bool> {
        let named = named_outputs(&self.context.references);
        let salted =
            |stack, outputs: &Outputs, earlier: Option<&BTreeMap<String, String>>| match named
                .get(&stack)
            {
                Some(compared) => outputs.salting(compared, earlier, false),
                None => Ok(outputs.clone()),
            };
        let mut found = Vec::new();
        for needed in self.needs(subjects) {
            let subject = needed.subject;
            let Some(Ok(answer)) = asked
                .answers
                .get(&self.context.project.stacks[subject.stack].path)
            else {
                continue;
            };
            let Some((key, entry)) = entries.get(&subject.stack) else {
                continue;
            };
            let is_unknown = entry.outputs.is_some() && entry.known_outputs().is_none();
            let (outputs, is_pending) = match needed.need {
                Decision::Ask(_, AskedAction::Read) => (&answer.outputs, false),
                Decision::Ask(_, AskedAction::Update) if !answer.changes_something() => {
                    let is_pending = self.status(subject.stack) != Some(&StackStatus::Applied);
                    (&answer.outputs, is_pending)
                }
                // What its work changes is compared after it.
                Decision::Ask(_, AskedAction::Update) if is_unknown => {
                    (&answer.outputs_before, false)
                }
                _ => continue,
            };
            if subjects.outputs.contains_key(&subject.stack) {
                continue;
            }
            let earlier = entry.outputs.as_ref();
            let noted = self
                .document()
                .filter(|_| entry.known_outputs().is_none() && named.contains_key(&subject.stack))
                .map(|document| noted_outputs(document, key));
            let compared = noted.as_ref().or(earlier);
            let now = match outputs {
                Some(outputs) => PresentOutputs {
                    likely: Some(
                        salted(subject.stack, outputs, compared)
                            .map_err(Error::external)?
                            .recorded(&asked.id, earlier, false),
                    ),
                    // A sensitive output may have changed.
                    certain: Some(outputs.recorded(&asked.id, earlier, is_pending)),
                },
                None if is_pending => PresentOutputs {
                    likely: None,
                    certain: Some(unknown_outputs(&asked.id)),
                },
                None => continue,
            };
            if earlier != now.certain.as_ref() {
                found.push((subject.stack, now));
            }
        }
        for (stack, now) in &found {
            used.set(*stack, now.certain.as_ref());
            subjects.outputs.insert(*stack, now.likely.clone());
        }
        Ok(!found.is_empty())
    }

    fn status(self, stack: StackIndex) -> Option<&'a StackStatus> {
        self.recorded?.statuses.stacks.get(&stack)
    }

    /// Finds applied stacks that use other outputs than they were applied with.
    pub(super) fn compare_outputs(
        self,
        subjects: &mut StacksToPlan<'_>,
        entries: &Entries<'_>,
        used: &mut UsedOutputs<'_>,
    ) {
        let changed = &subjects.outputs;
        for subject in &mut subjects.all {
            let stack = subject.stack;
            let Some((_, entry)) = entries.get(&stack) else {
                continue;
            };
            let Some(applied) = &entry.applied else {
                continue;
            };
            let Some(before) = UsedDigests::of(applied) else {
                continue;
            };
            if self.status(stack) != Some(&StackStatus::Applied) {
                continue;
            }
            let differences = used.differences(stack, &before);
            let ignored = differences.ignored.iter();
            subject.ignored_inputs = ignored.map(|name| format!("{INPUT}.{name}")).collect();
            if differences.is_none() {
                // They were unknown until the tool answered.
                subject.outputs_differ = None;
                continue;
            }
            let newer = used.newer_sources(stack, entries, |source| changed.contains_key(&source));
            subject.outputs_differ = Some(used.described(&differences, &newer));
        }
    }
}

/// The digests of the present outputs of a stack.
struct PresentOutputs {
    /// A sensitive output counts as unchanged; `None` if they are unknown.
    likely: Option<BTreeMap<String, String>>,
    /// A sensitive output that may have changed counts as changed.
    certain: Option<BTreeMap<String, String>>,
}

/// Returns the recorded backends of the stacks.
pub(super) fn recorded_places(entries: &Entries<'_>) -> BTreeMap<StackIndex, StackBackend> {
    let mut places: BTreeMap<StackIndex, StackBackend> = BTreeMap::new();
    for (&stack, (key, entry)) in entries {
        if let Some(backend) = &entry.backend {
            places.entry(stack).or_default().recorded = Some(((*key).to_owned(), backend.clone()));
        }
    }
    places
}

impl Context {
    /// Returns the backends of the stacks, as far as known.
    pub(super) fn places(
        &self,
        subjects: &StacksToPlan<'_>,
        entries: &Entries<'_>,
        asked: &AskedTools,
    ) -> BTreeMap<StackIndex, StackBackend> {
        let mut places = recorded_places(entries);
        for subject in &subjects.all {
            let path = &self.project.stacks[subject.stack].path;
            let answer = asked.answers.get(path);
            let answer = answer.and_then(|answer| answer.as_ref().ok());
            let of_tool = || answer.and_then(|answer| answer.backend.as_deref());
            let made = subject.made();
            let written = made.map_or(&subject.backend, |next| &next.backend);
            let place = places.entry(subject.stack).or_default();
            place.now = written.as_deref().or_else(of_tool).map(str::to_owned);
            place.is_new_generation = made.is_some();
        }
        places
    }

    /// Returns which of some stacks have moved, as far as that is known before tools are asked.
    pub(super) fn configured_moves(
        &self,
        stacks: &BTreeSet<StackIndex>,
        recorded: &RecordedState,
    ) -> BTreeMap<StackIndex, String> {
        let entries = self.entries_of(&recorded.document);
        self.moves_of(stacks, &recorded_places(&entries), &entries, recorded)
    }

    /// Returns which of some stacks have moved, each with its key in the state, given the backends that
    /// are known. Those in the blocks of drivers count too: another stack may have the same backend.
    pub(super) fn moves_of(
        &self,
        stacks: &BTreeSet<StackIndex>,
        places: &BTreeMap<StackIndex, StackBackend>,
        entries: &Entries<'_>,
        recorded: &RecordedState,
    ) -> BTreeMap<StackIndex, String> {
        let RecordedState { document, statuses } = recorded;
        let backend = |key: &String| document.stacks.get(key)?.backend.as_ref();
        if !statuses.missing.keys().any(|key| backend(key).is_some()) {
            return BTreeMap::new();
        }
        let places = self.with_configured(places, document);
        let mut moves = self.moved_by_backend(&places, entries, recorded);
        moves.retain(|stack, _| stacks.contains(stack));
        moves
    }

    /// Returns moved stacks, each with its key in the state. Such a stack is unrecorded and has the
    /// backend of a recorded stack that this commit lacks.
    pub(super) fn moved_by_backend(
        &self,
        places: &BTreeMap<StackIndex, StackBackend>,
        entries: &Entries<'_>,
        recorded: &RecordedState,
    ) -> BTreeMap<StackIndex, String> {
        let mut by_place: BTreeMap<&str, (Vec<&str>, Vec<StackIndex>)> = BTreeMap::new();
        for key in recorded.statuses.missing.keys() {
            let entry = recorded.document.stacks.get(key);
            if let Some(backend) = entry.and_then(|entry| entry.backend.as_deref()) {
                by_place.entry(backend).or_default().0.push(key);
            }
        }
        let is_managed = |stack| self.project.stacks[stack].mode == StackMode::Manage;
        for (&stack, place) in places.iter().filter(|(stack, _)| is_managed(**stack)) {
            let here = place.backend().and_then(|it| by_place.get_mut(it));
            if let Some((_, stacks)) = here {
                stacks.push(stack);
            }
        }
        let pairs = by_place.into_values();
        let moved = pairs.filter_map(|(keys, stacks)| match (&keys[..], &stacks[..]) {
            ([key], [stack]) if !entries.contains_key(stack) => Some((*stack, (*key).to_owned())),
            _ => None,
        });
        moved.collect()
    }

    /// Returns the stacks that must not be touched because of their backends, and prints warnings.
    pub(super) fn blocked_by_backends(
        &self,
        subjects: &StacksToPlan<'_>,
        document: Option<&Document>,
        places: &BTreeMap<StackIndex, StackBackend>,
    ) -> BTreeMap<StackIndex, String> {
        let BlockedStacks { stacks, warnings } = self.find_blocked(subjects, document, places);
        for warning in warnings.iter().take(MAX_WARNINGS) {
            self.notices.warning(&printable(warning));
        }
        let more = warnings.len().saturating_sub(MAX_WARNINGS);
        if more > 0 {
            self.notices
                .warning(&format!("{more} more are blocked for such reasons"));
        }
        stacks
    }

    /// Like [`Self::blocked_by_backends`], without warnings.
    pub(super) fn find_blocked(
        &self,
        subjects: &StacksToPlan<'_>,
        document: Option<&Document>,
        places: &BTreeMap<StackIndex, StackBackend>,
    ) -> BlockedStacks {
        let planned = subjects.all.iter().map(|subject| subject.stack).collect();
        let mut places = places.clone();
        let renamed = document.into_iter().flat_map(Document::renamed);
        let renamed: HashMap<&str, &str> = renamed.collect();
        for subject in &subjects.all {
            let path = self.project.stacks[subject.stack].path.as_str();
            let before = renamed.get(path);
            if let (Some(&before), Some(place)) = (before, places.get_mut(&subject.stack)) {
                let program = match subject.driver.tool {
                    Some(Tool::Terraform) => Some("terraform"),
                    Some(Tool::OpenTofu) => Some("tofu"),
                    Some(Tool::Terragrunt) => Some("terragrunt"),
                    None => None,
                };
                place.moved = Some((before.to_owned(), program));
            }
        }
        blocked(&self.project, &places, &planned)
    }
}
