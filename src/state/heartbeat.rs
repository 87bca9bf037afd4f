//! Heartbeats of a run that holds the lock and has not begun, for example while it plans.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::backend::{Backend, PutOutcome};
use super::clock::{Clock, Moment, SystemClock};
use super::lock::Locked;
use super::run_record::RunChanges;
use super::store::{PutCondition, Version};

/// How long to wait after a failed heartbeat.
const RETRY: Duration = Duration::from_secs(1);

/// Sends heartbeats until it is stopped.
pub struct Heartbeat {
    stop: Sender<()>,
    thread: JoinHandle<HeartbeatThread>,
    locked: Locked,
}

struct HeartbeatThread {
    backend: Backend,
    record: RunChanges,
    version: Version,
    /// When the last one was sent that arrived.
    sure: Moment,
}

impl Heartbeat {
    /// Starts it for a run that has just taken the lock. Fails if no thread can be started. The
    /// lock is kept.
    pub fn start(backend: Backend, locked: Locked, interval: Duration) -> io::Result<Self> {
        let every = locked.lock.heartbeat(interval);
        let beating = HeartbeatThread {
            backend,
            record: locked.record.clone(),
            version: locked.record_version.clone(),
            sure: locked.sure,
        };
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("heartbeat".to_owned())
            .spawn(move || beating.go(&stopped, every))?;
        Ok(Heartbeat {
            stop,
            thread,
            locked,
        })
    }

    pub fn locked(&self) -> &Locked {
        &self.locked
    }

    /// Returns the lock, whose document may be changed in memory.
    pub fn locked_mut(&mut self) -> &mut Locked {
        &mut self.locked
    }

    /// Stops it. From then on, the caller sends heartbeats.
    pub fn stop(self) -> (Backend, Locked) {
        drop(self.stop);
        let beating = match self.thread.join() {
            Ok(beating) => beating,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let locked = Locked {
            record: beating.record,
            record_version: beating.version,
            sure: beating.sure,
            ..self.locked
        };
        (beating.backend, locked)
    }
}

impl HeartbeatThread {
    fn go(mut self, stopped: &Receiver<()>, every: Duration) -> Self {
        let mut pause = every;
        while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            pause = if self.beat() { every } else { RETRY.min(every) };
        }
        self
    }

    /// Sends a heartbeat. Returns false if it failed. The next write detects a lost lock.
    fn beat(&mut self) -> bool {
        let clock = SystemClock::default();
        let begun = Moment::now(&clock);
        self.record.sequence += 1;
        self.record.at = clock.now();
        let condition = PutCondition::Unchanged(self.version.clone());
        match self.backend.swap_record(&self.record, &condition) {
            Ok(PutOutcome::Done(version)) => {
                self.version = version;
                self.sure = begun;
                true
            }
            Ok(PutOutcome::Refused(Some(found))) => {
                // It may be an earlier one, whose answer was lost.
                let record = RunChanges::parse(&found.bytes);
                let own = record.is_ok_and(|it| it.code == self.record.code && it.broken.is_none());
                if own {
                    self.version = found.version;
                }
                !own
            }
            Ok(PutOutcome::Refused(None)) => true,
            Err(_) => false,
        }
    }
}
