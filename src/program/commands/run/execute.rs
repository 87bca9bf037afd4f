//! Executes `orch run`, from its first command to its exit status.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use orch::command::run::LockedRun;
use orch::exit::ExitStatus;
use orch::printable::command_line;
use orch::run::event_stream::EventStream;
use orch::run::request::past_durations;

use super::output::{Output, OutputConfig, OutputMode, advertise_colour};
use super::{RunArgs, report};
use crate::program::commands::CommandContext;
use crate::program::commands::reports::Reports;
use crate::program::console;
use crate::program::error::Result;

pub(super) fn execute(
    chdir: &[PathBuf],
    args: &RunArgs,
    context: &CommandContext,
    mut run: LockedRun,
    how: OutputMode,
    events: Option<EventStream>,
    reports: &Reports,
) -> Result<ExitStatus> {
    if how.has_colours() {
        run.tasks_mut().for_each(advertise_colour);
    }
    let mut begun = run.begin(context, !reports.is_empty(), events)?;
    let root = &context.project.root;
    let output = Output::new(
        root,
        OutputConfig {
            how,
            commands: std::mem::take(&mut begun.lines),
            is_quiet: args.quiet,
            jobs: begun.jobs,
            run_id: begun.id(),
            logs: begun.folder().map(|folder| folder.join("logs")),
            past: &|| past_durations(root, &begun.command),
        },
    )?;
    let mut ended = begun.execute(Box::new(output))?;
    let record = ended.record.take();
    let are_written = report::ended(root, record, ended.logs.as_ref(), reports);
    let status = std::mem::replace(&mut ended.status, Ok(ExitStatus::Success));
    let status = report::status(status?, are_written);
    if let Some(run) = &ended.resumable {
        let resume = resuming(chdir, run);
        // A failed write to stderr does not affect the run.
        _ = writeln!(console::stderr(), "orch: to run what is left: {resume}");
    }
    ended.tidy();
    Ok(status)
}

/// Returns the command that resumes a run.
fn resuming(chdir: &[PathBuf], run: &str) -> String {
    let mut words: Vec<OsString> = vec!["orch".into()];
    for directory in chdir {
        words.extend(["-C".into(), directory.into()]);
    }
    words.extend(["run".into(), "--resume".into(), run.into()]);
    command_line(&words)
}
