//! `orch state init`, `forget`, `move`, `taint`, `untaint`, `release` and `restore`

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{ProjectState, WriteOptions};
use crate::context::{Context, from_lock, from_read, from_store};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::protection::Protection;
use crate::printable::{command_line, printable};
use crate::project::config::BackendConfig;
use crate::report::{DocumentChange, Written};
use crate::state::backend::BackendReadError;
use crate::state::document::{Entry, Taint};
use crate::state::edit::{self, InitError, Restoration, RestoreError};

pub fn init(context: &mut Context, options: &WriteOptions) -> Result<Written> {
    let state = ProjectState::of(context)?;
    let edit = state.edit("init", options);
    let (opened, notices) = (state.opened, &state.context.notices);
    let created =
        edit::init(&opened.backend, &opened.binding, &edit, &state.clock).map_err(|error| {
            match error {
                InitError::Store(error) => from_store(error),
                InitError::Exists(_) => {
                    Error::new(ErrorKind::Refused, error).hint("to see it, run `orch state show`")
                }
                InitError::Unconditional(_) => Error::new(ErrorKind::Refused, error)
                    .hint("use a store with conditional writes (`If-None-Match` and `If-Match`)"),
            }
        })?;
    let tells = matches!(
        opened.config.backend,
        BackendConfig::S3(_) | BackendConfig::Azurerm(_)
    );
    if tells && !created.is_numbered {
        notices.note(
            "versioning seems to be off in this bucket; turn it on to keep earlier versions in the store too",
        );
    }
    if let Some(newest) = created.backup {
        notices.note(&format!(
            "an earlier document has backups; to restore the newest, run `orch state restore --abandoned {newest}`"
        ));
    }
    let document = &created.document;
    Ok(state.written(edit.dry_run, DocumentChange::Created, Vec::new(), document))
}

/// Removes stacks from the state.
pub fn forget(context: &mut Context, stacks: &[String], options: &WriteOptions) -> Result<Written> {
    let state = ProjectState::of(context)?;
    let edit = state.edit("forget", options);
    // The change may be retried.
    let forgotten: RefCell<Vec<(String, Entry)>> = RefCell::default();
    let mut written = state.change(&edit, DocumentChange::Each("forgot"), |document, _| {
        let keys = state.all_recorded(document, stacks)?;
        let entries = keys.iter().filter_map(|key| {
            let entry = document.stacks.remove(key)?;
            Some((key.clone(), entry))
        });
        forgotten.replace(entries.collect());
        Ok(keys)
    })?;
    let forgotten = forgotten.take();
    for (key, entry) in &forgotten {
        if let Some(protection) = Protection::recorded_rules(entry).first() {
            let (key, text) = (printable(key), protection.text());
            let note = format!("`{key}` was {text}; nothing is destroyed");
            written.notes.push(note);
        }
    }
    for (key, entry) in &forgotten {
        for old in &entry.deposed {
            let place = old.backend.as_ref();
            let place =
                place.map(|backend| format!(", whose state is in `{}`", printable(backend)));
            written.notes.push(format!(
                "generation {} of `{}` is not destroyed either{}",
                old.generation,
                printable(key),
                place.unwrap_or_default()
            ));
        }
    }
    Ok(written)
}

/// Moves a stack's entry to another path.
pub fn move_entry(
    context: &mut Context,
    from: &str,
    to: &str,
    options: &WriteOptions,
) -> Result<Written> {
    let state = ProjectState::of(context)?;
    let edit = state.edit("move", options);
    state.change(&edit, DocumentChange::Moved, |document, _| {
        let from = state.recorded(document, from)?;
        let to = state.key(document, to)?;
        if from == to {
            return Err(Error::usage(format!("FROM and TO are both `{to}`")));
        }
        if document.stacks.contains_key(&to) {
            return Err(
                Error::refused(format!("`{to}` is already recorded")).hint(format!(
                    "if that entry is wrong, forget it first: `orch state forget {}`",
                    command_line(&[to.into()])
                )),
            );
        }
        if state.context.project.stacks.named(&to).is_none() {
            let note = format!("no stack `{to}` in the project");
            state.context.notices.note(&note);
        }
        document.rename(BTreeMap::from([(from.clone(), to.clone())]));
        Ok(vec![from, to])
    })
}

