//! The document that several runs write, where requests get lost, runs are killed and locks are taken
//! away: nothing that was written is lost, and no command starts unless its intent is recorded.

mod broken;
mod expiry;
mod memory;
mod pace;
mod queue;
mod renames;
mod shared;
mod threads;
mod timelines;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use orch::author::Author;
use orch::folder::GuardedFolder;
use orch::state::backend::Backend;
use orch::state::clock::Clock;
use orch::state::document::{
    Attempt, AttemptOutcome, Document, Entry, Intent, RunAction, Taint, UNMERGED,
};
use orch::state::edit::{self, Binding, DocumentEdit};
use orch::state::lock::{self, LockApplication, LockError, Locked, RemovedLock, Unlocking};
use orch::state::recover::{RecoverError, Recovery, recover};
use orch::state::run_record::RunChanges;
use orch::state::writer::{
    Change, Core, LocalCopy, Pauses, Report, WriterAnswer, WriterEnd, WriterRequest,
};
use proptest::prelude::*;
use serde_json::Map;
use tempfile::TempDir;

use self::memory::{Bucket, Fault, StoppedClock};

/// How many runs there can be at a time.
const RUNS: usize = 3;

const STACKS: [&str; 4] = ["/a", "/a/b", "/c", "/d[\"eu\"]"];

/// Something that happens. Numbers choose among the runs and the stacks.
#[derive(Debug, Clone)]
enum Event {
    Fail(Vec<Fault>),
    Heal,
    Wait(u64),
    Lock(usize),
    Intend(usize, usize),
    /// The command ends: 0 succeeded, 1 failed, 2 the stack is gone.
    End(usize, usize, u8),
    Withdraw(usize, usize),
    /// The request that is due is made and answered.
    Step(usize),
    /// The request that is due is on its way.
    Ask(usize),
    /// What is on its way arrives, and is answered later.
    Arrive(usize),
    Finish(usize),
    Kill(usize),
    Unlock,
    Recover(bool),
    Taint(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let fault = prop_oneof![
        4 => Just(Fault::None),
        1 => Just(Fault::Request),
        1 => Just(Fault::Answer),
        1 => Just(Fault::Late),
    ];
    let (run, stack) = (0..RUNS, 0..STACKS.len());
    prop_oneof![
        3 => prop::collection::vec(fault, 1..6).prop_map(Event::Fail),
        2 => Just(Event::Heal),
        2 => (0_u64..70).prop_map(Event::Wait),
        4 => run.clone().prop_map(Event::Lock),
        6 => (run.clone(), stack.clone()).prop_map(|(run, stack)| Event::Intend(run, stack)),
        6 => (run.clone(), stack.clone(), 0_u8..3)
            .prop_map(|(run, stack, end)| Event::End(run, stack, end)),
        1 => (run.clone(), stack.clone()).prop_map(|(run, stack)| Event::Withdraw(run, stack)),
        10 => run.clone().prop_map(Event::Step),
        4 => run.clone().prop_map(Event::Ask),
        4 => run.clone().prop_map(Event::Arrive),
        3 => run.clone().prop_map(Event::Finish),
        1 => run.prop_map(Event::Kill),
        2 => Just(Event::Unlock),
        2 => any::<bool>().prop_map(Event::Recover),
        1 => stack.prop_map(Event::Taint),
    ]
}

/// What the model knows of a stack in a run: each change is told apart by its mark, which is the name
/// in the entry; `None` is no entry.
#[derive(Debug, Clone)]
struct Told {
    marks: Vec<Option<String>>,
    /// How many of these are known to be written.
    confirmed: usize,
    tickets: Vec<u64>,
    /// Whether the command has begun and not ended.
    is_begun: bool,
    before: Option<String>,
}

struct Run {
    id: String,
    code: String,
    core: Option<Core>,
    under_way: Option<UnderWay>,
    copy: LocalCopy,
    told: BTreeMap<&'static str, Told>,
    /// The document when the lock was taken.
    locked: Document,
}

/// What is between a run and the bucket.
enum UnderWay {
    Request(WriterRequest),
    Answer(WriterAnswer),
}

struct World {
    bucket: Bucket,
    clock: StoppedClock,
    folder: TempDir,
    live: Vec<Option<Run>>,
    gone: Vec<Run>,
    /// The marks that a stack may have recorded when nobody holds the lock.
    allowed: BTreeMap<&'static str, BTreeSet<Option<String>>>,
    /// The serials of the documents that these are known from.
    known: BTreeMap<&'static str, u64>,
    number: u64,
}

fn author() -> Author {
    Author {
        by: "Ada".to_owned(),
        host: "ci".to_owned(),
        process: 1,
        ci: None,
    }
}

fn binding() -> Binding {
    Binding {
        project: "p".to_owned(),
        namespace: "n".to_owned(),
        root: String::new(),
    }
}

/// Takes the lock for a run, or fails at once.
fn lock_at_once(backend: &Backend, run: &str, clock: &dyn Clock) -> Result<Locked, LockError> {
    let application = LockApplication {
        run,
        action: &RunAction::Apply,
        author: &author(),
        expires: None,
        timeout: Duration::ZERO,
        job: None,
        amend: &|_| {},
        note: &|_| {},
    };
    lock::lock(backend, &application, clock)
}

/// An attempt of a run that succeeded.
fn attempt(run: &str, at: Timestamp) -> Attempt {
    Attempt {
        serial: UNMERGED,
        action: RunAction::Apply,
        outcome: AttemptOutcome::Succeeded,
        failure: None,
        run: Some(run.to_owned()),
        at,
        commit: None,
        order: None,
        plan: None,
        other: Map::new(),
    }
}

fn mark(document: &Document, stack: &str) -> Option<String> {
    let entry = document.stacks.get(stack)?;
    Some(entry.name.clone())
}

impl World {
    fn new() -> Self {
        let world = World {
            bucket: Bucket::default(),
            clock: StoppedClock::default(),
            folder: tempfile::tempdir().unwrap(),
            live: (0..RUNS).map(|_| None).collect(),
            gone: Vec::new(),
            allowed: STACKS.map(|stack| (stack, BTreeSet::from([None]))).into(),
            known: STACKS.map(|stack| (stack, 0)).into(),
            number: 0,
        };
        let author = author();
        let edit = edit("init", &author);
        edit::init(&world.backend(), &binding(), &edit, &world.clock).unwrap();
        world
    }

