//! `orch state init`, `forget`, `move`, `taint`, `untaint` and `restore`

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write as _;

use clap::Args;
use orch::context::{from_edit, from_lock, from_read, from_store};
use orch::error::ErrorKind;
use orch::exit::ExitStatus;
use orch::plan::protection::Protection;
use orch::printable::{command_line, printable};
use orch::project::config::BackendConfig;
use orch::report::{Written, write_written_json};
use orch::state::backend::ReadError;
use orch::state::document::{Deposed, Document, Entry, Taint};
use orch::state::edit::{self, Edit, InitError, Restoration, RestoreError};

use super::{Format, State, WriteArgs};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Create the document
///
/// orch refuses a backend that would let writers overwrite each other.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Remove stacks from the record, without destroying anything
///
/// A `removed` block with `destroy = false` does the same, and can be reviewed: see `orch help removal`.
#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    /// The stacks
    #[arg(value_name = "STACK", required = true)]
    pub(super) stacks: Vec<String>,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Move what is on record of a stack to another path
///
/// A `moved` block does the same for all namespaces, and can be reviewed: see `orch help removal`.
#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// The stack on record
    #[arg(value_name = "FROM")]
    pub(super) from: String,

    /// Its new path
    #[arg(value_name = "TO")]
    pub(super) to: String,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Mark stacks as failed, for instance after changes by hand
///
/// The mark stays until an apply succeeds, or until `orch state untaint`. `orch plan --replace` replaces a
/// stack without it, and shows that beforehand.
#[derive(Debug, Args)]
pub(crate) struct TaintArgs {
    /// The stacks
    #[arg(value_name = "STACK", required = true)]
    pub(super) stacks: Vec<String>,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Remove the mark of `orch state taint`
#[derive(Debug, Args)]
pub(crate) struct UntaintArgs {
    /// The stacks
    #[arg(value_name = "STACK", required = true)]
    pub(super) stacks: Vec<String>,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Let the next apply destroy old generations of stacks, whoever may use them
///
/// An old generation is kept as long as a stack that runs after it may use it. Release it if none does. See
/// `create_before_destroy` in `orch help lifecycle`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The stacks
    #[arg(value_name = "STACK", required = true)]
    pub(super) stacks: Vec<String>,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Replace the document with a backup, even if it is damaged or gone
///
/// `orch state backups` lists the serials. The document gets a new serial, greater than any before.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The serial of the backup
    #[arg(value_name = "SERIAL", value_parser = serial)]
    pub(super) serial: u64,

