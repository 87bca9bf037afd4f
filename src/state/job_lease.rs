//! The leases of jobs whose command the state does not record: each job runs on one machine at a time.
//!
//! A job renews its lease until it ends. One that was killed counts as running for [`LEASE`], by the clock of the store.

use std::fmt::{self, Debug, Formatter};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::backend::{Backend, PutOutcome};
use super::clock::{Clock, Moment, SystemClock};
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
    renewal: Arc<Mutex<Renewal>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl JobLease {
    /// Returns why the job must start nothing more, if it has lost its lease or may have: the process may have been
    /// stopped, or the store out of reach.
    pub fn lost(&self) -> Option<&'static str> {
        lock(&self.renewal).lost(&SystemClock::default())
    }
}

impl Drop for JobLease {
    fn drop(&mut self) {
        self.stop = None;
        // If it has panicked, the lease runs out.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

fn lock(renewal: &Mutex<Renewal>) -> MutexGuard<'_, Renewal> {
    renewal.lock().unwrap_or_else(PoisonError::into_inner)
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
        let clock = SystemClock::default();
        let mut condition = PutCondition::Absent;
        let (version, sure) = loop {
            let begun = Moment::now(&clock);
            match self.swap_bytes(&key, &lease.to_bytes(), &condition)? {
                PutOutcome::Done(version) => break (version, begun),
                PutOutcome::Refused(Some(found)) => {
                    if let Some(running) = running(&name, &found) {
                        return Ok(LeaseAttempt::Held(running));
                    }
                    condition = PutCondition::Unchanged(found.version);
                }
                PutOutcome::Refused(None) => condition = PutCondition::Absent,
            }
        };
        let renewal = Arc::new(Mutex::new(Renewal {
            backend: self,
            key,
            lease,
            version,
            sure,
            is_lost: false,
        }));
        let (stop, stopped) = mpsc::channel();
        let renewed = renewal.clone();
        let thread = thread::spawn(move || renew(&renewed, &stopped));
        Ok(LeaseAttempt::Taken(JobLease {
            renewal,
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

struct Renewal {
    backend: Backend,
    key: String,
    lease: Lease,
    version: Version,
    /// When the last renewal was sent that arrived.
    sure: Moment,
    /// Whether another run of the job has taken the lease.
    is_lost: bool,
}

impl Debug for Renewal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Renewal").field(&self.lease).finish()
    }
}

/// Renews a lease until its job ends, and ends it.
fn renew(renewal: &Mutex<Renewal>, stopped: &Receiver<()>) {
    let clock = SystemClock::default();
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        lock(renewal).renew(&clock);
    }
    let mut renewal = lock(renewal);
    renewal.lease.has_ended = true;
    renewal.renew(&clock);
}

impl Renewal {
    fn renew(&mut self, clock: &dyn Clock) {
        while !self.is_lost {
            self.lease.renewals += 1;
            let begun = Moment::now(clock);
            let condition = PutCondition::Unchanged(self.version.clone());
            let bytes = self.lease.to_bytes();
            match self.backend.swap_bytes(&self.key, &bytes, &condition) {
                Ok(PutOutcome::Done(version)) => {
                    self.version = version;
                    self.sure = begun;
                }
                Ok(PutOutcome::Refused(found)) => {
                    let lease = |found: &StoredObject| serde_json::from_slice(&found.bytes).ok();
                    let lease: Option<Lease> = found.as_ref().and_then(lease);
                    self.is_lost = lease.is_none_or(|lease| lease.code != self.lease.code);
                    if let Some(found) = found.filter(|_| !self.is_lost) {
                        // An earlier renewal, whose answer was lost.
                        self.version = found.version;
                        continue;
                    }
                }
                // The next one may arrive.
                Err(_) => {}
            }
            return;
        }
    }

    fn lost(&mut self, clock: &dyn Clock) -> Option<&'static str> {
        if self.sure.passed(clock) >= 3 * INTERVAL {
            self.renew(clock);
        }
        if self.is_lost {
            Some("another run of this job has begun")
        } else if self.sure.passed(clock) >= LEASE {
            Some("the lease of this job could not be renewed for 2m")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use jiff::Timestamp;

    use super::*;
    use crate::state::open::open_without_state;

    struct TestClock(Cell<Duration>);

    impl Clock for TestClock {
        fn elapsed(&self) -> Duration {
            self.0.get()
        }

        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn sleep(&self, duration: Duration) {
            self.0.set(self.0.get() + duration);
        }
    }

    fn taken(store: Backend) -> Option<JobLease> {
        match store.take_lease("run", 0).unwrap() {
            LeaseAttempt::Taken(lease) => Some(lease),
            LeaseAttempt::Held(_) => None,
        }
    }

    #[test]
    fn a_lease_is_lost_once_another_run_may_have_taken_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = || open_without_state(folder.path());
        let lease = taken(store()).unwrap();
        assert!(taken(store()).is_none());
        assert!(store().running_job("run").unwrap().is_some());
        let clock = TestClock(Cell::default());
        let mut renewal = lock(&lease.renewal);
        renewal.sure = Moment::now(&clock);
        assert_eq!(renewal.lost(&clock), None);
        // It is renewed before it runs out.
        clock.sleep(3 * LEASE);
        assert_eq!(renewal.lost(&clock), None);
        // Another run finds that it has run out.
        let other = Lease {
            code: "other".to_owned(),
            ..renewal.lease.clone()
        };
        let condition = PutCondition::Unchanged(renewal.version.clone());
        let put = store().swap_bytes(&renewal.key, &other.to_bytes(), &condition);
        assert!(matches!(put, Ok(PutOutcome::Done(_))));
        assert_eq!(renewal.lost(&clock), None);
        clock.sleep(LEASE);
        assert_eq!(
            renewal.lost(&clock),
            Some("another run of this job has begun")
        );
        drop(renewal);
        drop(lease);
        assert!(taken(store()).is_none());
    }

    #[test]
    fn a_lease_is_lost_while_the_store_cannot_be_reached() {
        let folder = tempfile::tempdir().unwrap();
        let lease = taken(open_without_state(folder.path())).unwrap();
        let clock = TestClock(Cell::default());
        let mut renewal = lock(&lease.renewal);
        renewal.sure = Moment::now(&clock);
        let results = folder.path().join(".orch/state/default.results");
        std::fs::remove_dir_all(&results).unwrap();
        std::fs::write(&results, "").unwrap();
        clock.sleep(3 * INTERVAL);
        assert_eq!(renewal.lost(&clock), None);
        clock.sleep(INTERVAL);
        let why = "the lease of this job could not be renewed for 2m";
        assert_eq!(renewal.lost(&clock), Some(why));
    }
}
