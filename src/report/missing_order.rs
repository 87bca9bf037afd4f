//! The order that the data of stacks asks for, and that the project lacks.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::document::write_with_problems;
use super::why::UsedJson;
use crate::printable::printable;
use crate::project::{Problems, Project};
use crate::selection::data::MissingOrder;

/// Writes for each stack the lines of `after` that it lacks, ready to be pasted.
pub fn write_missing_order(
    out: &mut impl Write,
    project: &Project,
    missing: &[MissingOrder<'_>],
) -> io::Result<()> {
    for order in missing {
        let stack = &project.stacks[order.stack];
        let place = project.sources.line(stack.span);
        writeln!(
            out,
            "{}",
            printable(&format!("# {}, in {place}", stack.path))
        )?;
        writeln!(out, "after = [")?;
        for (named, source) in &order.after {
            let path = project.stacks[*named].path.as_str();
            let uses: Vec<String> = source
                .uses
                .iter()
                .map(|used| format!("{} {}", used.kind, project.sources.line(used.span)))
                .collect();
            let opposed = if source.is_opposed {
                "; it runs after this stack now, so this would be a cycle"
            } else {
                ""
            };
            let entry = serde_json::Value::from(path);
            let line = format!("  {entry}, # {}{opposed}", uses.join(", "));
            writeln!(out, "{}", printable(&line))?;
        }
        writeln!(out, "]")?;
    }
    Ok(())
}

#[derive(Serialize)]
struct StackJson<'a> {
    path: &'a str,
    after: Vec<SourceJson<'a>>,
}

#[derive(Serialize)]
struct SourceJson<'a> {
    path: &'a str,
    uses: Vec<UsedJson<'a>>,
    /// Whether it runs after the stack, so that both orders together would be a cycle.
    cycle: bool,
}

/// Writes the same as JSON.
pub fn write_missing_order_json(
    out: &mut impl Write,
    project: &Project,
    missing: &[MissingOrder<'_>],
    problems: &Problems,
) -> io::Result<()> {
    let stacks = missing.iter().map(|order| StackJson {
        path: project.stacks[order.stack].path.as_str(),
        after: (order.after.iter())
            .map(|(named, source)| SourceJson {
                path: project.stacks[*named].path.as_str(),
                uses: (source.uses.iter())
                    .map(|used| UsedJson::new(used, &project.sources))
                    .collect(),
                cycle: source.is_opposed,
            })
            .collect(),
    });
    let stacks: Vec<StackJson> = stacks.collect();
    write_with_problems(
        out,
        &BTreeMap::from([("stacks", stacks)]),
        project,
        problems,
    )
}
