//! Running the tools that a plan asks, as a run of its own, whose output is shown only where a tool fails.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _};

use anyhow::Context as _;
use orch::context::Context;
use orch::error::Error;
use orch::exit::ExitStatus;
use orch::path::StackPath;
use orch::plan::planner::{Ask, AskRun, AskedRun, NO_ROOM};
use orch::plan::{CannotAsk, DriverRun, HiddenOption, begin};
use orch::printable::printable;
use orch::project::discover::RootRule;
use orch::record::logs::{LogReader, Logs};
use orch::report::{failure_reason, failure_text, first_error};
use orch::run::begun::Circumstances;
use orch::run::event::Ending;
use orch::run::execute::Outlet;
use orch::run::request::Typed;
use orch::run::run_command::RunCommand;
use orch::run::schedule::OnError;

use super::starts::PlanStarts;
use crate::program::commands::run::command::CommandLines;
use crate::program::commands::run::output::{How, Output, Show, Shown};
use crate::program::commands::run::{begin_error, holder, show_missing};
use crate::program::console;
use crate::program::error::Result;

/// The tools of the stacks, run as commands of this process.
pub(in crate::program::commands) struct Tools;

impl Ask for Tools {
    fn run(&self, context: &Context, run: AskRun<'_>) -> Result<AskedRun, Error> {
        Ok(run_tools(context, run)?)
    }

    fn why_failed(&self, ending: &Ending, stack: &StackPath, logs: Option<&Logs>) -> String {
        why_failed(ending, stack, logs)
    }

    fn failure(&self, ending: &Ending) -> Option<String> {
        failure_text(ending)
    }

    fn show_log(
        &self,
        stack: &StackPath,
        why: &str,
        log: Option<io::Result<LogReader>>,
    ) -> Result<(), Error> {
        Ok(show_log(stack, why, log)?)
    }

    fn refuse(&self, context: &Context, cannot: CannotAsk) -> Error {
        cannot_ask(context, cannot)
    }
}

/// Runs the tools; on a terminal, shows how far they are.
fn run_tools(context: &Context, run: AskRun<'_>) -> Result<AskedRun> {
    let root = &context.project.root;
    let AskRun {
        id,
        origin,
        jobs,
        asking,
    } = run;
    let run = DriverRun {
        id,
        purpose: origin.purpose,
        plan: None,
        on_error: OnError::Continue,
        jobs,
        typed: Typed {
            arguments: std::env::args_os().skip(1).collect(),
            directory: context.directory.clone(),
        },
        policies: None,
        base: origin.base,
    };
    let circumstances = Circumstances {
        is_recorded: origin.is_recorded && context.rule != RootRule::WorkingDirectory,
        allow_concurrent: false,
        uncommitted: None,
        is_reported: false,
        events: None,
        inbox: None,
    };
    let turns = asking.execution.turns.clone();
    let begun = begin(
        asking.execution,
        asking.tasks,
        &run,
        &context.project,
        &context.references,
        circumstances,
    );
    let begun = begun.map_err(|error| begin_error(error, false))?;
    begun.notes.iter().for_each(holder::show);
    let command = RunCommand::plain(vec!["plan".into()]);
    let mut output = Output::new(
        root,
        Shown {
            how: How::Captured {
                show: Show::Silent,
                outlet: Outlet::Pipes,
            },
            commands: CommandLines::new(&command, &[]),
            // Only a terminal shows how far it is.
            is_quiet: !std::io::stderr().is_terminal(),
            jobs,
            run_id: id,
            logs: begun.folder().map(|folder| folder.join("logs")),
            past: &HashMap::new,
        },
    )?;
    let logs = output.logs().expect("the output is captured");
    let mut starts = PlanStarts::new(logs, &turns);
    let ended = begun.carry_out(output.streams()?, &mut [&mut output, &mut starts], None);
    let output = output.end();
    if let Some(problem) = ended.problem {
        context.notices.warning(&problem.to_string());
    }
    Ok(AskedRun {
        summary: ended.summary,
        output,
        starts: starts.into_offsets(),
    })
}

/// Returns why a tool has failed, with the first error that it has printed.
fn why_failed(ending: &Ending, path: &StackPath, logs: Option<&Logs>) -> String {
    let how = failure_reason(ending).unwrap_or_else(|| "its tool was not asked".to_owned());
    let log = logs.map(|logs| logs.reader(ending.turn.get() + 1, path.as_str(), ending.attempts));
    match log.and_then(|log| first_error(log.transpose()?)) {
        Some(error) => format!("{error} ({how})"),
        None => how,
    }
}

/// Returns why the tools cannot be asked.
pub(in crate::program::commands) fn cannot_ask(context: &Context, cannot: CannotAsk) -> Error {
    match cannot {
        CannotAsk::Problems(shared) => {
            context.give_shared(shared);
            ExitStatus::Configuration.into()
        }
        CannotAsk::Programs(missing) => {
            show_missing(context, &missing);
            ExitStatus::External.into()
        }
        CannotAsk::Removed(stack, why) => Error::external(format!(
            "`{}` was removed, and its code cannot be used: {}",
            printable(stack.as_str()),
            printable(&why)
        )),
        CannotAsk::Hidden(found) => hidden(&found),
        CannotAsk::Folder(error) => Error::described(NO_ROOM, error),
    }
}

/// Refuses options that would change what the tools do.
fn hidden(found: &[HiddenOption]) -> Error {
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    let message = format!(
        "options would change what the tools do, so nothing was run:\n  {}",
        lines.join("\n  ")
    );
    Error::refused(message).hint("remove the option; instead, run `orch destroy` or `orch plan --refresh-only`, or add `-target` after `--`")
}

/// Shows on stderr why a tool has failed in a stack, and what it has printed.
fn show_log(stack: &StackPath, why: &str, log: Option<io::Result<LogReader>>) -> Result<()> {
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
