//! A holder that goes on writing while its lock is taken away, or while the backend does not answer.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use orch::folder::GuardedFolder;
use orch::state::backend::Backend;
use orch::state::document::{Document, Entry};
use orch::state::edit::init;
use orch::state::lock::{self, Unlocking};
use orch::state::run_record::RunChanges;
use orch::state::store::{PutCondition, PutError, Store, StoreError, StoredObject, Version};
use orch::state::writer::{Change, Core, LocalCopy, Pauses, Report, StateWriter, WriterEnd};

use super::memory::{Bucket, StoppedClock};
use super::{attempt, author, binding, edit, lock_at_once};

/// A bucket in which something happens right before an object is put for the first time.
struct Interrupted {
    bucket: Bucket,
    /// The object.
    key: &'static str,
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Store for Interrupted {
    fn get(&self, key: &str) -> Result<Option<StoredObject>, StoreError> {
        self.bucket.get(key)
    }

    fn version(&self, key: &str) -> Result<Option<Version>, StoreError> {
        self.bucket.version(key)
    }

    fn time(&self) -> Option<Timestamp> {
        self.bucket.time()
    }

    fn put(&self, key: &str, bytes: &[u8], condition: &PutCondition) -> Result<Version, PutError> {
        if key == self.key
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
}

/// Makes the request that is due, if one is.
fn step(core: &mut Core, backend: &Backend) -> Option<Report> {
    if core.wait() > Duration::ZERO {
        return None;
    }
    let request = core.ask();
    core.hear(request.make(backend))
}

#[test]
fn nothing_is_confirmed_that_whoever_takes_the_lock_away_does_not_see() {
    let (bucket, clock) = (Bucket::default(), StoppedClock::default());
    let backend = |store: Box<dyn Store>| Backend::new(store, "state".to_owned(), 3);
    let own = || backend(Box::new(bucket.clone()));
    let author = author();
    init(&own(), &binding(), &edit("init", &author), &clock).unwrap();
    let locked = lock_at_once(&own(), "run", &clock).unwrap();
    let code = locked.document.lock.as_ref().unwrap().code.clone();
    let time = Box::new(clock.clone());
    let mut holder = Core::new(locked, None, Pauses::REMOTE, time);
    let holder_backend = own();
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
            let report = step(&mut holder, &holder_backend);
            heard.lock().unwrap().extend(report);
        }
    };
    let interrupted = Interrupted {
        bucket: bucket.clone(),
        key: "state.json",
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

#[test]
fn what_a_run_says_is_kept_on_its_machine_while_the_backend_does_not_answer() {
    let (bucket, clock) = (Bucket::default(), StoppedClock::default());
    let backend = |store: Box<dyn Store>| Backend::new(store, "state".to_owned(), 3);
    let own = || backend(Box::new(bucket.clone()));
    let author = author();
    init(&own(), &binding(), &edit("init", &author), &clock).unwrap();
    let locked = lock_at_once(&own(), "run", &clock).unwrap();
    let (answer, answered) = mpsc::channel::<()>();
    let hanging = Interrupted {
        bucket: bucket.clone(),
        key: "state.run-run.json",
        meanwhile: Mutex::new(Some(Box::new(move || _ = answered.recv()))),
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join(".orch/runs/run")).unwrap();
    let copy = LocalCopy::of(GuardedFolder::create(folder.path()).unwrap(), "run");
    let kept = |stack: &str| {
        let bytes = copy.read().unwrap()?;
        RunChanges::parse(&bytes).unwrap().stacks.remove(stack)
    };
    let (sender, reports) = mpsc::channel();
    let writer = StateWriter::start(
        backend(Box::new(hanging)),
        locked,
        Some(copy.clone()),
        Pauses::LOCAL,
        clock.clone(),
        move |report| _ = sender.send(report),
    );
    let writer = writer.unwrap();
    for stack in ["/a", "/b"] {
        writer.change(stack, Change::Put(Box::default()), 1);
        let begun = Instant::now();
        while kept(stack).is_none() {
            assert!(begun.elapsed() < Duration::from_mins(1), "it is not kept");
            thread::yield_now();
        }
    }
    let record = RunChanges::parse(&bucket.object("state.run-run.json").unwrap());
    assert!(record.unwrap().stacks.is_empty(), "it did not hang");
    clock.advance(Duration::from_secs(5));
    writer.change("/b", Change::Put(Box::default()), 1);
    assert_eq!(reports.recv().unwrap(), Report::Slow { problem: None });
    answer.send(()).unwrap();
    assert!(matches!(writer.finish(None), WriterEnd::Written { .. }));
    let document = Document::parse(&bucket.object("state.json").unwrap()).unwrap();
    assert_eq!(document.stacks.len(), 2);
}
