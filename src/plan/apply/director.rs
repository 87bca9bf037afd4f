//! Decides what each turn does while a plan is applied.

mod added;
mod checked;
mod generations;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

pub use self::generations::KeptGeneration;
use super::followups::ApplyFollowUps;
use super::turn::{ApplyAttempt, ApplyMode, ApplyStepRole, ApplyTurn};
use super::updated::UpdatedStacks;
use super::{ApplyStack, ChangedOutputs, UnshownChanges};
use crate::context::used_outputs::UsedOutputs;
use crate::driver::{BadOutputs, DriverAction, DriverAnswer, Outputs, PlanKind, StepRole};
use crate::path::StackPath;
use crate::plan::checks::{Checker, FailedCheck};
use crate::plan::commands::{ACTION, SHOWN_FILE};
use crate::plan::entry::{AskedAction, PlannedAction};
use crate::plan::inputs::StackInputs;
use crate::plan::protection::{DestroyedPart, Guard};
use crate::plan::triggers::FiredTrigger;
use crate::project::stack::StackIndex;
use crate::run::directed::Director;
use crate::run::event::{Ending, Failure, Outcome};
use crate::run::execute::{Task, UpcomingStep};
use crate::run::output_reads::OutputReads;
use crate::run::state::{Effect, Findings};
use crate::run::turn::{Operation, Turn, TurnIndex};
use crate::run::workflow::TurnFacts;
use crate::state::document::are_known;

pub struct ApplyDirector<'a, 'p> {
    pub(super) turns: Vec<ApplyTurn<'p>>,
    pub(super) run: String,
    pub(super) changed: ChangedOutputs,
    pub(super) used_outputs: UsedOutputs<'p>,
    pub(super) updated: UpdatedStacks<'a, 'p>,
    pub(super) inputs: ReadInputs<'a, 'p>,
    /// The stacks applied so far, and whether that changed anything.
    pub(super) applied: BTreeMap<StackIndex, bool>,
    pub(super) destroyed: BTreeSet<StackIndex>,
    pub(super) kept: Vec<KeptGeneration>,
    pub(super) init: bool,
    pub(super) allows_new_changes: bool,
    pub(super) is_partly_applied: bool,
    pub(super) unread: Vec<(StackPath, String)>,
    /// The stacks that were applied or destroyed only in part.
    pub(super) partial: Vec<StackPath>,
    pub(super) checker: Option<Checker<'p>>,
    pub(super) failed_checks: Vec<FailedCheck>,
    /// Needed to add turns; `None` if none may be added.
    pub(super) followups: Option<ApplyFollowUps<'a, 'p>>,
    pub(super) guard: Option<Guard<'a>>,
}

pub(super) struct ReadInputs<'a, 'p> {
    /// `None` if no stack has some.
    of_stacks: Option<&'a StackInputs<'p>>,
    reads: OutputReads,
}

impl<'a, 'p> ReadInputs<'a, 'p> {
    pub(super) fn new(of_stacks: Option<&'a StackInputs<'p>>) -> Self {
        let reads = OutputReads::default();
        ReadInputs { of_stacks, reads }
    }
}

impl<'a, 'p> ApplyDirector<'a, 'p> {
    /// Refuses to destroy protected resources, even those that the plan did not show.
    pub fn guard_with(&mut self, guard: Guard<'a>) {
        self.guard = Some(guard);
    }

    fn check_protected(&self, number: usize, answer: Option<&DriverAnswer>) -> Result<(), Failure> {
        let turn = &self.turns[number];
        let action = match (turn.operation, turn.kind) {
            // Drifted resources no longer exist.
            (_, PlanKind::RefreshOnly) => return Ok(()),
            (Operation::Destroy, _) => PlannedAction::Delete,
            _ => PlannedAction::Update,
        };
        let destroyed = match answer {
            Some(answer) => DestroyedPart::of_answer(action, answer, false),
            None => Some(DestroyedPart::unknown()),
        };
        let refusal = destroyed.and_then(|destroyed| {
            let Guard(refuse) = self.guard.as_ref()?;
            refuse(&turn.path, &destroyed)
        });
        refusal.map_or(Ok(()), |refusal| Err(Failure::Refused(refusal.to_string())))
    }

