//! What the journals of this machine tell of a plan: which part of it has been carried out.

use std::path::Path;

use orch::folder::GuardedFolder;
use orch::path::StackPath;
use orch::plan::stale::{OperationKey, Progress};
use orch::record::journal::{Runs, StackState};

/// Returns how far a plan has been carried out, as far as runs on this machine tell.
pub(super) fn progress(root: &Path, plan: &str) -> Progress {
    let mut progress = Progress::default();
    let folder = GuardedFolder::find(root).ok().flatten();
    let Some(runs) = folder.and_then(|folder| Runs::find(folder).ok()) else {
        return progress;
    };
    for id in runs.ids() {
        let is_of_plan = runs
            .brief(id)
            .is_ok_and(|brief| brief.header.plan.as_deref() == Some(plan));
        let Some(record) = is_of_plan.then(|| runs.record(id).ok()).flatten() else {
            continue;
        };
        for stack in &record.stacks {
            let Some(path) = StackPath::parse(&stack.path) else {
                continue;
            };
            let is_waiting = matches!(stack.state, StackState::Waiting | StackState::LeftOut);
            progress.has_begun |= !stack.attempts.is_empty();
            let is_apply = stack.operation.as_deref() == Some("apply");
            let is_destroy = stack.operation.as_deref() == Some("destroy");
            // What is destroyed and made anew is destroyed first.
            if is_destroy && stack.state.is_success() || is_apply && !is_waiting && stack.turn() > 1
            {
                progress.done.insert((path.clone(), OperationKey::Destroy));
            }
            if is_apply && stack.state.is_success() {
                progress.done.insert((path, OperationKey::Apply));
            }
        }
    }
    progress
}