    fn backend(&self) -> Backend {
        Backend::new(Box::new(self.bucket.clone()), "state".to_owned(), 3)
    }

    fn document(&self) -> Document {
        let bytes = self.bucket.object("state.json").unwrap();
        Document::parse(&bytes).unwrap()
    }

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn lock(&mut self, slot: usize) {
        if self.live[slot].is_some() {
            return;
        }
        let id = format!("run-{}", self.next());
        let backend = self.backend();
        let Ok(locked) = lock_at_once(&backend, &id, &self.clock) else {
            return;
        };
        let code = locked.document.lock.as_ref().unwrap().code.clone();
        let others = self.live.iter().flatten();
        let others =
            others.filter(|run| self.document().lock.is_some_and(|it| it.code == run.code));
        assert_eq!(others.count(), 0, "two runs hold the lock");
        let folder = GuardedFolder::create(self.folder.path()).unwrap();
        std::fs::create_dir_all(self.folder.path().join(".orch/runs").join(&id)).unwrap();
        let copy = LocalCopy::of(folder, &id);
        let document = locked.document.clone();
        let writer = Core::new(
            locked,
            Some(copy.clone()),
            Pauses::REMOTE,
            Box::new(self.clock.clone()),
        );
        self.live[slot] = Some(Run {
            id,
            code,
            core: Some(writer),
            under_way: None,
            copy,
            told: BTreeMap::new(),
            locked: document,
        });
    }

