//! The run in which tools are asked: on record and locked like any other.

use std::ffi::OsString;
use std::num::NonZeroUsize;

use jiff::Timestamp;

use super::ask::Asking;
use crate::author;
use crate::project::Project;
use crate::record::journal::{BaseRecord, DirectionRecord, FORMAT, Header, arguments};
use crate::run::begun::{BeginError, BegunRun, Circumstances};
use crate::run::request::{Typed, head, names};
use crate::run::settings::RunSettings;
use crate::selection::graph::digest;
use crate::selection::reference::References;

/// What the journal says such a run is for.
const PURPOSE: &str = "plan";

/// What a run that asks tools is recorded with.
#[derive(Debug)]
pub struct AskRun<'a> {
    /// Its id.
    pub id: &'a str,
    /// How many are asked at once.
    pub jobs: NonZeroUsize,
    /// What was typed.
    pub typed: Typed,
    /// What changes were measured from.
    pub base: Option<BaseRecord>,
}

/// Begins to ask.
///
/// # Errors
///
/// If I/O or the operating system fails, or another run is in progress.
pub fn begin(
    asking: Asking,
    run: &AskRun<'_>,
    project: &Project,
    references: &References,
    circumstances: Circumstances,
) -> Result<BegunRun, BeginError> {
    let Asking { execution, tasks } = asking;
    let uncommitted = circumstances.uncommitted.clone();
    let settings = RunSettings {
        jobs: Some(run.jobs),
        ..RunSettings::default()
    };
    let turns = execution.turns.iter();
    let order = turns.map(|turn| turn.stack.to_string()).collect();
    let environments = tasks.iter().flatten().map(|task| &task.environment);
    let environment = names(environments);
    let header = || Header {
        format: FORMAT,
        run: run.id.to_owned(),
        orch: env!("CARGO_PKG_VERSION").to_owned(),
        at: Timestamp::now(),
        host: author::host(),
        process: std::process::id(),
        arguments: arguments(&run.typed.arguments),
        directory: run.typed.directory.to_string(),
        resumes: None,
        command: arguments(&["orch", PURPOSE].map(OsString::from)),
        purpose: Some(PURPOSE.to_owned()),
        eval: false,
        order,
        edges: Vec::new(),
        left_out: Vec::new(),
        direction: DirectionRecord::Forward,
        settings: (&settings).into(),
        base: run.base.clone(),
        head: head(&project.root).unwrap_or_default(),
        uncommitted,
        graph: digest(&project.stacks, references),
        environment,
    };
    BegunRun::begin(
        &project.root,
        run.id,
        execution,
        tasks,
        run.jobs,
        header,
        circumstances,
    )
}
