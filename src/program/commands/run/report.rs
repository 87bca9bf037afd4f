//! The reports of a run that has ended, has nothing to do, or is a dry run.

use std::path::Path;

use orch::exit::ExitStatus;
use orch::folder::GuardedFolder;
use orch::record::journal::{Liveness, RunRecord, RunStatus, Runs, run_folder};
use orch::record::logs::Logs;
use orch::report::ShownRun;
use orch::run::request::{PreparedRun, RunRequest};

use crate::program::commands::CommandContext;
use crate::program::commands::reports::Reports;

/// Writes the reports of a run that has ended. Returns whether all of them were written.
pub(super) fn ended(
    root: &Path,
    record: Option<RunRecord>,
    logs: Option<&Logs>,
    reports: &Reports,
) -> bool {
    record.is_none_or(|record| {
        let state = RunStatus::new(&record.header, record.finished.as_ref(), Liveness::Gone);
        write(root, record, state, logs, reports)
    })
}

/// Writes the reports of a run that has nothing to do.
pub(super) fn nothing(
    context: &CommandContext,
    request: RunRequest,
    is_dry: bool,
    reports: &Reports,
) -> ExitStatus {
    let run = request
        .prepare(&context.project)
        .expect("a run without stacks needs no program");
    let record = run.plan(&context.project, &context.references);
    let state = if is_dry {
        RunStatus::DryRun
    } else {
        RunStatus::Succeeded
    };
    let are_written = write(&context.project.root, record, state, None, reports);
    status(ExitStatus::Success, are_written)
}

/// Writes the reports of a dry run. Returns whether all of them were written.
pub(super) fn planned(context: &CommandContext, run: &PreparedRun, reports: &Reports) -> bool {
    reports.is_empty() || {
        let record = run.plan(&context.project, &context.references);
        let root = &context.project.root;
        write(root, record, RunStatus::DryRun, None, reports)
    }
}

fn write(
    root: &Path,
    record: RunRecord,
    state: RunStatus,
    logs: Option<&Logs>,
    reports: &Reports,
) -> bool {
    let folder = run_folder(root, &record.header.run);
    // Without captured output, there are no logs.
    let none = Logs::new(folder.join("logs"));
    let logs = logs.unwrap_or(&none);
    let runs = GuardedFolder::find(root)
        .ok()
        .flatten()
        .and_then(|folder| Runs::find(folder).ok());
    let earlier = runs.map(|runs| runs.earlier_in_workflow(&record));
    let shown = ShownRun::new(record, earlier.unwrap_or_default(), state, folder);
    reports.write(&shown, logs)
}

/// Returns the exit status after the reports: a failed report changes it only if nothing else
/// failed.
pub(super) fn status(status: ExitStatus, are_written: bool) -> ExitStatus {
    match status.number() {
        0 | 2 if !are_written => ExitStatus::External,
        _ => status,
    }
}