    pub fn drivers(&self) -> Vec<&'p str> {
        let turns = self.turns.iter();
        turns.map(|turn| turn.stack.driver.name).collect()
    }

    /// Sets the outputs of stacks without a turn, which differ from those of the state.
    pub fn set_outputs(&mut self, outputs: BTreeMap<StackIndex, Option<BTreeMap<String, String>>>) {
        for (stack, outputs) in outputs {
            self.updated.set_outputs(stack, outputs);
        }
    }

    pub fn used_outputs(&mut self) -> &mut UsedOutputs<'p> {
        &mut self.used_outputs
    }

    /// Returns the stacks that were applied or destroyed only in part.
    pub fn partial(&self) -> &[StackPath] {
        &self.partial
    }

    /// Returns the stacks whose outputs could not be read, each with the reason.
    pub fn unread(&self) -> &[(StackPath, String)] {
        &self.unread
    }

    /// Checks that the preconditions hold and that no update in this run triggers a replacement:
    /// only a plan may decide to destroy.
    fn check_rules(&mut self, number: usize) -> Result<(), Failure> {
        let turn = &self.turns[number];
        // Checked before the destroy as well: a stack that cannot be recreated is kept.
        if let Some(failed) = &turn.stack.checks.failed {
            return Err(Failure::Condition(failed.clone()));
        }
        self.check_generations(number)?;
        self.check_before(number)?;
        let turn = &self.turns[number];
        let is_replaced = turn.stack.shown.action == Some(PlannedAction::Replace);
        let Some(here) = turn.stack.stack.here().filter(|_| !is_replaced) else {
            return Ok(());
        };
        if turn.operation != Operation::Apply || turn.asked == AskedAction::Create {
            return Ok(());
        }
        let Some(trigger) = self.updated.trigger_of(here, Some(&turn.stack)) else {
            return Ok(());
        };
        if turn.is_recreated {
            return Ok(());
        }
        let FiredTrigger { name, is_unknown } = trigger;
        Err(Failure::Refused(if is_unknown {
            format!("{name} may have changed, and a change replaces this stack: make a new plan")
        } else {
            format!(
                "it must be replaced, since {name} has changed: make a new plan, or allow it beforehand with `--allow-destroy`"
            )
        }))
    }

    /// Returns whether the stack is destroyed only if its triggers change, and none has.
    fn is_not_replaced(&self, number: usize) -> bool {
        let turn = &self.turns[number];
        let is_late = turn.stack.is_late && turn.operation == Operation::Destroy;
        let here = turn.stack.stack.here().filter(|_| is_late);
        here.is_some_and(|here| {
            let trigger = self.updated.trigger_of(here, Some(&turn.stack));
            trigger.is_none_or(|trigger| trigger.is_unknown)
        })
    }

    fn note_recreated(&mut self, number: usize) {
        let turn = &mut self.turns[number];
        let here = turn.stack.stack.here();
        let is_destroyed = here.is_some_and(|here| self.destroyed.contains(&here));
        if turn.stack.is_late && turn.operation == Operation::Apply && is_destroyed {
            turn.is_recreated = true;
            turn.asked = AskedAction::Create;
            turn.stack.recorded = None;
        }
    }

    /// Returns the stacks that should have been replaced but were not, each with its trigger.
    pub fn open_triggers(&self) -> Vec<(StackPath, String)> {
        let of_turn = |stack: StackIndex| {
            let mut turns = self.turns.iter();
            turns.find(|turn| turn.stack.stack.here() == Some(stack))
        };
        let open = self.updated.triggered().filter_map(|stack| {
            let of_turn = of_turn(stack).map(|turn| &turn.stack);
            let trigger = self.updated.trigger_of(stack, of_turn)?;
            let path = self.updated.project().stacks[stack].path.clone();
            (!self.destroyed.contains(&stack)).then_some((path, trigger.name))
        });
        open.collect()
    }

    /// Decides how the attempt that is about to begin proceeds.
    fn mode_of_attempt(&mut self, number: usize, attempt: u32) -> ApplyMode {
        let turn = &self.turns[number];
        let stack = &turn.stack;
        let is_first = attempt == 1 && !self.is_partly_applied;
        let can_plan = turn.roles.contains(&ApplyStepRole::Driver(StepRole::Plan));
        if turn.operation == Operation::Apply && stack.is_conditional {
            let has_work = stack.work.apply && stack.shown.action.is_some();
            let is_unchanged = |here| {
                !self.changed.before(here)
                    || stack.used.as_ref().is_some_and(|before| {
                        let differences = self.used_outputs.differences(here, before);
                        differences.is_none() && !differences.ignored.is_empty()
                    })
            };
            if !has_work
                && stack.generations.is_empty()
                && !turn.is_recreated
                && stack.is_planned
                && stack.stack.here().is_some_and(is_unchanged)
                && is_first
            {
                return ApplyMode::Nothing;
            }
        } else if turn.is_as_shown && is_first {
            return ApplyMode::ShownPlan;
        }
        if can_plan {
            ApplyMode::Replanned
        } else {
            ApplyMode::Unplanned
        }
    }

    /// Returns whether there is anything to change, using the tool's answer if it was asked.
    fn is_work(&mut self, number: usize, step: &UpcomingStep<'_>) -> Result<bool, Failure> {
        let turn = &mut self.turns[number];
        if let Some(known) = turn.attempt.is_work {
            return Ok(known);
        }
        let is_work = match turn.attempt.course {
            ApplyMode::Nothing => false,
            ApplyMode::ShownPlan => {
                turn.check_shown_plan().map_err(Failure::Refused)?;
                true
            }
            // Its changes are still unknown.
            ApplyMode::Unplanned => {
                let is_approved = turn.is_approved();
                // No plan has shown that it may be destroyed.
                if turn.stack.is_late && turn.operation == Operation::Destroy {
                    self.check_protected(number, None)?;
                }
                is_approved
            }
            ApplyMode::Replanned => {
                let has_changes = step.changes.is_some_and(|changes| changes.has_changes);
                let answer = turn.answer(has_changes).map_err(Failure::Refused)?;
                let is_work = match turn.operation {
                    Operation::Destroy => answer.is_there(true),
                    _ => answer.changes_something(),
                };
                let may_destroy = turn.stack.may_destroy_resources;
                let destroys_unapproved =
                    turn.followup.is_some() && !may_destroy && answer.destroys_resources();
                if is_work && (!turn.is_approved() || destroys_unapproved) {
                    turn.attempt.refuses_destroy = turn.is_approved();
                    turn.attempt.answer = Some(answer);
                    return Ok(turn.leave_unconfirmed());
                }
                if is_work {
                    self.check_protected(number, Some(&answer))?;
                }
                let turn = &mut self.turns[number];
                let is_partly_applied = self.is_partly_applied || turn.attempt.number > 1;
                let may_differ = self.allows_new_changes || turn.followup.is_some();
                if is_work && turn.operation == Operation::Apply {
                    let shown = &turn.stack.shown;
                    let within = match (may_differ, may_destroy) {
                        (true, true) => Ok(()),
                        (true, false) => shown.check_destroys(&answer, is_partly_applied),
                        (false, _) => shown.check(&answer, is_partly_applied),
                    };
                    within.map_err(|not_shown: UnshownChanges| {
                        let fix = if may_differ {
                            "; to allow that, add `--allow-resource-destroy`"
                        } else {
                            ""
                        };
                        Failure::Refused(format!("{not_shown}{fix}"))
                    })?;
                }
                let is_apply = turn.operation == Operation::Apply;
                if is_apply && answer.action == Some(DriverAction::Replace) {
                    let why = "its driver asks to replace it: make a new plan";
                    return Err(Failure::Refused(why.to_owned()));
                }
                turn.attempt.answer = Some(answer);
                is_work
            }
        };
        let turn = &mut self.turns[number];
        if !is_work && turn.attempt.course == ApplyMode::Unplanned {
            return Ok(turn.leave_unconfirmed());
        }
        turn.attempt.is_work = Some(is_work);
        Ok(is_work)
    }

    /// Evaluates the inputs of a stack, once its turn has read all outputs for them.
    fn set_variables(&mut self, step: &UpcomingStep<'_>) -> Result<(), Failure> {
        let turn = &mut self.turns[step.index.get()];
        let ReadInputs { of_stacks, reads } = &self.inputs;
        let Some(inputs) = *of_stacks else {
            return Ok(());
        };
        let stack = turn.stack.stack;
        if turn.attempt.variables.is_some() {
            return Ok(());
        }
        let outputs = |position| reads.get(step.index, position);
        if let Some(found) = inputs.variables(stack, outputs, |_| false) {
            turn.attempt.variables = Some(found.map_err(Failure::NotStarted)?.variables);
        }
        Ok(())
    }
}

