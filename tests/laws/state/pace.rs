//! How often a run writes, and for how long it waits for the bucket to return.

use std::time::Duration;

use orch::state::backend::Backend;
use orch::state::document::{Entry, Intent, RunAction};
use orch::state::edit::init;
use orch::state::writer::{Change, Core, Loss, Pauses, Report, WriterEnd};
use serde_json::Map;

use super::memory::{Bucket, Fault, StoppedClock};
use super::{attempt, author, binding, edit, lock_at_once};

/// A run that has just taken the lock.
struct World {
    bucket: Bucket,
    clock: StoppedClock,
    backend: Backend,
    core: Core,
    writes: usize,
}

impl World {
    fn new() -> Self {
        let (bucket, clock) = (Bucket::default(), StoppedClock::default());
        let backend = Backend::new(Box::new(bucket.clone()), "state".to_owned(), 3);
        let author = author();
        init(&backend, &binding(), &edit("init", &author), &clock).unwrap();
        let locked = lock_at_once(&backend, "run", &clock).unwrap();
        let core = Core::new(locked, None, Pauses::REMOTE, Box::new(clock.clone()));
        World {
            bucket,
            clock,
            backend,
            core,
            writes: 0,
        }
    }

    /// Lets time pass, and makes the requests that are due then.
    fn pass(&mut self, milliseconds: u64) -> Vec<Report> {
        self.clock.advance(Duration::from_millis(milliseconds));
        let mut reports = Vec::new();
        while self.core.wait() == Duration::ZERO && self.core.ended().is_none() {
            self.writes += 1;
            let answer = self.core.ask().make(&self.backend);
            reports.extend(self.core.hear(answer));
        }
        reports
    }

    fn put(&mut self, stack: usize, ends: bool) {
        let mut entry = Entry::default();
        entry.other.insert("pad".to_owned(), "x".repeat(750).into());
        if ends {
            entry.last = Some(attempt("run", jiff::Timestamp::UNIX_EPOCH));
        } else {
            entry.intent = Some(Intent {
                action: RunAction::Apply,
                run: "run".to_owned(),
                since: jiff::Timestamp::UNIX_EPOCH,
                order: None,
                plan: None,
                other: Map::new(),
            });
        }
        let ticket = stack as u64;
        let change = Change::Put(Box::new(entry));
        self.core.change(format!("/s{stack}"), change, ticket);
    }
}

#[test]
fn a_bucket_is_written_four_times_a_second_at_most_with_all_that_is_due() {
    let mut world = World::new();
    let mut confirmed = 0;
    for tick in 0..1000 {
        world.put(tick % 50, false);
        for report in world.pass(10) {
            match report {
                Report::Confirmed(tickets) => confirmed += tickets.len(),
                report => panic!("{report:?}"),
            }
        }
    }
    assert_eq!(world.writes, 40);
    assert!(confirmed > 1000 - 25, "{confirmed}");
}

#[test]
fn a_run_that_does_nothing_sends_a_heartbeat_each_minute() {
    let mut world = World::new();
    let at = |world: &World| world.backend.record("run").unwrap().unwrap().0.at;
    let begun = at(&world);
    for _ in 0..150 {
        assert_eq!(world.pass(1000), []);
    }
    assert_eq!(world.writes, 2);
    assert_eq!(at(&world).duration_since(begun).as_secs(), 120);
}

#[test]
fn a_bucket_has_a_minute_to_return() {
    for (away, is_back) in [(55, true), (65, false)] {
        let mut world = World::new();
        world.bucket.fail(&[Fault::Request; 1000]);
        world.put(0, false);
        let mut reports = Vec::new();
        for _ in 0..away {
            reports.extend(world.pass(1000));
        }
        world.bucket.heal();
        reports.extend(world.pass(1000));
        if is_back {
            assert_eq!(reports, [Report::Confirmed(vec![0])]);
            continue;
        }
        assert!(
            matches!(reports[..], [Report::Lost(Loss::Gone { .. })]),
            "{reports:?}"
        );
        world.core.finish(None);
        assert!(matches!(world.core.ended(), Some(WriterEnd::Lost { .. })));
    }
}

#[test]
fn a_bucket_that_does_not_answer_at_all_has_no_more_than_that_minute() {
    let mut world = World::new();
    world.put(0, false);
    let asked = world.core.ask();
    assert_eq!(world.core.tick(), None);
    world.clock.advance(Duration::from_secs(59));
    assert_eq!(world.core.tick(), Some(Report::Slow { problem: None }));
    assert_eq!(world.core.tick(), None);
    assert_eq!(world.core.until_tick(), Duration::from_secs(1));
    world.clock.advance(Duration::from_secs(1));
    let told = world.core.tick();
    assert!(matches!(told, Some(Report::Lost(Loss::Gone { .. }))));
    assert_eq!(world.core.tick(), None);
    // An answer comes too late.
    let answer = asked.make(&world.backend);
    assert_eq!(world.core.hear(answer), None);
    world.core.finish(None);
    assert!(matches!(world.core.ended(), Some(WriterEnd::Lost { .. })));
}

#[test]
fn a_bucket_that_fails_is_reported_with_the_cause() {
    let mut world = World::new();
    world.bucket.fail(&[Fault::Request; 1000]);
    world.put(0, false);
    assert_eq!(world.pass(0), []);
    world.clock.advance(Duration::from_secs(6));
    let slow = match world.core.tick() {
        Some(Report::Slow { problem }) => problem.unwrap(),
        told => panic!("{told:?}"),
    };
    assert!(slow.contains("state.run-run.json"), "{slow}");
    for _ in 0..53 {
        assert_eq!(world.pass(1000), []);
    }
    // The minute ends while a request is under way.
    world.clock.advance(Duration::from_secs(1));
    _ = world.core.ask();
    let lost = match world.core.tick() {
        Some(Report::Lost(Loss::Gone { problem })) => problem,
        told => panic!("{told:?}"),
    };
    assert_eq!(lost, slow);
}

#[test]
fn a_thousand_stacks_are_written_with_eight_documents_at_most() {
    let mut world = World::new();
    let before = world.bucket.documents().len() - 1; // the lock is the first
    for begun in (0..1000).step_by(8) {
        for stack in begun..begun + 8 {
            world.put(stack, false);
            if stack >= 8 {
                world.put(stack - 8, true);
            }
        }
        world.pass(250);
    }
    world.core.finish(None);
    while world.core.ended().is_none() {
        world.pass(250);
    }
    let documents = world.bucket.documents().len() - before;
    assert!((3..=8).contains(&documents), "{documents}");
    let document = world.backend.read().unwrap().unwrap().document;
    assert_eq!(document.stacks.len(), 1000);
}

#[test]
fn an_intent_that_is_given_up_leaves_what_was_there_before_it() {
    let mut world = World::new();
    let change = |world: &mut World, change: Change| {
        world.core.change("/s1".to_owned(), change, 1);
    };
    // What a stack was before it was replaced must not come back with the second half.
    world.put(1, true);
    world.pass(1000);
    change(&mut world, Change::Destroyed);
    world.put(1, false);
    world.pass(1000);
    change(&mut world, Change::Withdrawn);
    world.core.finish(None);
    world.pass(1000);
    let read = world.backend.read().unwrap().unwrap();
    assert!(!read.document.stacks.contains_key("/s1"));
}
