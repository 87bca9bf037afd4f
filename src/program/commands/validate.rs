//! `orch validate`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use orch::change::trigger;
use orch::diagnostic::Severity;
use orch::exit::ExitStatus;
use orch::printable::count;
use orch::project::stack::{self, StackIndex};
use orch::report::{Document, write_validation};
use orch::selection::attached::Attached;
use orch::workspace::Workspace;

use super::format::Format;
use super::{CyclesAre, Loaded, Reads};
use crate::program::console;
use crate::program::error::Result;

/// Check the whole project; warnings count as errors
///
/// Checks all stacks and all trigger files of the project, whatever the current directory. Triggers for
/// paths that are not stacks are ignored: they stay behind when stacks are removed, and `--changed`
/// warns about those that would count.
///
/// With -v, orch also counts the blocks of the project that only Terramate uses.
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
    let mut loaded = Loaded::new(
        chdir,
        args.format.document(Document::Stacks),
        Reads::CONFIGURATION,
    )?;
    loaded.check_cycles(CyclesAre::Errors);
    let all: Vec<StackIndex> = loaded
        .project
        .stacks
        .iter()
        .map(|(stack, _)| stack)
        .collect();
    loaded.check_conditions(all.iter().copied());
    // What is on record does not matter: for any generation, the same is wrong.
    let (_, problems) = loaded.evaluator().of_stacks(all);
    loaded.add_shared(problems);
    let (Workspace { project, .. }, problems) = loaded.parts();
    if !project.policies.is_empty() {
        Attached::resolve(project, &mut problems.diagnostics);
    }
    let unmatched = stack::unmatched(&project.stacks, &project.root);
    problems.diagnostics.extend(unmatched);
    trigger::check_all(&project.root, problems);
    loaded.settle_problems();
    for diagnostic in &mut loaded.problems.diagnostics {
        diagnostic.severity = Severity::Error;
    }
    loaded.report()?;
    if args.format == Format::Json {
        let mut out = console::stdout();
        write_validation(&mut out, &loaded.project, &loaded.problems)?;
        out.flush()?;
    }
    let stacks = count(loaded.project.stacks.len(), "stack");
    let files = count(loaded.project.sources.len(), "configuration file");
    console::note(&format!("no problems found: {stacks}, {files}"));
    if is_verbose {
        loaded.note_unused();
    }
    Ok(ExitStatus::Success)
}
