//! What runs have left in the folder `.orch` of a project.

use std::fs::{self, File};

use serde_json::Value;

use super::output::Output;
use super::redact::redact_runs;
use super::sandbox::Sandbox;

/// Returns the ids of the runs of a project, oldest first.
pub(crate) fn run_ids(sandbox: &Sandbox) -> Vec<String> {
    let Ok(folder) = fs::read_dir(sandbox.path("/.orch/runs")) else {
        return Vec::new();
    };
    let mut ids: Vec<String> = folder
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    ids.sort();
    ids
}

/// Returns the place of the journal of a run.
pub(crate) fn journal_of(id: &str) -> String {
    format!("/.orch/runs/{id}/journal.jsonl")
}

/// Returns the lines of the journal of the newest run.
pub(crate) fn journal(sandbox: &Sandbox) -> Vec<Value> {
    let newest = run_ids(sandbox).pop().expect("there is a run");
    let text = sandbox.read(&journal_of(&newest));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns all that `orch` printed, with the runs of the project redacted.
pub(crate) fn said(sandbox: &Sandbox, output: &Output) -> String {
    redact_runs(&run_ids(sandbox), &output.to_string())
}

/// Returns whether nobody holds the lock of the project.
pub(crate) fn is_free(sandbox: &Sandbox) -> bool {
    let lock = File::open(sandbox.path("/.orch/lock"));
    lock.is_ok_and(|lock| lock.try_lock_shared().is_ok())
}
