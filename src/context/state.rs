//! The state of a project: its backend, and the checks that its document belongs to the project.

use std::collections::BTreeMap;

use super::state_errors::{clashing, foreign, from_read, from_store, missing};
use crate::author::Author;
use crate::change::{EntryIndex, had_stack_on_record, relocate};
use crate::error::{Error, ErrorContext as _, Result};
use crate::git::{GitError, Repository};
use crate::notice::Notices;
use crate::project::Project;
use crate::project::config::StateConfig;
use crate::project::stack::StackIndex;
use crate::state::backend::{Backend, BackendReadError};
use crate::state::clock::SystemClock;
use crate::state::document::{Document, Entry, Lock};
use crate::state::edit::Binding;
use crate::state::open::open;
use crate::state::retry::with_retries;
use crate::state::store::StoreError;
use crate::workspace::Workspace;

/// The state's backend, and the project and user that use it.
pub struct OpenedState {
    pub config: StateConfig,
    pub backend: Backend,
    pub binding: Binding,
    pub repository: Option<Repository>,
    pub author: Author,
    pub notices: Notices,
}

impl OpenedState {
    /// Opens the backend without reading anything.
    pub fn new(project: &Project, config: StateConfig, notices: Notices) -> Result<Self> {
        let root = &project.root;
        let repository = repository_of(project)?;
        let prefix = repository.as_ref().map_or("", Repository::prefix);
        Ok(OpenedState {
            backend: open(&config, root).map_err(from_store)?,
            binding: Binding {
                project: config.project.clone(),
                namespace: config.namespace.clone(),
                root: prefix.to_owned(),
            },
            author: Author::new(repository.as_ref()),
            repository,
            config,
            notices,
        })
    }

    /// Opens the git repository again, after a fetch.
    pub fn reopen_repository(&mut self, project: &Project) -> Result<()> {
        self.repository = repository_of(project)?;
        Ok(())
    }

    /// Reads the document, whatever project it belongs to. Retries a failing bucket for some time.
    pub fn read(&self) -> Result<Document> {
        let note = |error: &StoreError| self.notices.note(&failing_note(error));
        let document = with_retries(&SystemClock::default(), &note, || {
            merged(&self.backend, &self.notices)
        })
        .map_err(from_read)?;
        document.ok_or_else(|| missing(&self.backend.address()))
    }

    /// Reads the document of this project, with the records of the run that holds its lock. A
    /// failing store is not retried.
    pub fn read_once(&self) -> Result<Document> {
        let document = merged(&self.backend, &self.notices)
            .map_err(from_read)?
            .ok_or_else(|| missing(&self.backend.address()))?;
        self.check_binding(&document)?;
        Ok(document)
    }

    pub fn check_binding(&self, document: &Document) -> Result<()> {
        check_binding(&self.backend, &self.binding, document)
    }

    /// Checks that a document belongs to a project, and rekeys its entries by the project's `moved`
    /// blocks.
    pub fn check(&self, project: &Project, document: &mut Document) -> Result<()> {
        self.relocate(project, document)?;
        self.check_stacks(project, document)
    }

    /// Like [`Self::check`], but accepts a document that shares no stack with the project.
    pub fn relocate(&self, project: &Project, document: &mut Document) -> Result<()> {
        check_binding(&self.backend, &self.binding, document)?;
        relocate(project, document).map_err(|clashes| clashing(&clashes))
    }

    pub fn check_stacks(&self, project: &Project, document: &Document) -> Result<()> {
        check_stacks(&self.backend, project, self.repository.as_ref(), document)
    }
}

/// The entries of the project's stacks, each with its key.
pub type Entries<'d> = BTreeMap<StackIndex, (&'d str, &'d Entry)>;

impl Workspace {
    pub fn entries_of<'d>(&self, document: &'d Document) -> Entries<'d> {
        let pairs = EntryIndex::new(&self.project.stacks, document);
        let entry = |(stack, key)| Some((stack, (key, document.stacks.get(key)?)));
        pairs.iter().filter_map(entry).collect()
    }
}

fn repository_of(project: &Project) -> Result<Option<Repository>> {
    match Repository::open(&project.root) {
        Ok(repository) => Ok(Some(repository)),
        Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => Ok(None),
        Err(error) => Err(error).context("failed to open the git repository"),
    }
}

/// Reads the document, if it exists, with the records of the run that holds its lock.
fn merged(
    backend: &Backend,
    notices: &Notices,
) -> std::result::Result<Option<Document>, BackendReadError> {
    let mut lacking = None;
    loop {
        let Some(read) = backend.read()? else {
            return Ok(None);
        };
        let mut document = read.document;
        let holders = document.lock.iter().flat_map(Lock::holders).cloned();
        let mut without = Vec::new();
        for holder in holders.collect::<Vec<Lock>>() {
            let record = match backend.record(&holder.run) {
                // The run's own records are unreadable; the document is not.
                Err(error @ BackendReadError::Damaged { .. }) => {
                    notices.warning(&error.to_string());
                    continue;
                }
                record => record?.map(|(record, _)| record),
            };
            match record.filter(|it| it.code == holder.code && it.lineage == document.lineage) {
                Some(record) => document.merge(&record.stacks),
                None => without.push(holder.run),
            }
        }
        // A record may have been merged and removed since the document was read. One that lacked before is missing.
        let seen = Some((document.serial, without));
        if seen.as_ref().is_some_and(|(_, without)| without.is_empty()) || seen == lacking {
            return Ok(Some(document));
        }
        lacking = seen;
    }
}

/// Returns the note that a failing backend is retried.
pub fn failing_note(error: &StoreError) -> String {
    format!("{error}; trying again for up to a minute")
}

fn check_binding(backend: &Backend, binding: &Binding, document: &Document) -> Result<()> {
    let Binding {
        project,
        namespace,
        root,
    } = binding;
    for (what, here, there) in [
        ("project", project, &document.project),
        ("namespace", namespace, &document.namespace),
        ("root", root, &document.root),
    ] {
        if here != there {
            return Err(foreign(&backend.address(), what, here, there));
        }
    }
    Ok(())
}

/// Checks that a document shares a stack with the project, or with its history if all recorded
/// stacks were removed.
fn check_stacks(
    backend: &Backend,
    project: &Project,
    repository: Option<&Repository>,
    document: &Document,
) -> Result<()> {
    if document.stacks.is_empty() || EntryIndex::exist(&project.stacks, document) {
        return Ok(());
    }
    let was_here = match repository {
        Some(repository) => had_stack_on_record(repository, document),
        None => Ok(false),
    };
    if was_here.context("failed to look for recorded stacks in the history")? {
        return Ok(());
    }
    let address = backend.address();
    let message = match repository {
        Some(_) => format!(
            "none of the stacks recorded in `{address}` is in this project, or was in an applied commit of HEAD"
        ),
        None => format!("none of the stacks recorded in `{address}` is in this project"),
    };
    let error = Error::refused(message)
        .hint("check `project`, `namespace` and the backend in the configuration of the state");
    Err(match repository {
        Some(_) => error
            .hint("if this project had these stacks, check out a branch with the commits that were applied; in a shallow clone, run `git fetch --unshallow`")
            .hint("if nothing of them is left, run `orch state forget`"),
        None => error,
    })
}
