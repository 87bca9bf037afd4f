//! How the planner has tools run: who uses the planner implements [`Ask`]. Runs `init` before anything
//! else, where it has not run yet.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tempfile::TempDir;

use crate::context::{Context, PLANS as FOLDER, PrivateFolder};
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::path::StackPath;
use crate::plan::ask::{self, AskOptions, PreparedQuestions};
use crate::plan::code::PlanCode;
use crate::plan::inputs::StackInputs;
use crate::plan::stack::PlanStack;
use crate::plan::{CannotAsk, Purpose};
use crate::record::journal::BaseRecord;
use crate::record::logs::{LogReader, Logs};
use crate::run::event::{Ending, RunSummary};
use crate::run::request::new_id;

/// The error if the folder for answers and plans cannot be created.
pub const NO_FOLDER: &str = "failed to make room for the plans";

/// Runs the tools' commands and shows failures. The planner decides which tools to ask.
pub trait Ask {
    /// Runs the tools and returns how each ended. Fails if the run cannot begin or a signal ends it.
    fn run(
        &self,
        context: &Context,
        options: &AskOptions<'_>,
        origin: RunOrigin,
        asking: PreparedQuestions,
    ) -> Result<AskedRun>;

    /// Describes a tool's failure, with the first error that it printed.
    fn why_failed(&self, ending: &Ending, stack: &StackPath, logs: Option<&Logs>) -> String;

    fn failure(&self, ending: &Ending) -> Option<String>;

    /// Shows a tool's failure in a stack, with its output. Fails if the log cannot be read.
    fn show_log(
        &self,
        stack: &StackPath,
        why: &str,
        log: Option<io::Result<LogReader>>,
    ) -> Result<()>;

    fn refuse(&self, context: &Context, cannot: CannotAsk) -> Error;
}

pub struct AskedRun {
    pub summary: Arc<RunSummary>,
    pub output: EndedOutput,
    /// By turn: the offset of the plan in its log, unless it is 0.
    pub starts: BTreeMap<usize, u64>,
}

pub struct EndedOutput {
    pub logs: Option<Logs>,
    /// Where the logs are, if they are not kept.
    pub temporary: Option<TempDir>,
}

impl EndedOutput {
    pub fn is_kept(&self) -> bool {
        self.logs.is_some() && self.temporary.is_none()
    }
}

#[derive(Clone)]
pub struct RunOrigin {
    pub purpose: Purpose,
    pub base: Option<BaseRecord>,
    pub is_recorded: bool,
}

impl Context {
    /// Runs `init` in the stacks whose outputs some stacks need for their inputs, unless it has run. If a
    /// tool fails, the step that reads the outputs reports the failure.
    pub fn init_sources(
        &self,
        tools: &dyn Ask,
        jobs: NonZeroUsize,
        inputs: &StackInputs<'_>,
        stacks: impl Iterator<Item = PlanStack>,
    ) -> Result<()> {
        let sources = stacks
            .flat_map(|stack| inputs.needed(stack))
            .map(|position| inputs.source(position))
            // Removed stacks are ready.
            .filter(|source| source.stack.here().is_some())
            .map(|source| (source.stack, source.driver));
        let sources: BTreeMap<PlanStack, Driver<'_>> = sources.collect();
        let sources: Vec<_> = sources.into_iter().collect();
        let environments = self.evaluator();
        let codes = PlanCode::of_tree(&self.project, &environments);
        self.init(tools, jobs, codes, &sources)
    }

    /// Runs `init` in the stacks in which it has not run yet.
    pub(super) fn init(
        &self,
        tools: &dyn Ask,
        jobs: NonZeroUsize,
        codes: PlanCode<'_, '_>,
        stacks: &[(PlanStack, Driver<'_>)],
    ) -> Result<()> {
        if stacks.is_empty() {
            return Ok(());
        }
        let id = new_id(&self.project.root);
        let place = PrivateFolder::of(self, FOLDER)?;
        let options = AskOptions::new(&id, place.path(), jobs);
        let Ok(asking) = ask::prepare_init(codes, stacks, &options) else {
            return Ok(());
        };
        if asking.execution.turns.is_empty() {
            return Ok(());
        }
        let origin = RunOrigin {
            purpose: Purpose::Plan,
            base: None,
            is_recorded: false,
        };
        tools.run(self, &options, origin, asking)?;
        Ok(())
    }
}
