//! Asks tools for their plans: one turn per stack, in any order.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::code::PlanCode;
use super::commands::{
    ANSWER_FILE, CannotAsk, CommandPlace, CommandPreparation, OUTPUTS_FILE, PLAN_FILE, SHOWN_FILE,
    STATE_FILE, StepCommands,
};
use super::entry::AskedAction;
use super::stack::PlanStack;
use crate::driver::{
    BadAnswer, BadOutputs, BadPlan, Changed, ChangedPlan, Driver, DriverAnswer, Outputs, PlanKind,
    Tool, backend_of_tool, is_tool, read_plan,
};
use crate::on_disk::if_there;
use crate::project::Project;
use crate::project::attempt::{Attempts, ExitCodes};
use crate::project::environment::lookup;
use crate::project::stack::StackIndex;
use crate::project::tool_options::leaves_out;
use crate::run::execute::{Execution, Task};
use crate::run::schedule::{Limit, OnError, Schedule};
use crate::run::settings::RunSettings;
use crate::run::turn::{Operation, Step, Turn};
use crate::selection::graph::Precedence;

const MAX_ANSWER: u64 = 1 << 20;

const MAX_SHOWN: u64 = 256 << 20;

#[derive(Debug, Clone)]
pub struct ToolQuestion<'p> {
    pub stack: PlanStack,
    pub driver: Driver<'p>,
    pub kind: PlanKind,
    pub asked: AskedAction,
}

pub struct AskOptions<'a> {
    pub run: &'a str,
    /// The folder for answers; only its owner can read it.
    pub folder: &'a Path,
    /// Whether `init` runs even if it has run before.
    pub init: bool,
    pub extra: &'a [OsString],
    pub jobs: NonZeroUsize,
    pub lock_timeout: Option<Duration>,
}

impl<'a> AskOptions<'a> {
    pub fn new(run: &'a str, folder: &'a Path, jobs: NonZeroUsize) -> Self {
        AskOptions {
            run,
            folder,
            init: false,
            extra: &[],
            jobs,
            lock_timeout: None,
        }
    }
}

pub struct PreparedQuestions {
    pub execution: Execution,
    pub tasks: Vec<Vec<Task>>,
}

