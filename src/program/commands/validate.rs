//! `orch validate`

use std::io::Write;
use std::path::PathBuf;

use orch::change::trigger;
use orch::diagnostic::Severity;
use orch::project::stack::{self, StackIndex};
use orch::report::write_diagnostics;

use super::{CyclesAre, Loaded, Reads, count};
use crate::program::cli::{Format, ValidateArgs};
use crate::program::console;
use crate::program::exit::ExitStatus;

pub(super) fn validate(chdir: &[PathBuf], args: &ValidateArgs) -> anyhow::Result<ExitStatus> {
    let mut loaded = Loaded::new(chdir, args.format, Reads::Configuration)?;
    loaded.check_cycles(CyclesAre::Errors);
    let all: Vec<StackIndex> = loaded
        .project
        .stacks
        .iter()
        .map(|(stack, _)| stack)
        .collect();
    loaded.environments(all.into_iter());
    let root = &loaded.project.root;
    let unmatched = stack::unmatched(&loaded.project.stacks, root);
    loaded.problems.diagnostics.extend(unmatched);
    trigger::check_all(root, &mut loaded.problems);
    loaded.settle_problems();
    for diagnostic in &mut loaded.problems.diagnostics {
        diagnostic.severity = Severity::Error;
    }
    if let Some(status) = loaded.report()? {
        return Ok(status);
    }
    if args.format == Format::Json {
        let mut out = console::stdout();
        write_diagnostics(&mut out, &loaded.project, &loaded.problems, true)?;
        out.flush()?;
    }
    let stacks = count(loaded.project.stacks.len(), "stack");
    let files = count(loaded.project.sources.len(), "configuration file");
    console::note(&format!("all is well: {stacks}, {files}"));
    Ok(ExitStatus::Success)
}
