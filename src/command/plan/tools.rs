//! Runs the tools of a plan, in a run of its own that shows output only if a tool fails.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::command::run::show_missing;
use crate::command::{RunSession, RunTerminal, ToolRun};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::ExitStatus;
use crate::path::StackPath;
use crate::plan::ask::{AskOptions, PreparedQuestions};
use crate::plan::planner::{Ask, AskedRun, NO_FOLDER, RunOrigin};
use crate::plan::{CannotAsk, DriverRun, HiddenOption, Purpose, begin};
use crate::printable::printable;
use crate::project::discover::RootRule;
use crate::project::driver::DriverStep;
use crate::record::logs::{LogReader, Logs};
use crate::report::{failure_reason, failure_text, first_error};
use crate::run::event::{Ending, RunEvent, Sink};
use crate::run::recording::Concurrency;
use crate::run::request::Invocation;
use crate::run::schedule::OnError;
use crate::run::started::BeginOptions;
use crate::run::turn::{Step, Turn};

/// The tools of the stacks, as child processes.
pub struct Tools<'t> {
    pub terminal: &'t dyn RunTerminal,
}

impl Ask for Tools<'_> {
    /// Runs the tools; shows progress on a terminal.
    fn run(
        &self,
        context: &Context,
        options: &AskOptions<'_>,
        origin: RunOrigin,
        asking: PreparedQuestions,
    ) -> Result<AskedRun> {
        let (id, jobs) = (options.run, options.jobs);
        let run = DriverRun {
            id,
            purpose: origin.purpose,
            plan: None,
            on_error: OnError::Continue,
            jobs,
            invocation: Invocation {
                arguments: std::env::args_os().skip(1).collect(),
                directory: context.directory.clone(),
            },
            policies: None,
            resumes: None,
            part_of: None,
            base: origin.base,
        };
        let circumstances = BeginOptions {
            results: None,
            is_recorded: origin.is_recorded && context.rule != RootRule::WorkingDirectory,
            notices: &context.notices,
            beside: Concurrency::None { has_flag: false },
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
        let session = RunSession::new(context, begun?);
        let folder = session.folder().map(Path::to_owned);
        let output = self.terminal.output(&ToolRun {
            root: &context.project.root,
            id,
            folder: folder.as_deref(),
            purpose: Purpose::Plan,
            jobs,
            is_quiet: false,
        })?;
        let logs = output.logs().expect("the output is captured");
        let mut starts = PlanStarts::new(logs, &turns);
        let (ended, output) = session.execute(output, &mut [&mut starts], None)?;
        let summary = ended.summary;
        if summary.signal.is_some() {
            return Err(ExitStatus::Run(summary.exit_status()).into());
        }
        Ok(AskedRun {
            summary,
            output,
            starts: starts.into_offsets(),
        })
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
    ) -> Result<()> {
        self.terminal.show_log(stack, why, log)
    }

    fn refuse(&self, context: &Context, cannot: CannotAsk) -> Error {
        cannot_ask(context, cannot)
    }
}

/// Returns why a tool failed, with the first error that it printed.
fn why_failed(ending: &Ending, path: &StackPath, logs: Option<&Logs>) -> String {
    let how = failure_reason(ending).unwrap_or_else(|| "its tool was not asked".to_owned());
    let log = logs.map(|logs| logs.reader(ending.turn.get() + 1, path.as_str(), ending.attempts));
    match log.and_then(|log| first_error(log.transpose()?)) {
        Some(error) => format!("{error} ({how})"),
        None => how,
    }
}

/// Returns why the tools cannot run.
pub fn cannot_ask(context: &Context, cannot: CannotAsk) -> Error {
    match cannot {
        CannotAsk::Problems(shared) => {
            context.report_shared(shared);
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
        CannotAsk::Folder(error) => Error::described(NO_FOLDER, error),
    }
}

/// Refuses options that would change what the tools do.
fn hidden(found: &[HiddenOption]) -> Error {
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    let message = format!(
        "nothing was run, because options would change what the tools do:\n  {}",
        lines.join("\n  ")
    );
    Error::refused(message).hint("remove the option; instead, run `orch destroy` or `orch plan --refresh-only`, or add `-target` after `--`")
}

pub(super) struct PlanStarts {
    logs: Logs,
    turns: Vec<Asked>,
    /// The offsets of the plans that have begun, by turn, from 0.
    starts: BTreeMap<usize, u64>,
}

struct Asked {
    stack: StackPath,
    /// The planning step.
    step: usize,
    attempt: u32,
}

impl PlanStarts {
    pub(super) fn new(logs: Logs, turns: &[Turn]) -> Self {
        let is_init = |step: &Step| match step {
            Step::CommandWith(name, _) => **name == *DriverStep::Init.name(),
            _ => false,
        };
        let turns = turns.iter().map(|turn| Asked {
            stack: turn.stack.clone(),
            step: turn.steps.iter().take_while(|step| is_init(step)).count(),
            attempt: 1,
        });
        PlanStarts {
            logs,
            turns: turns.collect(),
            starts: BTreeMap::new(),
        }
    }

    pub(super) fn into_offsets(self) -> BTreeMap<usize, u64> {
        self.starts
    }
}

impl Sink for PlanStarts {
    fn event(&mut self, event: &RunEvent) -> io::Result<()> {
        match *event {
            RunEvent::Started { turn, attempt } => {
                let asked = &mut self.turns[turn.get()];
                asked.attempt = attempt;
                if asked.step == 0 {
                    self.starts.insert(turn.get(), 0);
                } else {
                    self.starts.remove(&turn.get());
                }
            }
            // The output of the step before is in the log by now.
            RunEvent::StepStarted { turn, step } => {
                let asked = &self.turns[turn.get()];
                if asked.step == step {
                    let (position, path) = (turn.get() + 1, asked.stack.as_str());
                    let log = self.logs.file(position, path, asked.attempt);
                    let length = fs::metadata(log).map_or(0, |log| log.len());
                    self.starts.insert(turn.get(), length);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
