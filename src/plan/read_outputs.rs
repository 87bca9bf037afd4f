//! Reads the outputs of stacks for the conditions of others: one turn per stack, in any order. The
//! outputs are printed to a private folder and removed with it.
//!
//! If a read-only stack's state was never written, a refresh finds its outputs.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use super::ask::{
    AskOptions, NoAnswer, PreparedQuestions, at_once, attempts_of, folder_of, open_shown,
};
use super::code::PlanCode;
use super::commands::{CannotAsk, CommandPreparation, OUTPUTS_FILE, step_of};
use super::entry::AskedAction;
use super::stack::PlanStack;
use crate::driver::{BadOutputs, Driver, OutputValues, PlanKind, StepPlan};
use crate::project::driver::DriverStep;
use crate::project::stack::StackMode;
use crate::run::execute::Task;
use crate::run::turn::{Operation, Step, Turn};

#[derive(Debug, Clone)]
pub struct OutputSource<'p> {
    pub stack: PlanStack,
    pub driver: Driver<'p>,
    pub printing: OutputPrinting<'p>,
}

/// What prints the outputs of a stack.
#[derive(Debug, Clone)]
pub enum OutputPrinting<'p> {
    /// Its driver, from its state.
    Driver,
    /// Its tool, which refreshes them.
    Refresh,
    /// A command of its own.
    Command(StepPlan<'p>),
}

/// Evaluates commands, finds programs, creates folders. If it fails, nothing may run.
pub fn prepare(
    codes: PlanCode<'_, '_>,
    sources: &[OutputSource<'_>],
    options: &AskOptions<'_>,
) -> Result<PreparedQuestions, CannotAsk> {
    let mut preparation = CommandPreparation::new(codes, options.run).waiting(options.lock_timeout);
    let mut turns = Vec::with_capacity(sources.len());
    let mut attempts = Vec::with_capacity(sources.len());
    let mut tasks = Vec::with_capacity(sources.len());
    for (number, source) in sources.iter().enumerate() {
        let (stack, driver) = (source.stack, &source.driver);
        let folder = folder_of(options.folder, number);
        fs::create_dir_all(&folder).map_err(CannotAsk::Folder)?;
        let Some(place) = preparation.place(stack, driver, AskedAction::Read, folder) else {
            continue;
        };
        let is_missing = |path: &Path| path.symlink_metadata().is_err();
        let needs_init = options.init || place.initialized().is_some_and(is_missing);
        let init = driver.init().filter(|_| needs_init);
        let printing: Vec<StepPlan<'_>> = match &source.printing {
            OutputPrinting::Refresh => {
                driver.asking(PlanKind::RefreshOnly, &place.plan_file(), &[])
            }
            OutputPrinting::Driver => driver.outputs().into_iter().collect(),
            OutputPrinting::Command(command) => vec![command.clone()],
        };
        let commands = init.into_iter().chain(printing);
        let commands =
            commands.map(|step| Some((step_of(&step), preparation.command(step, &place)?)));
        let commands: Option<Vec<(Step, Task)>> = commands.collect();
        let Some(commands) = commands else {
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
    }
    preparation.finish()?;
    let stacks = sources.iter().map(|it| it.stack);
    Ok(at_once(
        codes,
        stacks,
        options.jobs,
        (turns, attempts, tasks),
    ))
}

pub fn printed(driver: &Driver<'_>, folder: &Path) -> Result<OutputValues, BadOutputs> {
    let file = BufReader::new(File::open(folder.join(OUTPUTS_FILE))?);
    if driver.writes(DriverStep::Outputs) {
        OutputValues::printed(file)
    } else {
        OutputValues::of_tool(file)
    }
}

/// Returns whether the outputs may be empty only because the state was never written.
pub fn lacks_state(driver: &Driver<'_>, mode: StackMode, outputs: &OutputValues) -> bool {
    let prints_state = driver.tool.is_some() && !driver.writes(DriverStep::Outputs);
    mode == StackMode::Read && prints_state && outputs.is_empty()
}

/// Returns the outputs of a refresh, from the plan shown in a turn's folder.
pub fn refreshed(folder: &Path) -> Result<OutputValues, NoAnswer> {
    Ok(OutputValues::planned(open_shown(folder)?)?)
}

pub fn no_outputs(driver: Option<&Driver<'_>>) -> Option<String> {
    match driver {
        None => Some("it has no driver".to_owned()),
        Some(driver) if !driver.has(DriverStep::Outputs) => {
            Some(format!("its driver `{}` has no `outputs`", driver.name))
        }
        Some(_) => None,
    }
}