type RecordedOutputs = BTreeMap<String, String>;

impl ApplyDirector<'_, '_> {
    /// Takes the answer about a stack that is only read; returns whether there is one. If not, its
    /// entry is kept, and its dependents do not count as up to date.
    fn read_answer(&mut self, number: usize) -> bool {
        let turn = &mut self.turns[number];
        if turn.attempt.answer.is_some() {
            return true;
        }
        match turn.answer(false) {
            Ok(answer) => {
                turn.attempt.answer = Some(answer);
                true
            }
            Err(problem) => {
                self.unread.push((turn.path.clone(), problem));
                if let Some(here) = turn.stack.stack.here() {
                    self.lose_outputs(here);
                }
                false
            }
        }
    }

    /// Notes that the outputs of a stack are unknown.
    fn lose_outputs(&mut self, stack: StackIndex) {
        self.changed.set(stack, true);
        self.used_outputs.set(stack, None);
        self.updated.lose(stack);
    }

    /// Returns the outputs after a turn, and the digests to record.
    fn outputs(
        &self,
        number: usize,
        here: StackIndex,
    ) -> Result<Option<(Outputs, RecordedOutputs)>, BadOutputs> {
        let turn = &self.turns[number];
        let (stack, has_acted) = (&turn.stack, turn.has_acted);
        let ApplyAttempt { course, answer, .. } = &turn.attempt;
        let prints = (turn.operation == Operation::Plan || turn.lacks_outputs())
            && turn
                .roles
                .contains(&ApplyStepRole::Driver(StepRole::Outputs));
        let outputs = match (has_acted || prints, course) {
            (true, _) => turn.outputs()?,
            (false, ApplyMode::Nothing) => stack.outputs.clone(),
            (false, _) => answer.as_ref().and_then(|answer| answer.outputs.clone()),
        };
        let Some(outputs) = outputs else {
            return Ok(None);
        };
        // Without a state, only the outputs before the apply can be compared.
        let before = stack.outputs_before.as_ref().map(Outputs::digests);
        let earlier = stack.recorded.as_ref().or(before.as_ref());
        let is_unknown = stack.recorded.as_ref().is_some_and(|it| !are_known(it));
        let noted = is_unknown.then(|| self.updated.noted(here));
        let compared = noted.as_ref().or(earlier);
        let salted = outputs.salting(self.updated.named(here), compared, has_acted)?;
        let of_record = salted.recorded(&self.run, earlier, has_acted);
        Ok(Some((outputs, of_record)))
    }
}

