//! A plan for people, with the output of the tools that made it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use orch::command::plan::Planned;
use orch::path::StackPath;
use orch::plan::Plan;
use orch::plan::planner::AskedTools;
use orch::printable::command_line;
use orch::report::{PlanDetails, ToolText, ToolTexts, write_plan, write_plan_markdown};

use crate::program::commands::step_summary::StepSummary;
use crate::program::console;
use crate::program::error::Result;

/// Shows a plan as text.
pub(in crate::program::commands) fn show(planned: &Planned, details: PlanDetails) -> Result<()> {
    // A run writes to stdout too, so this must release the lock.
    let mut out = console::stdout();
    write_text(&mut out, &planned.saved.plan, &planned.asked, None, details)?;
    Ok(out.flush()?)
}

/// Writes a plan as text. `file` is where it will be saved, as typed.
pub(super) fn write_text(
    out: &mut impl Write,
    plan: &Plan,
    asked: &AskedTools,
    file: Option<&Path>,
    details: PlanDetails,
) -> io::Result<()> {
    with_texts(plan, asked, file, |texts| {
        write_plan(out, plan, details, texts)
    })
}

/// Writes a plan as Markdown of at most so many bytes. `file` is where it will be saved, as typed.
pub(super) fn write_markdown(
    out: &mut (impl Write + ?Sized),
    plan: &Plan,
    asked: &AskedTools,
    file: Option<&Path>,
    limit: usize,
) -> io::Result<()> {
    let mut out = out;
    with_texts(plan, asked, file, |texts| {
        write_plan_markdown(&mut out, plan, texts, limit)
    })
}

/// Returns the command with which a stack's tool prints its plan from a file.
pub(in crate::program::commands) fn show_command(file: &Path, stack: &StackPath) -> String {
    let words = ["orch".into(), "show".into(), file.into(), stack_word(stack)];
    command_line(&words)
}

fn stack_word(stack: &StackPath) -> OsString {
    stack.as_str().into()
}

fn with_texts<T>(
    plan: &Plan,
    asked: &AskedTools,
    file: Option<&Path>,
    write: impl FnOnce(&ToolTexts<'_>) -> T,
) -> T {
    let file = file.filter(|_| plan.failed.is_empty());
    let shown_by = |stack: &StackPath| match file {
        Some(file) if asked.has_shown_plan(stack) => Some(show_command(file, stack)),
        _ => {
            let run = asked.run_of(stack)?;
            let words = ["orch", "runs", "logs", run].map(OsString::from);
            Some(command_line(&[&words[..], &[stack_word(stack)]].concat()))
        }
    };
    let of = |stack: &StackPath| {
        let (log, plan_from) = asked.log(stack)?;
        Some(ToolText { log, plan_from })
    };
    write(&ToolTexts {
        of: &of,
        shown_by: &shown_by,
        run: asked.is_recorded().then_some(&*plan.id),
    })
}

/// Appends a plan to the step summary, in a job of GitHub Actions. The user has not asked for this,
/// so a failure is only a warning.
pub(super) fn append_to_step_summary(plan: &Plan, asked: &AskedTools, file: Option<&Path>) {
    let Some(summary) = StepSummary::of_job() else {
        return;
    };
    let Some(room) = summary.room() else { return };
    if let Err(error) = summary.append(|out| write_markdown(out, plan, asked, file, room)) {
        let place = summary.0.to_string_lossy();
        console::warning(&format!(
            "failed to write the step summary `{place}`: {error}"
        ));
    }
}
