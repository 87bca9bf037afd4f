//! `orch clone`

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use orch::command::clone::CloneRequest;
use orch::error::Error;
use orch::exit::ExitStatus;
use orch::printable::{count, printable};

use super::{CommandContext, Reads};
use crate::program::console;
use crate::program::error::Result;

/// Copy a directory with its stacks
///
/// Stacks with an id get a new one; the text of their files is kept otherwise. Names that begin with a
/// dot are not copied. If the copy fails, nothing is left of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orch clone dev prod
  orch clone /prod/network /prod/network-2 --skip-child-stacks")]
pub(crate) struct CloneArgs {
    /// The directory to copy: from the project root if it begins with `/`
    #[arg(value_name = "SRC")]
    pub(crate) source: PathBuf,

    /// The new directory
    #[arg(value_name = "DEST")]
    pub(crate) destination: PathBuf,

    /// Copy only the stack in SRC, without the stacks below it
    #[arg(long)]
    pub(crate) skip_child_stacks: bool,

    /// Show the new stacks without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Has no effect: orch generates no code
    #[arg(long, hide = true)]
    pub(crate) no_generate: bool,
}

pub(super) fn clone(chdir: &[PathBuf], args: &CloneArgs) -> Result<ExitStatus> {
    let mut context = CommandContext::new(chdir, None, Reads::CONFIGURATION)?;
    context.report()?;
    let request = CloneRequest {
        source: args.source.clone(),
        destination: args.destination.clone(),
        skips_children: args.skip_child_stacks,
    };
    let copy = context.prepare_clone(&request)?;
    let mut out = console::stdout();
    if args.dry_run {
        for stack in copy.stacks() {
            writeln!(out, "would create stack {}", printable(stack.as_str()))?;
        }
    } else {
        copy.write(&context.project.root).map_err(Error::external)?;
        let stacks = count(copy.stacks().count(), "stack");
        let path = |path: &PathBuf| printable(&path.to_string_lossy()).into_owned();
        let (from, to) = (path(&args.source), path(&args.destination));
        writeln!(out, "cloned {stacks} from {from} to {to}")?;
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}
