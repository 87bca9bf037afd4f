//! Waiting: in the order of arrival, without looking where the kernel tells, whatever became of others that waited.

use std::cell::Cell;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use orch::state::backend::Backend;
use orch::state::clock::{Clock, SystemClock};
use orch::state::document::RunAction;
use orch::state::edit::init;
use orch::state::lock::{self, LockApplication, LockError, Locked, WaitReason};
use orch::state::store::{PutCondition, Store as _};
use orch::state::writer::{Core, Pauses, WriterEnd};

use super::memory::{Bucket, Fault, StoppedClock};
use super::threads::Project;
use super::{author, binding, edit, lock_at_once};

/// A clock of which each sleep is told, and ended only by the alarm.
struct AlarmClock {
    clock: SystemClock,
    sleeps: Cell<Vec<Duration>>,
    alarm: Sender<()>,
    alarmed: Receiver<()>,
}

impl Clock for AlarmClock {
    fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) {
        let mut sleeps = self.sleeps.take();
        sleeps.push(duration);
        self.sleeps.set(sleeps);
        self.alarmed.recv_timeout(Duration::from_mins(1)).unwrap();
    }

    fn alarm(&self) -> Option<Box<dyn FnOnce() + Send>> {
        let alarm = self.alarm.clone();
        Some(Box::new(move || _ = alarm.send(())))
    }
}

fn wait_for(
    backend: &Backend,
    run: &str,
    timeout: Duration,
    clock: &dyn Clock,
    note: &dyn Fn(WaitReason<'_>),
) -> Result<Locked, LockError> {
    let application = LockApplication {
        run,
        action: &RunAction::Apply,
        author: &author(),
        expires: None,
        timeout,
        job: None,
        amend: &|_| {},
        note,
    };
    lock::lock(backend, &application, clock)
}

#[test]
fn waiting_on_one_machine_looks_at_nothing_until_the_lock_is_free() {
    let project = Project::new();
    let locked = project.lock("01a1").unwrap();
    let (waits, waiting) = mpsc::channel();
    thread::scope(|scope| {
        let project = &project;
        let waiter = scope.spawn(move || {
            let (alarm, alarmed) = mpsc::channel();
            let clock = AlarmClock {
                clock: SystemClock::default(),
                sleeps: Cell::default(),
                alarm,
                alarmed,
            };
            let note = |_: WaitReason<'_>| waits.send(()).unwrap();
            let timeout = Duration::from_mins(10);
            let locked = wait_for(&project.backend(), "01a2", timeout, &clock, &note);
            assert!(locked.is_ok(), "{locked:?}");
            clock.sleeps.take()
        });
        waiting.recv().unwrap();
        let (writer, _reports) = project.writer(locked, None);
        assert!(matches!(writer.finish(None), WriterEnd::Written { .. }));
        let sleeps = waiter.join().unwrap();
        // It has slept once, for all the time that it had.
        assert!(sleeps.len() <= 1, "{sleeps:?}");
        let all = sleeps.iter().all(|time| *time > Duration::from_mins(9));
        assert!(all, "{sleeps:?}");
    });
}

/// A bucket with a document whose lock is free.
fn bucket() -> (Bucket, StoppedClock, impl Fn() -> Backend) {
    let clock = StoppedClock::default();
    let bucket = Bucket::with_clock(clock.clone());
    let same = bucket.clone();
    let backend = move || Backend::new(Box::new(same.clone()), "state".to_owned(), 3);
    let author = author();
    init(&backend(), &binding(), &edit("init", &author), &clock).unwrap();
    (bucket, clock, backend)
}

const TIMEOUT: Duration = Duration::from_mins(10);

#[test]
fn lock_that_is_free_is_left_to_those_who_have_waited_for_longer() {
    let (bucket, clock, backend) = bucket();
    let ticket = "state.queue/000000000000000-01a0.json";
    bucket.put(ticket, b"{}", &PutCondition::Absent).unwrap();
    clock.advance(Duration::from_secs(1));
    let told = Cell::new(None);
    let note = |reason: WaitReason<'_>| match reason {
        WaitReason::Behind(ahead) => told.set(Some(ahead)),
        reason => panic!("{reason:?}"),
    };
    let begun = clock.elapsed();
    wait_for(&backend(), "01a1", TIMEOUT, &clock, &note).unwrap();
    // The other was cancelled, and loses its turn.
    assert_eq!(told.get(), Some(1));
    let waited = clock.elapsed().saturating_sub(begun);
    assert!((3..8).contains(&waited.as_secs()), "{waited:?}");
    assert_eq!(bucket.list("state.queue/").unwrap(), [""; 0]);
}

