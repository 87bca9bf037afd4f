//! `orch state`

use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use orch::command::plan::Planned;
use orch::command::state::{
    ImportRequest, RecoverRequest, Restoration, State, StateWrite, WriteOptions,
};
use orch::context::{Context, MARK_ROOT, Opened};
use orch::exit::ExitStatus;
use orch::path::StackPath;
use orch::plan::entry::{PlanMode, PlanOptions};
use orch::project::stack::StackIndex;
use orch::report::{
    Document, Written, write_backups, write_backups_json, write_entry, write_entry_json,
    write_history, write_history_json, write_recorded, write_recorded_graph_json,
    write_recorded_json, write_state, write_state_json, write_state_refusal_json,
    write_written_json,
};

use super::format::Format;
use super::plan::{PlanRequest, PlanningArgs, planned};
use super::selection_flags::SelectArgs;
use super::{CommandContext, Reads, find_project, working_directory};
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
    Init(InitArgs),
    Adopt(Box<AdoptArgs>),
    List(ListArgs),
    Show(ShowArgs),
    History(HistoryArgs),
    Forget(ForgetArgs),
    Move(MoveArgs),
    Taint(TaintArgs),
    Untaint(UntaintArgs),
    Release(ReleaseArgs),
    Backups(BackupsArgs),
    Restore(RestoreArgs),
    Import(ImportArgs),
    Export(ExportArgs),
    Unlock(UnlockArgs),
    Recover(RecoverArgs),
}

/// How a command that writes does so.
#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    /// Say what would be written, without writing it
    #[arg(long)]
    dry_run: bool,

    /// Give a reason, which the history keeps
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// The format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Create the document
///
/// orch refuses a backend that would let writers overwrite each other.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    write: WriteArgs,
}

/// Remove stacks from the record, without destroying anything
///
/// A `removed` block with `destroy = false` does the same, and can be reviewed: see `orch help removal`.
#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    /// The stacks
    #[arg(value_name = "STACK", required = true)]
    stacks: Vec<String>,

    #[command(flatten)]
    write: WriteArgs,
}

/// Move what is on record of a stack to another path
///
/// A `moved` block does the same for all namespaces, and can be reviewed: see `orch help removal`.
#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// The stack on record
    #[arg(value_name = "FROM")]
    from: String,

    /// Its new path
    #[arg(value_name = "TO")]
    to: String,

    #[command(flatten)]
    write: WriteArgs,
}

/// Mark stacks as failed, for instance after changes by hand
///
/// The mark stays until an apply succeeds, or until `orch state untaint`. `orch plan --replace` replaces a
/// stack without it, and shows that beforehand.
#[derive(Debug, Args)]
pub(crate) struct TaintArgs {
    /// The stacks
    #[arg(value_name = "STACK", required = true)]
    stacks: Vec<String>,

    #[command(flatten)]
    write: WriteArgs,
}

/// Remove the mark of `orch state taint`
#[derive(Debug, Args)]
pub(crate) struct UntaintArgs {
    /// The stacks
    #[arg(value_name = "STACK", required = true)]
    stacks: Vec<String>,

    #[command(flatten)]
    write: WriteArgs,
}

/// Let the next apply destroy old generations of stacks, whoever may use them
///
/// An old generation is kept as long as a stack that runs after it may use it. Release it if none does. See
/// `create_before_destroy` in `orch help lifecycle`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The stacks
    #[arg(value_name = "STACK", required = true)]
    stacks: Vec<String>,

    #[command(flatten)]
    write: WriteArgs,
}

/// Replace the document with a backup, even if it is damaged or gone
///
/// `orch state backups` lists the serials. The document gets a new serial, greater than any before.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The serial of the backup
    #[arg(value_name = "SERIAL", value_parser = serial)]
    serial: u64,

    /// Also restore a backup of an abandoned timeline
    ///
    /// When somebody puts an earlier document back into the backend, the backups of what was written after it
    /// are abandoned. `orch state backups` marks them.
    #[arg(long)]
    abandoned: bool,

    #[command(flatten)]
    write: WriteArgs,
}

/// Parses a serial.
fn serial(text: &str) -> std::result::Result<u64, &'static str> {
    let serial = text.parse();
    serial.map_err(|_| "a serial is a number; `orch state backups` lists them")
}

