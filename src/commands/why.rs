//! `orch why`

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use orch::change::inputs_of;
use orch::diagnostic::closest;
use orch::printable::printable;
use orch::report::{Story, write_why, write_why_json};
use orch::stack::StackIndex;
use orch::why::Why;

use super::{CyclesAre, Filters, Loaded, Reads, UsageError};
use crate::cli::{Format, WhyArgs};
use crate::console;
use crate::exit::ExitStatus;

pub(super) fn why(chdir: &[PathBuf], args: &WhyArgs) -> anyhow::Result<ExitStatus> {
    let filters = Filters::new(&args.select)?;
    let reads = match Reads::for_selection(&args.select) {
        Reads::Configuration => Reads::Inputs,
        reads => reads,
    };
    let loaded = Loaded::new(chdir, args.format, reads)?;
    if let Some(status) = loaded.check()? {
        return Ok(status);
    }
    let stack = loaded.stack(&args.stack)?;
    let wish = loaded.wish(filters)?;
    let selection = loaded.select_any(&wish);
    loaded.check_cycles(CyclesAre::Warnings);
    let changed = wish.changed.as_ref().map(|changes| &changes.files);
    let inputs = inputs_of(&mut loaded.project, &loaded.listing, changed, stack)
        .context("failed to read the inputs of the stack")?;
    if let Some(status) = loaded.report()? {
        return Ok(status);
    }
    let why = Why::new(
        &loaded.project,
        &loaded.references,
        &loaded.graph,
        &wish,
        &selection,
        stack,
        inputs,
    );
    let story = Story {
        project: &loaded.project,
        wish: &wish,
        selection: &selection,
        why: &why,
    };
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_why(&mut out, &story)?,
        Format::Json => write_why_json(&mut out, &story)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

impl Loaded {
    /// Returns the stack that a user names.
    fn stack(&self, written: &str) -> Result<StackIndex, UsageError> {
        let shown = printable(written);
        let Ok(path) = self.directory.resolve(written) else {
            return Err(UsageError(format!("`{shown}` lies outside of the project")));
        };
        let stacks = &self.project.stacks;
        stacks.at(path.as_str()).ok_or_else(|| {
            let mut message = format!("`{shown}`: {}", self.why_no_stack(&path));
            let paths = stacks.iter().map(|(_, stack)| stack.path.as_str());
            if let Some(close) = closest(path.as_str(), paths) {
                message += &format!("; did you mean `{}`?", printable(close));
            }
            UsageError(message)
        })
    }
}