#[test]
fn run_that_does_not_wait_asks_for_no_turn() {
    let (bucket, clock, backend) = bucket();
    let ticket = "state.queue/000000000000000-01a0.json";
    bucket.put(ticket, b"{}", &PutCondition::Absent).unwrap();
    assert!(lock_at_once(&backend(), "01a1", &clock).is_ok());
}

/// A clock on which the holder goes on while a run waits.
struct Meanwhile<'a> {
    clock: StoppedClock,
    holder: &'a Mutex<Option<Core>>,
    backend: Backend,
    /// When the holder ends.
    end: Duration,
    naps: Cell<u32>,
}

impl Clock for Meanwhile<'_> {
    fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) {
        self.clock.advance(duration);
        self.naps.set(self.naps.get() + 1);
        let mut holder = self.holder.lock().unwrap();
        let Some(core) = holder.as_mut() else {
            return;
        };
        if self.clock.elapsed() >= self.end {
            core.finish(None);
        }
        while core.wait() == Duration::ZERO && core.ended().is_none() {
            let answer = core.ask().make(&self.backend);
            core.hear(answer);
        }
        if core.ended().is_some() {
            *holder = None;
        }
    }
}

#[test]
fn waiting_for_a_bucket_looks_often_at_first_and_seldom_later() {
    for (held, naps, late) in [(2, 30, 1), (3600, 4000, 4)] {
        let (_, clock, backend) = bucket();
        let locked = lock_at_once(&backend(), "01a1", &clock).unwrap();
        let core = Core::new(locked, None, Pauses::REMOTE, Box::new(clock.clone()));
        let meanwhile = Meanwhile {
            end: clock.elapsed() + Duration::from_secs(held),
            clock,
            holder: &Mutex::new(Some(core)),
            backend: backend(),
            naps: Cell::new(0),
        };
        let timeout = Duration::from_hours(2);
        wait_for(&backend(), "01a2", timeout, &meanwhile, &|_| {}).unwrap();
        assert!(meanwhile.naps.get() < naps, "{}", meanwhile.naps.get());
        let waited = meanwhile.clock.elapsed().saturating_sub(meanwhile.end);
        assert!(waited < Duration::from_secs(late), "{waited:?}");
    }
}

#[test]
fn store_that_fails_for_less_than_a_minute_is_borne_and_no_longer() {
    for (faults, is_borne) in [(30, true), (300, false)] {
        let (bucket, clock, backend) = bucket();
        bucket.fail(&vec![Fault::Request; faults]);
        let failures = Arc::<Mutex<u32>>::default();
        let note = |reason: WaitReason<'_>| {
            assert!(matches!(reason, WaitReason::Failing(_)));
            *failures.lock().unwrap() += 1;
        };
        let locked = wait_for(&backend(), "01a1", Duration::ZERO, &clock, &note);
        assert_eq!(locked.is_ok(), is_borne, "{locked:?}");
        assert!(*failures.lock().unwrap() > 20);
    }
}

#[test]
fn lock_whose_answer_was_lost_is_held() {
    // Every request of those that take the lock, and the one after it, which would have told.
    for nth in 0..12 {
        for late in [Fault::Answer, Fault::Late] {
            let (bucket, clock, backend) = bucket();
            let mut faults = vec![Fault::None; nth];
            faults.extend([late, Fault::Request]);
            bucket.fail(&faults);
            let locked = wait_for(&backend(), "01a1", TIMEOUT, &clock, &|_| {}).unwrap();
            bucket.heal();
            let document = backend().read().unwrap().unwrap().document;
            assert_eq!(document.lock, locked.document.lock, "{nth} {late:?}");
            let mut core = Core::new(locked, None, Pauses::REMOTE, Box::new(clock.clone()));
            core.finish(None);
            while core.ended().is_none() {
                clock.advance(Duration::from_secs(1));
                let answer = core.ask().make(&backend());
                core.hear(answer);
            }
            assert!(matches!(core.ended(), Some(WriterEnd::Written { .. })));
        }
    }
}
