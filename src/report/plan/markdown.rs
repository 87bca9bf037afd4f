//! A plan as Markdown, for the comment of a pull request or the summary of a CI job.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

use super::resources::{self, Resource, listed, more};
use super::row::Row;
use super::summary::summary;
use super::{ToolText, ToolTexts, followups, shown_rows};
use crate::plan::entry::{PlanEntry, PlanMode, PlannedAction};
use crate::plan::{Plan, PlannedFollowUp, RelaxedEffect};
use crate::printable::first_of;
use crate::report::markdown::inert::{code, shortened, text};
use crate::report::markdown::page::{Content, fit, folded};
use crate::report::quote::{end, excerpt, left_out_line};
use crate::run::evaluated::{PolicyProblem, ProblemSeverity};

/// The longest reason, in characters.
const MAX_REASON: usize = 200;

/// How many options of the tools are named, and how many characters of each.
const MAX_OPTIONS: usize = 3;
const MAX_OPTION: usize = 30;

/// Writes a plan as Markdown within a limit in bytes, which is at least [`super::super::LEAST_MARKDOWN_BYTES`].
pub fn write_plan_markdown(
    out: &mut impl Write,
    plan: &Plan,
    texts: &ToolTexts<'_>,
    limit: usize,
) -> io::Result<()> {
    out.write_all(fit(&PlanPage::new(plan, texts), limit).as_bytes())
}

/// Returns the position in the table: rows that need attention come first.
fn rank(row: &Row<'_>) -> u8 {
    match row {
        Row::Failed(_) => 0,
        Row::Entry(row) if row.entry.blocked.is_some() => 1,
        Row::Entry(row)
            if matches!(
                row.entry.action,
                PlannedAction::Delete | PlannedAction::Replace
            ) =>
        {
            2
        }
        Row::Entry(_) => 3,
    }
}

/// Returns whether the output of the tool is worth showing: not if it will be outdated when the
/// stack is decided.
fn shows(row: &Row<'_>, text: &ToolText) -> bool {
    match row {
        Row::Failed(_) => true,
        Row::Entry(row) if row.entry.is_undecided() => text.plan_from.is_none(),
        Row::Entry(_) => row.shows_plan(),
    }
}

/// Describes the action for a stack, and for how many of its resources.
fn headline(row: &Row<'_>) -> String {
    let (action, _) = row.action_and_reason();
    match row.counts() {
        Some(counts) => format!("{action} {counts}"),
        None => action.into_owned(),
    }
}

struct PlanPage<'a> {
    headline: String,
    notes: String,
    rows: Vec<Row<'a>>,
    followups: &'a [PlannedFollowUp],
    /// Those of `rows` with folded details: resources, or the output of their tools.
    folded: Vec<Row<'a>>,
    texts: &'a ToolTexts<'a>,
    mode: PlanMode,
}

impl<'a> PlanPage<'a> {
    fn new(plan: &'a Plan, texts: &'a ToolTexts<'a>) -> Self {
        let mut rows: Vec<Row<'_>> = shown_rows(plan).collect();
        rows.sort_by_key(rank);
        let mode = plan.mode;
        let has_printed = |row: &Row| (texts.of)(row.stack()).is_some_and(|text| shows(row, &text));
        let is_folded = |row: &Row| has_printed(row) || !Resource::of_row(row, mode).is_empty();
        let folded = rows.iter().copied().filter(is_folded).collect();
        let command = match mode {
            PlanMode::Normal => "orch plan",
            PlanMode::Destroy => "orch plan --destroy",
            PlanMode::RefreshOnly => "orch plan --refresh-only",
        };
        PlanPage {
            headline: format!("### `{command}`\n\n{}\n", summary(plan)),
            notes: notes(plan),
            rows,
            followups: plan.followups.as_ref().map_or(&[], |it| &it.turns),
            folded,
            texts,
            mode,
        }
    }

    /// Lists the resources that are destroyed, in this many bytes; those that do not fit are
    /// counted.
    fn destroyed(&self, limit: usize) -> String {
        let what = match self.mode {
            PlanMode::RefreshOnly => "Destroyed outside of `orch`",
            PlanMode::Normal | PlanMode::Destroy => "Resources to destroy",
        };
        let mut text = format!("\n{what}:\n\n");
        let (mut left_out, mut is_empty) = (0, true);
        for row in &self.rows {
            let resources = Resource::of_row(row, self.mode).into_iter();
            for resource in resources.filter(Resource::is_destroyed) {
                let (stack, address) = (code(row.stack().as_str()), code(&resource.address()));
                let sign = code(resource.sign());
                let line = format!("- {sign} {address} in {stack}\n");
                if text.len() + line.len() > limit {
                    left_out += 1;
                    continue;
                }
                is_empty = false;
                text += &line;
            }
        }
        match (is_empty, left_out) {
            (true, 0) => String::new(),
            (false, 0) => text,
            (true, more) => format!("\n{what}: {more}, left out here.\n"),
            (false, more) => text + &format!("\n{more} more to destroy are left out here.\n"),
        }
    }