impl ApplyStack<'_> {
    /// Returns whether its outputs differ from those before the apply, given the present ones and their digests.
    fn outputs_differ(&self, now: Option<&(Outputs, RecordedOutputs)>) -> bool {
        match (now, &self.outputs_before, &self.recorded) {
            (Some((now, _)), Some(before), _) => now.differ(before),
            // Other stacks were applied with the recorded outputs.
            (Some((_, now)), None, Some(before)) => now != before,
            _ => true,
        }
    }
}

impl Director for ApplyDirector<'_, '_> {
    fn is_held(&mut self, step: &UpcomingStep<'_>) -> bool {
        let number = step.index.get();
        if self.inputs.of_stacks.is_none() || self.prepare_followup(number).is_err() {
            return false;
        }
        let (turn, reads) = (&self.turns[number], &mut self.inputs.reads);
        reads.take(step, |source| turn.input_file(source));
        match turn.roles[step.step] {
            ApplyStepRole::Input(source) => reads.is_held(step, source),
            _ => false,
        }
    }

    fn is_needed(&mut self, step: &UpcomingStep<'_>) -> Result<bool, Failure> {
        let number = step.index.get();
        if self.turns[number].attempt.number != step.attempt {
            self.prepare_followup(number)?;
            self.note_recreated(number);
            self.check_rules(number)?;
            let is_kept = self.keeps(number) || self.is_not_replaced(number);
            let course = if is_kept {
                ApplyMode::Nothing
            } else {
                self.mode_of_attempt(number, step.attempt)
            };
            if step.attempt > 1 {
                // The changes that the last attempt planned do not apply to this one.
                _ = fs::remove_file(self.turns[number].folder.join(SHOWN_FILE));
            }
            self.turns[number].attempt = ApplyAttempt {
                number: step.attempt,
                course,
                is_kept,
                ..ApplyAttempt::default()
            };
        }
        if self.turns[number].attempt.course != ApplyMode::Nothing
            && !self.turns[number].attempt.is_unconfirmed
        {
            if let ApplyStepRole::Input(source) = self.turns[number].roles[step.step] {
                return Ok(self.inputs.reads.is_needed(step, source));
            }
            self.set_variables(step)?;
        }
        let turn = &self.turns[number];
        let course = turn.attempt.course;
        // Even if nothing is done, conditions may need its outputs.
        let reads_outputs = course == ApplyMode::Nothing && turn.stack.checks.needs_outputs;
        match turn.roles[step.step] {
            _ if turn.attempt.is_unconfirmed => Ok(false),
            ApplyStepRole::Check => self.check_after(number).map(|()| false),
            ApplyStepRole::Input(_) | ApplyStepRole::Driver(StepRole::Validate) => Ok(false),
            ApplyStepRole::Driver(StepRole::Init) if reads_outputs => Ok(turn.needs_init()),
            ApplyStepRole::Driver(StepRole::Outputs) if reads_outputs => Ok(true),
            _ if course == ApplyMode::Nothing => Ok(false),
            ApplyStepRole::Driver(StepRole::Init) => {
                Ok(self.init && step.attempt == 1 || turn.needs_init())
            }
            ApplyStepRole::Driver(StepRole::Plan) => Ok(course == ApplyMode::Replanned),
            ApplyStepRole::Driver(StepRole::Show) => Ok(matches!(
                course,
                ApplyMode::Replanned | ApplyMode::ShownPlan
            )),
            ApplyStepRole::Confirm => self.is_work(number, step),
            ApplyStepRole::Driver(StepRole::Act) => {
                let is_work = self.is_work(number, step)?;
                self.turns[number].has_acted |= is_work;
                Ok(is_work)
            }
            ApplyStepRole::Driver(StepRole::Outputs) => Ok(turn.has_acted
                || turn.operation == Operation::Plan
                || turn.stack.checks.needs_outputs
                || turn.lacks_outputs()),
            ApplyStepRole::Driver(StepRole::State) => Ok(turn.has_acted),
        }
    }