/// Record the selected stacks as applied at HEAD
///
/// Asks the tool of each stack for a plan, and refuses stacks that an apply would change. Names those that it cannot
/// verify. This replaces what is recorded of the stacks; nothing is applied. orch refuses stacks with uncommitted
/// inputs.
#[derive(Debug, Args)]
pub(crate) struct AdoptArgs {
    /// Record the stacks without asking their tools
    ///
    /// Then orch knows neither whether they are deployed as HEAD has them, nor where their tools keep their states: it
    /// may not destroy removed stacks until `orch apply --full` has recorded that.
    #[arg(long)]
    no_verify: bool,

    /// Ask up to N tools at once [default: 1]
    #[arg(short = 'j', long, value_name = "N", conflicts_with = "no_verify")]
    parallel: Option<NonZeroUsize>,

    #[command(flatten)]
    write: WriteArgs,

    #[command(flatten)]
    select: SelectArgs,
}

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
    format: Format,
}

/// Show where the document is and who holds its lock, or all that is on record of one stack
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A stack on record
    #[arg(value_name = "STACK")]
    stack: Option<String>,

    /// The format; without STACK, JSON has the whole document
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Show the last 200 writes, newest first, each with the stacks that it changed
///
/// The text names the first stacks of each kind. JSON names all that were destroyed or removed, and up to 100 that
/// were applied or failed.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The format of the history
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// List the serials of the backups, oldest first
///
/// orch keeps a copy of the document before a run takes the lock and before a command changes it. `backups`
/// in the configuration says how many copies stay, 20 by default.
#[derive(Debug, Args)]
pub(crate) struct BackupsArgs {
    /// The format of the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Record the stacks of a `CFNgin` persistent graph as applied
///
/// Download the graph first: `CFNgin` keeps it at `s3://BUCKET/persistent_graphs/NAMESPACE/KEY.json` or,
/// according to its documentation, at
/// `s3://BUCKET/NAMESPACE/persistent_graphs/NAMESPACE/KEY.json`. It lists by name what each stack runs
/// after, as in `{"app": ["network"]}`. A name that no stack has is recorded as the path `/NAME`. What is
/// already on record stays as it is.
///
/// Asks the tools of imported stacks that are in the working tree for a plan, and refuses stacks of which nothing
/// exists. Names those that it cannot verify. orch also refuses names that are listed nowhere, and cycles.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The downloaded graph
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The commit that is known to be applied
    ///
    /// Its stacks count, too, where a name is looked up. When a stack is removed, its code destroys it.
    #[arg(long, value_name = "REV")]
    commit: Option<String>,

    /// Record the stacks without asking their tools
    #[arg(long)]
    no_verify: bool,

    #[command(flatten)]
    write: WriteArgs,
}

/// Print the graph of the stacks on record
///
/// It shows what each stack ran after when it was last applied, even if the stack has changed since or is
/// gone.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The format of the graph
    #[arg(long, value_enum)]
    format: GraphFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// The persistent graph of `CFNgin`, by name: `{"app": ["network"]}`. No two stacks on record may
    /// have the same name
    Cfngin,
    /// For other programs: the path and name of each stack, and the paths of what it runs after
    Json,
}

impl GraphFormat {
    fn refusal(self) -> Format {
        match self {
            GraphFormat::Cfngin => Format::Text,
            GraphFormat::Json => Format::Json,
        }
    }
}

/// Take the lock away from a run that is gone
///
/// From then on the run can record nothing. What it has recorded is kept, and what it had started counts as
/// interrupted. A run that was heard from within the last two minutes may be alive: look at its CI job
/// first. If the record of the run is damaged or missing, --force gives up what cannot
/// be read of it.
#[derive(Debug, Args)]
pub(crate) struct UnlockArgs {
    /// The code of the lock, which `orch state show` prints
    #[arg(value_name = "CODE")]
    code: String,

    /// Do so even if the run was heard from within the last two minutes, or its record is damaged or missing
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    write: WriteArgs,
}

/// Add to the document what a run of this checkout could not write
///
/// If others have changed the entry of one of its stacks since, orch writes nothing until --take or --drop
/// says whose version counts.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// `last`, `last~1`, or a unique beginning or end of a run id
    #[arg(value_name = "RUN")]
    run: String,

    /// Take what the run has recorded of this stack, whatever others have written (can be repeated)
    #[arg(long, value_name = "STACK")]
    take: Vec<String>,

    /// Keep what others have written about this stack (can be repeated)
    #[arg(long, value_name = "STACK")]
    drop: Vec<String>,

    #[command(flatten)]
    write: WriteArgs,
}

