//! The commands of `orch state` that write.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use orch::command::RunTerminal;
use orch::command::state::{self, AdoptRequest, ImportRequest, RecoverRequest, ToolCheck};
use orch::context::Context;
use orch::project::Problems;
use orch::project::stack::StackIndex;
use orch::report::Written;

use super::WriteArgs;
use crate::program::commands::selection_flags::SelectArgs;
use crate::program::commands::terminal::PlanTerminal;
use crate::program::commands::{CommandContext, working_directory};
use crate::program::error::Result;

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