    fn added(&mut self, turn: &Turn) {
        self.add_followup(turn);
    }

    fn task(&mut self, turn: TurnIndex, step: usize) -> Result<Task, Failure> {
        self.turns[turn.get()].task(step)
    }

    fn amend(&self, turn: TurnIndex, task: &mut Task) {
        let turn = &self.turns[turn.get()];
        // Commands that only print need no values.
        if task.answer.is_none()
            && let Some(variables) = &turn.attempt.variables
        {
            task.environment.extend(variables.clone());
        }
        if turn.is_recreated {
            let action = turn.asked.word().to_owned();
            task.environment.insert(ACTION.to_owned(), Some(action));
        }
    }

    fn is_unconfirmed(&self, turn: TurnIndex) -> bool {
        self.turns[turn.get()].attempt.is_unconfirmed
    }

    fn applies_changes(&self, turn: TurnIndex) -> bool {
        let attempt = &self.turns[turn.get()].attempt;
        // Without a plan, only the output shows whether there were any.
        attempt.is_work == Some(true) && attempt.course != ApplyMode::Unplanned
    }

    fn has_refused(&self) -> bool {
        !self.kept.is_empty()
    }

    fn facts(&self, ending: &Ending) -> TurnFacts {
        self.turns[ending.turn.get()].facts(ending)
    }

    fn retries(&mut self, turn: TurnIndex) {
        self.inputs.reads.end(turn);
    }

