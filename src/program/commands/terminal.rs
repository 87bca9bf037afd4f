//! Shows the runs of tools.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _};

use orch::command::{RunOutput, RunTerminal, ToolRun};
use orch::error::{ErrorContext as _, Result};
use orch::path::StackPath;
use orch::printable::printable;
use orch::record::logs::LogReader;
use orch::report::CommandLines;
use orch::run::execute::Outlet;
use orch::run::run_command::RunCommand;

use super::run::output::{Output, OutputConfig, OutputFilter, OutputMode};
use crate::program::console;

/// Shows the runs of tools that plan.
pub(super) struct PlanTerminal;

impl RunTerminal for PlanTerminal {
    fn output<'o>(&'o self, run: &ToolRun<'o>) -> Result<Box<dyn RunOutput + 'o>> {
        let how = OutputMode::Captured {
            show: OutputFilter::Silent,
            outlet: Outlet::Pipes,
        };
        // Only a terminal shows progress.
        output(run, how, "plan", !io::stderr().is_terminal())
    }

    fn show_log(
        &self,
        stack: &StackPath,
        why: &str,
        log: Option<io::Result<LogReader>>,
    ) -> Result<()> {
        let mut writers = console::writers_to_stderr();
        // A reason may quote the output of a driver.
        let why = printable(why);
        writers.say(&format!("orch: {}: {why}\n", printable(stack.as_str())));
        let Some(log) = log else {
            return Ok(());
        };
        let failed = "failed to read the output of a tool";
        writers.log(log.context(failed)?).context(failed)?;
        writers.end_text();
        Ok(())
    }
}

/// Begins to show a run of tools with a command.
pub(super) fn output<'o>(
    run: &ToolRun<'o>,
    how: OutputMode,
    command: &str,
    is_quiet: bool,
) -> Result<Box<dyn RunOutput + 'o>> {
    let command = RunCommand::plain(vec![command.into()]);
    let output = Output::new(
        run.root,
        OutputConfig {
            how,
            commands: CommandLines::new(&command, &[]),
            is_quiet,
            jobs: run.jobs,
            run_id: run.id,
            logs: run.folder.map(|folder| folder.join("logs")),
            past: &HashMap::new,
        },
    )?;
    Ok(Box::new(output))
}