    fn change(&mut self, slot: usize, stack: usize, kind: u8) {
        let ticket = self.next();
        let now = self.clock.now();
        let Some(run) = &mut self.live[slot] else {
            return;
        };
        if run.core.as_ref().unwrap().is_finishing() {
            return;
        }
        let stack = STACKS[stack];
        let told = run.told.entry(stack).or_insert_with(|| Told {
            marks: Vec::new(),
            confirmed: 0,
            tickets: Vec::new(),
            is_begun: false,
            before: mark(&run.locked, stack),
        });
        let is_confirmed = told.confirmed == told.marks.len();
        let mark = format!("{} {ticket}", run.id);
        let mut entry = Entry {
            name: mark.clone(),
            ..Entry::default()
        };
        // Entries are large, so that records are folded.
        entry
            .other
            .insert("pad".to_owned(), "x".repeat(100 << 10).into());
        let (change, mark) = match kind {
            // An intent.
            3 if !told.is_begun => {
                entry.intent = Some(Intent {
                    action: RunAction::Apply,
                    run: run.id.clone(),
                    since: now,
                    order: None,
                    plan: None,
                    other: Map::new(),
                });
                told.is_begun = true;
                (Change::Put(Box::new(entry)), Some(mark))
            }
            4 if told.is_begun && !is_confirmed => {
                told.is_begun = false;
                (Change::Withdrawn, told.before.clone())
            }
            // A command ends only if it was started, and it was only if its intent was confirmed.
            0..3 if told.is_begun && is_confirmed => {
                told.is_begun = false;
                match kind {
                    2 => (Change::Destroyed, None),
                    kind => {
                        let mut last = attempt(&run.id, now);
                        if kind == 1 {
                            last.outcome = AttemptOutcome::Failed;
                        }
                        entry.last = Some(last);
                        (Change::Put(Box::new(entry)), Some(mark))
                    }
                }
            }
            _ => {
                run.told.retain(|_, told| !told.marks.is_empty());
                return;
            }
        };
        told.marks.push(mark);
        told.tickets.push(ticket);
        let core = run.core.as_mut().unwrap();
        core.change(stack.to_owned(), change, ticket);
        core.keep();
    }

    fn ask(&mut self, slot: usize) {
        let Some(run) = &mut self.live[slot] else {
            return;
        };
        let core = run.core.as_mut().unwrap();
        if core.wait() == Duration::ZERO {
            run.under_way = Some(UnderWay::Request(core.ask()));
        }
    }

    fn arrive(&mut self, slot: usize) {
        let backend = self.backend();
        let Some(run) = &mut self.live[slot] else {
            return;
        };
        run.under_way = run.under_way.take().map(|it| match it {
            UnderWay::Request(request) => UnderWay::Answer(request.make(&backend)),
            answer @ UnderWay::Answer(_) => answer,
        });
    }

    fn step(&mut self, slot: usize) {
        self.ask(slot);
        let has_arrived = |run: &Run| matches!(run.under_way, Some(UnderWay::Answer(_)));
        let is_prompt = !self.live[slot].as_ref().is_some_and(has_arrived);
        self.arrive(slot);
        let Some(mut run) = self.live[slot].take() else {
            return;
        };
        let core = run.core.as_mut().unwrap();
        let report = match run.under_way.take() {
            Some(UnderWay::Answer(answer)) => core.hear(answer),
            _ => None,
        };
        if let Some(Report::Confirmed(tickets)) = report {
            self.check_confirmed(&mut run, &tickets, is_prompt);
        }
        match run.core.as_ref().unwrap().ended() {
            None => self.live[slot] = Some(run),
            Some(WriterEnd::Written { serial }) => {
                let serial = *serial;
                self.check_written(&run, serial);
            }
            Some(WriterEnd::Lost { .. }) => self.leave(run),
        }
    }

