//! `orch graph`

use std::io::Write;
use std::path::PathBuf;

use orch::report::{Drawing, write_dot, write_graph_json, write_mermaid};

use super::{CyclesAre, Filters, Loaded, Reads};
use crate::program::cli::{Format, GraphArgs, GraphFormat};
use crate::program::console;
use crate::program::exit::ExitStatus;

pub(super) fn graph(chdir: &[PathBuf], args: &GraphArgs) -> anyhow::Result<ExitStatus> {
    let format = match args.format {
        GraphFormat::Json => Format::Json,
        GraphFormat::Dot | GraphFormat::Mermaid => Format::Text,
    };
    let filters = Filters::new(chdir, &args.select)?;
    let mut loaded = Loaded::new(chdir, format, Reads::for_selection(&args.select))?;
    if let Some(status) = loaded.check()? {
        return Ok(status);
    }
    let wish = loaded.wish(filters)?;
    let selection = loaded.select(&wish);
    loaded.check_cycles(CyclesAre::Warnings);
    if let Some(status) = loaded.report()? {
        return Ok(status);
    }
    let drawing = Drawing::new(&loaded.project, &loaded.graph, &selection);
    let mut out = console::stdout();
    match args.format {
        GraphFormat::Dot => write_dot(&mut out, &drawing)?,
        GraphFormat::Mermaid => write_mermaid(&mut out, &drawing)?,
        GraphFormat::Json => write_graph_json(&mut out, &drawing, &loaded.problems)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}