/// Changes the entries of recorded stacks in the same way. If the change returns a reason, it is
/// refused.
fn change_each(
    context: &mut Context,
    stacks: &[String],
    options: &WriteOptions,
    (what, did): (&'static str, &'static str),
    change: impl Fn(&mut Entry, &Taint) -> std::result::Result<(), &'static str>,
) -> Result<Written> {
    let state = ProjectState::of(context)?;
    let edit = state.edit(what, options);
    state.change(&edit, DocumentChange::Each(did), |document, now| {
        state.check_stacks(document)?;
        let keys = state.all_recorded(document, stacks)?;
        let taint = Taint {
            by: state.opened.author.by.clone(),
            at: now,
            reason: options.reason.clone(),
            other: serde_json::Map::new(),
        };
        for key in &keys {
            let entry = document.stacks.entry(key.clone()).or_default();
            let changed = change(entry, &taint);
            changed.map_err(|why| Error::refused(format!("`{key}` {why}")))?;
        }
        Ok(keys)
    })
}

pub fn taint(context: &mut Context, stacks: &[String], options: &WriteOptions) -> Result<Written> {
    let words = ("taint", "tainted");
    change_each(context, stacks, options, words, |entry, taint| {
        entry.tainted = Some(taint.clone());
        Ok(())
    })
}

pub fn untaint(
    context: &mut Context,
    stacks: &[String],
    options: &WriteOptions,
) -> Result<Written> {
    let words = ("untaint", "untainted");
    change_each(context, stacks, options, words, |entry, _| {
        let taint = entry.tainted.take();
        taint.map(drop).ok_or("is not tainted")
    })
}

/// Lets the next apply destroy old generations of stacks.
pub fn release(
    context: &mut Context,
    stacks: &[String],
    options: &WriteOptions,
) -> Result<Written> {
    let words = ("release", "released the old generations of");
    change_each(context, stacks, options, words, |entry, _| {
        if entry.deposed.is_empty() {
            return Err("has no old generation");
        }
        for deposed in &mut entry.deposed {
            deposed.released = true;
        }
        Ok(())
    })
}

/// Replaces the document with a backup. A backup of an abandoned timeline has to be requested.
pub fn restore(
    context: &mut Context,
    serial: u64,
    may_be_abandoned: bool,
    options: &WriteOptions,
) -> Result<Written> {
    let state = ProjectState::of(context)?;
    let edit = state.edit("restore", options);
    let backend = &state.opened.backend;
    match backend.backup(serial) {
        Ok(Some(document)) => state.opened.check_binding(&document)?,
        Err(error @ BackendReadError::Damaged { .. }) => {
            return Err(
                Error::external(error).hint("restore another one; `orch state backups` lists them")
            );
        }
        Err(error) => return Err(from_read(error)),
        // The restoration lists the existing backups.
        Ok(None) => {}
    }
    let restoration = Restoration {
        serial,
        may_be_abandoned,
    };
    let restored = edit::restore(backend, restoration, &edit, &state.clock);
    let document = restored.map_err(|error| match error {
        RestoreError::Lock(error) => from_lock(error),
        RestoreError::Unknown(_, ref known) => {
            let known: Vec<String> = known.iter().map(u64::to_string).collect();
            let hint = if known.is_empty() {
                "it has no backups".to_owned()
            } else {
                format!("the backups are {}", known.join(", "))
            };
            Error::new(ErrorKind::Refused, error).hint(hint)
        }
        RestoreError::Abandoned(_) => Error::new(ErrorKind::Refused, error)
            .hint("`orch state backups` shows which backups are abandoned; to restore one anyway, add `--abandoned`"),
    })?;
    let change = DocumentChange::Restored(serial);
    Ok(state.written(edit.dry_run, change, Vec::new(), &document))
}