    fn ended(&mut self, ending: &Ending) -> Option<Findings> {
        let number = ending.turn.get();
        self.inputs.reads.end(ending.turn);
        if let (true, Some(inputs)) = (self.turns[number].has_acted, self.inputs.of_stacks) {
            let stack = self.turns[number].stack.stack;
            self.inputs
                .reads
                .forget(|source| inputs.source(source).stack == stack);
        }
        let has_failed_checks = self.turns[number].attempt.has_failed_checks;
        let has_succeeded = match ending.outcome {
            Outcome::Succeeded => true,
            // Only the postconditions failed: the changes were applied.
            Outcome::Failed(_) => has_failed_checks,
            Outcome::Unconfirmed | Outcome::Skipped { .. } | Outcome::Cancelled(_) => return None,
        };
        // A kept old generation is unchanged.
        if self.turns[number].attempt.is_kept {
            return None;
        }
        // Checking postconditions has already taken the outputs.
        if ending.outcome == Outcome::Succeeded
            && !self.turns[number].stack.checks.has_postconditions
        {
            self.learn(number);
        }
        let is_read = self.turns[number].operation == Operation::Plan;
        if has_succeeded && is_read && !self.read_answer(number) {
            return None;
        }
        let turn = &self.turns[number];
        let stack = &turn.stack;
        let ApplyAttempt { course, answer, .. } = &turn.attempt;
        let has_acted = turn.has_acted;
        let is_complete = match (course, answer) {
            (ApplyMode::Replanned, Some(answer)) => answer.is_complete,
            _ => stack.is_complete,
        };
        if has_succeeded && has_acted && !is_complete && !self.partial.contains(&turn.path) {
            self.partial.push(turn.path.clone());
        }
        let mut findings = Findings {
            driver: Some(stack.driver.name.to_owned()),
            backend: answer
                .as_ref()
                .and_then(|answer| answer.backend.clone())
                .or_else(|| stack.backend.clone()),
            mode: is_read.then(|| "read".to_owned()),
            outputs: None,
            used: None,
            is_complete: has_succeeded && is_complete,
            effect: Effect::Nothing,
            has_failed_checks,
        };
        // Only a stack of this commit is applied.
        let Some(here) = stack.stack.here() else {
            return Some(findings);
        };
        if !has_succeeded {
            // Its outputs are unknown now, and stacks after it may still be applied.
            if has_acted || self.destroyed.contains(&here) {
                self.lose_outputs(here);
            }
            return Some(findings);
        }
        if turn.operation == Operation::Destroy {
            self.destroyed.insert(here);
            if let Some(followups) = &mut self.followups {
                followups.is_destroyed(here);
            }
            return Some(findings);
        }
        let (outputs, problem) = match self.outputs(number, here) {
            Ok(outputs) => (outputs, None),
            Err(problem) => (None, Some(problem.to_string())),
        };
        findings.outputs = match &outputs {
            Some((_, of_record)) => Some(of_record.clone()),
            None if has_acted => None,
            None => stack.recorded.clone(),
        };
        if has_acted || is_read {
            let has_changed = stack.outputs_differ(outputs.as_ref());
            self.changed.set(here, has_changed);
            self.used_outputs.set(here, findings.outputs.as_ref());
        }
        findings.effect = turn.effect();
        let has_succeeded = ending.outcome == Outcome::Succeeded && !is_read;
        let attempted = stack.attempted.filter(|_| has_succeeded);
        self.updated.follow(here, &findings, attempted);
        if turn.operation == Operation::Apply {
            self.updated.sees_all(here);
            if ending.outcome == Outcome::Succeeded {
                *self.applied.entry(here).or_default() |= has_acted;
            }
            if let Some(followups) = &mut self.followups {
                followups.is_applied(here, (&findings.outputs, &findings.backend));
            }
        }
        findings.used = Some(self.used_outputs.of(here));
        // If a plan of only a part shows no changes, nothing is known about the rest.
        let is_left = !(has_acted || is_complete || is_read || self.destroyed.contains(&here));
        let is_silent = *course == ApplyMode::Nothing && !stack.is_recorded || is_left;
        if let Some(problem) = problem {
            self.unread.push((turn.path.clone(), problem));
        }
        (!is_silent || has_failed_checks).then_some(findings)
    }
}
