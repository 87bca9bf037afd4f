//! What is decided while a plan is carried out.

mod checked;

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use super::updated::Updated;
use super::{ApplyStack, ChangedOutputs, NotShown, Role};
use crate::driver::{Answer, AnswerAction, BadOutputs, Outputs, PlanKind, StepRole};
use crate::path::StackPath;
use crate::plan::ask::{answer, of_command};
use crate::plan::checks::{Checker, FailedCheck};
use crate::plan::commands::OUTPUTS_FILE;
use crate::plan::entry::{Action, Asked, allowed};
use crate::plan::upstream::{Upstream, outputs_digest};
use crate::project::driver::DriverStep;
use crate::run::directed::Director;
use crate::run::event::{Ending, Failure, Outcome};
use crate::run::execute::{StepAhead, Task};
use crate::run::state::Findings;
use crate::run::turn::Operation;

/// Decides which steps of the turns of an apply are needed.
#[derive(Debug)]
pub struct ApplyDirector<'p> {
    pub(super) turns: Vec<TurnState<'p>>,
    pub(super) run: String,
    pub(super) changed: ChangedOutputs,
    pub(super) upstream: Upstream,
    pub(super) updated: Updated<'p>,
    pub(super) init: bool,
    pub(super) allows_new_changes: bool,
    pub(super) is_again: bool,
    pub(super) unread: Vec<(StackPath, String)>,
    /// What checks conditions, if there are any.
    pub(super) checker: Option<Checker<'p>>,
    /// The conditions that turned out not to hold.
    pub(super) failed_checks: Vec<FailedCheck>,
}

/// A turn of an apply.
#[derive(Debug)]
pub(super) struct TurnState<'p> {
    pub(super) stack: ApplyStack<'p>,
    pub(super) path: StackPath,
    pub(super) operation: Operation,
    pub(super) kind: PlanKind,
    pub(super) asked: Asked,
    /// What each step is for.
    pub(super) roles: Vec<Role>,
    /// The path that exists once `init` has run, if there is one.
    pub(super) initialized: Option<PathBuf>,
    pub(super) folder: PathBuf,
    /// The root of the project.
    pub(super) root: PathBuf,
    /// The command that plans, if there is one.
    pub(super) plan: Option<Task>,
    /// Whether the folder has the plan that was shown.
    pub(super) has_plan: bool,
    /// Whether what was shown can be carried out as it is.
    pub(super) is_as_shown: bool,
    pub(super) attempt: Attempted,
    /// Whether any attempt has changed something, as far as is known.
    pub(super) has_acted: bool,
}

/// How far the attempt of a turn has come.
#[derive(Debug, Default)]
pub(super) struct Attempted {
    /// Which attempt, from 1; 0 before the first.
    number: u32,
    course: Course,
    /// What its tool has answered, if it was asked.
    answer: Option<Answer>,
    /// Whether there is anything to change, once that is known.
    is_work: Option<bool>,
    /// Whether a postcondition does not hold.
    has_failed_checks: bool,
}

/// What happens in an attempt.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// Nothing.
    #[default]
    Nothing,
    /// The plan that was shown is carried out.
    AsShown,
    /// It is planned anew.
    Anew,
    /// Its driver cannot plan: it is carried out.
    Unplanned,
}

