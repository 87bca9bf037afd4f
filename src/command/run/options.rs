//! The options of `orch run`.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use crate::change::EntryIndex;
use crate::context::{Context, RollbackFlags};
use crate::diagnostic::closest;
use crate::error::{Error, Result};
use crate::path::StackPath;
use crate::plan::stale::record_of;
use crate::printable::printable;
use crate::project::config::TagLimit;
use crate::project::policy::PolicyRun;
use crate::project::stack::{StackIndex, Stacks};
use crate::record::results::OrderOutline;
use crate::run::run_command::CommandKind;
use crate::run::safeguard::Disabled;
use crate::run::settings::{RunSettings, SettingsError};
use crate::state::document::{Document, OrderJob};
use crate::state::job_lease::JobLease;
use crate::state::results::LatestAttempts;

#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct RunOptions {
    /// Empty if a run is resumed.
    pub command: Vec<OsString>,
    pub kind: CommandKind,
    pub is_reverse: bool,
    pub settings: RunSettings,
    pub resume: Option<ResumeOptions>,
    pub allow_concurrent: bool,
    pub policies: PolicyOptions,
    pub rollback: RollbackFlags,
    pub is_about_changes: bool,
    /// How long to wait for the state lock.
    pub lock_timeout: Duration,
    pub fails_if_empty: bool,
    /// The job of a work order that the run is, if it is one.
    pub job: Option<RunJob>,
    /// The results of its work order.
    pub results: Option<JobResults>,
    /// Whether only other machines run it, which may have more programs and variables.
    pub runs_elsewhere: bool,
    pub disabled: Disabled,
}

pub struct RunJob {
    pub order: OrderJob,
    /// The stacks of the whole work order, if none has begun.
    pub unbegun: Vec<StackIndex>,
    /// What the state had of its stacks before the lock was taken, by stack.
    pub records: BTreeMap<StackPath, Option<String>>,
}

/// The results of a work order, for one of its jobs.
#[derive(Clone)]
pub struct JobResults {
    pub outline: Arc<OrderOutline>,
    /// The attempts at its turns before the gate, if they show what is done.
    pub seen: Option<SeenAttempts>,
    pub lease: Option<Arc<JobLease>>,
}

/// The latest attempts at some turns of a work order.
#[derive(Debug, Clone)]
pub struct SeenAttempts {
    pub turns: Vec<usize>,
    pub latest: LatestAttempts,
}

pub struct ResumeOptions {
    /// The run as the user names it.
    pub run: String,
    /// Whether only failed stacks are run again.
    pub only_failed: bool,
    pub allow_stale: bool,
}

pub struct PolicyOptions {
    /// `None` if the project decides.
    pub mode: Option<PolicyRun>,
    pub followup: Option<String>,
    pub metadata: Vec<String>,
}

impl RunJob {
    /// Refuses a run whose stacks another run has changed since the gate.
    pub(super) fn check(&self, stacks: &Stacks, document: &Document) -> Result<()> {
        let records = records_of(stacks, document, self.records.keys());
        let changed = records
            .iter()
            .find(|(stack, record)| self.records.get(*stack) != Some(record));
        match changed {
            None => Ok(()),
            Some((stack, _)) => Err(changed_meanwhile("changed", stack.as_str())),
        }
    }
}

/// Returns the error of a job if another run of it has changed or run a stack since the gate.
pub(in crate::command) fn changed_meanwhile(verb: &str, stack: &str) -> Error {
    let stack = printable(stack);
    Error::refused(format!(
        "another run of the job has {verb} {stack} meanwhile"
    ))
    .hint("run the job again: it skips stacks that are done")
}

pub(in crate::command) fn records_of<'s>(
    stacks: &Stacks,
    document: &Document,
    paths: impl Iterator<Item = &'s StackPath>,
) -> BTreeMap<StackPath, Option<String>> {
    let pairs = EntryIndex::new(stacks, document);
    let record = |path: &StackPath| {
        let key = stacks.find(path).and_then(|stack| pairs.key(stack))?;
        document.stacks.get(key).map(record_of)
    };
    paths.map(|path| (path.clone(), record(path))).collect()
}

impl PolicyOptions {
    pub fn off() -> Self {
        PolicyOptions {
            mode: Some(PolicyRun::Off),
            followup: None,
            metadata: Vec::new(),
        }
    }
}

impl RunOptions {
    /// Refuses a tag with two limits, and notes limits without effect.
    pub(super) fn check_limits(&self, context: &Context) -> Result<()> {
        let stacks = &context.project.stacks;
        let mut seen = HashSet::new();
        for TagLimit { tag, at_once } in &self.settings.limits {
            if !seen.insert(tag.as_str()) {
                let message = format!("in --limit: `{tag}` is limited twice; remove one of them");
                return Err(Error::usage(message));
            }
            if !stacks.has_tag(tag) {
                let meant = closest(tag, stacks.tags())
                    .map_or(String::new(), |tag| format!("; did you mean `{tag}`?"));
                context.notices.note(&format!(
                    "`--limit {tag}={at_once}` has no effect: no stack has the tag{meant}"
                ));
            }
        }
        Ok(())
    }
}

/// Explains why settings cannot be applied.
pub(super) fn explained(context: &Context, error: SettingsError) -> Error {
    Error::usage(match error {
        SettingsError::Pattern { pattern, problem } => {
            format!("in --retry-on-output: `{pattern}`: {problem}")
        }
        SettingsError::NoRetryCondition { retries, stacks } => format!(
            "--retries {retries} needs a condition for {}: add --retry-on-exit STATUS or --retry-on-output REGEX, or a `retry` block to the configuration",
            context.names(&stacks),
        ),
        SettingsError::NothingIsRetried { setting } => format!(
            "--{setting} has no effect without --retries N: no selected stack is configured to be retried"
        ),
    })
}
