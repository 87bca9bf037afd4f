//! The leases of jobs whose command the state does not record: each job runs on one machine at a time.
//!
//! A job renews its lease until it ends. One that was killed counts as running for [`LEASE`], by the clock of the store.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::backend::{Backend, PutOutcome};
use super::results::LEASE_OF_JOB;
use super::store::{PutCondition, StoreError, StoredObject, Version};
use crate::author::host;

/// How long a job counts as running after it renewed its lease.
const LEASE: Duration = Duration::from_mins(2);

const INTERVAL: Duration = Duration::from_secs(30);

/// What the object of a lease contains. No two have the same bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Lease {
    /// Differs from that of any other run of the job.
    code: String,
    host: String,
    /// How often it was renewed.
    renewals: u64,
    has_ended: bool,
}

/// A job that may be running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningJob {
    /// The name of the object.
    pub lease: String,
    pub host: String,
    /// The time since it renewed its lease, by the clock of the store, if that reports one.
    pub silence: Option<Duration>,
}

/// A lease of this process. It ends when this value is dropped.
#[derive(Debug)]
pub struct JobLease {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for JobLease {
    fn drop(&mut self) {
        self.stop = None;
        // If it has panicked, the lease runs out.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The result of an attempt to take a lease.
#[derive(Debug)]
pub enum LeaseAttempt {
    Taken(JobLease),
    Held(RunningJob),
}

/// Returns the job that an object in the store says is running.
fn running(lease: &str, object: &StoredObject) -> Option<RunningJob> {
    let parsed: Option<Lease> = serde_json::from_slice(&object.bytes).ok();
    let is_over = object.age.is_some_and(|age| age >= LEASE);
    if is_over || parsed.as_ref().is_some_and(|it| it.has_ended) {
        return None;
    }
    Some(RunningJob {
        lease: lease.to_owned(),
        host: parsed.map_or_else(|| "another machine".to_owned(), |it| it.host),
        silence: object.age,
    })
}

impl Backend {
    fn lease_key(&self, order: &str, lease: &str) -> String {
        format!("{}{lease}", self.results_prefix(order))
    }

    /// Takes the lease of a job of a work order, by its position there. Fails if the store fails. Returns the running
    /// job if it has the lease.
    pub fn take_lease(self, order: &str, job: usize) -> Result<LeaseAttempt, StoreError> {
        let name = format!("{LEASE_OF_JOB}{job}");
        let key = self.lease_key(order, &name);
        let lease = Lease {
            code: Uuid::new_v4().to_string(),
            host: host(),
            renewals: 0,
            has_ended: false,
        };
        let mut condition = PutCondition::Absent;
        let version = loop {
            match self.swap_bytes(&key, &lease.to_bytes(), &condition)? {
                PutOutcome::Done(version) => break version,
                PutOutcome::Refused(Some(found)) => {
                    if let Some(running) = running(&name, &found) {
                        return Ok(LeaseAttempt::Held(running));
                    }
                    condition = PutCondition::Unchanged(found.version);
                }
                PutOutcome::Refused(None) => condition = PutCondition::Absent,
            }
        };
        let (stop, stopped) = mpsc::channel();
        let renewing = Renewing {
            backend: self,
            key,
            lease,
            version,
        };
        let thread = thread::spawn(move || renewing.go(&stopped));
        Ok(LeaseAttempt::Taken(JobLease {
            stop: Some(stop),
            thread: Some(thread),
        }))
    }

    /// Returns a job of a work order that may be running on any machine, if its command is not recorded. Fails if the
    /// store fails.
    pub fn running_job(&self, order: &str) -> Result<Option<RunningJob>, StoreError> {
        let files = self.result_files(order)?.leases();
        let found = self.read_results(order, &files)?;
        for (file, bytes) in files.iter().zip(found) {
            let has_ended = |bytes: Vec<u8>| {
                let lease = serde_json::from_slice::<Lease>(&bytes);
                lease.is_ok_and(|lease| lease.has_ended)
            };
            if bytes.is_none_or(has_ended) {
                continue;
            }
            let object = self.store().get(&self.lease_key(order, file))?;
            if let Some(running) = object.and_then(|object| running(file, &object)) {
                return Ok(Some(running));
            }
        }
        Ok(None)
    }
}

impl Lease {
    fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("it has only text and numbers")
    }
}

struct Renewing {
    backend: Backend,
    key: String,
    lease: Lease,
    version: Version,
}

impl Renewing {
    /// Renews the lease until the job ends, and ends it.
    fn go(mut self, stopped: &Receiver<()>) {
        while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            self.put();
        }
        self.lease.has_ended = true;
        self.put();
    }

    /// If that fails, the lease runs out unless the next renewal succeeds.
    fn put(&mut self) {
        self.lease.renewals += 1;
        let condition = PutCondition::Unchanged(self.version.clone());
        let bytes = self.lease.to_bytes();
        match self.backend.swap_bytes(&self.key, &bytes, &condition) {
            Ok(PutOutcome::Done(version)) => self.version = version,
            // It may be an earlier one, whose answer was lost.
            Ok(PutOutcome::Refused(Some(found))) => {
                let lease = serde_json::from_slice::<Lease>(&found.bytes);
                if lease.is_ok_and(|lease| lease.code == self.lease.code) {
                    self.version = found.version;
                    self.put();
                }
            }
            Ok(PutOutcome::Refused(None)) | Err(_) => {}
        }
    }
}
