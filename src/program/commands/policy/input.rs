//! `orch policy input`

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use orch::command::scenario::Scenario;
use orch::exit::ExitStatus;
use orch::run::policies;

use super::end_state::EndState;
use super::eval::one_stack;
use super::samples;
use crate::program::commands::{CommandContext, Reads};
use crate::program::console;
use crate::program::error::Result;

/// Print the input of policies after the run of a stack
///
/// It is the input of `orch policy eval NAME --stack STACK`: the run of the stack has just ended, and all
/// other stacks have finished. Edit it, and evaluate a policy with `orch policy eval NAME --input FILE`.
#[derive(Debug, Args)]
pub(crate) struct PolicyInputArgs {
    /// The stack: a path relative to the current directory, or from the project root with a `/`
    #[arg(long, value_name = "STACK", required_unless_present = "sample")]
    stack: Option<String>,

    /// Print an input that was kept; `orch policy samples` lists them
    #[arg(long, value_name = "ID", conflicts_with_all = ["stack", "state"])]
    sample: Option<String>,

    /// How the run of the stack has ended
    #[arg(long, value_name = "STATE", value_enum, ignore_case = true, default_value_t = EndState::Finished)]
    state: EndState,
}

pub(super) fn input(chdir: &[PathBuf], args: &PolicyInputArgs) -> Result<ExitStatus> {
    let text = match (&args.sample, &args.stack) {
        (Some(sample), _) => samples::read(chdir, sample)?,
        (None, stack) => of_stack(chdir, stack.as_deref().unwrap_or_default(), args.state)?,
    };
    let input: serde_json::Value = serde_json::from_str(&text).map_err(anyhow::Error::from)?;
    let mut out = console::stdout();
    serde_json::to_writer_pretty(&mut out, &input).map_err(anyhow::Error::from)?;
    writeln!(out)?;
    out.flush()?;
    Ok(ExitStatus::Success)
}

fn of_stack(chdir: &[PathBuf], stack: &str, state: EndState) -> Result<String> {
    let mut context = CommandContext::new(chdir, None, Reads::CONFIGURATION)?;
    context.check(None)?;
    let stack = one_stack(&context, stack)?;
    let facts = context.run_facts(&[])?;
    let mut scenario = Scenario::new(&context.project, policies::worker()?, facts);
    Ok(scenario.input(stack, state.turn_state()))
}
