//! A holder that goes on writing while its lock is taken away.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use orch::state::backend::Backend;
use orch::state::document::{Action, Document, Entry};
use orch::state::edit::init;
use orch::state::lock::{self, Unlocking};
use orch::state::store::{Condition, Object, Presence, PutError, Store, StoreError, Version};
use orch::state::writer::{Change, Core, Pauses, Report};

use super::memory::{Bucket, StoppedClock};
use super::{attempt, author, binding, edit};

/// A bucket in which something happens right before the document is put for the first time.
struct Interrupted {
    bucket: Bucket,
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Store for Interrupted {
    fn get(&self, key: &str) -> Result<Option<Object>, StoreError> {
        self.bucket.get(key)
    }

    fn put(&self, key: &str, bytes: &[u8], condition: &Condition) -> Result<Version, PutError> {
        if key == "state.json"
            && let Some(meanwhile) = self.meanwhile.lock().unwrap().take()
        {
            meanwhile();
        }
        self.bucket.put(key, bytes, condition)
    }

    fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.bucket.delete(key)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.bucket.list(prefix)
    }

    fn address(&self, key: &str) -> String {
        self.bucket.address(key)
    }

    fn presence(&self) -> Result<Presence, StoreError> {
        self.bucket.presence()
    }
}

#[test]
fn nothing_is_confirmed_that_whoever_takes_the_lock_away_does_not_see() {
    let (bucket, clock) = (Bucket::default(), StoppedClock::default());
    let backend = |store: Box<dyn Store>| Backend::new(store, "state".to_owned(), 3);
    let own = || backend(Box::new(bucket.clone()));
    let author = author();
    init(&own(), &binding(), &edit("init", &author), &clock).unwrap();
    let zero = Duration::ZERO;
    let locked = lock::lock(
        &own(),
        "run",
        &Action::Apply,
        &author,
        zero,
        &clock,
        &|_| {},
    )
    .unwrap();
    let code = locked.document.lock.as_ref().unwrap().code.clone();
    let time = Box::new(clock.clone());
    let mut holder = Core::new(own(), locked, None, Pauses::REMOTE, time);
    let reports = Arc::<Mutex<Vec<Report>>>::default();
    let heard = Arc::clone(&reports);
    let holder_clock = clock.clone();
    let meanwhile = move || {
        let entry = Entry {
            last: Some(attempt("run", jiff::Timestamp::UNIX_EPOCH)),
            ..Entry::default()
        };
        holder.change("/a".to_owned(), Change::Put(Box::new(entry)), 1);
        for _ in 0..3 {
            holder_clock.advance(Duration::from_millis(250));
            heard.lock().unwrap().extend(holder.step());
        }
    };
    let interrupted = Interrupted {
        bucket: bucket.clone(),
        meanwhile: Mutex::new(Some(Box::new(meanwhile))),
    };
    let unlocking = Unlocking {
        code,
        force: true,
        reason: None,
        dry_run: false,
    };
    let breaker = backend(Box::new(interrupted));
    lock::unlock(&breaker, &unlocking, &author, &clock).unwrap();
    let reports = reports.lock().unwrap();
    assert!(matches!(reports[..], [Report::Lost(_)]), "{reports:?}");
    let document = Document::parse(&bucket.object("state.json").unwrap()).unwrap();
    assert!(document.stacks.is_empty());
}
