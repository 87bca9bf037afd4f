//! The leases of jobs whose command the state does not record: each job runs on one machine at a time.
//!
//! A job renews its lease until it ends. One that was killed counts as running for 2 minutes, by the clock of the store.

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

/// How long after a renewal that failed the next one follows.
const RETRY: Duration = Duration::from_secs(5);

/// How long after a renewal the job starts nothing more: some time before others may take the lease.
const GIVE_UP: Duration = Duration::from_secs(110);

/// The content of a lease object: its bytes are unique to each renewal.
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
    pub host: String,
    /// The time since it renewed its lease, by the clock of the store, if that reports one.
    pub silence: Option<Duration>,
}

/// A lease of this process. It ends when this value is dropped.
#[derive(Debug)]
pub struct JobLease {
    hold: Arc<Mutex<Hold>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl JobLease {
    /// Returns why the job must start nothing more, if it has lost its lease or may have: the process may have been
    /// stopped, or the store out of reach.
    pub fn lost(&self) -> Option<&'static str> {
        lock(&self.hold).lost(&SystemClock::default())
    }
}

impl Drop for JobLease {
    fn drop(&mut self) {
        if thread::panicking() {
            // Commands may still be running.
            std::mem::forget(self.stop.take());
            return;
        }
        self.stop = None;
        // If it has panicked, the lease runs out.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

fn lock(hold: &Mutex<Hold>) -> MutexGuard<'_, Hold> {
    hold.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of an attempt to take a lease.
#[derive(Debug)]
pub enum LeaseAttempt {
    Taken(JobLease),
    Held(RunningJob),
}

/// Returns the job that an object in the store says is running.
fn running(object: &StoredObject) -> Option<RunningJob> {
    let parsed: Option<Lease> = serde_json::from_slice(&object.bytes).ok();
    let is_over = object.age.is_some_and(|age| age >= LEASE);
    if is_over || parsed.as_ref().is_some_and(|it| it.has_ended) {
        return None;
    }
    Some(RunningJob {
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
        let key = self.lease_key(order, &format!("{LEASE_OF_JOB}{job}"));
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
                    if let Some(running) = running(&found) {
                        return Ok(LeaseAttempt::Held(running));
                    }
                    condition = PutCondition::Unchanged(found.version);
                }
                PutOutcome::Refused(None) => condition = PutCondition::Absent,
            }
        };
        let hold = Arc::new(Mutex::new(Hold {
            sure,
            is_lost: false,
        }));
        let renewal = Renewal {
            backend: self,
            key,
            lease,
            version,
            hold: hold.clone(),
        };
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || renewal.go(&stopped));
        Ok(LeaseAttempt::Taken(JobLease {
            hold,
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
            if let Some(running) = object.as_ref().and_then(running) {
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

/// Whether the process has its lease. No one waits for the store with it.
#[derive(Debug)]
struct Hold {
    /// When the last successful renewal was sent.
    sure: Moment,
    /// Whether another run of the job has taken the lease.
    is_lost: bool,
}

impl Hold {
    fn lost(&self, clock: &dyn Clock) -> Option<&'static str> {
        if self.is_lost {
            Some("another run of this job has begun")
        } else if self.sure.passed(clock) >= GIVE_UP {
            Some("the lease of this job could not be renewed for 2m")
        } else {
            None
        }
    }
}

struct Renewal {
    backend: Backend,
    key: String,
    lease: Lease,
    version: Version,
    hold: Arc<Mutex<Hold>>,
}

impl Renewal {
    /// Renews the lease until its job ends, and ends it.
    fn go(mut self, stopped: &Receiver<()>) {
        let clock = SystemClock::default();
        let mut pause = INTERVAL;
        while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            pause = if self.renew(&clock) { INTERVAL } else { RETRY };
        }
        self.lease.has_ended = true;
        self.renew(&clock);
    }

    /// Renews the lease unless it is lost. Returns false if the store failed.
    fn renew(&mut self, clock: &dyn Clock) -> bool {
        while !lock(&self.hold).is_lost {
            self.lease.renewals += 1;
            let begun = Moment::now(clock);
            let condition = PutCondition::Unchanged(self.version.clone());
            let bytes = self.lease.to_bytes();
            match self.backend.swap_bytes(&self.key, &bytes, &condition) {
                Ok(PutOutcome::Done(version)) => {
                    self.version = version;
                    lock(&self.hold).sure = begun;
                    return true;
                }
                Ok(PutOutcome::Refused(found)) => {
                    let lease = |found: &StoredObject| serde_json::from_slice(&found.bytes).ok();
                    let lease: Option<Lease> = found.as_ref().and_then(lease);
                    let is_own = lease.is_some_and(|lease| lease.code == self.lease.code);
                    match found.filter(|_| is_own) {
                        // An earlier renewal, whose answer was lost.
                        Some(found) => self.version = found.version,
                        None => lock(&self.hold).is_lost = true,
                    }
                }
                Err(_) => return false,
            }
        }
        true
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
    fn a_lease_belongs_to_one_run_until_that_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let store = || open_without_state(folder.path());
        let lease = taken(store()).unwrap();
        assert!(taken(store()).is_none());
        assert!(store().running_job("run").unwrap().is_some());
        drop(lease);
        assert_eq!(store().running_job("run").unwrap(), None);
        assert!(taken(store()).is_some());
    }

    #[test]
    fn a_lease_is_lost_once_another_run_has_taken_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = || open_without_state(folder.path());
        let (clock, mut renewal) = (TestClock(Cell::default()), renewal(store()));
        clock.sleep(LEASE);
        assert!(lock(&renewal.hold).lost(&clock).is_some());
        assert!(renewal.renew(&clock));
        assert_eq!(lock(&renewal.hold).lost(&clock), None);
        let other = Lease {
            code: "other".to_owned(),
            ..renewal.lease.clone()
        };
        let condition = PutCondition::Unchanged(renewal.version.clone());
        let put = store().swap_bytes(&renewal.key, &other.to_bytes(), &condition);
        assert!(matches!(put, Ok(PutOutcome::Done(_))));
        renewal.renew(&clock);
        let why = "another run of this job has begun";
        assert_eq!(lock(&renewal.hold).lost(&clock), Some(why));
    }

    #[test]
    fn a_lease_is_lost_before_others_take_it_if_the_store_cannot_be_reached() {
        let folder = tempfile::tempdir().unwrap();
        let store = || open_without_state(folder.path());
        let (clock, mut renewal) = (TestClock(Cell::default()), renewal(store()));
        let results = folder.path().join(".orch/state/default.results");
        std::fs::remove_dir_all(&results).unwrap();
        std::fs::write(&results, "").unwrap();
        clock.sleep(INTERVAL * 3);
        assert!(!renewal.renew(&clock));
        assert_eq!(lock(&renewal.hold).lost(&clock), None);
        clock.sleep(INTERVAL);
        let why = "the lease of this job could not be renewed for 2m";
        assert_eq!(lock(&renewal.hold).lost(&clock), Some(why));
    }

    /// Returns the renewal of a lease whose thread does nothing.
    fn renewal(store: Backend) -> Renewal {
        let key = store.lease_key("run", "job.0");
        let lease = Lease {
            code: "own".to_owned(),
            host: "here".to_owned(),
            renewals: 0,
            has_ended: false,
        };
        let put = store.swap_bytes(&key, &lease.to_bytes(), &PutCondition::Absent);
        let Ok(PutOutcome::Done(version)) = put else {
            panic!("it cannot be put");
        };
        let sure = Moment::now(&TestClock(Cell::default()));
        let hold = Hold {
            sure,
            is_lost: false,
        };
        Renewal {
            backend: store,
            key,
            lease,
            version,
            hold: Arc::new(Mutex::new(hold)),
        }
    }
}
