//! `orch graph`

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use orch::exit::ExitStatus;
use orch::report::{
    Drawing, JsonDocument, write_dot, write_graph_json, write_mermaid, write_missing_order,
    write_missing_order_json,
};
use orch::selection::data::missing_order;
use orch::selection::graph::Graph;

use super::format::Format;
use super::selection_flags::{SEE_SELECTION, SelectArgs};
use super::{CommandContext, CyclesAre, Reads};
use crate::program::console;
use crate::program::error::Result;

/// Draw the order of stacks
///
/// An arrow leads from the earlier stack to the later one, and is labeled with the constraint.
/// Cycles are red.
#[derive(Debug, Args)]
#[command(
    after_long_help = SEE_SELECTION,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub(crate) struct GraphArgs {
    #[command(subcommand)]
    pub(crate) command: Option<GraphCommand>,

    /// Draw the data that stacks use of each other instead
    ///
    /// An arrow leads from a stack to one that uses its data: by an `input` block, a `dependency`
    /// block of Terragrunt, or `terraform_remote_state`.
    #[arg(long)]
    pub(crate) data: bool,

    /// The format of the drawing
    #[arg(long, value_enum, default_value_t = GraphFormat::Dot)]
    pub(crate) format: GraphFormat,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    Suggest(SuggestArgs),
}

/// Print the order that the code asks for and the project lacks
///
/// Lists the stacks that use data of a stack which need not run before them, as `after` to paste into
/// their `stack` blocks, with the place of each use. To order all of them without `after`, set
/// `order_from = ["terragrunt", "remote_state"]` in `orch.config`.
#[derive(Debug, Args)]
pub(crate) struct SuggestArgs {
    /// The format of the suggestions
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
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
    if let Some(GraphCommand::Suggest(args)) = &args.command {
        return suggest(chdir, args);
    }
    let document = (args.format == GraphFormat::Json).then_some(JsonDocument::Graph);
    let filters = args.select.request(chdir)?;
    let mut reads = args.select.reads();
    if args.data {
        reads = reads.with_data(true);
    }
    let mut context = CommandContext::new(chdir, document, reads)?;
    context.check(filters.change.as_ref())?;
    let query = context.ask(|context| context.query(filters))?;
    let selection = context.select(&query);
    context.check_cycles(CyclesAre::Warnings);
    context.report()?;
    let data = args.data.then(|| Graph::of_data(&context.project.stacks));
    let graph = data.as_ref().unwrap_or(&context.graph);
    let drawing = Drawing::new(&context.project, graph, &selection);
    let mut out = console::stdout();
    match args.format {
        GraphFormat::Dot => write_dot(&mut out, &drawing)?,
        GraphFormat::Mermaid => write_mermaid(&mut out, &drawing)?,
        GraphFormat::Json => write_graph_json(&mut out, &drawing, &context.problems)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

fn suggest(chdir: &[PathBuf], args: &SuggestArgs) -> Result<ExitStatus> {
    let document = args.format.document(JsonDocument::MissingOrder);
    let reads = Reads::CONFIGURATION.with_data(true);
    let mut context = CommandContext::new(chdir, document, reads)?;
    context.check(None)?;
    context.check_cycles(CyclesAre::Warnings);
    context.report()?;
    let missing = missing_order(&context.project, &context.graph);
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_missing_order(&mut out, &context.project, &missing)?,
        Format::Json => {
            write_missing_order_json(&mut out, &context.project, &missing, &context.problems)?;
        }
    }
    out.flush()?;
    if missing.is_empty() {
        context
            .notices
            .note("the order covers all data that stacks use of each other");
    }
    Ok(ExitStatus::Success)
}