pub(super) fn state(chdir: &[PathBuf], command: &StateCommand) -> Result<ExitStatus> {
    let format = command.format();
    let result = answer(chdir, command, format);
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
            StateCommand::List(args) => args.format,
            StateCommand::Show(args) => args.format,
            StateCommand::History(args) => args.format,
            StateCommand::Backups(args) => args.format,
            StateCommand::Export(args) => args.format.refusal(),
            StateCommand::Init(InitArgs { write })
            | StateCommand::Forget(ForgetArgs { write, .. })
            | StateCommand::Move(MoveArgs { write, .. })
            | StateCommand::Taint(TaintArgs { write, .. })
            | StateCommand::Untaint(UntaintArgs { write, .. })
            | StateCommand::Release(ReleaseArgs { write, .. })
            | StateCommand::Restore(RestoreArgs { write, .. })
            | StateCommand::Import(ImportArgs { write, .. })
            | StateCommand::Unlock(UnlockArgs { write, .. })
            | StateCommand::Recover(RecoverArgs { write, .. }) => write.format,
            StateCommand::Adopt(args) => args.write.format,
        }
    }
}

impl WriteArgs {
    fn options(&self) -> WriteOptions {
        WriteOptions {
            dry_run: self.dry_run,
            reason: self.reason.clone(),
        }
    }
}

fn answer(chdir: &[PathBuf], command: &StateCommand, format: Format) -> Result<ExitStatus> {
    if let StateCommand::Adopt(args) = command {
        return adopt(chdir, args);
    }
    let reads = match command {
        StateCommand::List(_) | StateCommand::Import(_) => Reads::INPUTS,
        _ => Reads::CONFIGURATION,
    };
    let (context, opened) = open(chdir, format, reads)?;
    let state = State::new(&context, opened);
    let (written, write) = match command {
        StateCommand::Init(InitArgs { write }) => (state.init(&write.options()), write),
        StateCommand::Forget(ForgetArgs { stacks, write }) => {
            (state.forget(stacks, &write.options()), write)
        }
        StateCommand::Move(MoveArgs { from, to, write }) => {
            (state.move_entry(from, to, &write.options()), write)
        }
        StateCommand::Taint(TaintArgs { stacks, write }) => {
            (state.taint(stacks, &write.options()), write)
        }
        StateCommand::Untaint(UntaintArgs { stacks, write }) => {
            (state.untaint(stacks, &write.options()), write)
        }
        StateCommand::Release(ReleaseArgs { stacks, write }) => {
            (state.release(stacks, &write.options()), write)
        }
        StateCommand::Restore(args) => {
            let restoration = Restoration {
                serial: args.serial,
                may_be_abandoned: args.abandoned,
            };
            let write = &args.write;
            (state.restore(restoration, &write.options()), write)
        }
        StateCommand::Unlock(UnlockArgs { code, force, write }) => {
            (state.unlock(code, *force, &write.options()), write)
        }
        StateCommand::Recover(args) => {
            let request = RecoverRequest {
                run: args.run.clone(),
                take: args.take.clone(),
                drop: args.drop.clone(),
            };
            (state.recover(&request, &args.write.options()), &args.write)
        }
        StateCommand::Import(args) => {
            let shown = args.file.display();
            let file = working_directory(chdir)?.join(&args.file);
            let text = fs::read(file).with_context(|| format!("failed to read `{shown}`"))?;
            let request = ImportRequest::new(&text, &shown.to_string(), args.commit.clone())?;
            let plan = |stacks: &[StackPath], jobs| Ok(verified(chdir, stacks, jobs)?);
            let plan = (!args.no_verify).then_some(&plan as _);
            let write = &args.write;
            (state.import(&request, plan, &write.options()), write)
        }
        StateCommand::List(_)
        | StateCommand::Show(_)
        | StateCommand::History(_)
        | StateCommand::Backups(_)
        | StateCommand::Export(_) => return read(&state, command),
        StateCommand::Adopt(_) => unreachable!("handled above"),
    };
    say(&written?, write.format)
}

/// Opens the state of the project around the working directory.
fn open(chdir: &[PathBuf], format: Format, reads: Reads) -> Result<(CommandContext, Opened)> {
    let found = find_project(chdir)?;
    if !found.is_marked() {
        let message = "there is no state: nothing marks the root of a project here";
        return Err(ProgramError::refused(message).hint(MARK_ROOT));
    }
    let document = format.document(Document::Stacks);
    let mut context = CommandContext::of(found, document, reads)?;
    let opened = context.ask(Context::open_state)?;
    Ok((context, opened))
}

