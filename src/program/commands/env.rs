//! `orch env`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use orch::exit::ExitStatus;
use orch::printable::printable;
use orch::project::environment::EnvOrigin;
use orch::report::{JsonDocument, ShownEnvironment, write_environments};
use orch::source::Sources;

use super::CommandContext;
use super::format::Format;
use super::selection_flags::{SEE_SELECTION, SelectArgs};
use crate::program::console;
use crate::program::error::Result;

/// Show the variables that a run adds to the environment of each stack
///
/// `ORCH_RUN_ID` is missing, since each run has a new one. See `orch help environment`.
#[derive(Debug, Args)]
#[command(after_long_help = SEE_SELECTION)]
pub(crate) struct EnvArgs {
    /// The format of the environment
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Show where each variable is defined and which globals and lets it comes from
    #[arg(long)]
    pub(crate) why: bool,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

pub(super) fn env(chdir: &[PathBuf], args: &EnvArgs) -> Result<ExitStatus> {
    let filters = args.select.request(chdir)?;
    let document = args.format.document(JsonDocument::Stacks);
    let mut context = CommandContext::new(chdir, document, args.select.reads())?;
    context.check(filters.change.as_ref())?;
    let query = context.ask(|context| context.query(filters))?;
    let selection = context.select(&query);
    let environments = context.environments(selection.stacks())?;
    context.report()?;
    let project = &context.project;
    let evaluator = context.evaluator();
    let shows_origins = args.why || args.format == Format::Json;
    let shown = environments.iter().map(|(stack, environment)| {
        let origins = shows_origins.then(|| evaluator.definitions_of(*stack));
        ShownEnvironment {
            stack: *stack,
            environment,
            origins: origins.unwrap_or_default(),
        }
    });
    let mut out = console::stdout();
    match args.format {
        Format::Json => {
            let shown: Vec<ShownEnvironment> = shown.collect();
            write_environments(&mut out, project, &context.problems, &selection, &shown)?;
        }
        Format::Text => {
            for shown in shown {
                let path = project.stacks[shown.stack]
                    .path
                    .relative_to(&context.directory);
                writeln!(out, "{}:", printable(&path))?;
                for (name, value) in shown.environment {
                    match value {
                        Some(value) => write!(out, "  {name}={}", printable(value))?,
                        None => write!(out, "  {name} is removed")?,
                    }
                    if args.why {
                        let origin = shown.origins.get(&**name);
                        let origin = origin.map(|origin| origin_text(origin, &project.sources));
                        let origin = origin.as_deref().unwrap_or("set by orch");
                        write!(out, "  # {}", printable(origin))?;
                    }
                    writeln!(out)?;
                }
            }
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// Writes where a variable is defined and which globals and lets it comes from.
fn origin_text(origin: &EnvOrigin<'_>, sources: &Sources) -> String {
    let values = origin
        .values
        .iter()
        .map(|it| format!("; {} ({})", it.name(), sources.line(it.span())));
    sources.line(origin.span) + &values.collect::<String>()
}
