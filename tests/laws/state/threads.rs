//! The same on a real folder, with the threads and processes that it is made for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use orch::folder::GuardedFolder;
use orch::project::config::{BackendConfig, LocalBackend, StateConfig};
use orch::state::backend::Backend;
use orch::state::clock::{Clock, SystemClock};
use orch::state::document::{Document, Entry, Intent, RunAction, UNMERGED};
use orch::state::edit::init;
use orch::state::lock::{self, LockError, Locked, Unlocking};
use orch::state::open::open;
use orch::state::recover::{Recovery, recover};
use orch::state::run_record::RunChanges;
use orch::state::writer::{Change, LocalCopy, Pauses, Report, StateWriter, WriterEnd};
use serde_json::Map;
use tempfile::TempDir;

use super::{attempt, author, binding, edit, lock_at_once};

const RUN: &str = "01a2";

pub(super) struct Project {
    folder: TempDir,
    clock: SystemClock,
}

impl Project {
    pub(super) fn new() -> Self {
        let project = Project {
            folder: tempfile::tempdir().unwrap(),
            clock: SystemClock::default(),
        };
        let author = author();
        let edit = edit("init", &author);
        init(&project.backend(), &binding(), &edit, &project.clock).unwrap();
        project
    }

    pub(super) fn backend(&self) -> Backend {
        let config = StateConfig {
            project: "p".to_owned(),
            namespace: "n".to_owned(),
            backups: 2,
            lock_expires: None,
            backend: BackendConfig::Local(LocalBackend::default()),
        };
        open(&config, self.folder.path()).unwrap()
    }

    fn document(&self) -> Document {
        self.backend().read().unwrap().unwrap().document
    }

    pub(super) fn lock(&self, run: &str) -> Result<Locked, LockError> {
        lock_at_once(&self.backend(), run, &self.clock)
    }

    fn copy(&self) -> LocalCopy {
        let folder = GuardedFolder::create(self.folder.path()).unwrap();
        std::fs::create_dir_all(self.folder.path().join(".orch/runs").join(RUN)).unwrap();
        LocalCopy::of(folder, RUN)
    }

    pub(super) fn writer(
        &self,
        locked: Locked,
        copy: Option<LocalCopy>,
    ) -> (StateWriter, Receiver<Report>) {
        let (sender, reports) = mpsc::channel();
        let report = move |report| _ = sender.send(report);
        let backend = self.backend();
        let writer =
            StateWriter::start(backend, locked, copy, Pauses::LOCAL, self.clock, report).unwrap();
        (writer, reports)
    }

    fn intent(&self) -> Change {
        Change::Put(Box::new(Entry {
            intent: Some(Intent {
                action: RunAction::Apply,
                run: RUN.to_owned(),
                since: self.clock.now(),
                order: None,
                plan: None,
                other: Map::new(),
            }),
            ..Entry::default()
        }))
    }

    fn success(&self) -> Change {
        Change::Put(Box::new(Entry {
            last: Some(attempt(RUN, self.clock.now())),
            ..Entry::default()
        }))
    }
}

/// Waits until so many tickets are confirmed.
fn confirmed(reports: &Receiver<Report>, mut left: usize) {
    while left > 0 {
        match reports.recv_timeout(Duration::from_mins(1)).unwrap() {
            Report::Confirmed(tickets) => left -= tickets.len(),
            report => panic!("{report:?}"),
        }
    }
}

