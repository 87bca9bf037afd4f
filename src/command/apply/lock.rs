//! Waits for the lock of the state before planning or verifying.

use std::time::Duration;

use super::ApplyTerminal;
use crate::change::CountedStates;
use crate::error::Result;
use crate::plan::entry::PlanMode;
use crate::run::request::new_id;
use crate::run::state_lock::{LockRequest, Lockable, StateLock};
use crate::state::document::RunAction;

pub struct HeldLock {
    pub(super) run: String,
    pub(super) lock: StateLock,
}

pub(super) fn action_of(mode: PlanMode) -> RunAction {
    match mode {
        PlanMode::Normal => RunAction::Apply,
        PlanMode::Destroy => RunAction::Destroy,
        PlanMode::RefreshOnly => RunAction::Refresh,
    }
}

/// Waits for the lock, if the flags say so. The run that holds it would make a plan stale, and its
/// tools hold locks of their own. Keeps the lock if there is no prompt; `has_prompt` says whether
/// one comes later.
pub fn before_planning(
    terminal: &dyn ApplyTerminal,
    timeout: Option<Duration>,
    mode: PlanMode,
    has_prompt: bool,
) -> Result<Option<HeldLock>> {
    let Some(timeout) = timeout else {
        return Ok(None);
    };
    let mut context = terminal.load()?;
    if context.project.settings.state.is_none() {
        return Ok(None);
    }
    let run = new_id(&context.project.root);
    let document = context.read_and_digest(CountedStates::default())?;
    let lockable = Lockable::new(&mut context, &document)?;
    let request = LockRequest {
        run: &run,
        action: &action_of(mode),
        timeout,
        job: None,
    };
    let lock = lockable.lock(&context.project, &request)?;
    Ok((!has_prompt).then_some(HeldLock { run, lock }))
}