    /// Lists the resources of a row, in about this many bytes; those that do not fit are counted.
    fn resources(&self, row: &Row<'_>, limit: usize) -> String {
        let all = Resource::of_row(row, self.mode);
        let mut room = limit;
        let fitting = all.iter().take_while(|resource| {
            // A sign, a space and the end of the line.
            let length = resource.address().len() + 5;
            let fits = length <= room;
            room = room.saturating_sub(length);
            fits
        });
        let listed = listed(all.clone(), fitting.count());
        let mut lines: Vec<String> = resources::lines(&listed).collect();
        lines.extend(more(&all, &listed).map(|more| format!("… {more}")));
        lines.join("\n")
    }
}

fn followup_row(followup: &PlannedFollowUp) -> String {
    let by = followups::by(&followup.policies);
    let reason = format!("by {by}; {}", followups::outlook(followup));
    format!(
        "| {} | {} | then | {} |  |\n",
        code(followups::sign(followup)),
        code(followup.stack.as_str()),
        text(&shortened(&reason, MAX_REASON)),
    )
}

/// Explains surprising parts of the plan.
fn notes(plan: &Plan) -> String {
    let mut notes = String::new();
    if !plan.failed.is_empty() {
        notes += "\n`orch apply` changes nothing while stacks fail to plan. To leave them out, add `--on-error=skip-dependents`.\n";
    }
    if plan.entries.iter().any(|entry| entry.blocked.is_some()) {
        notes += "\nBlocked stacks are left unchanged.\n";
    }
    if plan.entries.iter().any(PlanEntry::is_undecided) {
        notes += "\nA stack marked `?` is planned during the apply, after the stacks named.\n";
    }
    // Notes must always fit, so they have no addresses.
    let options = &plan.options.tool_options;
    let options: BTreeSet<&str> = options
        .iter()
        .filter_map(|it| it.split('=').next())
        .collect();
    if !options.is_empty() {
        let names = options
            .into_iter()
            .map(|name| code(&shortened(name, MAX_OPTION)));
        let names = first_of(names.collect::<Vec<_>>().iter(), MAX_OPTIONS);
        let part = if plan.partial().is_empty() {
            ""
        } else {
            ", so the plan is partial"
        };
        notes += &format!("\nThe tools planned with {names}{part}.\n");
    }
    // Their names may be long, and notes must always fit.
    if let Some(followups) = &plan.followups {
        let is_said = |it: &PolicyProblem| it.severity != ProblemSeverity::Note;
        if followups.problems.iter().any(is_said) {
            notes += "\nPolicies had problems, so follow-ups may be missing: run `orch plan` to see why.\n";
        }
        notes += &match followups.uncertain.len() {
            0 => String::new(),
            1 => {
                "\nFollow-ups of 1 stack may differ: its changes are known only during the apply.\n"
                    .to_owned()
            }
            many => format!(
                "\nFollow-ups of {many} stacks may differ: their changes are known only during the apply.\n"
            ),
        };
    }
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
            "recorded constraint is left out, since newer ones contradict it",
            "recorded constraints are left out, since newer ones contradict them",
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

    fn notes(&self, limit: usize) -> Cow<'_, str> {
        let room = limit.saturating_sub(self.notes.len());
        Cow::Owned(self.destroyed(room) + &self.notes)
    }

    fn n_rows(&self) -> usize {
        self.rows.len() + self.followups.len()
    }

    fn row(&self, number: usize) -> String {
        let Some(row) = self.rows.get(number) else {
            return followup_row(&self.followups[number - self.rows.len()]);
        };
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
        self.folded.len()
    }

    fn quote(&self, number: usize, limit: usize) -> Option<String> {
        let row = &self.folded[number];
        let mut lines = self.resources(row, limit / 2);
        let text = (self.texts.of)(row.stack()).filter(|text| shows(row, text));
        let Some(ToolText { log, plan_from }) = text else {
            return Some(folded(row.stack().as_str(), &headline(row), &lines));
        };
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
        let room = limit.saturating_sub(lines.len());
        if let Some(text) = excerpt(log, from, shown_by, room) {
            if !lines.is_empty() {
                lines += "\n\n";
            }
            lines += &text;
        }
        (!lines.is_empty()).then(|| folded(path, &headline(row), &lines))
    }

    fn unquoted(&self, count: usize) -> String {
        let stacks = if count == 1 { "stack" } else { "stacks" };
        let run = self.texts.run;
        let shown_by = run
            .map(|run| code(&format!("orch runs logs {run}")))
            .map(|command| format!("; {command} shows it"))
            .unwrap_or_default();
        format!("\nThe output of {count} {stacks} is left out here{shown_by}.\n")
    }
}

#[cfg(test)]
mod tests;
