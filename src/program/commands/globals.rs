//! `orch globals`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use orch::exit::ExitStatus;
use orch::language::value::hcl_attributes;
use orch::printable::printable;
use orch::project::host::host_environment;
use orch::project::inspected::{GlobalState, inspect};
use orch::report::{JsonDocument, write_globals};

use super::CommandContext;
use super::format::Format;
use super::selection_flags::{SEE_SELECTION, SelectArgs};
use crate::program::console;
use crate::program::error::Result;

/// Show the globals of each stack
///
/// A stack sees the `globals` blocks of its directory and of those above it; the nearest definition
/// of a name wins. Stacks without globals are left out. --format json includes the place of each
/// definition.
#[derive(Debug, Args)]
#[command(after_long_help = SEE_SELECTION)]
pub(crate) struct GlobalsArgs {
    /// The format of the globals
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

pub(super) fn globals(chdir: &[PathBuf], args: &GlobalsArgs) -> Result<ExitStatus> {
    let filters = args.select.request(chdir)?;
    let document = args.format.document(JsonDocument::Stacks);
    let mut context = CommandContext::new(chdir, document, args.select.reads())?;
    context.check(filters.change.as_ref())?;
    let query = context.ask(|context| context.query(filters))?;
    let selection = context.select(&query);
    let stacks = selection.stacks();
    let (inspected, problems) = inspect(&context.project, host_environment(), stacks);
    context.add_shared(problems);
    context.document = None; // this document has globals as well as problems
    let reported = context.report();
    let mut out = console::stdout();
    match args.format {
        Format::Json => {
            let (project, problems) = (&context.project, &context.problems);
            write_globals(&mut out, project, problems, &selection, &inspected)?;
        }
        Format::Text => {
            for (stack, globals) in &inspected {
                if globals.is_empty() {
                    continue;
                }
                let path = context.project.stacks[*stack]
                    .path
                    .relative_to(&context.directory);
                writeln!(out, "{}:", printable(&path))?;
                let known = globals.iter().filter_map(|global| match &global.state {
                    GlobalState::Known(value) => Some((&*global.name, value)),
                    GlobalState::Broken(_) => None,
                });
                write!(out, "{}", hcl_attributes(known, "  "))?;
                for global in globals {
                    if let GlobalState::Broken(message) = &global.state {
                        let name = printable(&global.name);
                        writeln!(out, "  # {name} has no value: {}", printable(message))?;
                    }
                }
            }
        }
    }
    out.flush()?;
    reported.map(|()| ExitStatus::Success)
}
