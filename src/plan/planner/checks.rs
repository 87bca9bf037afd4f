//! Conditions of a plan's stacks: which hold, which fail, and which only the apply can decide.

use std::collections::{BTreeMap, BTreeSet};

use super::ask::AskedTools;
use super::entries::{Decisions, OpenQuestion};
use super::outputs::OutputReader;
use super::subjects::StacksToPlan;
use crate::context::{Context, state_config};
use crate::driver::ChangeCounts;
use crate::error::{ErrorContext as _, Result};
use crate::plan::checks::{
    Checked, Checker, FailedCheck, SelfValue, StackOutputs, misplaced, misplaced_generations,
};
use crate::plan::entry::{PlanMode, PlannedAction};
use crate::plan::{FailedAsk, WorkBefore};
use crate::project::environment::Environments;
use crate::project::lifecycle::ConditionKind;
use crate::project::stack::StackIndex;
use crate::selection::graph::Precedence;

type ByStack<'p> = BTreeMap<StackIndex, Checked<'p>>;

pub(super) struct Conditions<'l> {
    reader: OutputReader<'l, 'l>,
    checker: Checker<'l>,
    failed: BTreeMap<StackIndex, Vec<FailedCheck>>,
}

/// The facts that show in which stacks nothing changes.
#[derive(Clone, Copy)]
pub(super) struct Unchanged<'a, 's> {
    pub(super) subjects: &'a StacksToPlan<'s>,
    pub(super) settled: &'a Decisions,
    pub(super) asked: &'a AskedTools,
    pub(super) after: &'a BTreeMap<StackIndex, WorkBefore>,
    pub(super) blocked: &'a BTreeMap<StackIndex, String>,
}

impl Context {
    pub fn checker<'l>(&'l self, environments: &Environments<'l>) -> Result<Checker<'l>> {
        let has_state = self.project.settings.state.is_some();
        let namespace = has_state
            .then(|| state_config(&self.project, &self.notices))
            .transpose()?;
        Ok(Checker::new(
            environments.namespaces(),
            &self.graph,
            namespace.map(|config| config.namespace),
        ))
    }

    pub fn check_conditions(&mut self, stacks: impl Iterator<Item = StackIndex>) {
        let stacks: Vec<StackIndex> = stacks.collect();
        let mut found = misplaced(&self.project, &self.graph, stacks.iter().copied());
        let environments = self.evaluator();
        found.extend(misplaced_generations(&environments, &self.graph, &stacks));
        drop(environments);
        self.problems.diagnostics.extend(found);
    }

    pub fn show_failed<'f>(&self, failed: impl Iterator<Item = &'f FailedCheck>) {
        let diagnostics: Vec<_> = failed.map(|check| check.diagnostic.clone()).collect();
        self.notices.annotated(&diagnostics, &self.project.sources);
    }
}

fn all_preconditions<'p>(
    checker: &Checker<'p>,
    stacks: impl Iterator<Item = StackIndex>,
) -> Result<ByStack<'p>> {
    let stacks: Vec<_> = stacks.map(|stack| (stack, SelfValue::Nothing)).collect();
    let found = checker.check_all(ConditionKind::Precondition, &stacks);
    found.context("failed to check conditions")
}

impl<'l> Conditions<'l> {
    /// Checks the preconditions that need no outputs. Stacks that fail leave the plan; the tools of
    /// undecided ones wait.
    pub(super) fn new(
        reader: OutputReader<'l, 'l>,
        subjects: &mut StacksToPlan<'_>,
        mode: PlanMode,
    ) -> Result<Self> {
        let mut conditions = Conditions {
            checker: reader.context.checker(&reader.context.evaluator())?,
            reader,
            failed: BTreeMap::new(),
        };
        // Destroyed and refreshed stacks have no conditions to check.
        if mode == PlanMode::Normal {
            let stacks = subjects.all.iter().map(|it| it.stack);
            let checked = all_preconditions(&conditions.checker, stacks)?;
            for subject in &mut subjects.all {
                subject.is_waiting = checked.contains_key(&subject.stack);
            }
            conditions.leave_out(subjects, checked, |checked| checked.open.is_empty());
        }
        Ok(conditions)
    }

