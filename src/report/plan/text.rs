//! A plan as text.

use std::io::{self, Write};

use super::{action, counts_text, is_shown, moved, reason, sign, summary};
use crate::plan::entry::PlanEntry;
use crate::plan::{Plan, RelaxedEffect};
use crate::printable::printable;

/// How many characters of a reason are shown.
const MAX_REASON: usize = 200;

/// How wide a column gets; what is longer stands out.
const MAX_WIDTH: usize = 200;

/// How many constraints are named that the operations do not keep to.
const MAX_RELAXED: usize = 10;

/// Writes what would be done: a line for each stack, and a sentence that sums it up.
///
/// # Errors
///
/// If it cannot be written.
pub fn write_plan(out: &mut impl Write, plan: &Plan) -> io::Result<()> {
    let shown = plan.entries.iter().filter(|entry| is_shown(entry));
    let lines: Vec<[String; 5]> = shown.map(line).collect();
    // Only what something follows takes part in a column: a long reason to block pads no other line.
    let width = |column: usize| {
        let followed = lines
            .iter()
            .filter(|line| line[column + 1..].iter().any(|it| !it.is_empty()));
        let widths = followed.map(|line| line[column].chars().count());
        widths.max().unwrap_or_default().min(MAX_WIDTH)
    };
    let widths: [usize; 4] = std::array::from_fn(width);
    for [sign, path, action, reason, counts] in &lines {
        let [w_sign, w_path, w_action, w_reason] = widths;
        let line = format!(
            "  {sign:>w_sign$} {path:<w_path$}  {action:<w_action$}  {reason:<w_reason$}  {counts}"
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    if !lines.is_empty() {
        writeln!(out)?;
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
                    "Left out: on record, {later} ran after {earlier}, which newer declarations contradict."
                )?;
            }
        }
    }
    if let Some(more @ 1..) = plan.relaxed.len().checked_sub(MAX_RELAXED) {
        writeln!(out, "Left out: {more} more constraints on record.")?;
    }
    writeln!(out, "{}", summary(plan))
}

/// Writes what would be done with one stack: its line of the plan, and a line for each resource that changes,
/// as far as the tool has told them.
///
/// # Errors
///
/// If it cannot be written.
pub fn write_plan_entry(out: &mut impl Write, entry: &PlanEntry) -> io::Result<()> {
    let cells = line(entry);
    let cells: Vec<&str> = cells.iter().map(String::as_str).map(str::trim).collect();
    let cells: Vec<&str> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
    writeln!(out, "{}", cells.join("  "))?;
    for resource in &entry.resources {
        let actions = resource.actions.join(", ");
        let address = printable(&resource.address);
        writeln!(out, "  {address}  {}", printable(&actions))?;
    }
    Ok(())
}

fn line(entry: &PlanEntry) -> [String; 5] {
    let path = moved(entry);
    let shortened = |text: &str| {
        let text = printable(text);
        match text.char_indices().nth(MAX_REASON) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.into_owned(),
        }
    };
    if let Some(why) = &entry.blocked {
        let text = format!("blocked: {why}");
        return [
            sign(entry).to_owned(),
            path,
            shortened(&text),
            String::new(),
            String::new(),
        ];
    }
    if entry.is_undecided() && entry.is_planned {
        return [
            sign(entry).to_owned(),
            path,
            shortened(&reason(entry)),
            String::new(),
            String::new(),
        ];
    }
    [
        sign(entry).to_owned(),
        path,
        action(entry).into_owned(),
        shortened(&reason(entry)),
        entry.counts.as_ref().map(counts_text).unwrap_or_default(),
    ]
}
