//! Threads that wait for commands, one for each.
//!
//! Starting a thread costs a tenth of starting a command, so a thread whose command has ended gets the next one. This
//! module doesn't know the jobs.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

pub(super) trait Job: Send + 'static {
    /// Runs the job. Returns the function that reports its end.
    fn execute(self) -> impl FnOnce();
}

/// The idle threads.
pub(super) struct WorkerPool<J>(Arc<Mutex<Vec<JobSender<J>>>>);

/// The channel for jobs of a thread. Each job comes with the worker itself, which is idle again when that is dropped.
type JobSender<J> = Sender<(J, JobWorker<J>)>;

/// A thread without a job. Dropped without one, it is idle again.
pub(super) struct JobWorker<J> {
    idle: Arc<Mutex<Vec<JobSender<J>>>>,
    inbox: Option<JobSender<J>>,
}

impl<J> Default for WorkerPool<J> {
    fn default() -> Self {
        WorkerPool(Arc::default())
    }
}

fn lock<T>(idle: &Mutex<T>) -> MutexGuard<'_, T> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<J: Job> WorkerPool<J> {
    /// Returns an idle thread, or a new one. Fails if there is none and none can be started.
    pub(super) fn take(&self) -> io::Result<JobWorker<J>> {
        let idle = lock(&self.0).pop();
        let inbox = idle.map_or_else(start, Ok)?;
        Ok(JobWorker {
            idle: self.0.clone(),
            inbox: Some(inbox),
        })
    }
}

/// Starts a thread, which ends when no job can reach it.
fn start<J: Job>() -> io::Result<JobSender<J>> {
    let (inbox, jobs) = mpsc::channel::<(J, JobWorker<J>)>();
    thread::Builder::new().spawn(move || {
        for (job, own) in jobs {
            let tell = job.execute();
            // The receiver may want the next thread at once.
            drop(own);
            tell();
        }
    })?;
    Ok(inbox)
}

impl<J> JobWorker<J> {
    pub(super) fn run(mut self, job: J) {
        if let Some(inbox) = self.inbox.take() {
            let own = JobWorker {
                idle: self.idle.clone(),
                inbox: Some(inbox.clone()),
            };
            let sent = inbox.send((job, own));
            assert!(sent.is_ok(), "a thread outlives those who give it jobs");
        }
    }
}

impl<J> Drop for JobWorker<J> {
    fn drop(&mut self) {
        lock(&self.idle).extend(self.inbox.take());
    }
}
