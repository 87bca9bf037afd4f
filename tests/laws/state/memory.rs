//! A bucket in memory whose network fails as drawn.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use orch::state::clock::Clock;
use orch::state::store::{
    PutCondition, PutError, Store, StoreError, StoreFailure, StoredObject, Version,
};

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is answered.
    None,
    /// It is lost.
    Request,
    /// It takes effect, and the answer is lost.
    Answer,
    /// It takes effect after the next request, and the answer is lost.
    Late,
}

/// A put that is under way.
type Put = (String, Vec<u8>, PutCondition);

struct Stored {
    bytes: Vec<u8>,
    version: u64,
    /// When it was put, by the clock of the bucket.
    at: Duration,
}

#[derive(Default)]
struct Objects {
    by_key: BTreeMap<String, Stored>,
    versions: u64,
    clock: StoppedClock,
    faults: VecDeque<Fault>,
    late: Option<Put>,
    /// Every document that there ever was, in order.
    documents: Vec<Vec<u8>>,
}

impl Objects {
    fn put(&mut self, (key, bytes, condition): Put) -> Option<Version> {
        let found = self
            .by_key
            .get(&key)
            .map(|stored| stored.version.to_string());
        let holds = match condition {
            PutCondition::Absent => found.is_none(),
            PutCondition::Unchanged(version) => found.is_some() && found == version.number,
        };
        if !holds {
            return None;
        }
        self.versions += 1;
        if key == "state.json" {
            self.documents.push(bytes.clone());
        }
        let (version, at) = (self.versions, self.clock.elapsed());
        self.by_key.insert(key, Stored { bytes, version, at });
        let number = Some(self.versions.to_string());
        Some(Version { tag: None, number })
    }

    fn request(&mut self) -> Fault {
        if let Some(late) = self.late.take() {
            self.put(late);
        }
        self.faults.pop_front().unwrap_or(Fault::None)
    }
}

/// The bucket; clones are the same bucket.
#[derive(Clone, Default)]
pub(super) struct Bucket(Arc<Mutex<Objects>>);

impl Bucket {
    /// Returns an empty bucket with this clock.
    pub(super) fn with_clock(clock: StoppedClock) -> Self {
        let objects = Objects {
            clock,
            ..Objects::default()
        };
        Bucket(Arc::new(Mutex::new(objects)))
    }

    /// Makes the next requests fail so.
    pub(super) fn fail(&self, faults: &[Fault]) {
        self.0.lock().unwrap().faults.extend(faults);
    }

    /// Makes the network work again; what is under way arrives.
    pub(super) fn heal(&self) {
        let mut objects = self.0.lock().unwrap();
        objects.faults.clear();
        objects.request();
    }

    /// Whether the next request is answered, and nothing is under way.
    pub(super) fn is_well(&self) -> bool {
        let objects = self.0.lock().unwrap();
        objects.late.is_none() && objects.faults.iter().all(|fault| *fault == Fault::None)
    }

    /// How long ago an object was put.
    pub(super) fn age(&self, key: &str) -> Option<Duration> {
        let objects = self.0.lock().unwrap();
        let now = objects.clock.elapsed();
        let stored = objects.by_key.get(key)?;
        Some(now.saturating_sub(stored.at))
    }

    /// Every document that there ever was.
    pub(super) fn documents(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().documents.clone()
    }

    /// What is in an object.
    pub(super) fn object(&self, key: &str) -> Option<Vec<u8>> {
        let objects = self.0.lock().unwrap();
        objects.by_key.get(key).map(|stored| stored.bytes.clone())
    }
}

fn lost(key: &str) -> StoreError {
    StoreError {
        doing: "reach",
        address: key.to_owned(),
        problem: "lost".to_owned(),
        failure: StoreFailure::Transient,
    }
}

impl Store for Bucket {
    fn get(&self, key: &str) -> Result<Option<StoredObject>, StoreError> {
        let mut objects = self.0.lock().unwrap();
        if objects.request() != Fault::None {
            return Err(lost(key));
        }
        let now = objects.clock.elapsed();
        let found = objects.by_key.get(key);
        Ok(found.map(|stored| StoredObject {
            bytes: stored.bytes.clone(),
            version: Version {
                tag: None,
                number: Some(stored.version.to_string()),
            },
            age: Some(now.saturating_sub(stored.at)),
        }))
    }

    fn version(&self, key: &str) -> Result<Option<Version>, StoreError> {
        Ok(self.get(key)?.map(|object| object.version))
    }

    fn time(&self) -> Option<Timestamp> {
        Some(self.0.lock().unwrap().clock.now())
    }

    fn put(&self, key: &str, bytes: &[u8], condition: &PutCondition) -> Result<Version, PutError> {
        let mut objects = self.0.lock().unwrap();
        let put = (key.to_owned(), bytes.to_vec(), condition.clone());
        match objects.request() {
            Fault::None => objects.put(put).ok_or(PutError::Refused),
            Fault::Request => Err(PutError::Unknown(lost(key))),
            Fault::Answer => {
                objects.put(put);
                Err(PutError::Unknown(lost(key)))
            }
            Fault::Late => {
                objects.late = Some(put);
                Err(PutError::Unknown(lost(key)))
            }
        }
    }

    fn delete(&self, key: &str) -> Result<(), StoreError> {
        let mut objects = self.0.lock().unwrap();
        let fault = objects.request();
        if fault != Fault::Request {
            objects.by_key.remove(key);
        }
        match fault {
            Fault::None => Ok(()),
            _ => Err(lost(key)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let mut objects = self.0.lock().unwrap();
        if objects.request() != Fault::None {
            return Err(lost(prefix));
        }
        let keys = objects.by_key.keys();
        Ok(keys
            .filter(|key| key.starts_with(prefix))
            .cloned()
            .collect())
    }

    fn address(&self, key: &str) -> String {
        key.to_owned()
    }
}

/// A clock that stands still until it is put forward; clones are the same clock.
#[derive(Clone, Default)]
pub(super) struct StoppedClock(Arc<Mutex<Duration>>);

impl StoppedClock {
    pub(super) fn advance(&self, duration: Duration) {
        *self.0.lock().unwrap() += duration;
    }
}

impl Clock for StoppedClock {
    fn elapsed(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.elapsed()).unwrap();
        Timestamp::UNIX_EPOCH + elapsed
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}
