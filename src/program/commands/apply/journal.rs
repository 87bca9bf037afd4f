//! What the journals of this machine tell of a plan: which part of it has been carried out.

use std::path::Path;

use orch::folder::GuardedFolder;
use orch::path::StackPath;
use orch::plan::stale::{LastRun, OperationKey, Progress};
use orch::record::journal::{Runs, StackState, TurnOutcome, TurnRecord};

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
        // They are listed from the newest on.
        progress.last_run.get_or_insert_with(|| LastRun {
            run: id.clone(),
            at: record.last,
            has_succeeded: record.finished.as_ref().is_some_and(|it| it.status == 0),
        });
        if record.header.policies.is_some() {
            progress.has_begun |= record.stacks.iter().any(|it| !it.attempts.is_empty());
            progress.done.extend(done_of_turns(&record.turns));
            progress.followed.insert(id.clone());
            continue;
        }
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

/// Returns what the turns of a run have done of its plan. What was added does not count, but for a retry: a stack
/// that was to be brought forward, and was in the end.
fn done_of_turns(turns: &[TurnRecord]) -> Vec<(StackPath, OperationKey)> {
    let is_apply = |turn: &TurnRecord| turn.operation.as_deref() == Some("apply");
    let has_finished = |turn: &TurnRecord| turn.outcome == Some(TurnOutcome::Finished);
    let mut done = Vec::new();
    for (number, turn) in turns.iter().enumerate() {
        let Some(path) = StackPath::parse(&turn.stack).filter(|_| !turn.is_added) else {
            continue;
        };
        if turn.operation.as_deref() == Some("destroy") && has_finished(turn) {
            done.push((path, OperationKey::Destroy));
        } else if is_apply(turn) && (turn.has_started || has_finished(turn)) {
            // What is destroyed and made anew was destroyed first.
            let is_second = turn.turn.is_some();
            done.extend(is_second.then(|| (path.clone(), OperationKey::Destroy)));
            let later = turns[number..].iter();
            let mut of_stack = later.filter(|it| it.stack == turn.stack && is_apply(it));
            if of_stack.any(has_finished) {
                done.push((path, OperationKey::Apply));
            }
        }
    }
    done
}