    fn leave_out(
        &mut self,
        subjects: &mut StacksToPlan<'_>,
        checked: ByStack<'_>,
        is_decided: impl Fn(&Checked<'_>) -> bool,
    ) {
        for (stack, checked) in checked {
            if is_decided(&checked) && !checked.failed.is_empty() {
                self.failed.insert(stack, checked.failed);
            }
        }
        let failed = &self.failed;
        subjects.all.retain(|it| !failed.contains_key(&it.stack));
    }

    /// Decides preconditions that need outputs, once the actions of their source stacks are known.
    /// `settled` has the actions of stacks whose tools do not wait. Reads the outputs that it
    /// needs, and leaves the rest to the apply. Each call decides at least one stack.
    pub(super) fn decide_waiting(
        &mut self,
        subjects: &mut StacksToPlan<'_>,
        settled: &Decisions,
    ) -> Result<()> {
        let is_waiting = subjects.all.iter().filter(|it| it.is_waiting);
        let waiting: BTreeSet<StackIndex> = is_waiting.map(|it| it.stack).collect();
        let precedence = Precedence::new(&self.reader.context.graph);
        let is_unsettled = precedence.reached(waiting.iter().map(|it| it.get()));
        let later = self.may_work(&precedence, subjects, settled);
        let is_settled = |stack: &StackIndex| !is_unsettled[stack.get()];
        let checked = loop {
            let checked = all_preconditions(&self.checker, waiting.iter().copied())?;
            self.learn(&checked, is_settled, &later)?;
            let needed = checked.values().flat_map(|checked| &checked.needed);
            if !needed.clone().any(is_settled) {
                break checked;
            }
        };
        let waits = |checked: &Checked<'_>| !checked.needed.is_empty();
        let still: BTreeSet<StackIndex> = checked
            .iter()
            .filter(|(_, checked)| waits(checked))
            .map(|(stack, _)| *stack)
            .collect();
        let is_stuck = still.len() == waiting.len();
        for subject in &mut subjects.all {
            subject.is_waiting = still.contains(&subject.stack) && !is_stuck;
        }
        self.leave_out(subjects, checked, |checked| is_stuck || !waits(checked));
        Ok(())
    }

    /// Returns the planned stacks that may have work: their outputs are known only later.
    fn may_work(
        &self,
        precedence: &Precedence,
        subjects: &StacksToPlan<'_>,
        settled: &Decisions,
    ) -> BTreeSet<StackIndex> {
        let working = settled
            .working()
            .into_iter()
            .chain(settled.unknown())
            .chain(self.failed.keys().copied());
        let may_work = precedence.reached(working.map(StackIndex::get));
        let planned = subjects
            .all
            .iter()
            .map(|it| it.stack)
            .chain(self.failed.keys().copied());
        planned.filter(|it| may_work[it.get()]).collect()
    }

    /// Reads the outputs that conditions need from stacks with known actions.
    fn learn(
        &mut self,
        checked: &ByStack<'_>,
        is_settled: impl Fn(&StackIndex) -> bool,
        later: &BTreeSet<StackIndex>,
    ) -> Result<()> {
        let needed = checked
            .values()
            .flat_map(|checked| &checked.needed)
            .copied()
            .filter(is_settled);
        let (later, now): (BTreeSet<_>, BTreeSet<_>) = needed.partition(|it| later.contains(it));
        for stack in later {
            self.checker.set(stack, StackOutputs::Later);
        }
        self.reader.read(&now, &mut self.checker)
    }

    /// Checks the postconditions of unchanged stacks that run after no stack with work.
    pub(super) fn check_unchanged(
        &mut self,
        known: &Unchanged<'_, '_>,
        needs: &[OpenQuestion<'_, '_>],
    ) -> Result<()> {
        let Unchanged {
            subjects,
            settled,
            asked,
            after,
            blocked,
        } = *known;
        let stacks = &self.reader.context.project.stacks;
        let actions: BTreeMap<StackIndex, PlannedAction> = settled.actions().collect();
        let unchanged = needs.iter().filter_map(|needed| {
            let stack = needed.subject.stack;
            let action = *actions.get(&stack)?;
            let answer = asked.answers.get(&stacks[stack].path);
            let was_asked = needed.question().is_some() && answer.is_some_and(Result::is_ok);
            // A stack without a tool is recorded without being asked.
            let is_recorded = needed.subject.driver.is_none()
                && (action == PlannedAction::Adopt || settled.differs(stack));
            let is_blocked = blocked.contains_key(&stack) || needed.subject.blocked.is_some();
            let is_unchanged = (was_asked || is_recorded) && !action.is_work();
            let itself = SelfValue::Done {
                action: action.word(),
                changes: Some(ChangeCounts::default()),
            };
            (is_unchanged && !is_blocked && !after.contains_key(&stack)).then_some((stack, itself))
        });
        let unchanged: Vec<(StackIndex, SelfValue)> = unchanged.collect();
        let kind = ConditionKind::Postcondition;
        if !unchanged
            .iter()
            .any(|(stack, _)| self.checker.has_any(*stack, kind))
        {
            return Ok(());
        }
        let precedence = Precedence::new(&self.reader.context.graph);
        let later = self.may_work(&precedence, subjects, settled);
        loop {
            let checked = self
                .checker
                .check_all(kind, &unchanged)
                .context("failed to check conditions")?;
            if checked.values().all(|checked| checked.needed.is_empty()) {
                let failed = checked.into_iter().filter(|(_, it)| !it.failed.is_empty());
                self.failed
                    .extend(failed.map(|(stack, checked)| (stack, checked.failed)));
                return Ok(());
            }
            self.learn(&checked, |_| true, &later)?;
        }
    }

    pub(super) fn failed_stacks(&self) -> impl Iterator<Item = StackIndex> {
        self.failed.keys().copied()
    }

    pub(super) fn has_failed(&self, stack: StackIndex) -> bool {
        self.failed.contains_key(&stack)
    }

    /// Reports the conditions that do not hold and returns their stacks.
    pub(super) fn into_failed(self) -> Vec<FailedAsk> {
        let context = self.reader.context;
        context.show_failed(self.failed.values().flatten());
        let failed = self.failed.iter().filter_map(|(&stack, checks)| {
            let conditions = checks.iter().map(|it| it.data(&context.project.sources));
            Some(FailedAsk {
                stack: context.project.stacks[stack].path.clone(),
                why: checks.first()?.text.clone(),
                conditions: conditions.collect(),
            })
        });
        failed.collect()
    }
}
