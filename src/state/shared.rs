//! The lock of a work order, which its jobs share.
//!
//! The order holds the lock of the document until all its jobs have succeeded. Each job that runs has a lock of its
//! own in it, with a record and heartbeats, like any run; only the code of that lock lets it write.

use serde_json::Map;

use super::backend::{Backend, PutOutcome, ReadDocument};
use super::document::{Document, Lock, OrderJob, SharedLock};
use super::lock::{LockError, read, retry};
use super::store::PutCondition;

impl Document {
    /// Returns the run of the work order that holds the lock, if one does.
    pub fn order(&self) -> Option<&str> {
        let lock = self.lock.as_ref().filter(|lock| lock.shared.is_some());
        lock.map(|lock| lock.run.as_str())
    }

    /// Returns the lock with this code: that of a run, of a work order or of its running job.
    pub fn lock_with(&self, code: &str) -> Option<&Lock> {
        let lock = self.lock.as_ref()?;
        let mut all = std::iter::once(lock).chain(lock.holders());
        all.find(|lock| lock.code == code)
    }

    /// Frees the lock with this code: a job leaves that of its work order.
    pub(super) fn release(&mut self, code: &str) {
        let Some(lock) = &mut self.lock else { return };
        if lock.code == code {
            self.lock = None;
            return;
        }
        for job in lock.shared.iter_mut().flat_map(|it| it.jobs.values_mut()) {
            _ = job.take_if(|lock| lock.code == code);
        }
    }

    /// Gives a job a lock of its own, in that of its work order.
    pub(super) fn admit(&mut self, job: &OrderJob, own: Lock) {
        let lock = self.lock.get_or_insert_with(|| Lock {
            code: job.code.clone(),
            run: job.run.clone(),
            shared: Some(SharedLock {
                order: job.order.clone(),
                jobs: job.left.iter().map(|job| (job.clone(), None)).collect(),
                runs: Vec::new(),
                other: Map::new(),
            }),
            ..own.clone()
        });
        if let Some(shared) = &mut lock.shared {
            shared.jobs.insert(job.job.clone(), Some(Box::new(own)));
        }
    }
}

/// Records that jobs have succeeded. The last one frees the lock of its work order. Fails if the
/// document cannot be read or written.
pub fn complete(backend: &Backend, code: &str, jobs: &[String]) -> Result<(), LockError> {
    retry(backend, || {
        let ReadDocument {
            mut document,
            version,
            ..
        } = read(backend)?;
        let lock = document.lock.as_mut().filter(|lock| lock.code == code);
        let Some(shared) = lock.and_then(|lock| lock.shared.as_mut()) else {
            return Ok(Some(())); // it was freed by force
        };
        // A second run of a job that has begun meanwhile completes it itself.
        let n_left = shared.jobs.len();
        shared
            .jobs
            .retain(|job, lock| lock.is_some() || !jobs.contains(job));
        if shared.jobs.len() == n_left {
            return Ok(Some(()));
        }
        if shared.jobs.is_empty() {
            document.lock = None;
        }
        document.serial += 1;
        let swap = backend.swap(&document, &PutCondition::Unchanged(version))?;
        Ok(matches!(swap, PutOutcome::Done(_)).then_some(()))
    })
}
