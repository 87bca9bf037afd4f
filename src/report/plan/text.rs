//! A plan as text.

use std::io::{self, Write};

use super::followups::write_followups;
use super::resources::{self, Resource, listed, more};
use super::row::Row;
use super::summary::{summary, tool_options};
use super::{ToolText, ToolTexts, moved, shown_rows};
use crate::plan::entry::PlanEntry;
use crate::plan::{Plan, PlanRow, RelaxedEffect};
use crate::printable::printable;
use crate::report::quote::excerpt;

/// How many characters of a reason are shown.
const MAX_REASON: usize = 200;

/// The maximum width of a column; longer cells exceed it.
const MAX_WIDTH: usize = 200;

const MAX_RELAXED: usize = 10;

/// How many resources of a stack are listed.
const MAX_RESOURCES: usize = 20;

/// How many bytes of a tool's output are shown.
const MAX_TOOL_TEXT: usize = 1 << 20;

/// How much a plan shows of each stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanDetails {
    /// A row.
    None,
    /// A row, and the resources that change.
    Resources,
    /// All resources, and the output of its tool.
    Full,
}

/// Writes the plan: a row for each stack, with the details, and the summary.
pub fn write_plan(
    out: &mut impl Write,
    plan: &Plan,
    details: PlanDetails,
    texts: &ToolTexts<'_>,
) -> io::Result<()> {
    let rows: Vec<Row<'_>> = shown_rows(plan).collect();
    let lines: Vec<[String; 5]> = rows.iter().map(line).collect();
    // Only cells with others after them widen a column: a long reason pads no other line.
    let width = |column: usize| {
        let followed = lines
            .iter()
            .filter(|line| line[column + 1..].iter().any(|it| !it.is_empty()));
        let widths = followed.map(|line| line[column].chars().count());
        widths.max().unwrap_or_default().min(MAX_WIDTH)
    };
    let widths: [usize; 4] = std::array::from_fn(width);
    for (row, [sign, path, action, reason, counts]) in rows.iter().zip(&lines) {
        let [w_sign, w_path, w_action, w_reason] = widths;
        let line = format!(
            "  {sign:>w_sign$} {path:<w_path$}  {action:<w_action$}  {reason:<w_reason$}  {counts}"
        );
        writeln!(out, "{}", line.trim_end())?;
        for line in below(row, plan, details, texts) {
            writeln!(out, "  {:w_sign$}   {line}", "")?;
        }
    }
    if !lines.is_empty() {
        writeln!(out)?;
    }
    if let Some(followups) = &plan.followups {
        write_followups(out, followups)?;
    }
    if details == PlanDetails::Full {
        write_tool_texts(out, &rows, texts)?;
    }
    for relaxed in plan.relaxed.iter().take(MAX_RELAXED) {
        let (earlier, later) = (printable(&relaxed.earlier), printable(&relaxed.later));
        match relaxed.effect {
            RelaxedEffect::DestroyedFirst => {
                writeln!(
                    out,
                    "{earlier} is destroyed while {later} still refers to it."
                )?;
            }
            RelaxedEffect::ChangedFirst => {
                writeln!(
                    out,
                    "{earlier} is changed while {later} still refers to it, which is then destroyed."
                )?;
            }
            RelaxedEffect::Contradicted => {
                writeln!(
                    out,
                    "Left out: {later} ran after {earlier} by record, which newer constraints contradict."
                )?;
            }
        }
    }
    if let Some(more @ 1..) = plan.relaxed.len().checked_sub(MAX_RELAXED) {
        writeln!(out, "Left out: {more} more recorded constraints.")?;
    }
    writeln!(out, "{}", summary(plan))?;
    match tool_options(plan) {
        Some(options) => writeln!(out, "{}", printable(&options)),
        None => Ok(()),
    }
}

fn below(row: &Row<'_>, plan: &Plan, details: PlanDetails, texts: &ToolTexts<'_>) -> Vec<String> {
    let most = match details {
        PlanDetails::None => return Vec::new(),
        PlanDetails::Resources => MAX_RESOURCES,
        PlanDetails::Full => usize::MAX,
    };
    let all = Resource::of_row(row, plan.mode);
    let listed = listed(all.clone(), most);
    let mut lines: Vec<String> = resources::lines(&listed).collect();
    lines.extend(
        more(&all, &listed).map(|more| match (texts.shown_by)(row.stack()) {
            Some(command) => format!("… {more}: `{command}` shows all"),
            None => format!("… {more}: `--details=full` lists them"),
        }),
    );
    lines
}

/// Writes the output of the tools, each below its stack.
fn write_tool_texts(
    out: &mut impl Write,
    rows: &[Row<'_>],
    texts: &ToolTexts<'_>,
) -> io::Result<()> {
    for row in rows {
        let Some(ToolText { log, plan_from }) = (texts.of)(row.stack()) else {
            continue;
        };
        // The output of failed tools is on stderr.
        let Some(from) = plan_from.filter(|_| row.shows_plan()) else {
            continue;
        };
        let shown_by = (texts.shown_by)(row.stack());
        let text = excerpt(log, from, shown_by.as_deref(), MAX_TOOL_TEXT);
        if let Some(text) = text {
            writeln!(out, "{}:\n\n{text}\n", printable(row.stack().as_str()))?;
        }
    }
    Ok(())
}

/// Writes the plan for one stack: its line, and a line for each changed resource, as far as the
/// tool names them.
pub fn write_plan_entry(out: &mut impl Write, entry: &PlanEntry) -> io::Result<()> {
    let row = Row::Entry(PlanRow { entry, old: None });
    let cells = line(&row);
    let cells: Vec<&str> = cells.iter().map(String::as_str).map(str::trim).collect();
    let cells: Vec<&str> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
    writeln!(out, "{}", cells.join("  "))?;
    let resources: Vec<Resource<'_>> = Resource::of_entry(entry).collect();
    for line in resources::lines(&resources) {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn line(row: &Row<'_>) -> [String; 5] {
    let reason = |text: &str| {
        let text = printable(text);
        match text.char_indices().nth(MAX_REASON) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.into_owned(),
        }
    };
    let path = match row {
        Row::Failed(failed) => printable(failed.stack.as_str()).into_owned(),
        Row::Entry(row) => moved(row.entry),
    };
    let (action, why) = row.action_and_reason();
    let is_alone = match row {
        Row::Failed(_) => true,
        Row::Entry(row) => row.entry.blocked.is_some() || row.entry.is_undecided(),
    };
    let (action, why) = match (is_alone, &*action) {
        (false, action) => (action.to_owned(), reason(&why)),
        (true, "") => (reason(&why), String::new()),
        (true, action) => (reason(&format!("{action}: {why}")), String::new()),
    };
    let counts = row.counts().unwrap_or_default();
    [row.sign().to_owned(), path, action, why, counts]
}