    /// Also restore a backup of an abandoned timeline
    ///
    /// When somebody puts an earlier document back into the backend, the backups of what was written after it
    /// are abandoned. `orch state backups` marks them.
    #[arg(long)]
    pub(super) abandoned: bool,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Parses a serial.
fn serial(text: &str) -> std::result::Result<u64, &'static str> {
    let serial = text.parse();
    serial.map_err(|_| "a serial is a number; `orch state backups` lists them")
}

impl State {
    /// Returns the frame of a write.
    pub(super) fn edit(&self, what: &'static str, args: &WriteArgs) -> Edit<'_> {
        Edit {
            author: &self.opened.author,
            what,
            reason: args.reason.clone(),
            dry_run: args.dry_run,
        }
    }

    /// Changes the entries of a document that is about this project, and says what was done to them.
    pub(super) fn change(
        &self,
        edit: &Edit<'_>,
        format: Format,
        did: impl Fn(&[String]) -> String,
        change: impl Fn(&mut Document, jiff::Timestamp) -> Result<Vec<String>>,
    ) -> Result<ExitStatus> {
        let made = edit.make(&self.opened.backend, &self.clock, |document, now| {
            self.opened.check_binding(document)?;
            change(document, now)
        });
        let (stacks, document) = made.map_err(from_edit)?;
        self.say(edit.dry_run, format, &did(&stacks), &stacks, &document)
    }

    /// Says what was written: the text, or which stacks have other entries now.
    pub(super) fn say(
        &self,
        dry_run: bool,
        format: Format,
        text: &str,
        stacks: &[String],
        document: &Document,
    ) -> Result<ExitStatus> {
        let address = self.opened.backend.address();
        let mut out = console::stdout();
        match format {
            Format::Text => write!(out, "{text}")?,
            Format::Json => {
                let written = Written {
                    dry_run,
                    address: &address,
                    lineage: &document.lineage,
                    serial: document.serial,
                    stacks,
                };
                write_written_json(&mut out, &written)?;
            }
        }
        out.flush()?;
        if dry_run {
            console::note("nothing was written: this is a dry run");
        }
        Ok(ExitStatus::Success)
    }
}

pub(super) fn init(state: &State, args: &InitArgs) -> Result<ExitStatus> {
    let edit = state.edit("init", &args.write);
    let created = edit::init(
        &state.opened.backend,
        &state.opened.binding,
        &edit,
        &state.clock,
    );
    let created = created.map_err(|error| match error {
        InitError::Store(error) => from_store(error).into(),
        InitError::Exists(_) => ProgramError::new(ErrorKind::Refused, error.into())
            .hint("see what is in it with `orch state show`"),
        InitError::Unconditional(_) => ProgramError::new(ErrorKind::Refused, error.into())
            .hint("use a store that knows `If-None-Match` and `If-Match`"),
    })?;
    let tells = matches!(
        state.opened.config.backend,
        BackendConfig::S3(_) | BackendConfig::Azurerm(_)
    );
    if tells && !created.is_numbered {
        console::note(
            "versioning seems to be off in this bucket; with it on, the store keeps every earlier version too",
        );
    }
    if let Some(newest) = created.backup {
        console::note(&format!(
            "there are backups of an earlier document; `orch state restore --abandoned {newest}` restores the newest"
        ));
    }
    let text = format!("created {}\n", printable(&state.opened.backend.address()));
    state.say(
        edit.dry_run,
        args.write.format,
        &text,
        &[],
        &created.document,
    )
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

/// Returns the keys of stacks on record, each once.
fn all_recorded(state: &State, document: &Document, written: &[String]) -> Result<Vec<String>> {
    let keys = written
        .iter()
        .map(|written| state.recorded(document, written));
    let mut keys: Vec<String> = keys.collect::<Result<_>>()?;
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

pub(super) fn forget(state: &State, args: &ForgetArgs) -> Result<ExitStatus> {
    let edit = state.edit("forget", &args.write);
    // The change may be made several times.
    let protected = RefCell::new(Vec::new());
    let deposed: RefCell<Vec<(String, Deposed)>> = RefCell::default();
    let status = state.change(&edit, args.write.format, each("forgot"), |document, _| {
        let keys = all_recorded(state, document, &args.stacks)?;
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
        console::note(&format!("`{key}` was {text}; nothing of it is destroyed"));
    }
    for (key, old) in deposed.take() {
        let place = old
            .backend
            .map(|backend| format!(", whose state is in `{}`", printable(&backend)));
        console::note(&format!(
            "generation {} of `{}` is not destroyed either{}",
            old.generation,
            printable(&key),
            place.unwrap_or_default()
        ));
    }
    Ok(status)
}

pub(super) fn move_entry(state: &State, args: &MoveArgs) -> Result<ExitStatus> {
    let edit = state.edit("move", &args.write);
    state.change(&edit, args.write.format, moved, |document, _| {
        let from = state.recorded(document, &args.from)?;
        let to = state.key(document, &args.to)?;
        if from == to {
            return Err(ProgramError::usage(format!("FROM and TO are both `{to}`")));
        }
        if document.stacks.contains_key(&to) {
            return Err(
                ProgramError::refused(format!("`{to}` is already on record")).hint(format!(
                    "if that entry is wrong, forget it first: `orch state forget {}`",
                    command_line(&[to.into()])
                )),
            );
        }
        if state.loaded.project.stacks.named(&to).is_none() {
            console::note(&format!("there is no stack `{to}` here"));
        }
        document.rename(BTreeMap::from([(from.clone(), to.clone())]));
        Ok(vec![from, to])
    })
}

pub(super) fn taint(state: &State, args: &TaintArgs) -> Result<ExitStatus> {
    let edit = state.edit("taint", &args.write);
    state.change(
        &edit,
        args.write.format,
        each("tainted"),
        |document, now| {
            state.check_stacks(document)?;
            let keys = all_recorded(state, document, &args.stacks)?;
            let taint = Taint {
                by: state.opened.author.by.clone(),
                at: now,
                reason: args.write.reason.clone(),
                other: serde_json::Map::new(),
            };
            for key in &keys {
                document.stacks.entry(key.clone()).or_default().tainted = Some(taint.clone());
            }
            Ok(keys)
        },
    )
}

pub(super) fn untaint(state: &State, args: &UntaintArgs) -> Result<ExitStatus> {
    let edit = state.edit("untaint", &args.write);
    state.change(
        &edit,
        args.write.format,
        each("untainted"),
        |document, _| {
            state.check_stacks(document)?;
            let keys = all_recorded(state, document, &args.stacks)?;
            for key in &keys {
                let entry = document.stacks.get_mut(key);
                if entry.is_none_or(|entry| entry.tainted.take().is_none()) {
                    return Err(ProgramError::refused(format!("`{key}` is not tainted")));
                }
            }
            Ok(keys)
        },
    )
}

pub(super) fn release(state: &State, args: &ReleaseArgs) -> Result<ExitStatus> {
    let edit = state.edit("release", &args.write);
    state.change(
        &edit,
        args.write.format,
        each("released the old generations of"),
        |document, _| {
            state.check_stacks(document)?;
            let keys = all_recorded(state, document, &args.stacks)?;
            for key in &keys {
                let deposed = document.stacks.get_mut(key).map(|entry| &mut entry.deposed);
                let deposed = deposed.filter(|deposed| !deposed.is_empty());
                let deposed = deposed.ok_or_else(|| {
                    ProgramError::refused(format!("`{key}` has no old generation"))
                })?;
                for deposed in deposed {
                    deposed.released = true;
                }
            }
            Ok(keys)
        },
    )
}

pub(super) fn restore(state: &State, args: &RestoreArgs) -> Result<ExitStatus> {
    let edit = state.edit("restore", &args.write);
    match state.opened.backend.backup(args.serial) {
        Ok(Some(document)) => state.opened.check_binding(&document)?,
        Err(error @ ReadError::Damaged { .. }) => {
            return Err(ProgramError::new(ErrorKind::External, error.into())
                .hint("restore another one; `orch state backups` lists them"));
        }
        Err(error) => return Err(from_read(error).into()),
        // The restoration lists those that exist.
        Ok(None) => {}
    }
    let restoration = Restoration {
        serial: args.serial,
        may_be_abandoned: args.abandoned,
    };
    let restored = edit::restore(&state.opened.backend, restoration, &edit, &state.clock);
    let document = restored.map_err(|error| match error {
        RestoreError::Lock(error) => from_lock(error).into(),
        RestoreError::Unknown(_, ref known) => {
            let known: Vec<String> = known.iter().map(u64::to_string).collect();
            let hint = if known.is_empty() {
                "there are no backups".to_owned()
            } else {
                format!("there are backups {}", known.join(", "))
            };
            ProgramError::new(ErrorKind::Refused, error.into()).hint(hint)
        }
        RestoreError::Abandoned(_) => ProgramError::new(ErrorKind::Refused, error.into())
            .hint("`orch state backups` shows which backups are abandoned; to restore one anyway, add `--abandoned`"),
    })?;
    let (old, new) = (args.serial, document.serial);
    let text = format!("restored backup {old} as serial {new}\n");
    state.say(edit.dry_run, args.write.format, &text, &[], &document)
}
