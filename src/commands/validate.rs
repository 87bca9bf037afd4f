//! `orch validate`

use std::io::Write;
use std::path::PathBuf;

use orch::report::write_diagnostics;
use orch::stack::StackIndex;

use super::{CyclesAre, Loaded};
use crate::cli::{Format, ValidateArgs};
use crate::console;
use crate::exit::ExitStatus;

pub(super) fn validate(chdir: &[PathBuf], args: &ValidateArgs) -> anyhow::Result<ExitStatus> {
    let mut loaded = Loaded::new(chdir, args.format)?;
    loaded.graph(CyclesAre::Errors);
    let all: Vec<StackIndex> = loaded
        .project
        .stacks
        .iter()
        .map(|(stack, _)| stack)
        .collect();
    loaded.environments(all.into_iter());
    let is_valid = loaded.project.diagnostics.is_empty() && loaded.project.errors.is_empty();
    if is_valid && args.format == Format::Json {
        let mut out = console::stdout();
        write_diagnostics(&mut out, &loaded.project, true)?;
        out.flush()?;
    }
    if let Some(status) = loaded.report()? {
        return Ok(status);
    }
    if is_valid {
        let n_files = loaded.project.sources.len();
        console::note(&format!(
            "all is well: {} stacks, {n_files} configuration files",
            loaded.project.stacks.len()
        ));
        return Ok(ExitStatus::Success);
    }
    if args.format == Format::Json {
        let mut out = console::stdout();
        write_diagnostics(&mut out, &loaded.project, false)?;
        out.flush()?;
    }
    Ok(ExitStatus::Configuration)
}