impl<'p> ApplyDirector<'p> {
    /// Returns the name of the driver of each turn.
    pub fn drivers(&self) -> Vec<&'p str> {
        let turns = self.turns.iter();
        turns.map(|turn| turn.stack.driver.name).collect()
    }

    /// Returns the digests of the outputs that stacks are applied with.
    pub fn upstream(&mut self) -> &mut Upstream {
        &mut self.upstream
    }

    /// Returns the stacks whose outputs could not be read, with why.
    pub fn unread(&self) -> &[(StackPath, String)] {
        &self.unread
    }

    /// Checks that its preconditions hold, and that nothing has been updated on the way that replaces it: only
    /// a plan decides to destroy.
    fn check_rules(&mut self, number: usize) -> Result<(), Failure> {
        let turn = &self.turns[number];
        // What is replaced is not destroyed either.
        if let Some(failed) = &turn.stack.checks.failed {
            return Err(Failure::Condition(failed.clone()));
        }
        self.check_before(number)?;
        let turn = &self.turns[number];
        let is_replaced = turn.stack.shown.action == Some(Action::Replace);
        let Some(here) = turn.stack.stack.here().filter(|_| !is_replaced) else {
            return Ok(());
        };
        if turn.operation != Operation::Apply || turn.asked == Asked::Create {
            return Ok(());
        }
        match self.updated.trigger_of(here, &turn.stack.triggered_by) {
            Some(trigger) => Err(Failure::Refused(format!(
                "it is to be replaced, since {trigger} has changed, and only a new plan can do that"
            ))),
            None => Ok(()),
        }
    }

    /// Returns how an attempt goes that is about to begin.
    fn course(&mut self, number: usize, attempt: u32) -> Course {
        let turn = &self.turns[number];
        let stack = &turn.stack;
        let is_first = attempt == 1 && !self.is_again;
        let can_plan = turn.roles.contains(&Role::Driver(StepRole::Plan));
        if turn.operation == Operation::Apply && stack.is_conditional {
            let has_work = stack.work.apply && stack.shown.action.is_some();
            let is_unchanged = |here| !self.changed.before(here);
            if !has_work
                && stack.is_planned
                && stack.stack.here().is_some_and(is_unchanged)
                && is_first
            {
                return Course::Nothing;
            }
        } else if turn.is_as_shown && is_first {
            return Course::AsShown;
        }
        if can_plan {
            Course::Anew
        } else {
            Course::Unplanned
        }
    }

    /// Returns whether anything is to be changed, now that its tool has been asked, if it had to be.
    fn is_work(&mut self, number: usize, step: &StepAhead<'_>) -> Result<bool, Failure> {
        let turn = &mut self.turns[number];
        if let Some(known) = turn.attempt.is_work {
            return Ok(known);
        }
        let is_work = match turn.attempt.course {
            Course::Nothing => false,
            Course::AsShown => {
                turn.check_shown_plan().map_err(Failure::Refused)?;
                true
            }
            Course::Unplanned => true,
            Course::Anew => {
                let has_changes = step.changes.is_some_and(|changes| changes.has_changes);
                let answer = turn.answer(has_changes).map_err(Failure::Refused)?;
                let is_work = match turn.operation {
                    Operation::Destroy => answer.is_there(true),
                    _ => answer.changes_something(),
                };
                let is_again = self.is_again || turn.attempt.number > 1;
                if is_work && !self.allows_new_changes && turn.operation == Operation::Apply {
                    let within = turn.stack.shown.check(&answer, is_again);
                    within
                        .map_err(|not_shown: NotShown| Failure::Refused(not_shown.to_string()))?;
                }
                let is_apply = turn.operation == Operation::Apply;
                if is_apply && answer.action == Some(AnswerAction::Replace) {
                    let why = "its driver asks to replace it, which only a new plan can do";
                    return Err(Failure::Refused(why.to_owned()));
                }
                turn.attempt.answer = Some(answer);
                is_work
            }
        };
        self.turns[number].attempt.is_work = Some(is_work);
        Ok(is_work)
    }
}

impl TurnState<'_> {
    /// Returns what the tool has answered.
    fn answer(&self, has_changes: bool) -> Result<Answer, String> {
        let driver = &self.stack.driver;
        let answer = answer(driver, self.kind, &self.folder, has_changes);
        let answer = answer.map_err(|problem| problem.to_string())?;
        allowed(driver, self.asked, &answer).map_err(|problem| problem.to_string())?;
        let (Some(tool), Some(plan)) = (driver.tool, &self.plan) else {
            return Ok(answer);
        };
        let answer = of_command(answer, tool, &self.root, plan);
        match (&self.stack.backend, &answer.backend) {
            (Some(before), Some(now)) if before != now => Err(format!(
                "its tool keeps its state in `{now}` now, and the plan was made with `{before}`"
            )),
            _ => Ok(answer),
        }
    }

    /// Returns whether it has updated what existed.
    fn has_updated(&self) -> bool {
        let answer = self.attempt.answer.as_ref();
        let has_existed = answer.is_none_or(|answer| answer.exists != Some(false));
        self.operation == Operation::Apply
            && self.has_acted
            && self.asked != Asked::Create
            && has_existed
    }

    /// Returns whether its outputs are to go on record and are not known although nothing is changed: the
    /// plans of a driver of one's own do not have them.
    fn lacks_outputs(&self) -> bool {
        let is_on_record = self.roles.contains(&Role::Confirm);
        is_on_record
            && self.attempt.course == Course::Anew
            && self.stack.driver.tool.is_none()
            && self.stack.recorded.is_none()
    }

    /// Returns whether `init` has never run.
    fn needs_init(&self) -> bool {
        let path = self.initialized.as_ref();
        path.is_some_and(|path| path.symlink_metadata().is_err())
    }

    /// Reads what has been printed as outputs; none if the driver prints none.
    fn outputs(&self) -> Result<Option<Outputs>, BadOutputs> {
        if !self.roles.contains(&Role::Driver(StepRole::Outputs)) {
            return Ok(None);
        }
        let path = self.folder.join(OUTPUTS_FILE);
        if self.stack.driver.writes(DriverStep::Outputs) {
            return Outputs::printed(File::open(path)?).map(Some);
        }
        Outputs::of_tool(BufReader::new(File::open(path)?)).map(Some)
    }
}

