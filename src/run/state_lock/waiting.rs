//! Notes about waiting for the state lock, and about taking it over.

use std::cell::Cell;
use std::time::Duration;

use jiff::Timestamp;

use crate::context::failing_note;
use crate::duration::exact;
use crate::notice::Notices;
use crate::printable::printable;
use crate::run::execute::Inbox;
use crate::state::clock::{Clock, SystemClock};
use crate::state::document::Lock;
use crate::state::lock::{TakenOver, TakeoverReason, WaitReason};

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
    pub(super) fn note(&self, notices: &Notices, reason: &WaitReason<'_>) {
        let is_known = match reason {
            WaitReason::Failing(_) => &self.has_failed,
            WaitReason::Held(_) | WaitReason::Behind(_) => &self.has_told,
        };
        if is_known.replace(true) {
            return;
        }
        match reason {
            WaitReason::Failing(error) => notices.note(&failing_note(error)),
            WaitReason::Held(held) => {
                notices.note(&format!("waiting for the state lock, held by {held}"));
            }
            WaitReason::Behind(ahead) => notices.note(&format!(
                "waiting for the state lock behind {}",
                match ahead {
                    1 => "1 other run".to_owned(),
                    more => format!("{more} other runs"),
                }
            )),
        }
    }
}

pub(super) fn note_taken_over(notices: &Notices, taken_over: &TakenOver) {
    let Lock { run, by, host, .. } = &taken_over.lock;
    let [run, by, host] = [run, by, host].map(|text| printable(text));
    let what = match taken_over.why {
        TakeoverReason::Killed => format!("run {run} was killed while it held the state lock"),
        TakeoverReason::Broken => format!("the state lock of run {run} was removed"),
        TakeoverReason::Expired(expires) => format!(
            "the state lock was taken over from run {run} of {by} on {host}, which sent no heartbeat for {}",
            exact(expires)
        ),
    };
    notices.note(&format!(
        "{what}; its unfinished stacks count as interrupted"
    ));
}