    /// What is confirmed is in the bucket, under a lock that nobody has taken away, unless that happened
    /// while the answer was on its way.
    fn check_confirmed(&self, run: &mut Run, tickets: &[u64], is_prompt: bool) {
        let record = self.bucket.object(&format!("state.run-{}.json", run.id));
        let record = record.filter(|_| is_prompt);
        let record = record.map(|bytes| RunChanges::parse(&bytes).unwrap());
        let document = self.document();
        if is_prompt {
            let lock = document.lock.as_ref().map(|lock| &lock.code);
            assert_eq!(lock, Some(&run.code), "confirmed without the lock");
            let broken = &record.as_ref().unwrap().broken;
            assert_eq!(*broken, None, "confirmed though the lock was taken away");
        }
        for (stack, told) in &mut run.told {
            let mut confirmed = told.tickets.iter();
            let Some(last) = confirmed.rposition(|ticket| tickets.contains(ticket)) else {
                continue;
            };
            assert!(last >= told.confirmed, "confirmed twice");
            told.confirmed = last + 1;
            if let Some(record) = &record {
                // A large record is folded into the document before what is written late is confirmed.
                let found = match record.stacks.get(*stack) {
                    Some(entry) => entry.as_ref().map(|entry| entry.name.clone()),
                    None => mark(&document, stack),
                };
                assert_eq!(found, told.marks[last], "confirmed and not there");
            }
        }
    }

    /// What a run has told is in the document that it has written last.
    fn check_written(&mut self, run: &Run, serial: u64) {
        let documents = self.bucket.documents();
        let mut documents = documents
            .iter()
            .map(|bytes| Document::parse(bytes).unwrap());
        let document = documents.rfind(|document| document.serial == serial);
        let document = document.unwrap();
        assert_eq!(document.lock, None);
        for (stack, told) in &run.told {
            assert_eq!(
                &mark(&document, stack),
                told.marks.last().unwrap(),
                "lost: {stack}"
            );
            let entry = document.stacks.get(*stack);
            assert!(entry.is_none_or(|entry| entry.intent.is_none()));
            if let Some(last) = entry.and_then(|entry| entry.last.as_ref()) {
                assert_ne!(last.serial, UNMERGED);
            }
            let last = told.marks.last().unwrap().clone();
            if serial > self.known[stack] {
                self.know(stack, last, serial);
            } else {
                // Others have written since, and were heard first.
                self.allowed.get_mut(stack).unwrap().insert(last);
            }
        }
    }

    fn know(&mut self, stack: &'static str, mark: Option<String>, serial: u64) {
        self.allowed.insert(stack, BTreeSet::from([mark]));
        self.known.insert(stack, serial);
    }

    /// A run is gone: what it was about to write may arrive, or be recovered.
    fn leave(&mut self, mut run: Run) {
        run.core = None;
        for (stack, told) in &run.told {
            let allowed = self.allowed.get_mut(stack).unwrap();
            allowed.extend(told.marks.iter().cloned());
        }
        self.gone.push(run);
    }

    fn kill(&mut self, slot: usize) {
        if let Some(run) = self.live[slot].take() {
            self.leave(run);
        }
    }

    fn unlock(&mut self) {
        let Some(lock) = self.document().lock else {
            return;
        };
        let unlocking = Unlocking {
            code: lock.code.clone(),
            force: true,
            reason: None,
            dry_run: false,
        };
        let unlocked = lock::unlock(&self.backend(), &unlocking, &author(), &self.clock);
        let Ok(RemovedLock { document, .. }) = unlocked else {
            return;
        };
        let runs = self.live.iter().flatten().chain(&self.gone);
        for run in runs.filter(|run| run.code == lock.code) {
            for (stack, told) in &run.told {
                let found = mark(&document, stack);
                if told.confirmed > 0 {
                    let fit = &told.marks[told.confirmed - 1..];
                    assert!(
                        fit.contains(&found),
                        "unlocking lost {stack}: {found:?} {fit:?}"
                    );
                }
                let allowed = self.allowed.get_mut(stack).unwrap();
                allowed.extend(told.marks.iter().cloned());
                self.known.insert(stack, document.serial);
            }
        }
    }

