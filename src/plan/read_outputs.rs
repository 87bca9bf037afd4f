//! Reads the outputs of stacks for the conditions of others: one turn per stack, in any order. The
//! outputs are printed to a private folder and removed with it.
//!
//! If a read-only stack's state was never written, a refresh finds its outputs.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::ask::{
    AskOptions, NoAnswer, PreparedQuestions, create_folder, open_shown, prepare_turns,
};
use super::code::PlanCode;
use super::commands::{CannotAsk, OUTPUTS_FILE};
use super::entry::AskedAction;
use super::stack::PlanStack;
use crate::driver::{BadOutputs, Driver, OutputValues, PlanKind, StepPlan};
use crate::project::driver::DriverStep;
use crate::project::stack::StackMode;

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
    let sources = sources.iter().enumerate();
    prepare_turns(codes, options, sources, |preparation, (number, source)| {
        let (stack, driver) = (source.stack, &source.driver);
        let folder = create_folder(options, number)?;
        let Some(place) = preparation.place(stack, driver, AskedAction::Read, folder) else {
            return Ok(None);
        };
        let needs_init = options.init || place.needs_init();
        let init = driver.init().filter(|_| needs_init);
        let printing: Vec<StepPlan<'_>> = match &source.printing {
            OutputPrinting::Refresh => {
                driver.asking(PlanKind::RefreshOnly, &place.plan_file(), &[])
            }
            OutputPrinting::Driver => driver.outputs().into_iter().collect(),
            OutputPrinting::Command(command) => vec![command.clone()],
        };
        let commands = preparation.commands(init.into_iter().chain(printing), &place);
        Ok(Some(stack).zip(commands))
    })
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
