//! `orch state`

mod read;
mod write;

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use orch::command::state::{self, WriteOptions};
use orch::exit::ExitStatus;
use orch::report::{
    JsonDocument, Written, write_state_refusal_json, write_written, write_written_json,
};

use super::format::Format;
use super::{CommandContext, Reads, find_project};
use crate::program::console;
use crate::program::error::Result;

/// Show and change the state, the record of applied stacks
///
/// The state is one document, in a file or a bucket: see `orch help state`. STACK is the path of a
/// recorded stack, relative to the current directory, or to the project root if it starts with `/`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  orch state init                       create the document
  orch state adopt --tags prod          record existing stacks as applied at HEAD
  orch state list                       the recorded stacks, with their status
  orch state show                       where the document is, and who holds its lock
  orch state show prod/network          the record of one stack
  orch state taint prod/network --reason 'changed by hand'
  orch state move /net /prod/network    after a directory was renamed
  orch state unlock 6a1f…               remove the lock of a run that no longer exists
  orch state recover 01a1ffb4           write the records that a run could not write"
)]
pub(crate) struct StateArgs {
    #[command(subcommand)]
    pub(crate) command: StateCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// Create the document
    ///
    /// orch refuses a backend that would let writers overwrite each other.
    Init(WriteArgs),
    Adopt(Box<write::AdoptArgs>),
    /// List the recorded stacks, each with its status and the commit, time and run of its last apply
    ///
    /// `applied`: nothing has changed since the last apply. `pending`: something has, or the stack
    /// was never applied. `failed`: the last attempt failed or was interrupted, or the stack is
    /// tainted. `running`: a run is in progress for it. `removed`: it is not in the project, and
    /// git proves that it was removed. `absent`: it is not in the project, without that proof. A
    /// `+` after the commit means that uncommitted inputs were applied as well.
    List(read::ReadArgs),
    Show(read::StateShowArgs),
    /// Show the last 200 writes, newest first, each with the stacks that it changed
    ///
    /// The text names the first stacks of each kind. JSON has all destroyed and removed stacks, and
    /// up to 100 of the others.
    #[command(mut_arg("format", |format| format.help("The format of the history")))]
    History(read::ReadArgs),
    /// Remove stacks from the state, without destroying anything
    ///
    /// A `removed` block with `destroy = false` does the same, and can be reviewed: see `orch help
    /// removal`.
    Forget(write::StacksArgs),
    Move(write::MoveArgs),
    /// Mark stacks as failed, for instance after changes by hand
    ///
    /// The mark is removed by a successful apply, or by `orch state untaint`. `orch plan --replace`
    /// replaces a stack without it, and shows that beforehand.
    Taint(write::StacksArgs),
    /// Remove the mark of `orch state taint`
    Untaint(write::StacksArgs),
    /// Let the next apply destroy old generations of stacks, even if they may be in use
    ///
    /// An old generation is kept as long as a stack that runs after it may use it. See `orch help
    /// generations`.
    Release(write::StacksArgs),
    /// List the serials of the backups, oldest first
    ///
    /// orch keeps a copy of the document before a run takes the lock and before a command changes
    /// it. `backups` in the configuration is the number of copies, 20 by default.
    Backups(read::ReadArgs),
    Restore(write::RestoreArgs),
    Import(write::ImportArgs),
    Export(read::ExportArgs),
    Unlock(write::UnlockArgs),
    Recover(write::RecoverArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    /// Show the changes without writing them
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Give a reason, which the history keeps
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,

    /// The format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

impl WriteArgs {
    fn options(&self) -> WriteOptions {
        WriteOptions {
            dry_run: self.dry_run,
            reason: self.reason.clone(),
        }
    }
}

pub(super) fn state(chdir: &[PathBuf], command: &StateCommand) -> Result<ExitStatus> {
    let format = command.format();
    let result = dispatch(chdir, command, format);
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

impl StateCommand {
    fn format(&self) -> Format {
        match self {
            StateCommand::List(args)
            | StateCommand::History(args)
            | StateCommand::Backups(args) => args.format,
            StateCommand::Show(args) => args.format,
            StateCommand::Export(args) => args.format.refusal(),
            StateCommand::Init(write) => write.format,
            StateCommand::Forget(args)
            | StateCommand::Taint(args)
            | StateCommand::Untaint(args)
            | StateCommand::Release(args) => args.write.format,
            StateCommand::Adopt(args) => args.write.format,
            StateCommand::Move(args) => args.write.format,
            StateCommand::Restore(args) => args.write.format,
            StateCommand::Import(args) => args.write.format,
            StateCommand::Unlock(args) => args.write.format,
            StateCommand::Recover(args) => args.write.format,
        }
    }
}

fn dispatch(chdir: &[PathBuf], command: &StateCommand, format: Format) -> Result<ExitStatus> {
    let open = |reads| open(chdir, format, reads);
    if let StateCommand::Adopt(args) = command {
        let reads = args.select.reads().with_listing();
        let written = write::adopt(chdir, args, || open(reads))?;
        return written.map_or(Ok(ExitStatus::Success), |written| say(format, &written));
    }
    let reads = match command {
        StateCommand::List(_) | StateCommand::Import(_) => Reads::INPUTS,
        _ => Reads::CONFIGURATION,
    };
    let context = &mut *open(reads)?;
    let written = match command {
        StateCommand::Adopt(_) => unreachable!("handled above"),
        StateCommand::List(args) => return read::list(context, args),
        StateCommand::Show(args) => return read::show(context, args),
        StateCommand::History(args) => return read::history(context, args),
        StateCommand::Backups(args) => return read::backups(context, args),
        StateCommand::Export(args) => return read::export(context, args),
        StateCommand::Init(write) => state::init(context, &write.options())?,
        StateCommand::Forget(args) => state::forget(context, &args.stacks, &args.write.options())?,
        StateCommand::Move(args) => {
            state::move_entry(context, &args.from, &args.to, &args.write.options())?
        }
        StateCommand::Taint(args) => state::taint(context, &args.stacks, &args.write.options())?,
        StateCommand::Untaint(args) => {
            state::untaint(context, &args.stacks, &args.write.options())?
        }
        StateCommand::Release(args) => {
            state::release(context, &args.stacks, &args.write.options())?
        }
        StateCommand::Restore(args) => {
            state::restore(context, args.serial, args.abandoned, &args.write.options())?
        }
        StateCommand::Import(args) => write::import(chdir, context, args)?,
        StateCommand::Unlock(args) => {
            state::unlock(context, &args.code, args.force, &args.write.options())?
        }
        StateCommand::Recover(args) => write::recover(context, args)?,
    };
    say(format, &written)
}

fn open(chdir: &[PathBuf], format: Format, reads: Reads) -> Result<CommandContext> {
    let found = find_project(chdir)?;
    state::check_root(&found)?;
    let document = format.document(JsonDocument::Stacks);
    let mut context = CommandContext::of(found, document, reads)?;
    context.ask(state::open)?;
    Ok(context)
}

/// Prints what was written.
fn say(format: Format, written: &Written) -> Result<ExitStatus> {
    let mut out = console::stdout();
    match format {
        Format::Text => write_written(&mut out, written)?,
        Format::Json => write_written_json(&mut out, written)?,
    }
    out.flush()?;
    if written.dry_run {
        console::note("nothing was written: this is a dry run");
    }
    written.notes.iter().for_each(|note| console::note(note));
    Ok(ExitStatus::Success)
}
