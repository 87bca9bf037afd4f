//! `orch why`

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use orch::change::{add_uncounted, inputs_of};
use orch::diagnostic::closest;
use orch::printable::printable;
use orch::project::stack::StackIndex;
use orch::report::{Story, write_why, write_why_json};
use orch::selection::select::Query;
use orch::selection::why::Question;

use super::format::Format;
use super::selection_flags::{SEE_SELECTION, SelectArgs};
use super::{CyclesAre, Filters, Loaded, Reads};
use crate::program::console;
use crate::program::error::{ProgramError, Result};
use crate::program::exit::ExitStatus;

/// Explain one stack: why it is selected or not, and what it runs after and before
///
/// Shows whether the stack is selected and by which rule, or what leaves it out; its inputs and, with
/// --changed, which of them have changed; what it runs after and before; and what would select it. The
/// flags are those of `list`.
#[derive(Debug, Args)]
#[command(after_help = WHY_EXAMPLES, after_long_help = format!("{WHY_EXAMPLES}\n\n{SEE_SELECTION}"))]
pub(crate) struct WhyArgs {
    /// The stack: a path relative to the current directory, or from the project root with a `/`
    #[arg(value_name = "STACK")]
    pub(crate) stack: String,

    /// The format of the explanation
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

const WHY_EXAMPLES: &str = "\
Examples:
  orch why prod/network
  orch why /prod/network --changed
  orch why . --changed --tags prod";

pub(super) fn why(chdir: &[PathBuf], args: &WhyArgs) -> Result<ExitStatus> {
    if args.stack.is_empty() {
        let message = "the path of the stack is empty; the current directory is `.`";
        return Err(ProgramError::usage(message));
    }
    let filters = Filters::new(chdir, &args.select)?;
    let reads = match Reads::for_selection(&args.select) {
        Reads::Configuration => Reads::Inputs,
        reads => reads,
    };
    let mut loaded = Loaded::new(chdir, args.format, reads)?;
    if let Some(status) = loaded.check()? {
        return Ok(status);
    }
    let query = loaded.query(filters)?;
    let stack = loaded.stack(&args.stack, &query)?;
    let selection = loaded.select_any(&query);
    loaded.check_cycles(CyclesAre::Warnings);
    let changed = query.changed.as_ref().map(|changes| &changes.files);
    let failed = "failed to read the inputs of the stack";
    let (project, listing) = (&loaded.project, &loaded.listing);
    let inputs = inputs_of(project, listing, changed, stack, &mut loaded.problems);
    let mut inputs = inputs.context(failed)?;
    if let Some(status) = loaded.report()? {
        return Ok(status);
    }
    let uncounted = query.changed.as_ref().map(|changes| &changes.uncounted);
    if let Some(uncounted) = uncounted {
        let (project, listing) = (&loaded.project, &loaded.listing);
        add_uncounted(project, listing, uncounted, stack, &mut inputs).context(failed)?;
    }
    let uncounted_trigger =
        uncounted.and_then(|uncounted| uncounted.trigger_of(&loaded.project, stack));
    let question = Question {
        project: &loaded.project,
        references: &loaded.references,
        graph: &loaded.graph,
        query: &query,
        selection: &selection,
        stack,
    };
    let why = question.answer(inputs);
    let story = Story {
        question: &question,
        why: &why,
        uncounted_trigger,
    };
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_why(&mut out, &story)?,
        Format::Json => write_why_json(&mut out, &story, &loaded.problems)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

impl Loaded {
    /// Returns the stack that a user names.
    fn stack(&self, written: &str, query: &Query) -> Result<StackIndex> {
        let shown = printable(written);
        let Ok(path) = self.directory.resolve(written) else {
            return Err(ProgramError::usage(format!(
                "`{shown}` lies outside of the project"
            )));
        };
        let stacks = &self.project.stacks;
        if let Some(stack) = stacks.at(path.as_str()) {
            return Ok(stack);
        }
        let since = query.changed.as_ref().map(|changes| &changes.since);
        if let Some(since) = since.filter(|since| since.removed.contains(&path)) {
            let base = since.base.commit.short();
            let message = format!("`{shown}` is no stack any more: it was one in the base {base}");
            return Err(ProgramError::usage(message));
        }
        let mut message = format!("`{shown}`: {}", self.why_no_stack(&path));
        let paths = stacks.iter().map(|(_, stack)| stack.path.as_str());
        if let Some(close) = closest(path.as_str(), paths) {
            message += &format!("; did you mean `{}`?", printable(close));
        }
        Err(ProgramError::usage(message))
    }
}
