//! `orch state`

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use orch::command::RunTerminal;
use orch::command::state::{
    self, AdoptRequest, ImportRequest, RecoverRequest, ToolCheck, WriteOptions,
};
use orch::context::Context;
use orch::exit::ExitStatus;
use orch::project::Problems;
use orch::project::stack::StackIndex;
use orch::report::{
    JsonDocument, Written, write_backups, write_backups_json, write_cfngin_graph, write_entry,
    write_entry_json, write_history, write_history_json, write_recorded, write_recorded_graph_json,
    write_recorded_json, write_state, write_state_json, write_state_refusal_json, write_written,
    write_written_json,
};

use super::format::Format;
use super::{Reads, find_project};
use crate::program::commands::selection_flags::SelectArgs;
use crate::program::commands::terminal::PlanTerminal;
use crate::program::commands::{CommandContext, working_directory};
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
    Adopt(Box<AdoptArgs>),
    /// List the recorded stacks, each with its status and the commit, time and run of its last apply
    ///
    /// `applied`: nothing has changed since the last apply. `pending`: something has, or the stack
    /// was never applied. `failed`: the last attempt failed or was interrupted, or the stack is
    /// tainted. `running`: a run is in progress for it. `removed`: it is not in the project, and
    /// git proves that it was removed. `absent`: it is not in the project, without that proof. A
    /// `+` after the commit means that uncommitted inputs were applied as well.
    List(ReadArgs),
    Show(StateShowArgs),
    /// Show the last 200 writes, newest first, each with the stacks that it changed
    ///
    /// The text names the first stacks of each kind. JSON has all destroyed and removed stacks, and
    /// up to 100 of the others.
    #[command(mut_arg("format", |format| format.help("The format of the history")))]
    History(ReadArgs),
    /// Remove stacks from the state, without destroying anything
    ///
    /// A `removed` block with `destroy = false` does the same, and can be reviewed: see `orch help
    /// removal`.
    Forget(StacksArgs),
    Move(MoveArgs),
    /// Mark stacks as failed, for instance after changes by hand
    ///
    /// The mark is removed by a successful apply, or by `orch state untaint`. `orch plan --replace`
    /// replaces a stack without it, and shows that beforehand.
    Taint(StacksArgs),
    /// Remove the mark of `orch state taint`
    Untaint(StacksArgs),
    /// Let the next apply destroy old generations of stacks, even if they may be in use
    ///
    /// An old generation is kept as long as a stack that runs after it may use it. See `orch help
    /// generations`.
    Release(StacksArgs),
    /// List the serials of the backups, oldest first
    ///
    /// orch keeps a copy of the document before a run takes the lock and before a command changes
    /// it. `backups` in the configuration is the number of copies, 20 by default.
    Backups(ReadArgs),
    Restore(RestoreArgs),
    Import(ImportArgs),
    Export(ExportArgs),
    Unlock(UnlockArgs),
    Recover(RecoverArgs),
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
        let written = adopt(chdir, args, || open(reads))?;
        return written.map_or(Ok(ExitStatus::Success), |written| say(format, &written));
    }
    let reads = match command {
        StateCommand::List(_) | StateCommand::Import(_) => Reads::INPUTS,
        _ => Reads::CONFIGURATION,
    };
    let context = &mut *open(reads)?;
    let written = match command {
        StateCommand::Adopt(_) => unreachable!("handled above"),
        StateCommand::List(args) => return list(context, args),
        StateCommand::Show(args) => return show(context, args),
        StateCommand::History(args) => return history(context, args),
        StateCommand::Backups(args) => return backups(context, args),
        StateCommand::Export(args) => return export(context, args),
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
        StateCommand::Import(args) => import(chdir, context, args)?,
        StateCommand::Unlock(args) => {
            state::unlock(context, &args.code, args.force, &args.write.options())?
        }
        StateCommand::Recover(args) => recover(context, args)?,
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

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// The format of the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

/// Show where the document is and who holds its lock, or the record of one stack
#[derive(Debug, Args)]
pub(crate) struct StateShowArgs {
    /// A recorded stack
    #[arg(value_name = "STACK")]
    pub(super) stack: Option<String>,

    /// The format; without STACK, JSON has the whole document
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

/// Print the graph of the recorded stacks
///
/// It has the order of their last apply, even if stacks have changed since or were removed.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The format of the graph
    #[arg(long, value_enum)]
    pub(super) format: RecordedGraphFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordedGraphFormat {
    /// The persistent graph of `CFNgin`, by name: `{"app": ["network"]}`. Recorded stacks must have different names
    Cfngin,
    /// For other programs: the path and name of each stack, and the paths of the stacks that it runs after
    Json,
}

impl RecordedGraphFormat {
    pub(super) fn refusal(self) -> Format {
        match self {
            RecordedGraphFormat::Cfngin => Format::Text,
            RecordedGraphFormat::Json => Format::Json,
        }
    }
}

pub(super) fn list(context: &mut Context, args: &ReadArgs) -> Result<ExitStatus> {
    let list = state::list(context)?;
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_recorded(&mut out, &list)?,
        Format::Json => write_recorded_json(&mut out, &list)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

pub(super) fn show(context: &mut Context, args: &StateShowArgs) -> Result<ExitStatus> {
    let mut out = console::stdout();
    if let Some(stack) = &args.stack {
        let (key, entry) = state::entry(context, stack)?;
        match args.format {
            Format::Text => write_entry(&mut out, &key, &entry)?,
            Format::Json => write_entry_json(&mut out, &key, &entry)?,
        }
    } else {
        let shown = state::show(context)?;
        match args.format {
            Format::Text => write_state(&mut out, &shown)?,
            Format::Json => write_state_json(&mut out, &shown)?,
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

pub(super) fn history(context: &mut Context, args: &ReadArgs) -> Result<ExitStatus> {
    let document = state::document(context)?;
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_history(&mut out, &document)?,
        Format::Json => write_history_json(&mut out, &document)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

pub(super) fn backups(context: &mut Context, args: &ReadArgs) -> Result<ExitStatus> {
    let backups = state::backups(context)?;
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_backups(&mut out, &backups)?,
        Format::Json => write_backups_json(&mut out, &backups)?,
    }
    out.flush()?;
    if backups.is_empty() {
        console::note("it has no backups");
    }
    Ok(ExitStatus::Success)
}

pub(super) fn export(context: &mut Context, args: &ExportArgs) -> Result<ExitStatus> {
    let mut out = console::stdout();
    match args.format {
        RecordedGraphFormat::Cfngin => {
            write_cfngin_graph(&mut out, &state::cfngin_graph(context)?)?;
        }
        RecordedGraphFormat::Json => write_recorded_graph_json(&mut out, &state::graph(context)?)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// Record the selected stacks as applied at HEAD
///
/// Asks the tool of each stack for a plan, and refuses stacks with changes. Lists stacks that it
/// cannot verify. This replaces the records of the stacks; nothing is applied. orch refuses stacks
/// with uncommitted inputs.
#[derive(Debug, Args)]
pub(crate) struct AdoptArgs {
    /// Record the stacks without asking their tools
    ///
    /// Then orch does not know whether they match HEAD, or where their tools keep their states. Until
    /// `orch apply --full` has recorded that, orch may refuse to destroy removed stacks.
    #[arg(long)]
    pub(super) no_verify: bool,

    /// Ask up to N tools at once [default: 1]
    #[arg(short = 'j', long, value_name = "N", conflicts_with = "no_verify")]
    pub(super) parallel: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(super) write: WriteArgs,

    #[command(flatten)]
    pub(super) select: SelectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StacksArgs {
    /// The stacks
    #[arg(value_name = "STACK", required = true)]
    pub(super) stacks: Vec<String>,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Move the record of a stack to another path
///
/// A `moved` block does the same for all namespaces, and can be reviewed: see `orch help removal`.
#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// The recorded stack
    #[arg(value_name = "FROM")]
    pub(super) from: String,

    /// Its new path
    #[arg(value_name = "TO")]
    pub(super) to: String,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Replace the document with a backup, even if it is damaged or missing
///
/// `orch state backups` lists the serials. The document gets a new serial, greater than any before.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The serial of the backup
    #[arg(value_name = "SERIAL", value_parser = serial)]
    pub(super) serial: u64,

    /// Also restore a backup of an abandoned timeline
    ///
    /// If an earlier document is restored in the backend itself, the backups of later writes are
    /// abandoned. `orch state backups` marks them.
    #[arg(long)]
    pub(super) abandoned: bool,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Record the stacks of a `CFNgin` persistent graph as applied
///
/// Download the graph first: `CFNgin` keeps it at
/// `s3://BUCKET/persistent_graphs/NAMESPACE/KEY.json` or, according to its documentation, at
/// `s3://BUCKET/NAMESPACE/persistent_graphs/NAMESPACE/KEY.json`. It lists the dependencies of each
/// stack by name, as in `{"app": ["network"]}`. A name that no stack has is recorded as the path
/// `/NAME`. Existing records are kept.
///
/// Asks the tools of imported stacks in the working tree for a plan, and refuses stacks that do not
/// exist. Lists stacks that it cannot verify. orch also refuses unknown names, and cycles. See
/// `orch help cfngin`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The downloaded graph
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,

    /// The commit that is deployed
    ///
    /// Names are looked up among its stacks too. When a stack is removed, its code at this commit
    /// destroys it.
    #[arg(long, value_name = "REV")]
    pub(super) commit: Option<String>,

    /// Record the stacks without asking their tools
    #[arg(long)]
    pub(super) no_verify: bool,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Remove the lock of a run that no longer exists
///
/// The run can then record nothing more; its records are kept, and its unfinished stacks count as
/// interrupted. A run that sent a heartbeat within the last two minutes may be alive: look at
/// its CI job first. If the record of the run is damaged or missing, --force gives up its
/// unreadable part.
#[derive(Debug, Args)]
pub(crate) struct UnlockArgs {
    /// The code of the lock, which `orch state show` prints
    #[arg(value_name = "CODE")]
    pub(super) code: String,

    /// Do so even if the run sent a heartbeat within two minutes, or its record is damaged or missing
    #[arg(long)]
    pub(super) force: bool,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Write the records that a run of this checkout could not write
///
/// If others have changed an entry since, orch writes nothing until --take or --drop chooses a
/// version.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// `last`, `last~1`, or a unique beginning or end of a run id
    #[arg(value_name = "RUN")]
    pub(super) run: String,

    /// Write the record of this run for this stack (can be repeated)
    #[arg(long, value_name = "STACK")]
    pub(super) take: Vec<String>,

    /// Keep the present record of this stack (can be repeated)
    #[arg(long, value_name = "STACK")]
    pub(super) drop: Vec<String>,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Parses a serial.
fn serial(text: &str) -> std::result::Result<u64, &'static str> {
    let serial = text.parse();
    serial.map_err(|_| "a serial is a number; `orch state backups` lists them")
}

/// Selects the stacks, and records them. Returns `None` if there are none.
pub(super) fn adopt(
    chdir: &[PathBuf],
    args: &AdoptArgs,
    open: impl Fn() -> Result<CommandContext>,
) -> Result<Option<Written>> {
    let selected = args.select.request(chdir)?;
    let mut context = open()?;
    // They were shown when the state was opened.
    context.problems = Problems::default();
    let query = context.ask(|context| context.query(selected))?;
    let selection = context.select(&query);
    context.report()?;
    let stacks: Vec<StackIndex> = selection.stacks().collect();
    if stacks.is_empty() {
        return Ok(None);
    }
    let request = AdoptRequest {
        stacks: &stacks,
        verification: (!args.no_verify).then(|| ToolCheck {
            terminal: &PlanTerminal,
            jobs: args.parallel.unwrap_or(NonZeroUsize::MIN),
        }),
        options: &args.write.options(),
    };
    Ok(Some(state::adopt(&mut context, &request)?))
}

pub(super) fn import(
    chdir: &[PathBuf],
    context: &mut Context,
    args: &ImportArgs,
) -> Result<Written> {
    let request = ImportRequest {
        file: &working_directory(chdir)?.join(&args.file),
        shown: &args.file,
        commit: args.commit.as_deref(),
        terminal: (!args.no_verify).then_some(&PlanTerminal as &dyn RunTerminal),
        options: &args.write.options(),
    };
    Ok(state::import(context, &request)?)
}

pub(super) fn recover(context: &mut Context, args: &RecoverArgs) -> Result<Written> {
    let request = RecoverRequest {
        run: &args.run,
        take: &args.take,
        drop: &args.drop,
    };
    Ok(state::recover(context, &request, &args.write.options())?)
}
