//! The lock of a work order: its jobs begin, are heard of, end, die and run again in any order, and a run from
//! outside wants the lock. No job has two holders, nobody takes the lock from a job that is alive, and the last
//! job frees it.

use std::time::Duration;

use orch::state::backend::Backend;
use orch::state::clock::Clock as _;
use orch::state::document::{Document, OrderJob, RunAction};
use orch::state::edit::init;
use orch::state::lock::{self, LockApplication, LockError, Locked};
use orch::state::shared::complete;
use orch::state::writer::{Core, Pauses, Report, WriterEnd};
use proptest::prelude::*;

use super::memory::{Bucket, StoppedClock};
use super::{author, binding, edit};

const EXPIRES: Duration = Duration::from_mins(15);

const JOBS: [&str; 3] = ["a", "b", "c"];

const CODE: &str = "code-of-the-order";

#[derive(Debug, Clone)]
enum Event {
    /// Time passes, in seconds.
    Wait(u64),
    Begin(usize),
    /// The job sends a heartbeat.
    Beat(usize),
    Succeed(usize),
    Die(usize),
    /// A run that is no job takes the lock if it can, and ends.
    Outside,
}

fn event() -> impl Strategy<Value = Event> {
    let job = 0..JOBS.len();
    prop_oneof![
        3 => (0_u64..1200).prop_map(Event::Wait),
        5 => job.clone().prop_map(Event::Begin),
        4 => job.clone().prop_map(Event::Beat),
        3 => job.clone().prop_map(Event::Succeed),
        2 => job.prop_map(Event::Die),
        2 => Just(Event::Outside),
    ]
}

/// A run of a job that has begun.
struct Holder {
    core: Core,
    /// Whether another run has taken its lock.
    is_overtaken: bool,
}

/// What the model knows of a job.
#[derive(Default)]
struct Job {
    /// Its run, unless it is dead or has ended.
    live: Option<Holder>,
    /// When its last run was heard of, unless that has ended.
    heard: Option<Duration>,
    is_done: bool,
}

struct World {
    bucket: Bucket,
    clock: StoppedClock,
    jobs: [Job; 3],
    /// When the document was written last.
    written: Duration,
    number: u32,
}

impl World {
    fn new() -> Self {
        let clock = StoppedClock::default();
        clock.advance(Duration::from_hours(24));
        let world = World {
            bucket: Bucket::with_clock(clock.clone()),
            jobs: Default::default(),
            written: clock.elapsed(),
            number: 0,
            clock,
        };
        let author = author();
        init(
            &world.backend(),
            &binding(),
            &edit("init", &author),
            &world.clock,
        )
        .unwrap();
        world
    }

    fn backend(&self) -> Backend {
        Backend::new(Box::new(self.bucket.clone()), "state".to_owned(), 3)
    }

    fn document(&self) -> Document {
        Document::parse(&self.bucket.object("state.json").unwrap()).unwrap()
    }

    fn lock(&mut self, job: Option<usize>) -> Result<Locked, LockError> {
        self.number += 1;
        let left = JOBS.iter().zip(&self.jobs).filter(|(_, job)| !job.is_done);
        let job = job.map(|job| OrderJob {
            order: "order".to_owned(),
            run: "run-of-the-order".to_owned(),
            code: CODE.to_owned(),
            job: JOBS[job].to_owned(),
            left: left.map(|(job, _)| (*job).to_owned()).collect(),
            is_chosen: false,
        });
        let application = LockApplication {
            run: &format!("run-{}", self.number),
            action: &RunAction::Apply,
            author: &author(),
            expires: Some(EXPIRES),
            timeout: Duration::ZERO,
            job: job.as_ref(),
            amend: &|_| {},
            note: &|_| {},
        };
        lock::lock(&self.backend(), &application, &self.clock)
    }

    fn is_silent(&self, since: Duration) -> bool {
        self.clock.elapsed().saturating_sub(since) >= EXPIRES
    }