    fn recover(&mut self, takes: bool) {
        let Some(run) = self.gone.pop() else {
            return;
        };
        let Some(bytes) = run.copy.read().unwrap() else {
            return;
        };
        let record = RunChanges::parse(&bytes).unwrap();
        let mut recovery = Recovery::default();
        let recover = |recovery: &Recovery| {
            recover(&self.backend(), &record, recovery, &author(), &self.clock)
        };
        let recovered = match recover(&recovery) {
            Err(RecoverError::Conflicts(stacks)) => {
                if takes {
                    recovery.take = stacks;
                } else {
                    recovery.drop = stacks;
                }
                recover(&recovery)
            }
            other => other,
        };
        let Ok(recovered) = recovered else {
            self.gone.push(run);
            return;
        };
        for (stack, told) in &run.told {
            let dropped = recovery.drop.iter().any(|dropped| dropped == stack);
            let withdrawn = told.marks.last() == Some(&told.before);
            if record.stacks.contains_key(*stack) && !dropped && !withdrawn {
                let found = mark(&recovered.document, stack);
                let last = told.marks.last();
                assert_eq!(Some(&found), last, "not recovered: {stack}");
                self.know(stack, found, recovered.document.serial);
            }
        }
    }

    fn taint(&mut self, stack: usize) {
        let author = author();
        let edit = edit("taint", &author);
        let made = edit.make(&self.backend(), &self.clock, |document, at| {
            let entry = document.stacks.get_mut(STACKS[stack]).ok_or(())?;
            entry.tainted = Some(Taint {
                by: "Ada".to_owned(),
                at,
                reason: None,
                other: Map::new(),
            });
            Ok::<_, ()>(())
        });
        _ = made;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Fail(faults) => self.bucket.fail(&faults),
            Event::Heal => self.bucket.heal(),
            Event::Wait(seconds) => self.clock.advance(Duration::from_secs(seconds)),
            Event::Lock(slot) => self.lock(slot),
            Event::Intend(slot, stack) => self.change(slot, stack, 3),
            Event::End(slot, stack, end) => self.change(slot, stack, end),
            Event::Withdraw(slot, stack) => self.change(slot, stack, 4),
            Event::Step(slot) => {
                self.clock.advance(Duration::from_millis(250));
                self.step(slot);
            }
            Event::Ask(slot) => self.ask(slot),
            Event::Arrive(slot) => self.arrive(slot),
            Event::Finish(slot) => {
                if let Some(run) = &mut self.live[slot] {
                    run.core.as_mut().unwrap().finish(None);
                }
            }
            Event::Kill(slot) => self.kill(slot),
            Event::Unlock => self.unlock(),
            Event::Recover(takes) => self.recover(takes),
            Event::Taint(stack) => self.taint(stack),
        }
        self.check();
    }

    /// While nobody holds the lock, the document says what has happened.
    fn check(&self) {
        let document = self.document();
        if document.lock.is_some() {
            return;
        }
        for (stack, allowed) in &self.allowed {
            let found = mark(&document, stack);
            let late = self
                .live
                .iter()
                .flatten()
                .filter_map(|run| run.told.get(stack));
            let is_late = { late }.any(|told| told.marks.contains(&found));
            assert!(
                is_late || allowed.contains(&found),
                "{stack}: {found:?} {allowed:?}"
            );
        }
    }

    /// Everything ends well once the network works.
    fn end(&mut self) {
        self.bucket.heal();
        for slot in 0..RUNS {
            self.happen(Event::Finish(slot));
            for _ in 0..200 {
                self.happen(Event::Step(slot));
            }
            assert!(self.live[slot].is_none(), "a run does not end");
        }
        self.unlock();
        while !self.gone.is_empty() {
            let left = self.gone.len();
            self.recover(true);
            assert!(self.gone.len() < left, "a run cannot be recovered");
        }
        self.check();
        let documents = self.bucket.documents();
        for (number, bytes) in documents.iter().enumerate() {
            let document = Document::parse(bytes).unwrap();
            assert_eq!(
                document.serial,
                number as u64 + 1,
                "a serial is left out, or used twice"
            );
        }
        let document = self.document();
        assert_eq!(document.lock, None);
        assert!(document.stacks.values().all(|entry| entry.intent.is_none()));
    }
}

fn edit<'a>(what: &'static str, author: &'a Author) -> DocumentEdit<'a> {
    DocumentEdit {
        author,
        what,
        reason: None,
        dry_run: false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_whatever_happens_to_requests_runs_and_locks(
        events in prop::collection::vec(event(), 1..80),
    ) {
        let mut world = World::new();
        for event in events {
            world.happen(event);
        }
        world.end();
    }
}