impl Director for ApplyDirector<'_> {
    fn is_needed(&mut self, step: &StepAhead<'_>) -> Result<bool, Failure> {
        let number = step.index.get();
        if self.turns[number].attempt.number != step.attempt {
            self.check_rules(number)?;
            let course = self.course(number, step.attempt);
            self.turns[number].attempt = Attempted {
                number: step.attempt,
                course,
                ..Attempted::default()
            };
        }
        let turn = &self.turns[number];
        let course = turn.attempt.course;
        // Where nothing is done, its outputs may still be looked at.
        let is_only_looked_at = course == Course::Nothing && turn.stack.checks.is_looked_at;
        match turn.roles[step.step] {
            Role::Check => self.check_after(number).map(|()| false),
            Role::Driver(StepRole::Init) if is_only_looked_at => Ok(turn.needs_init()),
            Role::Driver(StepRole::Outputs) if is_only_looked_at => Ok(true),
            _ if course == Course::Nothing => Ok(false),
            Role::Driver(StepRole::Init) => Ok(self.init && step.attempt == 1 || turn.needs_init()),
            Role::Driver(StepRole::Plan) => Ok(course == Course::Anew),
            Role::Driver(StepRole::Show) => Ok(matches!(course, Course::Anew | Course::AsShown)),
            Role::Confirm => self.is_work(number, step),
            Role::Driver(StepRole::Act) => {
                let is_work = self.is_work(number, step)?;
                self.turns[number].has_acted |= is_work;
                Ok(is_work)
            }
            Role::Driver(StepRole::Outputs) => Ok(turn.has_acted
                || turn.operation == Operation::Ask
                || turn.stack.checks.is_looked_at
                || turn.lacks_outputs()),
        }
    }

    fn ended(&mut self, ending: &Ending) -> Option<Findings> {
        let number = ending.turn.get();
        let has_failed_checks = self.turns[number].attempt.has_failed_checks;
        let has_succeeded = match ending.outcome {
            Outcome::Succeeded => true,
            // What was done is done.
            Outcome::Failed(_) => has_failed_checks,
            Outcome::Skipped { .. } | Outcome::Cancelled(_) => return None,
        };
        // Who has postconditions has taken them for these.
        if ending.outcome == Outcome::Succeeded
            && !self.turns[number].stack.checks.has_postconditions
        {
            self.learn(number);
        }
        let turn = &mut self.turns[number];
        let is_read = turn.operation == Operation::Ask;
        if has_succeeded && is_read && turn.attempt.answer.is_none() {
            turn.attempt.answer = turn.answer(false).ok();
        }
        let turn = &self.turns[number];
        let stack = &turn.stack;
        let Attempted { course, answer, .. } = &turn.attempt;
        let has_acted = turn.has_acted;
        let mut findings = Findings {
            driver: Some(stack.driver.name.to_owned()),
            backend: answer
                .as_ref()
                .and_then(|answer| answer.backend.clone())
                .or_else(|| stack.backend.clone()),
            mode: is_read.then(|| "read".to_owned()),
            outputs: None,
            upstream: None,
            is_complete: has_succeeded,
            has_changed: false,
            has_failed_checks,
        };
        // Only what stands in the tree is brought forward.
        let Some(here) = stack.stack.here().filter(|_| has_succeeded) else {
            return Some(findings);
        };
        if turn.operation == Operation::Destroy {
            return Some(findings);
        }
        let prints = (is_read || turn.lacks_outputs())
            && turn.roles.contains(&Role::Driver(StepRole::Outputs));
        let outputs = match (has_acted || prints, course) {
            (true, _) => turn.outputs(),
            (false, Course::Nothing) => Ok(stack.outputs.clone()),
            (false, _) => Ok(answer.as_ref().and_then(|answer| answer.outputs.clone())),
        };
        let (outputs, problem) = match outputs {
            Ok(outputs) => (outputs, None),
            Err(problem) => (None, Some(problem.to_string())),
        };
        findings.is_complete = match (course, answer) {
            (Course::Anew, Some(answer)) => answer.is_complete,
            _ => stack.is_complete,
        };
        let recorded = stack.recorded.as_ref();
        let of_record = |outputs: &Outputs| outputs.recorded(&self.run, recorded, has_acted);
        findings.outputs = match (&outputs, course) {
            (Some(outputs), _) => Some(of_record(outputs)),
            (None, _) if has_acted => None,
            (None, _) => recorded.cloned(),
        };
        if has_acted || is_read {
            let has_changed = match (&outputs, &stack.outputs_before, recorded) {
                (Some(now), Some(before), _) => now.differ(before),
                // Others were applied with what is on record.
                (Some(_), None, Some(before)) => findings.outputs.as_ref() != Some(before),
                _ => true,
            };
            self.changed.set(here, has_changed);
            let own = findings.outputs.as_ref().map(outputs_digest);
            self.upstream.set(here, own);
        }
        findings.has_changed = turn.has_updated();
        if findings.has_changed {
            self.updated.add(here, findings.outputs.clone());
        }
        findings.upstream = Some(self.upstream.of(here));
        let is_silent = *course == Course::Nothing && !stack.is_recorded;
        if let Some(problem) = problem {
            self.unread.push((turn.path.clone(), problem));
        }
        (!is_silent || has_failed_checks).then_some(findings)
    }
}
