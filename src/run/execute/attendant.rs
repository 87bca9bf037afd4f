//! Threads that attend to commands, one for each.
//!
//! Starting a thread costs a tenth of starting a command, so a thread whose command has ended gets the
//! next one. This module doesn't know what they do.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// What a thread does.
pub(super) trait Job: Send + 'static {
    /// Does it. Returns what reports that it is done.
    fn carry_out(self) -> impl FnOnce();
}

/// The idle threads.
pub(super) struct Attendants<J>(Arc<Mutex<Vec<JobSender<J>>>>);

/// Where a thread gets its jobs, each with the thread itself, which is idle again afterwards.
type JobSender<J> = Sender<(J, Attendant<J>)>;

/// A thread without a job. Dropped without one, it is idle again.
pub(super) struct Attendant<J> {
    idle: Arc<Mutex<Vec<JobSender<J>>>>,
    inbox: Option<JobSender<J>>,
}

impl<J> Default for Attendants<J> {
    fn default() -> Self {
        Attendants(Arc::default())
    }
}

fn lock<T>(idle: &Mutex<T>) -> MutexGuard<'_, T> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<J: Job> Attendants<J> {
    /// Returns an idle thread, or a new one.
    ///
    /// # Errors
    ///
    /// If there is none and none can be started.
    pub(super) fn take(&self) -> io::Result<Attendant<J>> {
        let idle = lock(&self.0).pop();
        let inbox = idle.map_or_else(start, Ok)?;
        Ok(Attendant {
            idle: self.0.clone(),
            inbox: Some(inbox),
        })
    }
}

/// Starts a thread, which ends when no job can reach it.
fn start<J: Job>() -> io::Result<JobSender<J>> {
    let (inbox, jobs) = mpsc::channel::<(J, Attendant<J>)>();
    thread::Builder::new().spawn(move || {
        for (job, own) in jobs {
            let tell = job.carry_out();
            // The receiver may want the next thread at once.
            drop(own);
            tell();
        }
    })?;
    Ok(inbox)
}

impl<J> Attendant<J> {
    /// Gives it a job.
    pub(super) fn attend(mut self, job: J) {
        if let Some(inbox) = self.inbox.take() {
            let own = Attendant {
                idle: self.idle.clone(),
                inbox: Some(inbox.clone()),
            };
            let sent = inbox.send((job, own));
            assert!(sent.is_ok(), "a thread outlives those who give it jobs");
        }
    }
}

impl<J> Drop for Attendant<J> {
    fn drop(&mut self) {
        lock(&self.idle).extend(self.inbox.take());
    }
}
