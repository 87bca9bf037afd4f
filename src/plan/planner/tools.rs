//! How the planner has tools run. Who uses the planner implements [`Ask`]; this module runs nothing itself.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tempfile::TempDir;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::path::StackPath;
use crate::plan::ask::{AskOptions, PreparedQuestions};
use crate::plan::{CannotAsk, Purpose};
use crate::record::journal::BaseRecord;
use crate::record::logs::{LogReader, Logs};
use crate::run::event::{Ending, RunSummary};

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

/// How a planning run came about, for its journal.
#[derive(Clone)]
pub struct RunOrigin {
    pub purpose: Purpose,
    pub base: Option<BaseRecord>,
    pub is_recorded: bool,
}
