//! The program's part of an apply: loads the project, plans follow-ups, and prompts the user.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use orch::command::apply::ApplyTerminal;
use orch::command::plan::Planned;
use orch::command::{RunOutput, RunTerminal, ToolRun};
use orch::context::Context;
use orch::error::{ErrorContext as _, Result};
use orch::path::StackPath;
use orch::plan::Purpose;
use orch::plan::entry::{PlanMode, PlanOptions};
use orch::record::logs::LogReader;
use orch::run::execute::Outlet;

use super::{ExecutionArgs, ToolOutputArg};
use crate::program::commands::format::DetailsArg;
use crate::program::commands::plan::{PlanningArgs, PlanningRequest, planned, shown};
use crate::program::commands::run::output::{OutputFilter, OutputMode, is_unattended};
use crate::program::commands::selection_flags::SelectArgs;
use crate::program::commands::terminal::{PlanTerminal, output};
use crate::program::commands::{CommandContext, ReadStatus, Reads};
use crate::program::console;

/// The terminal of an apply, with the plan's flags.
pub(super) struct ConsoleApply<'a> {
    pub(super) chdir: &'a [PathBuf],
    pub(super) args: &'a ExecutionArgs,
    pub(super) planning: &'a PlanningArgs,
}

impl RunTerminal for ConsoleApply<'_> {
    fn output<'o>(&'o self, run: &ToolRun<'o>) -> Result<Box<dyn RunOutput + 'o>> {
        if run.purpose != Purpose::Apply {
            return PlanTerminal.output(run);
        }
        let show = match self.args.output {
            ToolOutputArg::Auto if run.jobs.get() == 1 && !is_unattended() => {
                OutputFilter::Prefixed
            }
            ToolOutputArg::Auto | ToolOutputArg::Grouped => OutputFilter::Grouped,
            ToolOutputArg::Prefixed => OutputFilter::Prefixed,
            ToolOutputArg::Errors => OutputFilter::Errors,
            ToolOutputArg::None => OutputFilter::None,
        };
        let outlet = if console::is_one_stream() {
            Outlet::OnePipe
        } else {
            Outlet::Pipes
        };
        output(
            run,
            OutputMode::Captured { show, outlet },
            "apply",
            run.is_quiet,
        )
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

impl ApplyTerminal for ConsoleApply<'_> {
    fn load(&self) -> Result<Context> {
        let reads = Reads::CONFIGURATION
            .with_listing()
            .with_status(ReadStatus::Exact);
        let mut context = CommandContext::new(self.chdir, None, reads)?;
        context.check(None)?;
        Ok(context.context)
    }

    fn plan(&self, stacks: &[StackPath]) -> Result<Planned> {
        let policies = self.args.policies.saved();
        let request = PlanningRequest {
            select: &SelectArgs::default(),
            planning: self.planning,
            options: PlanOptions {
                mode: PlanMode::Normal,
                // Its tool has found changes in each, even if no input differs.
                is_full: true,
            },
            replace: &[],
            is_kept: true,
            file: None,
            guard: None,
            policies: Some(&policies),
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
