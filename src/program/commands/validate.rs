//! `orch validate`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use orch::context::Context;
use orch::exit::ExitStatus;
use orch::printable::count;
use orch::report::{JsonDocument, unknown_path_notes, write_validation};

use super::format::Format;
use super::{CommandContext, Reads};
use crate::program::console;
use crate::program::error::Result;

/// Check the whole project; warnings count as errors
///
/// Checks all stacks and all trigger files of the project, from any directory. Triggers for paths that
/// are not stacks are ignored: they are kept when stacks are removed, and `--changed` warns about those
/// that would count.
///
/// With -v, orch also lists the blocks that only Terramate uses, which it ignores.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// The format of the problems
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

pub(super) fn validate(
    chdir: &[PathBuf],
    args: &ValidateArgs,
    is_verbose: bool,
) -> Result<ExitStatus> {
    let mut context = CommandContext::new(
        chdir,
        args.format.document(JsonDocument::Stacks),
        Reads::CONFIGURATION.with_listing(),
    )?;
    let unknown = context.ask(Context::validate)?;
    if args.format == Format::Json {
        let mut out = console::stdout();
        write_validation(&mut out, &context.project, &context.problems)?;
        out.flush()?;
    }
    for note in unknown_path_notes(&unknown) {
        console::note(&note);
    }
    let stacks = count(context.project.stacks.len(), "stack");
    let files = count(context.project.sources.len(), "configuration file");
    console::note(&format!("no problems found: {stacks}, {files}"));
    if is_verbose {
        context.note_unused();
    }
    Ok(ExitStatus::Success)
}
