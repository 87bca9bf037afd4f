//! `orch run --dry-run`: prints the commands, and with policies the follow-ups.

use std::io::Write as _;

use orch::command::run::{PreparedCommand, PreparedRunPolicies};
use orch::exit::ExitStatus;
use orch::printable::printable;
use orch::project::stack::{StackIndex, Stacks};
use orch::report::{CommandLines, RunText};
use orch::run::event::Turns;
use orch::run::request::PreparedRun;
use orch::run::run_command::RunCommand;
use orch::run::turn::Turn;
use orch::run::workflow::ForeseenTurn;

use super::report;
use crate::program::commands::CommandContext;
use crate::program::commands::reports::Reports;
use crate::program::console;
use crate::program::error::Result;

/// Prints the commands that would run; with policies, also the follow-ups if all commands succeed.
pub(super) fn dry_run(
    context: &CommandContext,
    prepared: &PreparedCommand,
    followed: Option<PreparedRunPolicies>,
    reports: &Reports,
) -> Result<ExitStatus> {
    let PreparedCommand { run, command } = prepared;
    let status = match followed {
        None => {
            show(context, &run.sequence, command, reports)?;
            ExitStatus::Success
        }
        Some(followed) => show_followed(followed, &context.project.stacks, run, command, reports)?,
    };
    let are_written = report::planned(context, run, reports);
    Ok(report::status(status, are_written))
}

/// Prints the commands, unless a report is written to the same stream.
fn show(
    context: &CommandContext,
    sequence: &[StackIndex],
    command: &RunCommand,
    reports: &Reports,
) -> Result<()> {
    if reports.need_stdout() {
        return Ok(());
    }
    let commands = CommandLines::new(command, sequence);
    let mut out = console::stdout();
    for (turn, &stack) in sequence.iter().enumerate() {
        let path = &context.project.stacks[stack].path;
        for command in commands.all(turn, path) {
            writeln!(out, "{}: {command}", printable(path.as_str()))?;
        }
    }
    Ok(out.flush()?)
}

/// Prints the commands and the follow-ups, in the sequence of a serial run.
fn show_followed(
    followed: PreparedRunPolicies,
    stacks: &Stacks,
    run: &PreparedRun,
    command: &RunCommand,
    reports: &Reports,
) -> Result<ExitStatus> {
    let lines = CommandLines::new(command, &run.sequence).with_followup(
        &followed.command,
        stacks,
        followed.have_own_command(),
    );
    let foreseen = followed.foreseen(run);
    let mut by_number: Vec<&ForeseenTurn> = foreseen.turns.iter().collect();
    by_number.sort_by_key(|turn| turn.number);
    let steps = [].into();
    let by_number = by_number.iter();
    let all: Turns = by_number
        .map(|it| Turn::of_command(it.turn.path.clone(), &steps))
        .collect();
    let text = RunText::new(&all);
    let mut has_failed = false;
    for evaluated in &foreseen.evaluated {
        has_failed |= evaluated.is_problem();
        if let Some(problems) = text.policy_problems(evaluated) {
            console::stderr().write_all(problems.as_bytes())?;
        }
    }
    if !reports.need_stdout() {
        let mut out = console::stdout();
        for ForeseenTurn { number, turn, .. } in &foreseen.turns {
            let path = text.path(*number);
            let follows = match &turn.policies[..] {
                [] => String::new(),
                [policy] => format!("  (policy {policy})"),
                policies => format!("  (policies {})", policies.join(", ")),
            };
            for command in lines.all(number.get(), &turn.path) {
                writeln!(out, "{path}: {command}{follows}")?;
            }
        }
        out.flush()?;
    }
    Ok(if has_failed {
        ExitStatus::Run(1)
    } else {
        ExitStatus::Success
    })
}
