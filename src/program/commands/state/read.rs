//! `orch state list`, `show`, `history`, `backups` and `export`

use std::io::Write as _;

use clap::{Args, ValueEnum};
use orch::command::state;
use orch::context::Context;
use orch::exit::ExitStatus;
use orch::report::{
    write_backups, write_backups_json, write_cfngin_graph, write_entry, write_entry_json,
    write_history, write_history_json, write_recorded, write_recorded_graph_json,
    write_recorded_json, write_state, write_state_json,
};

use super::Format;
use crate::program::console;
use crate::program::error::Result;

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// The format of the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

/// Show where the document is and who holds its lock, or the record of one stack
#[derive(Debug, Args)]
pub(crate) struct StateShowArgs {
    /// A recorded stack
    #[arg(value_name = "STACK")]
    pub(super) stack: Option<String>,

    /// The format; without STACK, JSON has the whole document
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

/// Print the graph of the recorded stacks
///
/// It has the order of their last apply, even if stacks have changed since or were removed.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The format of the graph
    #[arg(long, value_enum)]
    pub(super) format: RecordedGraphFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordedGraphFormat {
    /// The persistent graph of `CFNgin`, by name: `{"app": ["network"]}`. Recorded stacks must have different names
    Cfngin,
    /// For other programs: the path and name of each stack, and the paths of the stacks that it runs after
    Json,
}

impl RecordedGraphFormat {
    pub(super) fn refusal(self) -> Format {
        match self {
            RecordedGraphFormat::Cfngin => Format::Text,
            RecordedGraphFormat::Json => Format::Json,
        }
    }
}

pub(super) fn list(context: &mut Context, args: &ReadArgs) -> Result<ExitStatus> {
    let list = state::list(context)?;
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_recorded(&mut out, &list)?,
        Format::Json => write_recorded_json(&mut out, &list)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

pub(super) fn show(context: &mut Context, args: &StateShowArgs) -> Result<ExitStatus> {
    let mut out = console::stdout();
    if let Some(stack) = &args.stack {
        let (key, entry) = state::entry(context, stack)?;
        match args.format {
            Format::Text => write_entry(&mut out, &key, &entry)?,
            Format::Json => write_entry_json(&mut out, &key, &entry)?,
        }
    } else {
        let shown = state::show(context)?;
        match args.format {
            Format::Text => write_state(&mut out, &shown)?,
            Format::Json => write_state_json(&mut out, &shown)?,
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

pub(super) fn history(context: &mut Context, args: &ReadArgs) -> Result<ExitStatus> {
    let document = state::document(context)?;
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_history(&mut out, &document)?,
        Format::Json => write_history_json(&mut out, &document)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

pub(super) fn backups(context: &mut Context, args: &ReadArgs) -> Result<ExitStatus> {
    let backups = state::backups(context)?;
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_backups(&mut out, &backups)?,
        Format::Json => write_backups_json(&mut out, &backups)?,
    }
    out.flush()?;
    if backups.is_empty() {
        console::note("it has no backups");
    }
    Ok(ExitStatus::Success)
}

pub(super) fn export(context: &mut Context, args: &ExportArgs) -> Result<ExitStatus> {
    let mut out = console::stdout();
    match args.format {
        RecordedGraphFormat::Cfngin => {
            write_cfngin_graph(&mut out, &state::cfngin_graph(context)?)?;
        }
        RecordedGraphFormat::Json => write_recorded_graph_json(&mut out, &state::graph(context)?)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}
