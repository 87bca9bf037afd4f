//! `orch state list`, `show`, `history`, `backups` and `export`

use std::collections::BTreeMap;

use super::ProjectState;
use crate::change::{CountedStates, EntryIndex, StackStatus, relocate};
use crate::context::{Context, clashing, from_read, from_store};
use crate::error::{Error, ErrorKind, Result};
use crate::report::{RecordedGraph, ShownState, StateList};
use crate::selection::recorded;
use crate::state::backend::BackendReadError;
use crate::state::cfngin::{self, CfnginGraph};
use crate::state::clock::Clock as _;
use crate::state::document::{Document, Entry, Lock};
use crate::state::lock::heard;
use crate::state::timeline::Backup;

/// Returns the recorded stacks with their statuses. The project has a listing.
pub fn list(context: &mut Context) -> Result<StateList> {
    let state = ProjectState::of(context)?;
    let mut document = state.opened.read_once()?;
    if let Err(clashes) = relocate(&state.context.project, &mut document) {
        let error = clashing(&clashes);
        state.context.notices.warning(&error.message());
    }
    state.check_stacks(&document)?;
    if document.stacks.is_empty() {
        state.context.notices.note("no stack is recorded");
    }
    let address = state.opened.backend.address();
    let statuses = if state.opened.repository.is_some() {
        by_key(context, &document, &address)?
    } else {
        context
            .notices
            .note("the status of the stacks is unknown: the project is not in a git repository");
        BTreeMap::new()
    };
    Ok(StateList {
        address,
        document,
        statuses,
    })
}

/// Returns the status of each recorded stack, by key.
fn by_key(
    context: &mut Context,
    document: &Document,
    address: &str,
) -> Result<BTreeMap<String, StackStatus>> {
    let counted = CountedStates::default();
    let statuses = context.statuses_with_outputs(document, address.to_owned(), counted, false)?;
    let pairs = EntryIndex::new(&context.project.stacks, document);
    let here = pairs
        .iter()
        .map(|(stack, key)| (key.to_owned(), statuses.stacks[&stack].clone()));
    let missing = statuses
        .missing
        .into_iter()
        .map(|(key, stack)| (key, stack.status));
    Ok(here.chain(missing).collect())
}

/// Returns the entry of one stack, and its path.
pub fn entry(context: &mut Context, written: &str) -> Result<(String, Entry)> {
    let state = ProjectState::of(context)?;
    let mut document = state.opened.read_once()?;
    state.relocate(&mut document);
    let key = state.recorded(&document, written)?;
    let entry = document.stacks.remove(&key).expect("it is recorded");
    Ok((key, entry))
}

/// Returns the document with its lock, backups and address.
pub fn show(context: &mut Context) -> Result<ShownState> {
    let state = ProjectState::of(context)?;
    let document = state.opened.read_once()?;
    let backend = &state.opened.backend;
    let mut age = None;
    for holder in document.lock.iter().flat_map(Lock::holders) {
        let found = match backend.record(&holder.run) {
            Err(error @ BackendReadError::Damaged { .. }) => {
                // The lock is removed by its code, which this shows.
                state.context.notices.warning(&error.to_string());
                None
            }
            found => found.map_err(from_read)?.and_then(|(_, age)| age),
        };
        age = age.into_iter().chain(found).min();
    }
    Ok(ShownState {
        address: backend.address(),
        document,
        backups: backend.backups_by_timeline().map_err(from_store)?,
        heard: heard(age, state.clock.now()),
    })
}

/// Returns the document, with the records of the run that holds its lock.
pub fn document(context: &mut Context) -> Result<Document> {
    context.opened()?.read_once()
}

/// Returns the backups, which remain if the document is damaged or missing.
pub fn backups(context: &mut Context) -> Result<Vec<Backup>> {
    let backups = context.opened()?.backend.backups_by_timeline();
    backups.map_err(from_store)
}

pub fn graph(context: &mut Context) -> Result<RecordedGraph> {
    let state = ProjectState::of(context)?;
    let document = state.opened.read_once()?;
    state.check_stacks(&document)?;
    Ok(RecordedGraph {
        address: state.opened.backend.address(),
        document,
    })
}

/// Returns the same graph by stack name, in the format of `CFNgin`.
pub fn cfngin_graph(context: &mut Context) -> Result<CfnginGraph> {
    let RecordedGraph { document, .. } = graph(context)?;
    let name = |key: &str| {
        let entry = document.stacks.get(key);
        entry.map_or_else(String::new, |entry| entry.name.clone())
    };
    let graph = cfngin::graph(&recorded::dependencies(&document), name);
    graph.map_err(|error| Error::new(ErrorKind::Refused, error))
}
