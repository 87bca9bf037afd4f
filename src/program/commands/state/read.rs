//! `orch state list`, `show`, `history` and `backups`

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::Context as _;
use clap::Args;
use orch::change::{Pairs, Present, Standing, UncommittedChanges, digests, relocate, standings};
use orch::context::{clashing, exact_status, from_read, from_store};
use orch::exit::ExitStatus;
use orch::project::Problems;
use orch::project::host::host_environment;
use orch::report::{
    ShownState, write_backups, write_backups_json, write_entry, write_entry_json, write_history,
    write_history_json, write_recorded, write_recorded_json, write_state, write_state_json,
};
use orch::state::backend::ReadError;
use orch::state::clock::Clock as _;
use orch::state::document::Document;
use orch::state::lock::heard;
use orch::workspace::Workspace;

use super::{Format, State};
use crate::program::console;
use crate::program::error::Result;

/// List the stacks on record, each with its status and the commit, time and run of its last apply
///
/// `applied`: nothing has changed since the stack was applied. `pending`: something has, or the stack has
/// never been applied. `failed`: the last attempt failed or was interrupted, or the stack is tainted.
/// `running`: a run is working on it. `removed`: the stack is not here, and git proves that somebody removed
/// it. `absent`: the stack is not here, and that evidence is missing. A `+` after the commit means that
/// uncommitted inputs were applied as well.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The format of the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

/// Show where the document is and who holds its lock, or all that is on record of one stack
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A stack on record
    #[arg(value_name = "STACK")]
    pub(super) stack: Option<String>,

    /// The format; without STACK, JSON has the whole document
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

/// Show the last 200 writes, newest first, each with the stacks that it changed
///
/// The text names the first stacks of each kind. JSON names all that were destroyed or removed, and up to 100 that
/// were applied or failed.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The format of the history
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

/// List the serials of the backups, oldest first
///
/// orch keeps a copy of the document before a run takes the lock and before a command changes it. `backups`
/// in the configuration says how many copies stay, 20 by default.
#[derive(Debug, Args)]
pub(crate) struct BackupsArgs {
    /// The format of the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

pub(super) fn list(state: &State, args: &ListArgs) -> Result<ExitStatus> {
    let mut document = state.read()?;
    if let Err(clashes) = relocate(&state.loaded.project, &mut document) {
        let error = clashing(&clashes);
        console::warning(&error.message());
    }
    state.check_stacks(&document)?;
    if document.stacks.is_empty() {
        console::note("no stack is on record");
    }
    let standings = by_key(state, &document)?;
    let address = state.opened.backend.address();
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_recorded(&mut out, &document, &standings)?,
        Format::Json => {
            let shown = ShownState {
                address: &address,
                document: &document,
                heard: None,
                backups: &[],
            };
            write_recorded_json(&mut out, &shown, &standings)?;
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// Returns how each stack on record stands, by its key.
fn by_key(state: &State, document: &Document) -> Result<BTreeMap<String, Standing>> {
    let Some(repository) = &state.opened.repository else {
        console::note("the status of the stacks is unknown: this is not a git repository");
        return Ok(BTreeMap::new());
    };
    let Workspace {
        project, listing, ..
    } = &**state.loaded;
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
    let address = state.opened.backend.address();
    let standings = standings(present, &digests, document, address, false).context(failed)?;
    let pairs = Pairs::new(&project.stacks, document);
    let here = pairs
        .iter()
        .map(|(stack, key)| (key.to_owned(), standings.stacks[&stack].clone()));
    let missing = standings.missing.into_iter();
    let missing = missing.map(|(key, stack)| (key, stack.standing));
    Ok(here.chain(missing).collect())
}

pub(super) fn show(state: &State, args: &ShowArgs) -> Result<ExitStatus> {
    let document = state.read()?;
    let mut out = console::stdout();
    if let Some(written) = &args.stack {
        let mut document = document;
        state.relocate(&mut document);
        let key = state.recorded(&document, written)?;
        let entry = &document.stacks[&key];
        match args.format {
            Format::Text => write_entry(&mut out, &key, entry)?,
            Format::Json => write_entry_json(&mut out, &key, entry)?,
        }
        out.flush()?;
        return Ok(ExitStatus::Success);
    }
    let record = match &document.lock {
        Some(lock) => match state.opened.backend.record(&lock.run) {
            Err(error @ ReadError::Damaged { .. }) => {
                // The code of the lock is what takes it away.
                console::warning(&error.to_string());
                None
            }
            found => found.map_err(from_read)?,
        },
        None => None,
    };
    let backups = state
        .opened
        .backend
        .backups_by_timeline()
        .map_err(from_store)?;
    let address = state.opened.backend.address();
    let shown = ShownState {
        address: &address,
        document: &document,
        heard: record.and_then(|(_, age)| heard(age, state.clock.now())),
        backups: &backups,
    };
    match args.format {
        Format::Text => write_state(&mut out, &shown)?,
        Format::Json => write_state_json(&mut out, &shown)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

pub(super) fn history(state: &State, args: &HistoryArgs) -> Result<ExitStatus> {
    let document = state.read()?;
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_history(&mut out, &document)?,
        Format::Json => write_history_json(&mut out, &document)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

pub(super) fn backups(state: &State, args: &BackupsArgs) -> Result<ExitStatus> {
    // They are what is left when the document is damaged or gone.
    let backups = state
        .opened
        .backend
        .backups_by_timeline()
        .map_err(from_store)?;
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_backups(&mut out, &backups)?,
        Format::Json => write_backups_json(&mut out, &backups)?,
    }
    out.flush()?;
    if backups.is_empty() {
        console::note("there are no backups");
    }
    Ok(ExitStatus::Success)
}
