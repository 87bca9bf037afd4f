//! The steps of turns whose commands are known before the run.

use std::ffi::OsString;
use std::sync::Arc;

use crate::project::attempt::{Attempts, ExitCodes};
use crate::run::execute::Task;
use crate::run::terraform;
use crate::run::turn::Step;

/// Returns the meaning of exit statuses that is known of a command.
pub(super) fn known_exit_codes(command: &[OsString]) -> ExitCodes {
    let is_plan = terraform::has_detailed_exit_code(command);
    ExitCodes {
        changes: is_plan.then(|| [2].into()),
        ..ExitCodes::default()
    }
}

pub(super) fn command_steps(tasks: &[Task], attempts: &Attempts) -> Arc<[Step]> {
    if let [_] = tasks {
        return [Step::Command("command".into())].into();
    }
    let step = |(number, task): (usize, &Task)| {
        let name = format!("command {}", number + 1).into();
        let words: Vec<OsString> = [&task.name]
            .into_iter()
            .chain(&task.arguments)
            .cloned()
            .collect();
        let known = known_exit_codes(&words);
        if known.changes.is_none() {
            return Step::Command(name);
        }
        Step::CommandWith(name, Arc::new(attempts.exit_codes.clone().or(&known)))
    };
    tasks.iter().enumerate().map(step).collect()
}

/// Adds the step that waits until the intent is recorded, before the command at a position.
pub(super) fn confirmed(steps: &[Step], position: usize) -> Arc<[Step]> {
    let mut steps = steps.to_vec();
    // A turn may have got another command meanwhile.
    let position = if position < steps.len() { position } else { 0 };
    steps.insert(position, Step::Confirmation);
    steps.into()
}
