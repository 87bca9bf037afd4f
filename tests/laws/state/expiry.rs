//! Locks that expire, where holders are slow, asleep or dead, their clocks are wrong by an hour, and the store
//! fails: no command starts without the lock, nothing that was confirmed is lost, and no lock stays for ever.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use orch::state::backend::Backend;
use orch::state::clock::Clock;
use orch::state::document::{Document, Entry, Intent, RunAction};
use orch::state::edit::init;
use orch::state::lock::{self, LockApplication, LockError, Locked};
use orch::state::run_record::RunChanges;
use orch::state::writer::{Change, Core, Pauses, Report, WriterAnswer, WriterRequest};
use proptest::prelude::*;
use serde_json::Map;

use super::memory::{Bucket, Fault, StoppedClock};
use super::{author, binding, edit, mark};

const EXPIRES: Duration = Duration::from_mins(15);

const RUNS: usize = 3;

/// How wrong the clock of each machine is, in hours.
const WRONG: [i64; RUNS] = [-1, 0, 1];

/// The clock of a machine, which may sleep.
#[derive(Clone)]
struct MachineClock {
    truth: StoppedClock,
    wrong: SignedDuration,
    asleep: Arc<Mutex<Duration>>,
}

impl Clock for MachineClock {
    fn elapsed(&self) -> Duration {
        let asleep = *self.asleep.lock().unwrap();
        self.truth.elapsed().saturating_sub(asleep)
    }

    fn now(&self) -> Timestamp {
        self.truth.now() + self.wrong
    }

    fn sleep(&self, duration: Duration) {
        self.truth.sleep(duration);
    }
}

