//! `orch state`

mod adopt;
mod existing;
mod graph;
mod read;
mod recover;
mod write;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use orch::change::relocate;
use orch::context::{MARK_ROOT, Opened, from_read, missing};
use orch::exit::ExitStatus;
use orch::path::{KeyFilter, StackPath};
use orch::project::host::host_variable;
use orch::report::{Document, write_state_refusal_json};
use orch::state::clock::SystemClock;
use orch::state::document;

use super::format::Format;
use super::{Loaded, Reads, find_project};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Show and change the record of what was applied
///
/// The record is one document, in a file or a bucket: see `orch help state`. STACK is the path of a
/// stack on record, relative to the current directory, or to the project root if it starts with `/`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  orch state init                       create the document
  orch state adopt --tags prod          record existing stacks as applied at HEAD
  orch state list                       the stacks on record, with their status
  orch state show                       where the document is, and who holds its lock
  orch state show prod/network          what is on record of one stack
  orch state taint prod/network --reason 'changed by hand'
  orch state move /net /prod/network    after a directory was renamed
  orch state unlock 6a1f…               take the lock away from a run that is gone
  orch state recover 01a1ffb4           add what a run could not write"
)]
pub(crate) struct StateArgs {
    #[command(subcommand)]
    pub(crate) command: StateCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    Init(write::InitArgs),
    Adopt(Box<adopt::AdoptArgs>),
    List(read::ListArgs),
    Show(read::ShowArgs),
    History(read::HistoryArgs),
    Forget(write::ForgetArgs),
    Move(write::MoveArgs),
    Taint(write::TaintArgs),
    Untaint(write::UntaintArgs),
    Release(write::ReleaseArgs),
    Backups(read::BackupsArgs),
    Restore(write::RestoreArgs),
    Import(graph::ImportArgs),
    Export(graph::ExportArgs),
    Unlock(recover::UnlockArgs),
    Recover(recover::RecoverArgs),
}

/// How a command that writes does so.
#[derive(Debug, Args)]
pub(super) struct WriteArgs {
    /// Say what would be written, without writing it
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Give a reason, which the history keeps
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,

    /// The format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

/// The state of a project, opened.
struct State {
    loaded: Loaded,
    opened: Opened,
    clock: SystemClock,
}

pub(super) fn state(chdir: &[PathBuf], command: &StateCommand) -> Result<ExitStatus> {
    let format = match command {
        StateCommand::Init(args) => args.write.format,
        StateCommand::Adopt(args) => args.write.format,
        StateCommand::List(args) => args.format,
        StateCommand::Show(args) => args.format,
        StateCommand::History(args) => args.format,
        StateCommand::Forget(args) => args.write.format,
        StateCommand::Move(args) => args.write.format,
        StateCommand::Taint(args) => args.write.format,
        StateCommand::Untaint(args) => args.write.format,
        StateCommand::Release(args) => args.write.format,
        StateCommand::Backups(args) => args.format,
        StateCommand::Restore(args) => args.write.format,
        StateCommand::Import(args) => args.write.format,
        StateCommand::Export(args) => args.format.refusal(),
        StateCommand::Unlock(args) => args.write.format,
        StateCommand::Recover(args) => args.write.format,
    };
    let result = carry_out(chdir, command, format);
    if let Err(error) = &result
        && !error.is_silent()
        && format == Format::Json
    {
        let mut out = console::stdout();
        write_state_refusal_json(&mut out, &error.message())?;
        out.flush()?;
    }
    result
}

fn carry_out(chdir: &[PathBuf], command: &StateCommand, format: Format) -> Result<ExitStatus> {
    if let StateCommand::Adopt(args) = command {
        return adopt::adopt(chdir, args);
    }
    let reads = match command {
        StateCommand::List(_) | StateCommand::Import(_) => Reads::INPUTS,
        _ => Reads::CONFIGURATION,
    };
    let state = State::open(chdir, format, reads)?;
    match command {
        StateCommand::Init(args) => write::init(&state, args),
        StateCommand::Adopt(_) => unreachable!("handled above"),
        StateCommand::List(args) => read::list(&state, args),
        StateCommand::Show(args) => read::show(&state, args),
        StateCommand::History(args) => read::history(&state, args),
        StateCommand::Forget(args) => write::forget(&state, args),
        StateCommand::Move(args) => write::move_entry(&state, args),
        StateCommand::Taint(args) => write::taint(&state, args),
        StateCommand::Untaint(args) => write::untaint(&state, args),
        StateCommand::Release(args) => write::release(&state, args),
        StateCommand::Backups(args) => read::backups(&state, args),
        StateCommand::Restore(args) => write::restore(&state, args),
        StateCommand::Import(args) => graph::import(chdir, &state, args),
        StateCommand::Export(args) => graph::export(&state, args),
        StateCommand::Unlock(args) => recover::unlock(&state, args),
        StateCommand::Recover(args) => recover::recover(&state, args),
    }
}

impl State {
    /// Opens the state of the project around the working directory.
    fn open(chdir: &[PathBuf], format: Format, reads: Reads) -> Result<Self> {
        let found = find_project(chdir)?;
        if !found.is_marked() {
            return Err(ProgramError::refused(
                "there is no state: nothing marks the root of a project here",
            )
            .hint(MARK_ROOT.to_owned()));
        }
        let document = format.document(Document::Stacks);
        let mut loaded = Loaded::of(found, document, reads)?;
        let Some(block) = loaded.project.settings.state.clone() else {
            loaded.check(None)?;
            return Err(ProgramError::refused("this project keeps no state")
                .hint("add a block `orch { config { state { project = \"…\" } } }` to its root; see `orch help state`"));
        };
        let config = match block.evaluate(&host_variable) {
            Ok(config) => Some(config),
            Err(problems) => {
                // What needs no variable has been reported with everything else.
                let known = loaded.problems.diagnostics.clone();
                let new = problems
                    .into_iter()
                    .filter(|problem| !known.contains(problem));
                loaded.problems.diagnostics.extend(new);
                None
            }
        };
        loaded.report()?;
        let config = config.expect("what is wrong is an error");
        let opened = Opened::new(&loaded.project, config, loaded.notices.clone())?;
        Ok(State {
            loaded,
            opened,
            clock: SystemClock::default(),
        })
    }

