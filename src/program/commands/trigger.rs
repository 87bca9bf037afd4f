//! `orch trigger`

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use orch::command::trigger::TriggerRequest;
use orch::exit::ExitStatus;
use orch::printable::printable;

use super::selection_flags::tag_filters;
use super::{CommandContext, Reads};
use crate::program::console;
use crate::program::error::Result;

/// Mark a stack as changed, or as unchanged, without a change in its files
///
/// Writes a trigger file, as Terramate does: `/.tmtriggers/<path of the
/// stack>/<kind>-<uuid>.tm.hcl`. It counts as long as it differs from the base. A directory with
/// `for_each` means all its instances, `'net["dev"]'` one of them. See `orch help triggers`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orch trigger prod/network --reason 'rotate the certificates'
  orch trigger --recursive /prod --tags data
  orch trigger --ignore-change prod/network --reason 'only comments have changed'")]
pub(crate) struct TriggerArgs {
    /// The directory of the stack: from the project root if it begins with `/`
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,

    /// Mark all stacks at and below the directory
    #[arg(long)]
    pub(crate) recursive: bool,

    /// Mark as changed, which is the default
    #[arg(long, conflicts_with = "ignore_change")]
    pub(crate) change: bool,

    /// Mark as unchanged, even if files have changed
    #[arg(long)]
    pub(crate) ignore_change: bool,

    /// Why; becomes part of the reason that `--why` shows
    #[arg(long, value_name = "TEXT", value_parser = not_blank)]
    pub(crate) reason: Option<String>,

    /// Only stacks with these tags: `a:b` both, `a,b` either (can be repeated: either)
    #[arg(long, value_name = "FILTER", requires = "recursive")]
    pub(crate) tags: Vec<String>,

    /// Exclude stacks with any of these tags (can be repeated)
    #[arg(long, value_name = "TAG,…", requires = "recursive")]
    pub(crate) no_tags: Vec<String>,
}

/// Parses a text that is not blank.
fn not_blank(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        return Err("it is blank");
    }
    Ok(text.to_owned())
}

pub(super) fn trigger(chdir: &[PathBuf], args: &TriggerArgs) -> Result<ExitStatus> {
    let (tags, no_tags) = tag_filters(&args.tags, &args.no_tags)?;
    let mut context = CommandContext::new(chdir, None, Reads::CONFIGURATION)?;
    context.report()?;
    let request = TriggerRequest {
        path: args.path.clone(),
        is_recursive: args.recursive,
        ignores_changes: args.ignore_change,
        reason: args.reason.clone(),
        tags,
        no_tags,
    };
    let triggers = context.trigger(&request)?;
    // The files exist even if this cannot be printed.
    let mut out = console::stdout();
    for file in triggers.files() {
        let shown = file.relative_to(&context.directory);
        writeln!(out, "created {}", printable(&shown))?;
    }
    out.flush()?;
    triggers.note(&context)?;
    Ok(ExitStatus::Success)
}
