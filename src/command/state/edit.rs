//! `orch state init`, `forget`, `move`, `taint`, `untaint`, `release` and `restore`.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::State;
use crate::context::{from_edit, from_lock, from_read, from_store};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::protection::Protection;
use crate::printable::{command_line, printable};
use crate::project::config::BackendConfig;
use crate::state::backend::ReadError;
use crate::state::document::{Deposed, Document, Entry, Taint};
pub use crate::state::edit::Restoration;
use crate::state::edit::{self, Edit, InitError, RestoreError};

/// How a command writes the state.
pub struct WriteOptions {
    pub dry_run: bool,
    /// Why, for the history.
    pub reason: Option<String>,
}

/// A write of the state.
pub struct StateWrite {
    /// What it did, as lines.
    pub text: String,
    /// The stacks whose entries changed.
    pub stacks: Vec<String>,
    pub dry_run: bool,
    pub address: String,
    pub lineage: String,
    /// The serial of the document afterwards.
    pub serial: u64,
    /// Notes that follow the text.
    pub notes: Vec<String>,
}

impl State<'_> {
    pub(super) fn edit(&self, what: &'static str, options: &WriteOptions) -> Edit<'_> {
        Edit {
            author: &self.opened.author,
            what,
            reason: options.reason.clone(),
            dry_run: options.dry_run,
        }
    }

    /// Changes the entries of a document that is about this project. `did` describes the change of some stacks.
    pub(super) fn change(
        &self,
        edit: &Edit<'_>,
        did: impl Fn(&[String]) -> String,
        change: impl Fn(&mut Document, jiff::Timestamp) -> Result<Vec<String>>,
    ) -> Result<StateWrite> {
        let made = edit.make(&self.opened.backend, &self.clock, |document, now| {
            self.opened.check_binding(document)?;
            change(document, now)
        });
        let (stacks, document) = made.map_err(from_edit)?;
        Ok(self.written(edit.dry_run, did(&stacks), stacks, document))
    }

    pub(super) fn written(
        &self,
        dry_run: bool,
        text: String,
        stacks: Vec<String>,
        document: Document,
    ) -> StateWrite {
        let note = "nothing was written: this is a dry run";
        StateWrite {
            text,
            stacks,
            dry_run,
            address: self.opened.backend.address(),
            lineage: document.lineage,
            serial: document.serial,
            notes: dry_run.then(|| note.to_owned()).into_iter().collect(),
        }
    }

    pub fn init(&self, write: &WriteOptions) -> Result<StateWrite> {
        let edit = self.edit("init", write);
        let created = edit::init(
            &self.opened.backend,
            &self.opened.binding,
            &edit,
            &self.clock,
        );
        let created = created.map_err(|error| match error {
            InitError::Store(error) => from_store(error),
            InitError::Exists(_) => Error::new(ErrorKind::Refused, error)
                .hint("see what is in it with `orch state show`"),
            InitError::Unconditional(_) => Error::new(ErrorKind::Refused, error)
                .hint("use a store that knows `If-None-Match` and `If-Match`"),
        })?;
        let tells = matches!(
            self.opened.config.backend,
            BackendConfig::S3(_) | BackendConfig::Azurerm(_)
        );
        if tells && !created.is_numbered {
            self.notices().note(
                "versioning seems to be off in this bucket; with it on, the store keeps every earlier version too",
            );
        }
        if let Some(newest) = created.backup {
            self.notices().note(&format!(
                "there are backups of an earlier document; `orch state restore --abandoned {newest}` restores the newest"
            ));
        }
        let text = format!("created {}\n", printable(&self.opened.backend.address()));
        Ok(self.written(edit.dry_run, text, Vec::new(), created.document))
    }

    /// Returns the keys of stacks on record, each once.
    fn all_recorded(&self, document: &Document, written: &[String]) -> Result<Vec<String>> {
        let keys = written
            .iter()
            .map(|written| self.recorded(document, written));
        let mut keys: Vec<String> = keys.collect::<Result<_>>()?;
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    pub fn forget(&self, stacks: &[String], write: &WriteOptions) -> Result<StateWrite> {
        let edit = self.edit("forget", write);
        // The change may be made several times.
        let protected = RefCell::new(Vec::new());
        let deposed: RefCell<Vec<(String, Deposed)>> = RefCell::default();
        let mut written = self.change(&edit, each("forgot"), |document, _| {
            let keys = self.all_recorded(document, stacks)?;
            let forgotten = keys.iter().filter_map(|key| {
                let entry = document.stacks.remove(key)?;
                Some((key.clone(), entry))
            });
            let forgotten: Vec<(String, Entry)> = forgotten.collect();
            let protections = forgotten.iter().filter_map(|(key, entry)| {
                let rules = Protection::on_record(entry);
                Some((key.clone(), rules.into_iter().next()?))
            });
            protected.replace(protections.collect());
            let old = forgotten.iter().flat_map(|(key, entry)| {
                let deposed = entry.deposed.iter();
                deposed.map(move |deposed| (key.clone(), deposed.clone()))
            });
            deposed.replace(old.collect());
            Ok(keys)
        })?;
        for (key, protection) in protected.take() {
            let (key, text) = (printable(&key), protection.text());
            written
                .notes
                .push(format!("`{key}` was {text}; nothing of it is destroyed"));
        }
        for (key, old) in deposed.take() {
            let place = old
                .backend
                .map(|backend| format!(", whose state is in `{}`", printable(&backend)));
            written.notes.push(format!(
                "generation {} of `{}` is not destroyed either{}",
                old.generation,
                printable(&key),
                place.unwrap_or_default()
            ));
        }
        Ok(written)
    }

    pub fn move_entry(&self, from: &str, to: &str, write: &WriteOptions) -> Result<StateWrite> {
        let edit = self.edit("move", write);
        self.change(&edit, moved, |document, _| {
            let from = self.recorded(document, from)?;
            let to = self.key(document, to)?;
            if from == to {
                return Err(Error::usage(format!("FROM and TO are both `{to}`")));
            }
            if document.stacks.contains_key(&to) {
                return Err(
                    Error::refused(format!("`{to}` is already on record")).hint(format!(
                        "if that entry is wrong, forget it first: `orch state forget {}`",
                        command_line(&[to.into()])
                    )),
                );
            }
            if self.context.project.stacks.named(&to).is_none() {
                self.notices()
                    .note(&format!("there is no stack `{to}` here"));
            }
            document.rename(BTreeMap::from([(from.clone(), to.clone())]));
            Ok(vec![from, to])
        })
    }

    pub fn taint(&self, stacks: &[String], write: &WriteOptions) -> Result<StateWrite> {
        let edit = self.edit("taint", write);
        self.change(&edit, each("tainted"), |document, now| {
            self.check_stacks(document)?;
            let keys = self.all_recorded(document, stacks)?;
            let taint = Taint {
                by: self.opened.author.by.clone(),
                at: now,
                reason: write.reason.clone(),
                other: serde_json::Map::new(),
            };
            for key in &keys {
                document.stacks.entry(key.clone()).or_default().tainted = Some(taint.clone());
            }
            Ok(keys)
        })
    }

    pub fn untaint(&self, stacks: &[String], write: &WriteOptions) -> Result<StateWrite> {
        let edit = self.edit("untaint", write);
        self.change(&edit, each("untainted"), |document, _| {
            self.check_stacks(document)?;
            let keys = self.all_recorded(document, stacks)?;
            for key in &keys {
                let entry = document.stacks.get_mut(key);
                if entry.is_none_or(|entry| entry.tainted.take().is_none()) {
                    return Err(Error::refused(format!("`{key}` is not tainted")));
                }
            }
            Ok(keys)
        })
    }

    pub fn release(&self, stacks: &[String], write: &WriteOptions) -> Result<StateWrite> {
        let edit = self.edit("release", write);
        self.change(
            &edit,
            each("released the old generations of"),
            |document, _| {
                self.check_stacks(document)?;
                let keys = self.all_recorded(document, stacks)?;
                for key in &keys {
                    let deposed = document.stacks.get_mut(key).map(|entry| &mut entry.deposed);
                    let deposed = deposed.filter(|deposed| !deposed.is_empty());
                    let deposed = deposed
                        .ok_or_else(|| Error::refused(format!("`{key}` has no old generation")))?;
                    for deposed in deposed {
                        deposed.released = true;
                    }
                }
                Ok(keys)
            },
        )
    }

    pub fn restore(&self, restoration: Restoration, write: &WriteOptions) -> Result<StateWrite> {
        let edit = self.edit("restore", write);
        match self.opened.backend.backup(restoration.serial) {
            Ok(Some(document)) => self.opened.check_binding(&document)?,
            Err(error @ ReadError::Damaged { .. }) => {
                return Err(Error::external(error)
                    .hint("restore another one; `orch state backups` lists them"));
            }
            Err(error) => return Err(from_read(error)),
            // The restoration lists those that exist.
            Ok(None) => {}
        }
        let restored = edit::restore(&self.opened.backend, restoration, &edit, &self.clock);
        let document = restored.map_err(|error| match error {
            RestoreError::Lock(error) => from_lock(error),
            RestoreError::Unknown(_, ref known) => {
                let known: Vec<String> = known.iter().map(u64::to_string).collect();
                let hint = if known.is_empty() {
                    "there are no backups".to_owned()
                } else {
                    format!("there are backups {}", known.join(", "))
                };
                Error::new(ErrorKind::Refused, error).hint(hint)
            }
            RestoreError::Abandoned(_) => Error::new(ErrorKind::Refused, error)
                .hint("`orch state backups` shows which backups are abandoned; to restore one anyway, add `--abandoned`"),
        })?;
        let (old, new) = (restoration.serial, document.serial);
        let text = format!("restored backup {old} as serial {new}\n");
        Ok(self.written(edit.dry_run, text, Vec::new(), document))
    }
}

/// Returns what says what was done to each stack: a line for each.
pub(super) fn each(did: &str) -> impl Fn(&[String]) -> String {
    move |stacks| {
        let lines = stacks
            .iter()
            .map(|stack| format!("{did} {}\n", printable(stack)));
        lines.collect()
    }
}

/// Says what was moved.
fn moved(stacks: &[String]) -> String {
    let names: Vec<_> = stacks.iter().map(|stack| printable(stack)).collect();
    format!("moved {}\n", names.join(" to "))
}