    fn begin(&mut self, job: usize) {
        if self.jobs[job].is_done {
            return;
        }
        let backend = self.backend();
        let may_begin = self.jobs[job]
            .heard
            .is_none_or(|heard| self.is_silent(heard));
        let locked = self.lock(Some(job));
        assert_eq!(
            locked.is_ok(),
            may_begin,
            "{}: {:?}",
            JOBS[job],
            locked.err()
        );
        let Ok(locked) = locked else { return };
        let now = self.clock.elapsed();
        self.written = now;
        let core = Core::new(locked, None, Pauses::REMOTE, Box::new(self.clock.clone()));
        let state = &mut self.jobs[job];
        // The run before it, if it was only slow, can write nothing more.
        if let Some(mut before) = state.live.take() {
            assert!(!beat(&mut before.core, &backend));
        }
        state.heard = Some(now);
        state.live = Some(Holder {
            core,
            is_overtaken: false,
        });
    }

    fn beat(&mut self, job: usize) {
        let (backend, now) = (self.backend(), self.clock.elapsed());
        let state = &mut self.jobs[job];
        let Some(holder) = &mut state.live else {
            return;
        };
        let is_heard = beat(&mut holder.core, &backend);
        assert_eq!(is_heard, !holder.is_overtaken, "{}", JOBS[job]);
        if is_heard {
            state.heard = Some(now);
        } else {
            state.live = None;
        }
    }

    fn succeed(&mut self, job: usize) {
        let backend = self.backend();
        let state = &mut self.jobs[job];
        let Some(Holder {
            mut core,
            is_overtaken,
        }) = state.live.take()
        else {
            return;
        };
        core.finish(None);
        while core.ended().is_none() {
            let answer = core.ask().make(&backend);
            core.hear(answer);
        }
        let has_ended = matches!(core.ended(), Some(WriterEnd::Written { .. }));
        assert_eq!(
            has_ended,
            !is_overtaken,
            "{}: {:?}",
            JOBS[job],
            core.ended()
        );
        if has_ended {
            complete(&backend, CODE, &[JOBS[job].to_owned()]).unwrap();
            (state.heard, state.is_done) = (None, true);
            self.written = self.clock.elapsed();
        }
    }

    fn outside(&mut self) {
        let is_held = self.document().lock.is_some();
        let mut heard = self.jobs.iter().filter_map(|job| job.heard);
        let may_take =
            !is_held || self.is_silent(self.written) && heard.all(|heard| self.is_silent(heard));
        let locked = self.lock(None);
        assert_eq!(locked.is_ok(), may_take, "{:?}", locked.err());
        let Ok(locked) = locked else { return };
        for job in &mut self.jobs {
            job.heard = None;
            if let Some(holder) = &mut job.live {
                holder.is_overtaken = true;
            }
        }
        let mut core = Core::new(locked, None, Pauses::REMOTE, Box::new(self.clock.clone()));
        core.finish(None);
        while core.ended().is_none() {
            let answer = core.ask().make(&self.backend());
            core.hear(answer);
        }
        self.written = self.clock.elapsed();
        assert_eq!(self.document().lock, None);
    }

    /// Checks that the document says who runs, and that nobody holds the lock once all jobs are done.
    fn check(&self) {
        let document = self.document();
        let shared = document.lock.as_ref().and_then(|lock| lock.shared.as_ref());
        for (name, job) in JOBS.iter().zip(&self.jobs) {
            let own = shared.and_then(|shared| shared.jobs.get(*name)?.as_ref());
            assert_eq!(own.is_some(), job.heard.is_some(), "{name}: {shared:?}");
        }
        if self.jobs.iter().all(|job| job.is_done) {
            assert_eq!(document.lock, None);
        }
    }
}

/// Sends a heartbeat; returns whether the run still has its lock.
fn beat(core: &mut Core, backend: &Backend) -> bool {
    let answer = core.ask().make(backend);
    let report = core.hear(answer);
    !matches!(report, Some(Report::Lost(_))) && core.ended().is_none()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lock_of_an_order_has_one_holder_for_each_job(events in prop::collection::vec(event(), 1..60)) {
        let mut world = World::new();
        for event in events {
            match event {
                Event::Wait(seconds) => world.clock.advance(Duration::from_secs(seconds)),
                Event::Begin(job) => world.begin(job),
                Event::Beat(job) => world.beat(job),
                Event::Succeed(job) => world.succeed(job),
                Event::Die(job) => _ = world.jobs[job].live.take(),
                Event::Outside => world.outside(),
            }
            world.check();
        }
        // Whatever has happened, the jobs can be run to their ends.
        world.clock.advance(EXPIRES);
        for job in 0..JOBS.len() {
            world.begin(job);
            world.succeed(job);
        }
        world.check();
        prop_assert!(world.jobs.iter().all(|job| job.is_done));
    }
}
