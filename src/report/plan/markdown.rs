//! A plan as Markdown, for the comment of a pull request or the summary of a CI job.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

use super::row::Row;
use super::summary::summary;
use super::{ToolText, ToolTexts, shown_rows};
use crate::plan::entry::{Action, PlanEntry, PlanMode};
use crate::plan::{FailedAsk, Plan, RelaxedEffect};
use crate::report::markdown::inert::{code, shortened, text};
use crate::report::markdown::page::{Content, fit, folded};
use crate::report::quote::{end, excerpt, left_out_line};

/// The longest reason, in characters.
const MAX_REASON: usize = 200;

/// Writes a plan as Markdown within a limit in bytes, which is at least [`super::super::LEAST_MARKDOWN_BYTES`].
///
/// # Errors
///
/// If it cannot be written.
pub fn write_plan_markdown(
    out: &mut impl Write,
    plan: &Plan,
    texts: &ToolTexts<'_>,
    limit: usize,
) -> io::Result<()> {
    out.write_all(fit(&PlanPage::new(plan, texts), limit).as_bytes())
}

/// Returns the position in the table: what needs attention comes first.
fn rank(row: &Row<'_>) -> u8 {
    match row {
        Row::Failed(_) => 0,
        Row::Entry(row) if row.entry.blocked.is_some() => 1,
        Row::Entry(row) if matches!(row.entry.action, Action::Delete | Action::Replace) => 2,
        Row::Entry(_) => 3,
    }
}

/// Returns whether it is worth showing what the tool has printed: not if that will no longer hold when the stack
/// is decided.
fn shows(row: &Row<'_>, text: &ToolText) -> bool {
    match row {
        Row::Failed(_) => true,
        Row::Entry(row) if row.entry.is_undecided() => text.plan_from.is_none(),
        Row::Entry(_) => row.shows_plan(),
    }
}

/// The content of the page.
struct PlanPage<'a> {
    headline: String,
    notes: String,
    rows: Vec<Row<'a>>,
    /// Those whose tools have printed something.
    printing: Vec<Row<'a>>,
    texts: &'a ToolTexts<'a>,
}

impl<'a> PlanPage<'a> {
    fn new(plan: &'a Plan, texts: &'a ToolTexts<'a>) -> Self {
        let mut rows: Vec<Row<'_>> = shown_rows(plan).collect();
        rows.sort_by_key(rank);
        let has_printed = |row: &Row| (texts.of)(row.stack()).is_some_and(|text| shows(row, &text));
        let printing = rows.iter().copied().filter(has_printed).collect();
        let command = match plan.mode {
            PlanMode::Normal => "orch plan",
            PlanMode::Destroy => "orch plan --destroy",
            PlanMode::RefreshOnly => "orch plan --refresh-only",
        };
        PlanPage {
            headline: format!("### `{command}`\n\n{}\n", summary(plan)),
            notes: notes(plan),
            rows,
            printing,
            texts,
        }
    }
}

/// Explains what a reader may not expect.
fn notes(plan: &Plan) -> String {
    let mut notes = String::new();
    if !plan.failed.is_empty() {
        let is_tool = |failed: &FailedAsk| failed.conditions.is_empty();
        notes += match (
            plan.failed.iter().any(is_tool),
            plan.failed.iter().all(is_tool),
        ) {
            (true, true) => "\nTools failed, so this plan cannot be applied.\n",
            (true, false) => {
                "\nTools failed, and conditions do not hold, so this plan cannot be applied.\n"
            }
            (false, _) => "\nConditions do not hold, so this plan cannot be applied.\n",
        };
    }
    if plan.entries.iter().any(|entry| entry.blocked.is_some()) {
        notes += "\nNothing is done with stacks that are blocked.\n";
    }
    if plan.entries.iter().any(PlanEntry::is_undecided) {
        notes += "\nAn apply decides what to do with a stack marked `?` after it has applied the stacks named.\n";
    }
    // Their names may be long, and notes have to fit in any case.
    for (effect, one, several) in [
        (
            RelaxedEffect::DestroyedFirst,
            "stack is destroyed while another still refers to it",
            "stacks are destroyed while others still refer to them",
        ),
        (
            RelaxedEffect::ChangedFirst,
            "stack is changed while another still refers to it, which is then destroyed",
            "stacks are changed while others still refer to them, which are then destroyed",
        ),
        (
            RelaxedEffect::Contradicted,
            "constraint on record is left out, which newer declarations contradict",
            "constraints on record are left out, which newer declarations contradict",
        ),
    ] {
        let relaxed = plan.relaxed.iter().filter(|it| it.effect == effect);
        let count = match effect {
            RelaxedEffect::Contradicted => relaxed.count(),
            _ => relaxed.map(|it| &it.earlier).collect::<BTreeSet<_>>().len(),
        };
        match count {
            0 => {}
            1 => notes += &format!("\n1 {one}.\n"),
            many => notes += &format!("\n{many} {several}.\n"),
        }
    }
    notes
}

impl Content for PlanPage<'_> {
    const TABLE: &'static str =
        "| | stack | action | reason | resources |\n| --- | --- | --- | --- | --- |\n";
    const QUOTED: usize = usize::MAX;
    const LEAST_QUOTED: usize = 1000;
    const TABLE_FIRST: bool = true;

    fn headline(&self) -> &str {
        &self.headline
    }

    fn notes(&self, _limit: usize) -> Cow<'_, str> {
        Cow::Borrowed(&self.notes)
    }

    fn n_rows(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, number: usize) -> String {
        let row = &self.rows[number];
        let sign = row.sign().trim();
        let (action, reason) = row.action_and_reason();
        format!(
            "| {} | {} | {action} | {} | {} |\n",
            code(sign),
            code(row.stack().as_str()),
            text(&shortened(&reason, MAX_REASON)),
            row.counts().map(|counts| code(&counts)).unwrap_or_default(),
        )
    }

    fn n_quotes(&self) -> usize {
        self.printing.len()
    }

    fn quote(&self, number: usize, limit: usize) -> Option<String> {
        let row = &self.printing[number];
        let ToolText { log, plan_from } = (self.texts.of)(row.stack())?;
        let shown_by = (self.texts.shown_by)(row.stack());
        let shown_by = shown_by.as_deref();
        let path = row.stack().as_str();
        let Some(from) = plan_from else {
            let end = end(log, limit)?;
            if end.left_out == 0 {
                return Some(folded(path, "output", &end.text));
            }
            let line = left_out_line(end.left_out, shown_by);
            let lines = format!("{line}\n\n{}", end.text);
            return Some(folded(path, "the end of the output", &lines));
        };
        let lines = excerpt(log, from, shown_by, limit)?;
        let (action, _) = row.action_and_reason();
        let what = match row.counts() {
            Some(counts) => format!("{action} {counts}"),
            None => action.into_owned(),
        };
        Some(folded(path, &what, &lines))
    }

    fn unquoted(&self, count: usize) -> String {
        let stacks = if count == 1 { "stack" } else { "stacks" };
        let run = self.texts.run;
        let shown_by = run.map(|run| code(&format!("orch runs logs {run}")));
        let shown_by = shown_by.map(|command| format!("; {command} shows it"));
        let shown_by = shown_by.unwrap_or_default();
        format!("\nThe output of {count} {stacks} is left out here{shown_by}.\n")
    }
}

#[cfg(test)]
mod tests;
