//! `orch graph`

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use orch::exit::ExitStatus;
use orch::report::{Drawing, JsonDocument, write_dot, write_graph_json, write_mermaid};

use super::selection_flags::{SEE_SELECTION, SelectArgs};
use super::{CommandContext, CyclesAre};
use crate::program::console;
use crate::program::error::Result;

/// Draw the order of stacks
///
/// An arrow leads from the earlier stack to the later one, and is labeled with the constraint.
/// Cycles are red.
#[derive(Debug, Args)]
#[command(after_long_help = SEE_SELECTION)]
pub(crate) struct GraphArgs {
    /// The format of the drawing
    #[arg(long, value_enum, default_value_t = GraphFormat::Dot)]
    pub(crate) format: GraphFormat,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Graphviz
    Dot,
    /// Mermaid, which GitHub and GitLab draw in Markdown
    Mermaid,
    /// For programs
    Json,
}

pub(super) fn graph(chdir: &[PathBuf], args: &GraphArgs) -> Result<ExitStatus> {
    let document = (args.format == GraphFormat::Json).then_some(JsonDocument::Graph);
    let filters = args.select.request(chdir)?;
    let mut context = CommandContext::new(chdir, document, args.select.reads())?;
    context.check(filters.change.as_ref())?;
    let query = context.ask(|context| context.query(filters))?;
    let selection = context.select(&query);
    context.check_cycles(CyclesAre::Warnings);
    context.report()?;
    let drawing = Drawing::new(&context.project, &context.graph, &selection);
    let mut out = console::stdout();
    match args.format {
        GraphFormat::Dot => write_dot(&mut out, &drawing)?,
        GraphFormat::Mermaid => write_mermaid(&mut out, &drawing)?,
        GraphFormat::Json => write_graph_json(&mut out, &drawing, &context.problems)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}