    /// Reads the document of this project, with what the run that holds its lock has recorded so far.
    fn read(&self) -> Result<document::Document> {
        Ok(self.opened.read_once()?)
    }

    /// Reads the document of this project alone.
    fn read_alone(&self) -> Result<document::Document> {
        let read = self.opened.backend.read().map_err(from_read)?;
        let read = read.ok_or_else(|| missing(&self.opened.backend.address()))?;
        self.opened.check_binding(&read.document)?;
        Ok(read.document)
    }

    /// Checks that the document has something in common with this tree.
    fn check_stacks(&self, document: &document::Document) -> Result<()> {
        let mut document = document.clone();
        self.relocate(&mut document);
        Ok(self.opened.check_stacks(&self.loaded.project, &document)?)
    }

    /// Moves the entries of a document to where `moved` blocks say that they are. Returns the keys on record by
    /// the new keys; nothing if that is impossible, since these commands mend it.
    fn relocate(&self, document: &mut document::Document) -> BTreeMap<String, String> {
        relocate(&self.loaded.project, document).unwrap_or_default()
    }

    /// Returns the key that the user means, which need not be on record.
    fn key(&self, document: &document::Document, written: &str) -> Result<String> {
        if document.stacks.contains_key(written) {
            return Ok(written.to_owned());
        }
        if written.is_empty() {
            return Err(ProgramError::usage("the path of a stack is empty"));
        }
        let (directory, instance) = KeyFilter::split(written);
        let outside = |_| ProgramError::usage(format!("`{written}` leads out of the project"));
        let directory = self.loaded.directory.resolve(directory).map_err(outside)?;
        match instance {
            None => Ok(directory.as_str().to_owned()),
            Some(KeyFilter::One(key)) => {
                Ok(StackPath::instance(directory, key).as_str().to_owned())
            }
            Some(KeyFilter::Any) => Err(ProgramError::usage(format!(
                "`{written}` names several stacks; name one"
            ))),
        }
    }

    /// Returns the key of a stack on record.
    fn recorded(&self, document: &document::Document, written: &str) -> Result<String> {
        let key = self.key(document, written)?;
        if document.stacks.contains_key(&key) {
            return Ok(key);
        }
        // The commands that read show it under the path that a `moved` block gives it.
        if let Some(before) = self.relocate(&mut document.clone()).remove(&key) {
            return Ok(before);
        }
        let mut error = ProgramError::refused(format!("no stack `{key}` is on record"));
        let known = document.stacks.keys().map(String::as_str);
        error = error.hint(match orch::diagnostic::closest(&key, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`orch state list` shows which are".to_owned(),
        });
        Err(error)
    }
}