#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    #[error(transparent)]
    Written(#[from] BadAnswer),
    #[error(transparent)]
    Plan(#[from] BadPlan),
    /// Terragrunt wrote none but exited with success.
    #[error(
        "`terragrunt plan` wrote no plan: if an `exclude` block leaves the unit out, exclude it here too, with `--exclude`"
    )]
    Excluded,
    #[error(transparent)]
    Outputs(#[from] BadOutputs),
    #[error("the answer cannot be read: not a file")]
    NotAFile,
    #[error("the answer is longer than 1 MiB")]
    TooLong,
    #[error("`show -json` prints {0} of more than 256 MiB, which is too large to read")]
    TooMuchShown(&'static str),
    #[error("the answer cannot be read: {0}")]
    Read(#[from] io::Error),
}

pub fn folder_of(folder: &Path, number: usize) -> PathBuf {
    folder.join(number.to_string())
}

/// Evaluates commands, finds programs, creates folders. If it fails, nothing may run.
pub fn prepare(
    codes: PlanCode<'_, '_>,
    questions: &[ToolQuestion<'_>],
    options: &AskOptions<'_>,
) -> Result<PreparedQuestions, CannotAsk> {
    let questions = questions.iter().enumerate();
    prepare_turns(
        codes,
        options,
        questions,
        |preparation, (number, question)| {
            let folder = create_folder(options, number)?;
            let commands = commands(preparation, question, options, folder);
            Ok(Some(question.stack).zip(commands))
        },
    )
}

/// Prepares turns that only validate configurations. Stacks whose tools cannot validate get none.
pub fn prepare_validation(
    codes: PlanCode<'_, '_>,
    stacks: &[(StackIndex, Driver<'_>)],
    options: &AskOptions<'_>,
) -> Result<PreparedQuestions, CannotAsk> {
    prepare_turns(codes, options, stacks, |preparation, (stack, driver)| {
        let stack = PlanStack::Here(*stack);
        let Some(step) = driver.validating() else {
            return Ok(None);
        };
        let folder = options.folder.to_owned();
        let place = preparation.place(stack, driver, AskedAction::Update, folder);
        let commands = place.and_then(|place| preparation.commands([step], &place));
        Ok(Some(stack).zip(commands))
    })
}

/// Prepares turns that initialize stacks. Stacks without `init`, or already initialized, get none.
pub fn prepare_init(
    codes: PlanCode<'_, '_>,
    stacks: &[(PlanStack, Driver<'_>)],
    options: &AskOptions<'_>,
) -> Result<PreparedQuestions, CannotAsk> {
    prepare_turns(codes, options, stacks, |preparation, (stack, driver)| {
        let folder = options.folder.to_owned();
        let place = preparation.place(*stack, driver, AskedAction::Delete, folder);
        let place = place.filter(CommandPlace::needs_init);
        let needed = place.zip(driver.init());
        let commands = needed.and_then(|(place, step)| preparation.commands([step], &place));
        Ok(Some(*stack).zip(commands))
    })
}

pub(super) fn create_folder(options: &AskOptions<'_>, number: usize) -> Result<PathBuf, CannotAsk> {
    let folder = folder_of(options.folder, number);
    fs::create_dir_all(&folder).map_err(CannotAsk::Folder)?;
    Ok(folder)
}

/// Prepares independent turns. `commands` returns a stack and its commands; `None` if there are problems, or if
/// the stack gets no turn.
pub(super) fn prepare_turns<'a, 'p, Q>(
    codes: PlanCode<'a, 'p>,
    options: &AskOptions<'a>,
    questions: impl IntoIterator<Item = Q>,
    mut commands: impl FnMut(
        &mut CommandPreparation<'a, 'p>,
        Q,
    ) -> Result<Option<(PlanStack, StepCommands)>, CannotAsk>,
) -> Result<PreparedQuestions, CannotAsk> {
    let mut preparation = CommandPreparation::new(codes, options.run).waiting(options.lock_timeout);
    let (mut stacks, mut turns) = (Vec::new(), Vec::new());
    let (mut attempts, mut tasks) = (Vec::new(), Vec::new());
    for question in questions {
        let Some((stack, commands)) = commands(&mut preparation, question)? else {
            continue;
        };
        let (steps, commands): (Vec<Step>, Vec<Task>) = commands.into_iter().unzip();
        turns.push(Turn {
            stack: codes.path(stack).clone(),
            operation: Operation::Plan,
            steps: steps.into(),
        });
        attempts.push(attempts_of(codes, stack));
        tasks.push(commands);
        stacks.push(stack);
    }
    preparation.finish()?;
    let n = turns.len();
    let precedence = Precedence::from_edges(n, n, std::iter::empty());
    let ranks = (0..n).map(|node| (node, u32::try_from(node).unwrap_or(u32::MAX)));
    let schedule = Schedule::new(precedence, ranks).on_error(OnError::Continue);
    let settings = RunSettings::default();
    let limits = limits(codes.tree.project, &settings, stacks.into_iter());
    Ok(PreparedQuestions {
        execution: Execution {
            schedule: schedule.at_once(options.jobs, &limits),
            turns,
            attempts,
            timeout: None,
            grace: settings.grace(),
            detailed_exit_code: false,
            had_changes: false,
            left_out_status: 0,
            n_earlier: 0,
            is_rejected: false,
        },
        tasks,
    })
}

pub fn check(
    codes: PlanCode<'_, '_>,
    question: &ToolQuestion<'_>,
    options: &AskOptions<'_>,
) -> Result<(), CannotAsk> {
    let mut preparation = CommandPreparation::new(codes, options.run).waiting(options.lock_timeout);
    let folder = options.folder.to_owned();
    _ = commands(&mut preparation, question, options, folder);
    preparation.finish()
}

/// Returns the steps with their commands; `None` if there are problems.
fn commands(
    preparation: &mut CommandPreparation<'_, '_>,
    question: &ToolQuestion<'_>,
    options: &AskOptions<'_>,
    folder: PathBuf,
) -> Option<StepCommands> {
    let ToolQuestion {
        stack,
        driver,
        kind,
        asked,
    } = question;
    let place = preparation.place(*stack, driver, *asked, folder)?;
    let needs_init = options.init || place.needs_init();
    let init = driver.init().filter(|_| needs_init);
    let asking = driver.asking(*kind, &place.plan_file(), options.extra);
    // The plans of tools have the outputs.
    let prints = *asked == AskedAction::Read && driver.tool.is_none();
    let outputs = driver.outputs().filter(|_| prints);
    let steps = init.into_iter().chain(asking).chain(outputs);
    preparation.commands(steps, &place)
}

/// Returns the limits on turns by tag, given each turn's stack. Removed stacks have none.
pub(super) fn limits(
    project: &Project,
    settings: &RunSettings,
    stacks: impl Iterator<Item = PlanStack>,
) -> Vec<Limit> {
    let mut turns: Vec<Vec<usize>> = vec![Vec::new(); project.stacks.len()];
    for (turn, stack) in stacks.enumerate() {
        if let Some(stack) = stack.here() {
            turns[stack.get()].push(turn);
        }
    }
    let of_turns = |limit: Limit| Limit {
        nodes: limit
            .nodes
            .iter()
            .flat_map(|&stack| turns[stack].clone())
            .collect(),
        ..limit
    };
    let limits = settings.limits(project).into_iter();
    limits.map(of_turns).collect()
}

pub(super) fn attempts_of(codes: PlanCode<'_, '_>, stack: PlanStack) -> Attempts {
    let (code, stack) = codes.of(stack);
    Attempts {
        // Exit codes of `orch run`'s own command; they mean nothing here.
        exit_codes: ExitCodes::default(),
        ..code.project.attempts_of(stack)
    }
}

/// Reads the driver's answer from a turn's folder. `has_changes`: the exit code of `plan` reports
/// changes; `is_partial`: the arguments of `plan` cover only part of the stack.
pub fn answer(
    driver: &Driver<'_>,
    kind: PlanKind,
    folder: &Path,
    has_changes: bool,
    is_partial: bool,
) -> Result<DriverAnswer, NoAnswer> {
    let answer = complete_answer(driver, kind, folder, has_changes)?;
    match &answer.unasked {
        Some(unasked) if !(is_partial && unasked.is_partial()) => {
            Err(BadPlan::NotWhole(unasked.clone()).into())
        }
        _ if is_partial => Ok(answer.left_out()),
        _ => Ok(answer),
    }
}

fn complete_answer(
    driver: &Driver<'_>,
    kind: PlanKind,
    folder: &Path,
    has_changes: bool,
) -> Result<DriverAnswer, NoAnswer> {
    if let Some(tool) = driver.tool {
        let shown = open_shown(folder)?;
        let has_plan = if_there(folder.join(PLAN_FILE).metadata())?.is_some();
        return match read_plan(shown, kind, has_changes) {
            Err(BadPlan::Malformed { .. }) if tool == Tool::Terragrunt && !has_plan => {
                Err(NoAnswer::Excluded)
            }
            answer => Ok(answer?),
        };
    }
    let text = written(&folder.join(ANSWER_FILE))?;
    let answer = DriverAnswer::written(has_changes, &text)?;
    let outputs = match kind {
        PlanKind::RefreshOnly => if_there(File::open(folder.join(OUTPUTS_FILE)))?,
        PlanKind::Normal | PlanKind::Destroy => None,
    };
    let outputs = outputs.map(Outputs::printed).transpose()?;
    Ok(DriverAnswer { outputs, ..answer })
}

/// Opens the plan as the tool printed it. Fails if it is too long.
pub fn open_shown(folder: &Path) -> Result<BufReader<File>, NoAnswer> {
    open(&folder.join(SHOWN_FILE), "a plan")
}

fn open(path: &Path, what: &'static str) -> Result<BufReader<File>, NoAnswer> {
    let file = File::open(path)?;
    if file.metadata()?.len() > MAX_SHOWN {
        return Err(NoAnswer::TooMuchShown(what));
    }
    Ok(BufReader::new(file))
}

pub fn changed(folder: &Path, kind: PlanKind) -> Result<ChangedPlan, NoAnswer> {
    Ok(ChangedPlan::read(open_shown(folder)?, kind)?)
}

/// Returns the changes of a plan with their values after the apply, from the state that the tool
/// printed then.
pub fn applied(plan: &ChangedPlan, folder: &Path) -> Result<Vec<Changed>, NoAnswer> {
    Ok(plan.applied(open(&folder.join(STATE_FILE), "a state")?)?)
}

/// Returns whether the arguments of `plan`, the user's or the driver's, cover only part of the
/// stack.
pub fn is_partial(driver: &Driver<'_>, extra: &[OsString], plan: Option<&Task>) -> bool {
    let own = plan.filter(|plan| driver.tool.is_some() || is_tool(&plan.name));
    leaves_out(extra) || own.is_some_and(|plan| leaves_out(&plan.arguments))
}

/// Adds where a built-in tool keeps its state, which only its command line shows.
pub fn of_command(answer: DriverAnswer, tool: Tool, root: &Path, plan: &Task) -> DriverAnswer {
    let variable = |name: &str| lookup(&plan.environment, name);
    let backend = match tool {
        Tool::Terraform | Tool::OpenTofu => backend_of_tool(root, &plan.directory, &variable),
        // It runs in a cache folder: the directory of the stack says nothing about the state.
        Tool::Terragrunt => None,
    };
    DriverAnswer { backend, ..answer }
}

/// Reads a file that a driver wrote; empty if there is none.
pub(super) fn written(path: &Path) -> Result<Vec<u8>, NoAnswer> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    // Reading a pipe would block: its writers have exited.
    if !found.is_file() {
        return Err(NoAnswer::NotAFile);
    }
    let mut text = Vec::new();
    let file = File::open(path)?;
    file.take(MAX_ANSWER + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_ANSWER {
        return Err(NoAnswer::TooLong);
    }
    Ok(text)
}
