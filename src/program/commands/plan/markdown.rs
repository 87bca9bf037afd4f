//! A plan as Markdown, with what the tools printed in the run that asked them.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use orch::path::StackPath;
use orch::plan::Plan;
use orch::printable::command_line;
use orch::report::{ToolText, ToolTexts, write_plan_markdown};

use super::ask::AskedTools;
use crate::program::commands::step_summary::StepSummary;
use crate::program::console;

/// Writes a plan as Markdown of at most so many bytes. `file` is where it will be saved, as typed.
pub(super) fn write(
    out: &mut (impl Write + ?Sized),
    plan: &Plan,
    asked: &AskedTools,
    file: Option<&Path>,
    limit: usize,
) -> io::Result<()> {
    let file = file.filter(|_| plan.failed.is_empty());
    let run = asked.is_recorded().then_some(&*plan.id);
    let shown_by = |stack: &StackPath| {
        let path = OsString::from(stack.as_str());
        let words: Vec<OsString> = match (file, run) {
            (Some(file), _) if asked.has_shown_plan(stack) => {
                vec!["orch".into(), "show".into(), file.into(), path]
            }
            (_, run) => vec![
                "orch".into(),
                "runs".into(),
                "logs".into(),
                run?.into(),
                path,
            ],
        };
        Some(command_line(&words))
    };
    let of = |stack: &StackPath| {
        let (log, plan_from) = asked.log(stack)?;
        Some(ToolText {
            log,
            plan_from,
            shown_by: shown_by(stack),
        })
    };
    let mut out = out;
    write_plan_markdown(&mut out, plan, &ToolTexts { of: &of, run }, limit)
}

/// Appends a plan to the step summary, in a job of GitHub Actions. Nobody asked for that: if it fails, it is
/// only a warning.
pub(super) fn append_to_step_summary(plan: &Plan, asked: &AskedTools, file: Option<&Path>) {
    let Some(summary) = StepSummary::of_job() else {
        return;
    };
    let Some(room) = summary.room() else { return };
    if let Err(error) = summary.append(|out| write(out, plan, asked, file, room)) {
        let place = summary.0.to_string_lossy();
        console::warning(&format!(
            "the step summary `{place}` could not be written: {error}"
        ));
    }
}