fn adopt(chdir: &[PathBuf], args: &AdoptArgs) -> Result<ExitStatus> {
    let request = args.select.request(chdir)?;
    let reads = args.select.reads().with_listing();
    let (mut context, opened) = open(chdir, args.write.format, reads)?;
    let query = context.ask(|context| context.query(request))?;
    let selection = context.select(&query);
    context.report()?;
    let stacks: Vec<StackIndex> = selection.stacks().collect();
    if stacks.is_empty() {
        return Ok(ExitStatus::Success);
    }
    let jobs = (!args.no_verify).then(|| args.parallel.unwrap_or(NonZeroUsize::MIN));
    let plan = |stacks: &[StackPath], jobs| Ok(verified(chdir, stacks, jobs)?);
    let state = State::new(&context, opened);
    let written = state.adopt(&stacks, jobs, &plan, &args.write.options())?;
    say(&written, args.write.format)
}

/// Plans stacks to find out whether they are as the configuration says.
fn verified(chdir: &[PathBuf], stacks: &[StackPath], jobs: NonZeroUsize) -> Result<Planned> {
    let planning = PlanningArgs {
        extra: Vec::new(),
        init: false,
        allow_rollback: true,
        no_removals: true,
        skip_protected: true,
        parallel: Some(jobs),
    };
    let request = PlanRequest {
        select: &SelectArgs::default(),
        planning: &planning,
        options: PlanOptions {
            mode: PlanMode::Normal,
            is_full: true,
        },
        replace: &[],
        is_kept: true,
        guard: None,
        policies: None,
        is_verification: true,
        only: Some(stacks),
        document: None,
        leaves_out_failed: false,
        lock_timeout: None,
    };
    planned(chdir, &request)
}

/// Prints what was written.
fn say(write: &StateWrite, format: Format) -> Result<ExitStatus> {
    let mut out = console::stdout();
    match format {
        Format::Text => out.write_all(write.text.as_bytes())?,
        Format::Json => {
            let written = Written {
                dry_run: write.dry_run,
                address: &write.address,
                lineage: &write.lineage,
                serial: write.serial,
                stacks: &write.stacks,
            };
            write_written_json(&mut out, &written)?;
        }
    }
    out.flush()?;
    write.notes.iter().for_each(|note| console::note(note));
    Ok(ExitStatus::Success)
}

/// Answers a command that writes nothing.
fn read(state: &State<'_>, command: &StateCommand) -> Result<ExitStatus> {
    let mut out = console::stdout();
    let is_json = command.format() == Format::Json;
    match command {
        StateCommand::List(_) => {
            let recorded = state.recorded_stacks()?;
            if is_json {
                write_recorded_json(&mut out, &recorded.shown(), &recorded.standings)?;
            } else {
                write_recorded(&mut out, &recorded.document, &recorded.standings)?;
            }
        }
        StateCommand::Show(ShowArgs {
            stack: Some(stack), ..
        }) => {
            let (key, entry) = state.entry(stack)?;
            if is_json {
                write_entry_json(&mut out, &key, &entry)?;
            } else {
                write_entry(&mut out, &key, &entry)?;
            }
        }
        StateCommand::Show(_) => {
            let view = state.document()?;
            if is_json {
                write_state_json(&mut out, &view.shown())?;
            } else {
                write_state(&mut out, &view.shown())?;
            }
        }
        StateCommand::History(_) => {
            let document = state.read()?;
            if is_json {
                write_history_json(&mut out, &document)?;
            } else {
                write_history(&mut out, &document)?;
            }
        }
        StateCommand::Backups(_) => {
            let backups = state.backups()?;
            if is_json {
                write_backups_json(&mut out, &backups)?;
            } else {
                write_backups(&mut out, &backups)?;
            }
            out.flush()?;
            if backups.is_empty() {
                console::note("there are no backups");
            }
        }
        StateCommand::Export(args) => {
            let recorded = state.export()?;
            match args.format {
                GraphFormat::Cfngin => {
                    let graph = recorded.to_cfngin()?;
                    serde_json::to_writer_pretty(&mut out, &graph).map_err(std::io::Error::from)?;
                    writeln!(out)?;
                }
                GraphFormat::Json => {
                    let dependencies = recorded.dependencies();
                    write_recorded_graph_json(
                        &mut out,
                        &recorded.address,
                        &recorded.document,
                        &dependencies,
                    )?;
                }
            }
        }
        _ => unreachable!("the others write"),
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}
