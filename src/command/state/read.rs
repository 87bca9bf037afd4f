//! `orch state list`, `show`, `history` and `backups`.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::State;
use crate::change::{Pairs, Present, Standing, UncommittedChanges, digests, relocate, standings};
use crate::context::{clashing, exact_status, from_read, from_store};
use crate::error::{ErrorContext as _, Result};
use crate::project::Problems;
use crate::project::host::host_environment;
use crate::report::ShownState;
use crate::state::backend::ReadError;
use crate::state::clock::Clock as _;
use crate::state::document::{Document, Entry};
use crate::state::lock::heard;
use crate::state::timeline::Backup;
use crate::workspace::Workspace;

/// The recorded stacks, and how they stand.
pub struct RecordedStacks {
    pub address: String,
    pub document: Document,
    pub standings: BTreeMap<String, Standing>,
}

/// The document of the state, and what is known of its lock.
pub struct DocumentView {
    pub address: String,
    pub document: Document,
    /// When the run that holds the lock was last heard from.
    pub heard: Option<Timestamp>,
    pub backups: Vec<Backup>,
}

impl RecordedStacks {
    pub fn shown(&self) -> ShownState<'_> {
        ShownState {
            address: &self.address,
            document: &self.document,
            heard: None,
            backups: &[],
        }
    }
}

impl DocumentView {
    pub fn shown(&self) -> ShownState<'_> {
        ShownState {
            address: &self.address,
            document: &self.document,
            heard: self.heard,
            backups: &self.backups,
        }
    }
}

impl State<'_> {
    /// Returns the recorded stacks with their status.
    pub fn recorded_stacks(&self) -> Result<RecordedStacks> {
        let mut document = self.read()?;
        if let Err(clashes) = relocate(&self.context.project, &mut document) {
            let error = clashing(&clashes);
            self.notices().warning(&error.message());
        }
        self.check_stacks(&document)?;
        if document.stacks.is_empty() {
            self.notices().note("no stack is on record");
        }
        let standings = self.by_key(&document)?;
        Ok(RecordedStacks {
            address: self.opened.backend.address(),
            document,
            standings,
        })
    }

    /// Returns the key and entry of a recorded stack.
    pub fn entry(&self, written: &str) -> Result<(String, Entry)> {
        let mut document = self.read()?;
        self.relocate(&mut document);
        let key = self.recorded(&document, written)?;
        let entry = document.stacks.remove(&key);
        let entry = entry.context("the stack was found")?;
        Ok((key, entry))
    }

    pub fn document(&self) -> Result<DocumentView> {
        let document = self.read()?;
        let record = match &document.lock {
            Some(lock) => match self.opened.backend.record(&lock.run) {
                Err(error @ ReadError::Damaged { .. }) => {
                    // The code of the lock is what takes it away.
                    self.notices().warning(&error.to_string());
                    None
                }
                found => found.map_err(from_read)?,
            },
            None => None,
        };
        Ok(DocumentView {
            address: self.opened.backend.address(),
            document,
            heard: record.and_then(|(_, age)| heard(age, self.clock.now())),
            backups: self.backups()?,
        })
    }

    /// Returns the serials of the backups, oldest first. They are left when the document is damaged or lost.
    pub fn backups(&self) -> Result<Vec<Backup>> {
        let backups = self.opened.backend.backups_by_timeline();
        backups.map_err(from_store)
    }

    /// Returns how each stack on record stands, by its key.
    fn by_key(&self, document: &Document) -> Result<BTreeMap<String, Standing>> {
        let Some(repository) = &self.opened.repository else {
            self.notices()
                .note("the status of the stacks is unknown: this is not a git repository");
            return Ok(BTreeMap::new());
        };
        let Workspace {
            project, listing, ..
        } = &**self.context;
        let failed = "failed to compare the stacks with what is on record";
        let uncommitted = UncommittedChanges {
            status: exact_status(repository, &project.root).context(failed)?,
            ..UncommittedChanges::default()
        };
        let unheeded = &mut Problems::default();
        let digests = digests(project, listing, repository, &uncommitted.status, unheeded);
        let digests = digests.context(failed)?;
        let host: Vec<(String, String)> = host_environment().collect();
        let present = Present {
            project,
            listing,
            repository,
            uncommitted: &uncommitted,
            host: &host,
        };
        let address = self.opened.backend.address();
        let standings = standings(present, &digests, document, address, false).context(failed)?;
        let pairs = Pairs::new(&project.stacks, document);
        let here = pairs
            .iter()
            .map(|(stack, key)| (key.to_owned(), standings.stacks[&stack].clone()));
        let missing = standings.missing.into_iter();
        let missing = missing.map(|(key, stack)| (key, stack.standing));
        Ok(here.chain(missing).collect())
    }
}
