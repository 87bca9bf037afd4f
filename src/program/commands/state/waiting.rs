//! What a run notes while it waits for the lock of the state, and once it has it.

use std::cell::Cell;
use std::time::Duration;

use jiff::Timestamp;
use orch::context::failing_note;
use orch::duration::exact;
use orch::printable::printable;
use orch::run::execute::Inbox;
use orch::state::clock::{Clock, SystemClock};
use orch::state::document::Lock;
use orch::state::lock::{TakenOver, Vacancy, WaitReason};

use crate::program::commands::count;
use crate::program::console;

/// A clock for waiting for the lock.
pub(super) struct WaitingClock<'a> {
    pub(super) system: SystemClock,
    pub(super) inbox: &'a Inbox,
}

impl Clock for WaitingClock<'_> {
    fn elapsed(&self) -> Duration {
        self.system.elapsed()
    }

    fn now(&self) -> Timestamp {
        self.system.now()
    }

    fn sleep(&self, duration: Duration) {
        self.inbox.sleep(duration);
    }

    fn alarm(&self) -> Option<Box<dyn FnOnce() + Send>> {
        Some(Box::new(self.inbox.alarm()))
    }
}

/// Notes once why a run waits for the lock, and once that the backend fails.
#[derive(Default)]
pub(super) struct WaitNotes {
    has_told: Cell<bool>,
    has_failed: Cell<bool>,
}

impl WaitNotes {
    pub(super) fn note(&self, reason: &WaitReason<'_>) {
        let is_known = match reason {
            WaitReason::Failing(_) => &self.has_failed,
            WaitReason::Held(_) | WaitReason::Behind(_) => &self.has_told,
        };
        if is_known.replace(true) {
            return;
        }
        match reason {
            WaitReason::Failing(error) => console::note(&failing_note(error)),
            WaitReason::Held(held) => console::note(&format!(
                "waiting for the lock of the state, which is held by {held}"
            )),
            WaitReason::Behind(ahead) => console::note(&format!(
                "waiting for the lock of the state behind {}",
                count(*ahead, "other run")
            )),
        }
    }
}

/// Notes that a lock was taken over.
pub(super) fn note_taken_over(taken_over: &TakenOver) {
    let Lock { run, by, host, .. } = &taken_over.lock;
    let [run, by, host] = [run, by, host].map(|text| printable(text));
    let what = match taken_over.why {
        Vacancy::Killed => format!("run {run} was killed and left the lock of the state"),
        Vacancy::Broken => format!("the lock of the state was taken away from run {run}"),
        Vacancy::Expired(expires) => format!(
            "the lock of the state was taken over from run {run} of {by} on {host}, which gave no sign of life for {}",
            exact(expires)
        ),
    };
    console::note(&format!("{what}; what it had begun counts as interrupted"));
}