#[derive(Debug, Clone)]
enum Event {
    Fail(Vec<Fault>),
    Heal,
    /// Time passes for all.
    Wait(u64),
    /// The machine of a run sleeps for so long.
    Sleep(usize, u64),
    Lock(usize),
    Intend(usize),
    /// A further command is about to start.
    Renew(usize),
    /// The request that is due is on its way.
    Ask(usize),
    /// It arrives.
    Arrive(usize),
    /// Its answer arrives.
    Hear(usize),
    Finish(usize),
    Kill(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let fault = prop_oneof![
        4 => Just(Fault::None),
        1 => Just(Fault::Request),
        1 => Just(Fault::Answer),
        1 => Just(Fault::Late),
    ];
    let run = 0..RUNS;
    prop_oneof![
        2 => prop::collection::vec(fault, 1..5).prop_map(Event::Fail),
        3 => Just(Event::Heal),
        3 => (0_u64..1000).prop_map(Event::Wait),
        1 => (run.clone(), 0_u64..2000).prop_map(|(run, seconds)| Event::Sleep(run, seconds)),
        5 => run.clone().prop_map(Event::Lock),
        5 => run.clone().prop_map(Event::Intend),
        3 => run.clone().prop_map(Event::Renew),
        8 => run.clone().prop_map(Event::Ask),
        8 => run.clone().prop_map(Event::Arrive),
        8 => run.clone().prop_map(Event::Hear),
        1 => run.clone().prop_map(Event::Finish),
        1 => run.prop_map(Event::Kill),
    ]
}

struct Run {
    id: String,
    code: String,
    core: Core,
    request: Option<WriterRequest>,
    answer: Option<WriterAnswer>,
    /// What it has told of the only stack, each by its mark and its ticket.
    told: Vec<(String, u64)>,
    /// How many of these are confirmed.
    confirmed: usize,
}

struct World {
    bucket: Bucket,
    truth: StoppedClock,
    clocks: Vec<MachineClock>,
    live: Vec<Option<Run>>,
    /// What runs that are gone had told, by the code of their locks.
    gone: Vec<Run>,
    /// The runs whose locks were taken over, and the serial of the document by then.
    overtaken: Vec<(String, u64)>,
    number: u64,
}

fn clock(truth: &StoppedClock, hours: i64) -> MachineClock {
    MachineClock {
        truth: truth.clone(),
        wrong: SignedDuration::from_hours(hours),
        asleep: Arc::default(),
    }
}

impl World {
    fn new() -> Self {
        let truth = StoppedClock::default();
        // Nobody's clock is before the beginning of time.
        truth.advance(Duration::from_hours(24));
        let world = World {
            bucket: Bucket::with_clock(truth.clone()),
            clocks: WRONG.map(|hours| clock(&truth, hours)).into(),
            live: (0..RUNS).map(|_| None).collect(),
            gone: Vec::new(),
            overtaken: Vec::new(),
            number: 0,
            truth,
        };
        let author = author();
        init(
            &world.backend(),
            &binding(),
            &edit("init", &author),
            &world.truth,
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

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// How long ago the holder of the lock was heard of, and whether somebody is taking the lock away.
    fn silence(&self, run: &str) -> (Duration, bool) {
        let key = format!("state.run-{run}.json");
        let document = self.bucket.age("state.json").unwrap();
        let Some(bytes) = self.bucket.object(&key) else {
            return (document, false);
        };
        let record = RunChanges::parse(&bytes).unwrap();
        let age = self.bucket.age(&key).unwrap();
        (age.min(document), record.broken.is_some())
    }

    fn try_lock(&self, id: &str, clock: &MachineClock) -> Result<Locked, LockError> {
        let application = LockApplication {
            run: id,
            action: &RunAction::Apply,
            author: &author(),
            expires: Some(EXPIRES),
            timeout: Duration::ZERO,
            job: None,
            amend: &|_| {},
            note: &|_| {},
        };
        lock::lock(&self.backend(), &application, clock)
    }

    fn lock(&mut self, slot: usize) {
        if self.live[slot].is_some() {
            return;
        }
        let id = format!("run-{}", self.next());
        let clock = self.clocks[slot].clone();
        let is_well = self.bucket.is_well();
        let before = self.document();
        let silence = before.lock.as_ref().map(|lock| self.silence(&lock.run));
        let locked = self.try_lock(&id, &clock);
        if is_well {
            let may = silence.is_none_or(|(silence, is_broken)| silence >= EXPIRES || is_broken);
            assert_eq!(locked.is_ok(), may, "{silence:?}: {locked:?}");
        }
        let Ok(locked) = locked else {
            return;
        };
        if let Some(taken_over) = &locked.taken_over {
            let serial = locked.document.serial;
            self.overtaken.push((taken_over.lock.run.clone(), serial));
            let runs = self.live.iter().flatten().chain(&self.gone);
            let before = { runs }.find(|run| run.code == taken_over.lock.code);
            if let Some(run) = before.filter(|run| run.confirmed > 0) {
                let found = mark(&locked.document, "/a");
                let mut kept = run.told[run.confirmed - 1..].iter();
                assert!(
                    kept.any(|(mark, _)| Some(mark) == found.as_ref()),
                    "taking over lost what was confirmed: {found:?}"
                );
            }
        }
        let code = locked.document.lock.as_ref().unwrap().code.clone();
        let holder = Core::new(locked, None, Pauses::REMOTE, Box::new(clock));
        self.live[slot] = Some(Run {
            id,
            code,
            core: holder,
            request: None,
            answer: None,
            told: Vec::new(),
            confirmed: 0,
        });
    }

    fn intend(&mut self, slot: usize) {
        let ticket = self.next();
        let Some(run) = &mut self.live[slot] else {
            return;
        };
        if run.core.is_finishing() {
            return;
        }
        let mark = format!("{} {ticket}", run.id);
        let entry = Entry {
            name: mark.clone(),
            intent: Some(Intent {
                action: RunAction::Apply,
                run: run.id.clone(),
                since: Timestamp::UNIX_EPOCH,
                order: None,
                plan: None,
                other: Map::new(),
            }),
            ..Entry::default()
        };
        let change = Change::Put(Box::new(entry));
        run.core.change("/a".to_owned(), change, ticket);
        run.told.push((mark, ticket));
    }

    fn renew(&mut self, slot: usize) {
        let ticket = self.next();
        let Some(run) = &mut self.live[slot] else {
            return;
        };
        if !run.core.is_finishing() {
            let report = run.core.renew(ticket);
            self.check(slot, report);
        }
    }

    /// Where a command may start, its run has the lock.
    fn check(&mut self, slot: usize, report: Option<Report>) {
        let Some(Report::Confirmed(tickets)) = report else {
            return;
        };
        let lock = self.document().lock;
        let run = self.live[slot].as_mut().unwrap();
        assert_eq!(
            lock.as_ref().map(|lock| &lock.code),
            Some(&run.code),
            "a command starts without the lock"
        );
        let last = { run.told.iter() }.rposition(|(_, ticket)| tickets.contains(ticket));
        if let Some(last) = last {
            run.confirmed = run.confirmed.max(last + 1);
        }
    }

    fn ask(&mut self, slot: usize) {
        if let Some(run) = &mut self.live[slot]
            && run.core.wait() == Duration::ZERO
        {
            run.request = Some(run.core.ask());
        }
    }

    fn arrive(&mut self, slot: usize) {
        let backend = self.backend();
        if let Some(run) = &mut self.live[slot]
            && let Some(request) = run.request.take()
        {
            run.answer = Some(request.make(&backend));
        }
    }

    fn hear(&mut self, slot: usize) {
        let Some(run) = &mut self.live[slot] else {
            return;
        };
        if let Some(answer) = run.answer.take() {
            let report = run.core.hear(answer);
            self.check(slot, report);
        }
        let run = self.live[slot].as_mut().unwrap();
        run.core.tick();
        if run.core.ended().is_some() {
            self.kill(slot);
        }
    }

    fn kill(&mut self, slot: usize) {
        self.gone.extend(self.live[slot].take());
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Fail(faults) => self.bucket.fail(&faults),
            Event::Heal => self.bucket.heal(),
            Event::Wait(seconds) => self.truth.advance(Duration::from_secs(seconds)),
            Event::Sleep(slot, seconds) => {
                let time = Duration::from_secs(seconds);
                self.truth.advance(time);
                *self.clocks[slot].asleep.lock().unwrap() += time;
            }
            Event::Lock(slot) => self.lock(slot),
            Event::Intend(slot) => self.intend(slot),
            Event::Renew(slot) => self.renew(slot),
            Event::Ask(slot) => self.ask(slot),
            Event::Arrive(slot) => self.arrive(slot),
            Event::Hear(slot) => self.hear(slot),
            Event::Finish(slot) => {
                if let Some(run) = &mut self.live[slot] {
                    run.core.finish(None);
                }
            }
            Event::Kill(slot) => self.kill(slot),
        }
    }

    /// Once the store is well again, no lock stays, and nobody who was overtaken has written since.
    fn end(mut self) {
        self.bucket.heal();
        for slot in 0..RUNS {
            if let Some(run) = &mut self.live[slot] {
                run.core.finish(None);
            }
            for _ in 0..10 {
                self.truth.advance(Duration::from_secs(1));
                for event in [Event::Ask(slot), Event::Arrive(slot), Event::Hear(slot)] {
                    self.happen(event);
                }
            }
            assert!(self.live[slot].is_none(), "a run does not end");
        }
        self.truth.advance(EXPIRES);
        self.lock(1);
        assert!(self.live[1].is_some(), "a lock stays for ever");
        let documents = self.bucket.documents();
        for bytes in &documents {
            let document = Document::parse(bytes).unwrap();
            for (run, serial) in &self.overtaken {
                let wrote = |write: &orch::state::document::Write| {
                    write.run.as_ref() == Some(run)
                        && write.what == RunAction::Apply.word()
                        && write.serial >= *serial
                };
                assert!(
                    !document.history.iter().any(wrote),
                    "{run} wrote, and was overtaken"
                );
                let has_lock = { document.lock.as_ref() }.is_some_and(|lock| lock.run == *run);
                assert!(
                    !has_lock || document.serial < *serial,
                    "{run} has the lock again"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn locks_that_expire_are_taken_over_and_overtaken_runs_write_nothing(
        events in prop::collection::vec(event(), 1..100),
    ) {
        let mut world = World::new();
        for event in events {
            world.happen(event);
        }
        world.end();
    }
}

#[test]
fn locks_expire_by_the_clock_of_the_store_whatever_that_of_the_holder_says() {
    for hours in [-1, 0, 1] {
        let mut world = World::new();
        world.clocks[0] = clock(&world.truth, hours);
        world.lock(0);
        world
            .truth
            .advance(EXPIRES.saturating_sub(Duration::from_secs(1)));
        world.lock(1);
        assert!(world.live[1].is_none(), "{hours}");
        world.truth.advance(Duration::from_secs(1));
        world.lock(1);
        assert!(world.live[1].is_some(), "{hours}");
    }
}

#[test]
fn holder_that_slept_for_too_long_starts_no_further_command() {
    let mut world = World::new();
    world.lock(0);
    world.intend(0);
    for event in [Event::Ask(0), Event::Arrive(0), Event::Hear(0)] {
        world.happen(event);
    }
    assert_eq!(world.live[0].as_ref().unwrap().confirmed, 1);
    let ticket = 99;
    let run = |world: &mut World| world.live[0].as_mut().unwrap().core.renew(ticket);
    assert_eq!(run(&mut world), Some(Report::Confirmed(vec![ticket])));
    world.happen(Event::Sleep(0, EXPIRES.as_secs()));
    world.lock(1);
    assert_eq!(run(&mut world), None);
    world.happen(Event::Wait(1));
    world.happen(Event::Ask(0));
    world.happen(Event::Arrive(0));
    let run = world.live[0].as_mut().unwrap();
    let report = run.core.hear(run.answer.take().unwrap());
    assert!(matches!(report, Some(Report::Lost(_))), "{report:?}");
}

#[test]
fn lock_whose_run_keeps_writing_never_expires() {
    let mut world = World::new();
    world.lock(0);
    for _ in 0..60 {
        world.happen(Event::Wait(60));
        for event in [Event::Ask(0), Event::Arrive(0), Event::Hear(0)] {
            world.happen(event);
        }
        world.lock(1);
        assert!(world.live[1].is_none());
    }
}
