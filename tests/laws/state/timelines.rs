//! Backups of documents that are put back, restored and written on: none of another timeline is taken for an earlier
//! version of the document.

use std::collections::{BTreeMap, BTreeSet};

use orch::state::backend::Backend;
use orch::state::document::{Document, Entry};
use orch::state::edit::{EditError, Restoration, RestoreError, init, restore};
use orch::state::store::{PutCondition, Store};
use orch::state::timeline::Backup;
use proptest::prelude::*;

use super::memory::{Bucket, StoppedClock};
use super::{author, binding, edit};

const KEPT: usize = 3;

const KEY: &str = "state.json";

#[derive(Debug, Clone)]
enum Event {
    Write,
    /// Somebody puts a version of the bucket back.
    PutBack(prop::sample::Index),
    /// A backup is restored, perhaps one that is abandoned.
    Restore(prop::sample::Index, bool),
    /// The document is removed, and perhaps another one is created.
    Remove(bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(Event::Write),
        2 => any::<prop::sample::Index>().prop_map(Event::PutBack),
        2 => any::<(prop::sample::Index, bool)>().prop_map(|(it, also)| Event::Restore(it, also)),
        1 => any::<bool>().prop_map(Event::Remove),
    ]
}

struct World {
    bucket: Bucket,
    /// The documents that each document replaced, directly or not.
    pasts: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    /// How many times the document was written on since it was last put back, restored or created.
    since: usize,
    number: usize,
}

impl World {
    fn backend(&self) -> Backend {
        Backend::new(Box::new(self.bucket.clone()), "state".to_owned(), KEPT)
    }

    fn backup(&self, serial: u64) -> Vec<u8> {
        let text = self.bucket.object(&format!("state.backups/{serial}.json"));
        text.unwrap()
    }

    fn now(&self) -> Option<Vec<u8>> {
        self.bucket.object(KEY)
    }

    /// Notes that `orch` has replaced a document by the one that is there now.
    fn wrote(&mut self, before: Option<Vec<u8>>) {
        let past = before.map_or_else(BTreeSet::new, |before| {
            let mut past = self.pasts[&before].clone();
            past.insert(before);
            past
        });
        // The same document after the same one was written twice in the same way.
        let known = self.pasts.insert(self.now().unwrap(), past.clone());
        assert!(known.is_none_or(|known| known == past));
    }

    fn write(&mut self) {
        let Some(before) = self.now() else { return };
        self.number += 1;
        let (author, clock) = (author(), StoppedClock::default());
        let name = self.number.to_string();
        let made = edit("taint", &author).make(&self.backend(), &clock, |document, _| {
            let entry = document.stacks.entry("/a".to_owned()).or_default();
            *entry = Entry {
                name: name.clone(),
                ..Entry::default()
            };
            Ok::<(), EditError<()>>(())
        });
        made.unwrap();
        self.wrote(Some(before));
        self.since += 1;
    }

    fn restore(&mut self, wanted: prop::sample::Index, may_be_abandoned: bool) {
        let backend = self.backend();
        let backups = backend.backups_by_timeline().unwrap();
        if backups.is_empty() {
            return;
        }
        let backup = *wanted.get(&backups);
        let (author, clock) = (author(), StoppedClock::default());
        let restoration = Restoration {
            serial: backup.serial,
            may_be_abandoned,
        };
        let before = self.now();
        // If it is gone, its newest backup tells what it was.
        let newest = backups.last().map(|newest| self.backup(newest.serial));
        match restore(&backend, restoration, &edit("restore", &author), &clock) {
            Ok(_) => {
                assert!(may_be_abandoned || !backup.is_abandoned);
                self.wrote(before.or(newest));
                self.since = 0;
            }
            Err(error) => {
                assert!(matches!(error, RestoreError::Abandoned(_)), "{error}");
                assert!(backup.is_abandoned && !may_be_abandoned);
            }
        }
    }

    fn create(&mut self) {
        let (author, clock) = (author(), StoppedClock::default());
        init(&self.backend(), &binding(), &edit("init", &author), &clock).unwrap();
        self.wrote(None);
        self.since = 0;
    }

    fn put_back(&mut self, wanted: prop::sample::Index) {
        let known: Vec<Vec<u8>> = self.pasts.keys().cloned().collect();
        let condition = match self.bucket.get(KEY).unwrap() {
            Some(object) => PutCondition::Unchanged(object.version),
            None => PutCondition::Absent,
        };
        let put = self
            .bucket
            .put(KEY, wanted.get::<Vec<u8>>(&known), &condition);
        assert!(put.is_ok());
        self.since = 0;
    }

    fn check(&self) {
        let backend = self.backend();
        let backups = backend.backups_by_timeline().unwrap();
        let (abandoned, own): (Vec<Backup>, Vec<Backup>) =
            backups.iter().partition(|backup| backup.is_abandoned);
        let Some(now) = self.now() else { return };
        let past = &self.pasts[&now];
        for backup in &own {
            let text = self.backup(backup.serial);
            assert!(
                text == now || past.contains(&text),
                "{} is no earlier version",
                backup.serial
            );
        }
        if self.since > 0 {
            assert!(own.len() <= KEPT && abandoned.len() <= KEPT);
            let newest = own.iter().rev().take(self.since.min(KEPT));
            let serials: Vec<u64> = newest.map(|it| it.serial).collect();
            assert_eq!(
                serials.len(),
                self.since.min(KEPT),
                "its last versions are kept"
            );
        }
        let serial = Document::parse(&now).unwrap().serial;
        assert!(own.iter().all(|backup| backup.serial <= serial));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn backups_never_mix_timelines(events in prop::collection::vec(event(), 1..40)) {
        let mut world = World {
            bucket: Bucket::default(),
            pasts: BTreeMap::new(),
            since: 0,
            number: 0,
        };
        world.create();
        for event in events {
            match event {
                Event::Write => world.write(),
                Event::PutBack(which) => world.put_back(which),
                Event::Restore(which, also) => world.restore(which, also),
                Event::Remove(is_new) => {
                    world.bucket.delete(KEY).unwrap();
                    if is_new {
                        world.create();
                    }
                }
            }
            world.check();
        }
    }
}
