//! `orch list`

use std::io::Write;
use std::path::PathBuf;

use orch::order::Order;
use orch::printable::printable;
use orch::report::{List, reason_text, write_list};
use orch::stack::StackIndex;

use super::{CyclesAre, Filters, Loaded};
use crate::cli::{Format, ListArgs};
use crate::console;
use crate::exit::ExitStatus;

pub(super) fn list(chdir: &[PathBuf], args: &ListArgs) -> anyhow::Result<ExitStatus> {
    let filters = Filters::new(&args.select)?;
    let loaded = Loaded::new(chdir, args.format, args.select.changed)?;
    if let Some(status) = loaded.check()? {
        return Ok(status);
    }
    let selection = loaded.select(filters)?;
    let needs_order = args.order || args.format == Format::Json;
    let graph = loaded.graph(if needs_order {
        CyclesAre::ErrorsWithin(&selection)
    } else {
        CyclesAre::Warnings
    });
    if let Some(status) = loaded.report()? {
        return Ok(status);
    }
    let order = needs_order.then(|| Order::new(&graph, &selection));
    let listed: Vec<StackIndex> = match &order {
        Some(order) if args.order => order.sequence.clone(),
        _ => selection.stacks().collect(),
    };
    let project = &loaded.project;
    let mut out = console::stdout();
    if let (Format::Json, Some(order)) = (args.format, &order) {
        let list = List {
            graph: &graph,
            selection: &selection,
            order,
            listed: &listed,
        };
        write_list(&mut out, project, &list)?;
    } else {
        for &stack in &listed {
            let path = project.stacks[stack].path.relative_to(&loaded.directory);
            write!(out, "{}", printable(&path))?;
            if args.why {
                let reasons = selection.reasons(stack).iter();
                let texts: Vec<String> = reasons
                    .map(|reason| reason_text(reason, &project.stacks, &project.sources))
                    .collect();
                write!(out, "  # {}", printable(&texts.join("; ")))?;
            }
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}
