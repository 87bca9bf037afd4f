//! Waiting for the lock of the state before anything is planned or verified.

use std::path::PathBuf;

use orch::change::Counted;
use orch::plan::entry::PlanMode;
use orch::run::request::new_id;
use orch::run::session::{LockRequest, Lockable, StateLock};
use orch::state::document::Action;

use super::CarryingArgs;
use crate::program::commands::{Loaded, ReadStatus, Reads};
use crate::program::error::Result;

/// The lock, held since before the plan was made.
pub(super) struct Held {
    /// The run that holds it.
    pub(super) run: String,
    pub(super) lock: StateLock,
}

/// Returns what an apply of plans in a mode does.
pub(super) fn action_of(mode: PlanMode) -> Action {
    match mode {
        PlanMode::Normal => Action::Apply,
        PlanMode::Destroy => Action::Destroy,
        PlanMode::RefreshOnly => Action::Refresh,
    }
}

/// Waits for the lock, if the flags say so. The run that holds it would make a plan stale, and its
/// tools hold locks of their own. Keeps the lock if there is no prompt. `has_prompt` says whether somebody is asked later.
pub(super) fn before_planning(
    chdir: &[PathBuf],
    args: &CarryingArgs,
    mode: PlanMode,
    has_prompt: bool,
) -> Result<Option<Held>> {
    let Some(timeout) = args.lock_timeout else {
        return Ok(None);
    };
    let reads = Reads::CONFIGURATION
        .with_listing()
        .with_status(ReadStatus::Exact);
    let mut loaded = Loaded::new(chdir, None, reads)?;
    loaded.check(None)?;
    if loaded.project.settings.state.is_none() {
        return Ok(None);
    }
    let run = new_id(&loaded.project.root);
    let document = loaded.read_and_digest(Counted::default())?;
    let lockable = Lockable::new(&mut loaded, &document)?;
    let request = LockRequest {
        run: &run,
        action: &action_of(mode),
        timeout,
    };
    let lock = lockable.lock(&loaded.project, &request)?;
    Ok((!has_prompt).then_some(Held { run, lock }))
}
