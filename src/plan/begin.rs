//! Begins the runs of `plan` and `apply`, which are recorded and locked like any other run.

use std::collections::HashSet;
use std::ffi::OsString;
use std::num::NonZeroUsize;

use jiff::Timestamp;

use crate::author;
use crate::error::Result;
use crate::project::Project;
use crate::record::journal::Word;
use crate::record::journal::{
    BaseRecord, Direction, FORMAT, Header, PLAN_FOLLOW_UPS, PoliciesRecord, arguments,
};
use crate::run::execute::{Execution, Task};
use crate::run::request::{Invocation, head, names};
use crate::run::schedule::OnError;
use crate::run::settings::RunSettings;
use crate::run::started::{BeginOptions, StartedRun};
use crate::selection::graph::digest;
use crate::selection::reference::References;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Plan,
    /// Plans the unapproved follow-ups of an apply.
    PlanFollowUps,
    Apply,
}

impl Purpose {
    pub fn word(self) -> &'static str {
        match self {
            Purpose::Plan => "plan",
            Purpose::PlanFollowUps => PLAN_FOLLOW_UPS,
            Purpose::Apply => "apply",
        }
    }

    pub fn command(self) -> &'static str {
        match self {
            Purpose::Plan | Purpose::PlanFollowUps => "plan",
            Purpose::Apply => "apply",
        }
    }
}

pub struct DriverRun<'a> {
    pub id: &'a str,
    pub purpose: Purpose,
    pub plan: Option<&'a str>,
    pub on_error: OnError,
    pub jobs: NonZeroUsize,
    pub invocation: Invocation,
    pub base: Option<BaseRecord>,
    pub policies: Option<PoliciesRecord>,
    /// The run whose follow-ups it runs, if it has no turns of its own.
    pub resumes: Option<String>,
    /// The run of the work order whose follow-ups it runs.
    pub part_of: Option<&'a str>,
}

/// Fails on I/O errors, or if another run is in progress.
pub fn begin(
    execution: Execution,
    tasks: Vec<Vec<Task>>,
    run: &DriverRun<'_>,
    project: &Project,
    references: &References,
    circumstances: BeginOptions<'_>,
) -> Result<StartedRun> {
    let uncommitted = circumstances.uncommitted.clone();
    let settings = RunSettings {
        jobs: Some(run.jobs),
        on_error: Some(run.on_error),
        ..RunSettings::default()
    };
    // A replaced stack has two turns.
    let mut known = HashSet::new();
    let order: Vec<String> = execution
        .turns
        .iter()
        .filter(|turn| known.insert(&turn.stack))
        .map(|turn| turn.stack.to_string())
        .collect();
    let turns: Vec<String> = execution
        .turns
        .iter()
        .filter(|_| order.len() < execution.turns.len())
        .map(|turn| turn.stack.to_string())
        .collect();
    let environments = tasks.iter().flatten().map(|task| &task.environment);
    let environment = names(environments);
    let header = || Header {
        format: FORMAT,
        run: run.id.to_owned(),
        orch: env!("CARGO_PKG_VERSION").to_owned(),
        at: Timestamp::now(),
        host: author::host(),
        process: std::process::id(),
        arguments: arguments(&run.invocation.arguments),
        directory: run.invocation.directory.to_string(),
        resumes: run.resumes.clone(),
        command: arguments(&["orch", run.purpose.command()].map(OsString::from)),
        purpose: Some(run.purpose.word().to_owned()),
        plan: run.plan.map(str::to_owned),
        eval: false,
        script: Vec::new(),
        order,
        edges: Vec::new(),
        left_out: Vec::new(),
        turns,
        direction: Word::Known(Direction::Forward),
        settings: (&settings).into(),
        base: run.base.clone(),
        head: head(&project.root).unwrap_or_default(),
        uncommitted,
        policies: run.policies.clone(),
        graph: digest(&project.stacks, references),
        environment,
        part_of: run.part_of.map(str::to_owned),
    };
    StartedRun::begin(
        &project.root,
        run.id,
        execution,
        tasks,
        run.jobs,
        header,
        circumstances,
    )
}
