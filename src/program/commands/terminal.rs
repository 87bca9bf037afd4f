//! Shows the runs of tools and their plans, and asks the user.

use std::collections::HashMap;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use orch::context::Context;
use orch::error::{ErrorContext as _, Result};
use orch::path::StackPath;
use orch::plan::Purpose;
use orch::plan::entry::{PlanMode, PlanOptions};
use orch::printable::printable;
use orch::record::logs::LogReader;
use orch::report::CommandLines;
use orch::run::execute::Outlet;
use orch::run::run_command::RunCommand;
use orch::command::apply::ApplyTerminal;
use orch::command::plan::Planned;
use orch::command::{RunOutput, RunTerminal, ShownRun};

use super::apply::{CarryingArgs, OutputArg};
use super::format::DetailsArg;
use super::plan::{PlanRequest, PlanningArgs, planned, shown};
use super::run::output::{How, Output, Show, Shown, is_nobody_there};
use super::selection_flags::SelectArgs;
use super::{Loaded, ReadStatus, Reads};
use crate::program::console;

/// Shows the runs of tools that plan.
pub(super) struct PlanTerminal;

impl RunTerminal for PlanTerminal {
    fn output<'o>(&'o self, run: &ShownRun<'o>) -> Result<Box<dyn RunOutput + 'o>> {
        let how = How::Captured {
            show: Show::Silent,
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
        // A reason may quote what a driver has written.
        let why = printable(why);
        writers.say(&format!("orch: {}: {why}\n", printable(stack.as_str())));
        let Some(log) = log else {
            return Ok(());
        };
        let failed = "failed to read what a tool has printed";
        writers.log(log.context(failed)?).context(failed)?;
        writers.end_text();
        Ok(())
    }
}

fn output<'o>(
    run: &ShownRun<'o>,
    how: How,
    command: &str,
    is_quiet: bool,
) -> Result<Box<dyn RunOutput + 'o>> {
    let command = RunCommand::plain(vec![command.into()]);
    let output = Output::new(
        run.root,
        Shown {
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

/// The same for an apply, and what it asks.
pub(super) struct Applying<'a> {
    pub(super) chdir: &'a [PathBuf],
    pub(super) args: &'a CarryingArgs,
    pub(super) planning: &'a PlanningArgs,
}

impl RunTerminal for Applying<'_> {
    fn output<'o>(&'o self, run: &ShownRun<'o>) -> Result<Box<dyn RunOutput + 'o>> {
        if run.purpose != Purpose::Apply {
            return PlanTerminal.output(run);
        }
        let show = match self.args.output {
            OutputArg::Auto if run.jobs.get() == 1 && !is_nobody_there() => Show::Prefixed,
            OutputArg::Auto | OutputArg::Grouped => Show::Grouped,
            OutputArg::Prefixed => Show::Prefixed,
            OutputArg::Errors => Show::Errors,
            OutputArg::None => Show::None,
        };
        let outlet = if console::is_one_stream() {
            Outlet::OnePipe
        } else {
            Outlet::Pipes
        };
        output(run, How::Captured { show, outlet }, "apply", run.is_quiet)
    }

    fn show_log(
        &self,
        stack: &StackPath,
        why: &str,
        log: Option<io::Result<LogReader>>,
    ) -> Result<()> {
        PlanTerminal.show_log(stack, why, log)
    }
}

impl ApplyTerminal for Applying<'_> {
    fn load(&self) -> Result<Context> {
        let reads = Reads::CONFIGURATION
            .with_listing()
            .with_status(ReadStatus::Exact);
        let mut loaded = Loaded::new(self.chdir, None, reads)?;
        loaded.check(None)?;
        Ok(loaded.context)
    }

    fn plan(&self, stacks: &[StackPath]) -> Result<Planned> {
        let policies = self.args.policies.saved();
        let request = PlanRequest {
            select: &SelectArgs::default(),
            planning: self.planning,
            options: PlanOptions {
                mode: PlanMode::Normal,
                // Each was to change by what its tool said, whatever its inputs say.
                is_full: true,
            },
            replace: &[],
            is_kept: true,
            guard: None,
            policies: Some(&policies),
            is_verification: false,
            only: Some(stacks),
            document: None,
            leaves_out_failed: false,
            lock_timeout: self.args.lock_timeout,
        };
        Ok(planned(self.chdir, &request)?)
    }

    fn show(&self, planned: &Planned) -> Result<()> {
        Ok(shown::show(planned, DetailsArg::of(self.args.details))?)
    }

    fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    fn ask(&self, question: &str) -> Result<String> {
        let failed = "failed to ask for approval";
        let mut err = console::stderr();
        err.write_all(question.as_bytes()).context(failed)?;
        err.flush().context(failed)?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).context(failed)?;
        Ok(answer.trim().to_owned())
    }
}
