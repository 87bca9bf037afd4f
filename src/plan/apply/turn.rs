//! A turn of an apply: its progress, the check of its plan file, which someone may have replaced, and the input of
//! policies after it.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use super::{ApplyStack, ShownChanges};
use crate::driver::{
    BadOutputs, BadPlan, ChangeKind, ChangedPlan, DriverAnswer, Outputs, PlanKind, ResourceChange,
    StepRole, Tool,
};
use crate::path::StackPath;
use crate::plan::ask::{NoAnswer, answer, applied, changed, of_command};
use crate::plan::code::PlanCode;
use crate::plan::commands::{ACTION, OUTPUTS_FILE};
use crate::plan::entry::{AskedAction, PlannedAction, allowed};
use crate::plan::facts::{stack_changed, turn_facts};
use crate::project::driver::DriverStep;
use crate::project::environment::Environment;
use crate::project::stack::StackMode;
use crate::run::event::{Ending, Failure, Outcome};
use crate::run::execute::Task;
use crate::run::state::Effect;
use crate::run::turn::Operation;
use crate::run::workflow::TurnFacts;
use crate::state::document::are_known;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApplyStepRole {
    /// Reads outputs for the inputs of the stack, given the position of their source.
    Input(usize),
    Driver(StepRole),
    Confirm,
    Check,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct ApplyTurn<'p> {
    pub(super) stack: ApplyStack<'p>,
    pub(super) path: StackPath,
    pub(super) operation: Operation,
    pub(super) kind: PlanKind,
    pub(super) asked: AskedAction,
    pub(super) roles: Vec<ApplyStepRole>,
    /// The path that exists once `init` has run, if the tool has one.
    pub(super) initialized: Option<PathBuf>,
    pub(super) folder: PathBuf,
    pub(super) root: PathBuf,
    pub(super) plan: Option<Task>,
    pub(super) has_plan: bool,
    /// Whether that plan can be applied unchanged.
    pub(super) is_as_shown: bool,
    pub(super) attempt: ApplyAttempt,
    /// Whether any attempt is known to have changed something.
    pub(super) has_acted: bool,
    /// Set if the turn was added.
    pub(super) followup: Option<FollowUpState>,
    pub(super) is_partial: bool,
    /// Whether the stack was destroyed right before, to be recreated.
    pub(super) is_recreated: bool,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct ApplyAttempt {
    /// From 1; 0 before the first attempt.
    pub(super) number: u32,
    pub(super) course: ApplyMode,
    pub(super) answer: Option<DriverAnswer>,
    /// Whether there is anything to change, once known.
    pub(super) is_work: Option<bool>,
    pub(super) has_failed_checks: bool,
    pub(super) is_unconfirmed: bool,
    /// The inputs of the stack as variables, once they are read.
    pub(super) variables: Option<Environment>,
    /// Whether only the approval of destroyed resources is missing.
    pub(super) refuses_destroy: bool,
    /// Whether nothing is destroyed: an old generation is kept, or nothing replaces the stack.
    pub(super) is_kept: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApplyMode {
    #[default]
    Nothing,
    ShownPlan,
    Replanned,
    /// Applies without a plan, since the driver cannot plan.
    Unplanned,
}

pub(super) struct FollowUpState {
    pub(super) is_approved: bool,
    /// Its commands, except steps without a process, or why there are none; `None` until it begins.
    pub(super) tasks: Option<Result<Vec<Task>, String>>,
}

impl<'p> ApplyTurn<'p> {
    pub(super) fn new(
        stack: ApplyStack<'p>,
        operation: Operation,
        folder: PathBuf,
        codes: PlanCode<'_, '_>,
    ) -> Self {
        let (code, index) = codes.of(stack.stack);
        let of_stack = &code.project.stacks[index];
        let is_read = of_stack.mode == StackMode::Read;
        let (operation, kind, asked) = match operation {
            Operation::Destroy => (operation, PlanKind::Destroy, AskedAction::Delete),
            _ if is_read => (Operation::Plan, PlanKind::RefreshOnly, AskedAction::Read),
            _ if stack.asked == AskedAction::Refresh => {
                (operation, PlanKind::RefreshOnly, stack.asked)
            }
            _ if stack.work.destroy && !stack.is_late => {
                (operation, PlanKind::Normal, AskedAction::Create)
            }
            _ => (operation, PlanKind::Normal, stack.asked),
        };
        // The plan of a replace covers its destroy, or only its apply if the destroy depends on
        // others.
        let is_shown_half = match operation {
            Operation::Destroy => !stack.is_late,
            _ => !stack.work.destroy || stack.is_late,
        };
        let is_shown =
            operation != Operation::Plan && stack.shown.action.is_some() && is_shown_half;
        ApplyTurn {
            has_plan: stack.has_plan && is_shown,
            // No mock is ever applied.
            is_as_shown: is_shown
                && !stack.is_mocked
                && (stack.has_plan || stack.driver.tool.is_none()),
            path: codes.path(stack.stack).clone(),
            stack,
            operation,
            kind,
            asked,
            roles: Vec::new(),
            initialized: None,
            folder,
            root: code.project.root.clone(),
            plan: None,
            attempt: ApplyAttempt::default(),
            has_acted: false,
            followup: None,
            is_partial: false,
            is_recreated: false,
        }
    }

    pub(super) fn answer(&self, has_changes: bool) -> Result<DriverAnswer, String> {
        let driver = &self.stack.driver;
        let answer = answer(
            driver,
            self.kind,
            &self.folder,
            has_changes,
            self.is_partial,
        )
        .map_err(|problem| problem.to_string())?;
        allowed(driver, self.asked, &answer).map_err(|problem| problem.to_string())?;
        let (Some(tool), Some(plan)) = (driver.tool, &self.plan) else {
            return Ok(answer);
        };
        let answer = of_command(answer, tool, &self.root, plan);
        match (&self.stack.backend, &answer.backend) {
            (Some(before), Some(now)) if before != now => Err(format!(
                "its tool keeps its state in `{now}`, and the plan was made with `{before}`"
            )),
            (Some(before), None) if tool != Tool::Terragrunt => Err(format!(
                "the backend of its tool is unknown, and the plan was made with `{before}`: check `.terraform`"
            )),
            _ => Ok(answer),
        }
    }

    pub(super) fn effect(&self) -> Effect {
        if self.operation != Operation::Apply || !self.has_acted {
            return Effect::Nothing;
        }
        match self.asked_now() {
            AskedAction::Create if !self.is_replaced() => Effect::Created,
            AskedAction::Refresh => Effect::Nothing,
            _ => Effect::Updated,
        }
    }

    /// Returns whether it recreates a stack that existed before.
    fn is_replaced(&self) -> bool {
        self.is_recreated || self.stack.shown.action == Some(PlannedAction::Replace)
    }

    /// Returns the action to ask for, given its answer: create, if nothing exists.
    pub(super) fn asked_now(&self) -> AskedAction {
        let answer = self.attempt.answer.as_ref();
        match (self.asked, answer.and_then(|answer| answer.exists)) {
            (AskedAction::Update, Some(false)) => AskedAction::Create,
            (asked, _) => asked,
        }
    }

    /// Returns whether outputs must be recorded that are unknown although nothing changes: the
    /// plans of custom drivers do not have them.
    pub(super) fn lacks_outputs(&self) -> bool {
        let is_recorded = self.roles.contains(&ApplyStepRole::Confirm);
        is_recorded
            && self.attempt.course == ApplyMode::Replanned
            && self.stack.driver.tool.is_none()
            && !self.stack.recorded.as_ref().is_some_and(are_known)
    }

    pub(super) fn input_file(&self, position: usize) -> PathBuf {
        self.folder.join(format!("input-{position}.json"))
    }

    pub(super) fn needs_init(&self) -> bool {
        let path = self.initialized.as_ref();
        path.is_some_and(|path| path.symlink_metadata().is_err())
    }

    /// Reads the printed outputs; `None` if the driver prints none.
    pub(super) fn outputs(&self) -> Result<Option<Outputs>, BadOutputs> {
        if !self
            .roles
            .contains(&ApplyStepRole::Driver(StepRole::Outputs))
        {
            return Ok(None);
        }
        let path = self.folder.join(OUTPUTS_FILE);
        if self.stack.driver.writes(DriverStep::Outputs) {
            return Outputs::printed(File::open(path)?).map(Some);
        }
        let outputs = Outputs::of_tool(BufReader::new(File::open(path)?))?;
        // If the state was never written, the plan has the refreshed outputs.
        let refreshed = self
            .attempt
            .answer
            .as_ref()
            .and_then(|it| it.outputs.as_ref());
        let is_refreshed = self.operation == Operation::Plan && outputs.is_empty();
        let refreshed = refreshed.filter(|_| is_refreshed).cloned();
        Ok(Some(refreshed.unwrap_or(outputs)))
    }

    /// Returns whether its changes are approved. All changes that a plan has shown are.
    pub(super) fn is_approved(&self) -> bool {
        let followup = self.followup.as_ref();
        followup.is_none_or(|followup| followup.is_approved)
    }

    /// Marks its changes as not approved. Returns `false`: there is nothing to do.
    pub(super) fn leave_unconfirmed(&mut self) -> bool {
        self.attempt.is_unconfirmed = true;
        self.attempt.is_work = Some(false);
        false
    }

    pub(super) fn task(&self, step: usize) -> Result<Task, Failure> {
        let tasks = self.followup.as_ref().and_then(|it| it.tasks.as_ref());
        let before = self.roles[..step].iter();
        let has_command =
            |role: &&ApplyStepRole| !matches!(role, ApplyStepRole::Confirm | ApplyStepRole::Check);
        let number = before.filter(has_command);
        let found = tasks.and_then(|tasks| tasks.as_ref().ok()?.get(number.count()));
        let missing = || Failure::NotStarted("its command is unknown".to_owned());
        let mut task = found.cloned().ok_or_else(missing)?;
        let action = self.asked_now().word().to_owned();
        task.environment.insert(ACTION.to_owned(), Some(action));
        Ok(task)
    }
}

const ANOTHER: &str = "the plan in the file differs from the one that is shown";

impl ApplyTurn<'_> {
    /// Compares the tool's plan with the shown one, and with the operation. Drivers without a tool
    /// have no plan to compare. The error is a message.
    pub(super) fn check_shown_plan(&self) -> Result<(), String> {
        let driver = &self.stack.driver;
        if driver.tool.is_none() || !self.has_plan {
            return Ok(());
        }
        // The exit code of `plan` does not matter here: nothing is planned.
        let answer =
            answer(driver, self.kind, &self.folder, false, self.is_partial).map_err(|problem| {
                match problem {
                    NoAnswer::Plan(BadPlan::NotWhole(_)) => ANOTHER.to_owned(),
                    problem => problem.to_string(),
                }
            })?;
        let is_whole = answer.is_complete || !self.stack.is_complete;
        let fits = self.operation != Operation::Destroy || only_destroys(&answer);
        if is_whole && fits && is_shown(&answer, &self.stack.shown) {
            return Ok(());
        }
        Err(ANOTHER.to_owned())
    }
}

fn only_destroys(answer: &DriverAnswer) -> bool {
    let mut actions = answer
        .resources
        .iter()
        .flat_map(|it| &it.actions)
        .map(String::as_str);
    actions.all(|action| matches!(action, "delete" | "forget"))
}

fn is_shown(answer: &DriverAnswer, shown: &ShownChanges) -> bool {
    let same = |(a, b): (&ResourceChange, &ResourceChange)| {
        a.address == b.address && a.actions == b.actions
    };
    answer.counts == shown.counts
        && answer.resources.len() == shown.resources.len()
        && answer.resources.iter().zip(&shown.resources).all(same)
}

impl ApplyTurn<'_> {
    pub(super) fn facts(&self, ending: &Ending) -> TurnFacts {
        let unknown = |which: &str, problem: &NoAnswer| TurnFacts {
            unknown: Some(format!("the {which} changes are unknown: {problem}")),
            ..TurnFacts::default()
        };
        let plan = match self.planned(ending) {
            Ok(plan) => plan,
            Err(problem) => return unknown("planned", &problem),
        };
        if !self.has_acted || ending.outcome != Outcome::Succeeded {
            return turn_facts(plan, Vec::new());
        }
        let state = ApplyStepRole::Driver(StepRole::State);
        let applied = if self.roles.contains(&state) {
            applied(&plan, &self.folder)
        } else {
            // The values of destroyed resources are those of the plan; other drivers have none.
            Ok(plan.changes.clone())
        };
        match applied {
            Ok(applied) => turn_facts(plan, applied),
            Err(problem) => unknown("applied", &problem),
        }
    }

    /// Returns the planned changes, or the stack itself if its driver names no resources.
    fn planned(&self, ending: &Ending) -> Result<ChangedPlan, NoAnswer> {
        if self.attempt.number == 0 {
            return Ok(ChangedPlan::default()); // its time never came
        }
        if self.stack.driver.tool.is_some() {
            let shows = matches!(
                self.attempt.course,
                ApplyMode::ShownPlan | ApplyMode::Replanned
            );
            // An attempt may fail before its tool has shown a plan.
            let is_needed = self.attempt.is_work.is_some() || ending.outcome == Outcome::Succeeded;
            let kind = match self.asked {
                AskedAction::Refresh => PlanKind::RefreshOnly,
                _ => PlanKind::Normal,
            };
            return match changed(&self.folder, kind) {
                Err(_) if !(shows && is_needed) => Ok(ChangedPlan::default()),
                plan => plan,
            };
        }
        let is_work = self.attempt.is_unconfirmed || self.attempt.is_work == Some(true);
        let kind = is_work.then(|| match (self.operation, self.asked_now()) {
            (Operation::Destroy, _) => ChangeKind::Deleted,
            (_, AskedAction::Create) => ChangeKind::Added,
            _ => ChangeKind::Changed,
        });
        Ok(stack_changed(&self.path, kind))
    }
}
