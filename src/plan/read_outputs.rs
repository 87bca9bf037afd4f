//! Reads the outputs of stacks for the conditions of others: a turn for each, in any order. What they print goes
//! to a private folder, and stays there no longer than the folder.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use super::ask::{AskOptions, Asking, at_once, attempts_of, folder_of};
use super::code::{Codes, PlanStack};
use super::commands::{CannotAsk, OUTPUTS_FILE, Preparation, step_of};
use super::entry::Asked;
use crate::driver::{BadOutputs, Driver, OutputValues};
use crate::project::driver::DriverStep;
use crate::project::stack::StackIndex;
use crate::run::execute::Task;
use crate::run::turn::{Operation, Step, Turn};

/// Prepares to read the outputs of stacks, each with its driver: evaluates commands, looks programs up and makes
/// a folder for each.
///
/// # Errors
///
/// If any of that fails; then nothing is to be run.
pub fn prepare(
    codes: Codes<'_, '_>,
    stacks: &[(StackIndex, Driver<'_>)],
    options: &AskOptions<'_>,
) -> Result<Asking, CannotAsk> {
    let mut preparation = Preparation::new(codes, options.run);
    let mut turns = Vec::with_capacity(stacks.len());
    let mut attempts = Vec::with_capacity(stacks.len());
    let mut tasks = Vec::with_capacity(stacks.len());
    for (number, (stack, driver)) in stacks.iter().enumerate() {
        let stack = PlanStack::Here(*stack);
        let folder = folder_of(options.folder, number);
        fs::create_dir_all(&folder).map_err(CannotAsk::Folder)?;
        let Some(place) = preparation.place(stack, driver, Asked::Read, folder) else {
            continue;
        };
        let is_missing = |path: &Path| path.symlink_metadata().is_err();
        let needs_init = options.init || place.initialized().is_some_and(is_missing);
        let init = driver.init().filter(|_| needs_init);
        let commands = init.into_iter().chain(driver.outputs());
        let commands =
            commands.map(|step| Some((step_of(&step), preparation.command(step, &place)?)));
        let commands: Option<Vec<(Step, Task)>> = commands.collect();
        let Some(commands) = commands else {
            continue;
        };
        let (steps, commands): (Vec<Step>, Vec<Task>) = commands.into_iter().unzip();
        turns.push(Turn {
            stack: codes.path(stack).clone(),
            operation: Operation::Ask,
            steps: steps.into(),
        });
        attempts.push(attempts_of(codes, stack));
        tasks.push(commands);
    }
    preparation.finish()?;
    let stacks = stacks.iter().map(|(stack, _)| PlanStack::Here(*stack));
    Ok(at_once(
        codes,
        stacks,
        options.jobs,
        (turns, attempts, tasks),
    ))
}

/// Returns the outputs that a driver has printed in the folder of a turn.
///
/// # Errors
///
/// If they cannot be used.
pub fn printed(driver: &Driver<'_>, folder: &Path) -> Result<OutputValues, BadOutputs> {
    let file = BufReader::new(File::open(folder.join(OUTPUTS_FILE))?);
    if driver.writes(DriverStep::Outputs) {
        OutputValues::printed(file)
    } else {
        OutputValues::of_tool(file)
    }
}

/// Returns why a stack with this driver has no outputs, if it has none.
pub fn no_outputs(driver: Option<&Driver<'_>>) -> Option<String> {
    match driver {
        None => Some("it has no driver".to_owned()),
        Some(driver) if !driver.has(DriverStep::Outputs) => {
            Some(format!("its driver `{}` has no `outputs`", driver.name))
        }
        Some(_) => None,
    }
}
