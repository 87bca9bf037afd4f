//! A run from its beginning to its end, for every command that runs something.

use std::collections::HashMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;

use serde_json::value::RawValue;

use super::workflow::{PreparedPolicies, follow, keep_release_samples};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::path::StackPath;
use crate::plan::Purpose;
use crate::plan::planner::EndedOutput;
use crate::printable::printable;
use crate::project::stack::StackIndex;
use crate::record::logs::{LogReader, Logs};
use crate::report::failure_text;
use crate::run::directed::Director;
use crate::run::event::{RunSummary, Sink};
use crate::run::execute::{Streams, Task};
use crate::run::results::UnsentResult;
use crate::run::started::{EndedRun, StartedRun};
use crate::run::state::StatePlan;
use crate::run::state_lock::StateLock;
use crate::run::turn::Step;
use crate::state::writer::WriterEnd;

pub trait RunOutput: Sink {
    fn streams(&self) -> Result<Streams<'static>>;

    /// Returns the logs, if the output is captured.
    fn logs(&self) -> Option<Logs>;

    /// Returns once everything is shown.
    fn end(self: Box<Self>) -> EndedOutput;
}

pub trait RunTerminal {
    fn output<'o>(&'o self, run: &ToolRun<'o>) -> Result<Box<dyn RunOutput + 'o>>;

    fn show_log(
        &self,
        stack: &StackPath,
        why: &str,
        log: Option<io::Result<LogReader>>,
    ) -> Result<()>;
}

pub struct ToolRun<'a> {
    pub root: &'a Path,
    pub id: &'a str,
    /// The folder of the run, if it is recorded.
    pub folder: Option<&'a Path>,
    pub purpose: Purpose,
    pub jobs: NonZeroUsize,
    /// Whether only failures are shown.
    pub is_quiet: bool,
}

/// A run that has begun. If it is dropped before it runs, its files are removed.
pub struct RunSession<'c> {
    pub(super) context: &'c Context,
    begun: Option<StartedRun>,
}

impl<'c> RunSession<'c> {
    pub(super) fn new(context: &'c Context, begun: StartedRun) -> Self {
        RunSession {
            context,
            begun: Some(begun),
        }
    }

    pub(super) fn begun(&self) -> &StartedRun {
        self.begun.as_ref().expect("the run continues")
    }

    /// Returns the folder of the run, if it is recorded.
    pub fn folder(&self) -> Option<&Path> {
        self.begun().folder()
    }

    pub fn id(&self) -> &str {
        self.begun().id()
    }

    pub(super) fn keep_state(&mut self, lock: StateLock, plan: StatePlan) -> Result<()> {
        let begun = self.begun.take().expect("the run continues");
        let run = begun.id().to_owned();
        self.begun = Some(lock.begin(begun, plan, &self.context.project, &run)?);
        Ok(())
    }

    /// Puts steps before the commands of turns; see [`StartedRun::preceded`].
    pub(super) fn precede(&mut self, steps: HashMap<StackPath, Vec<(Step, Task)>>) {
        let begun = self.begun.take().expect("the run continues");
        self.begun = Some(begun.preceded(steps));
    }

    pub(super) fn keep_release_samples(&self, samples: &[(String, Box<RawValue>)]) {
        keep_release_samples(&self.context.project.root, self.begun(), samples);
    }

    /// Makes policies follow the run; see [`StartedRun::follow`].
    pub(super) fn follow(&mut self, prepared: PreparedPolicies) -> Result<()> {
        let begun = self.begun.take().expect("the run continues");
        let begun = follow(&self.context.project.root, begun, prepared)?;
        self.begun = Some(begun);
        Ok(())
    }

    /// Runs the commands until all have ended. The sinks receive each event before the output does.
    pub(super) fn execute(
        mut self,
        mut output: Box<dyn RunOutput + '_>,
        sinks: &mut [&mut dyn Sink],
        director: Option<&mut dyn Director>,
    ) -> Result<(EndedRun, EndedOutput)> {
        let streams = output.streams()?;
        let begun = self.begun.take().expect("the run continues");
        let mut all: Vec<&mut dyn Sink> = Vec::new();
        all.extend(sinks.iter_mut().map(|sink| &mut **sink as &mut dyn Sink));
        all.push(&mut *output);
        let ended = begun.execute(streams, &mut all, director);
        let shown = output.end();
        if let Some(problem) = &ended.problem {
            self.context.notices.warning(&problem.to_string());
        }
        for UnsentResult { stack, problem } in ended.unsent.iter().flatten() {
            let stack = printable(stack);
            self.context.notices.warning(&format!(
                "the result of {stack} is only on this machine: {problem}"
            ));
        }
        Ok((ended, shown))
    }
}

impl Drop for RunSession<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            begun.give_up();
        }
    }
}

/// Reports the failures of a run to the CI system, given the stack of each turn; `None` for a
/// removed one.
pub(super) fn annotate(context: &Context, sequence: &[Option<StackIndex>], summary: &RunSummary) {
    let failures: Vec<_> = summary
        .endings
        .iter()
        .filter_map(|ending| {
            let stack = (*sequence.get(ending.turn.get())?)?;
            let stack = &context.project.stacks[stack];
            Some((stack.path.as_str(), stack.span, failure_text(ending)?))
        })
        .collect();
    context
        .notices
        .failures(&failures, &context.project.sources);
}

/// Returns whether the state or the store lacks any records of the run, and prints which.
pub(super) fn is_lost(context: &Context, ended: &EndedRun, run: &str) -> bool {
    let Some(WriterEnd::Lost { loss, unkept }) = &ended.state else {
        if ended.has_unsent_destroys {
            let what =
                "stacks were destroyed but are recorded as failed: their results could not be sent";
            context.notices.error(&Error::external(what.to_owned()));
            let hint = "run the job again; destroying them a second time is safe";
            context.notices.help(hint);
        }
        return ended.has_unsent_destroys;
    };
    let error = Error::external(format!("not everything was recorded: {loss}"));
    context.notices.error(&error);
    context.notices.note(&match unkept {
        None => {
            format!("once the state can be written, run `orch state recover {run}`")
        }
        Some(problem) => format!(
            "it cannot be recovered, since it could not be kept on this machine either: {problem}"
        ),
    });
    true
}