#[test]
fn a_run_writes_what_it_does_and_leaves_nothing_behind() {
    let project = Project::new();
    let copy = project.copy();
    let locked = project.lock(RUN).unwrap();
    let (writer, reports) = project.writer(locked, Some(copy.clone()));
    assert!(matches!(project.lock("01a3"), Err(LockError::Held(_))));
    for stack in 0..20 {
        writer.change(&format!("/s{stack}"), project.intent(), stack);
    }
    confirmed(&reports, 20);
    let (record, _) = project.backend().record(RUN).unwrap().unwrap();
    assert_eq!(record.stacks.len(), 20);
    assert!(copy.read().unwrap().is_some());
    for stack in 0..19 {
        writer.change(&format!("/s{stack}"), project.success(), 20 + stack);
    }
    let ended = writer.finish(Some("because".to_owned()));
    assert_eq!(ended, WriterEnd::Written { serial: 3 });
    let document = project.document();
    assert_eq!(document.lock, None);
    let write = document.history.last().unwrap();
    assert_eq!((write.applied, write.failed, write.destroyed), (19, 1, 0));
    assert_eq!(write.reason.as_deref(), Some("because"));
    let last = |stack: &str| document.stacks[stack].last.clone().unwrap();
    assert_eq!(last("/s0").serial, 3);
    assert_eq!(last("/s19").failure.as_deref(), Some("interrupted"));
    assert!(project.backend().record(RUN).unwrap().is_none());
    assert_eq!(copy.read().unwrap(), None);
    assert!(project.lock("01a3").is_ok());
}

#[test]
fn a_run_hears_that_its_lock_was_taken_away_and_what_follows_can_be_recovered() {
    let project = Project::new();
    let copy = project.copy();
    let locked = project.lock(RUN).unwrap();
    let code = locked.document.lock.as_ref().unwrap().code.clone();
    let (writer, reports) = project.writer(locked, Some(copy.clone()));
    writer.change("/a", project.intent(), 1);
    confirmed(&reports, 1);
    let unlocking = Unlocking {
        code,
        force: true,
        reason: None,
        dry_run: false,
    };
    lock::unlock(&project.backend(), &unlocking, &author(), &project.clock).unwrap();
    writer.change("/a", project.success(), 2);
    let report = reports.recv_timeout(Duration::from_mins(1)).unwrap();
    assert!(matches!(report, Report::Lost(_)), "{report:?}");
    assert!(matches!(writer.finish(None), WriterEnd::Lost { .. }));
    let last = |document: &Document| document.stacks["/a"].last.clone().unwrap();
    assert_eq!(
        last(&project.document()).failure.as_deref(),
        Some("interrupted")
    );
    let record = RunChanges::parse(&copy.read().unwrap().unwrap()).unwrap();
    assert_eq!(
        record.stacks["/a"]
            .as_ref()
            .unwrap()
            .last
            .as_ref()
            .unwrap()
            .serial,
        UNMERGED
    );
    let recovery = Recovery::default();
    recover(
        &project.backend(),
        &record,
        &recovery,
        &author(),
        &project.clock,
    )
    .unwrap();
    assert_eq!(last(&project.document()).failure, None);
}

#[test]
fn a_lock_whose_process_is_gone_is_taken_over() {
    let project = Project::new();
    drop(project.lock("01a1").unwrap());
    let locked = project.lock(RUN).unwrap();
    assert_eq!(locked.taken_over.unwrap().lock.run, "01a1");
    assert!(project.backend().record("01a1").unwrap().is_none());
}

#[test]
fn of_many_who_want_the_lock_one_has_it_at_a_time() {
    const THREADS: usize = 10;
    const ROUNDS: usize = 5;
    let project = Project::new();
    let holders = AtomicUsize::new(0);
    let (project, holders) = (&project, &holders);
    let race = |thread: usize| {
        for round in 0..ROUNDS {
            let run = format!("{thread}-{round}");
            let locked = loop {
                match project.lock(&run) {
                    Ok(locked) => break locked,
                    Err(LockError::Held(_) | LockError::Busy(_)) => thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            };
            assert_eq!(
                holders.fetch_add(1, Ordering::SeqCst),
                0,
                "two hold the lock"
            );
            assert!(locked.taken_over.is_none());
            let (writer, _reports) = project.writer(locked, None);
            let change = Change::Put(Box::default());
            writer.change(&format!("/{run}"), change, 1);
            holders.fetch_sub(1, Ordering::SeqCst);
            assert!(matches!(writer.finish(None), WriterEnd::Written { .. }));
        }
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let race = &race;
            scope.spawn(move || race(thread));
        }
    });
    let document = project.document();
    assert_eq!(document.stacks.len(), THREADS * ROUNDS);
    assert_eq!(document.serial, 1 + 2 * (THREADS * ROUNDS) as u64);
}
