//! Recorded runs as text: a list, or one run in full.

use std::io::{self, Write};
use std::time::Duration;

use jiff::Timestamp;

use super::causes::{Causes, policy_problems};
use super::{ListedRun, ShownRun, ShownStack, how_ended, nth};
use crate::duration::{self, local_time};
use crate::printable::{command_line, printable};
use crate::record::journal::Word;
use crate::record::journal::{
    Argument, AttemptRecord, Brief, Counts, Direction, EndedTurnRecord, Header, Reaction,
    RunStatus, StackRecord, StackState, Stop, StopCause,
};
use crate::report::failure::{failed, signal_name};
use crate::report::resources::changes_text;

/// Writes a line for each run: id, time, result, number of stacks by outcome, duration, and the
/// command.
pub fn write_runs(out: &mut impl Write, runs: &[ListedRun]) -> io::Result<()> {
    let lines: Vec<[String; 6]> = runs.iter().map(columns).collect();
    let mut widths = [0; 5];
    for line in &lines {
        for (width, column) in widths.iter_mut().zip(line) {
            *width = column.chars().count().max(*width);
        }
    }
    for line in &lines {
        for (width, column) in widths.iter().zip(line) {
            write!(out, "{column:width$}  ")?;
        }
        writeln!(out, "{}", line[5])?;
    }
    Ok(())
}

fn columns(run: &ListedRun) -> [String; 6] {
    let none = || "-".to_owned();
    match &run.brief {
        Ok(brief) => [
            run.id.clone(),
            local_time(brief.header.at),
            brief.state.word().to_owned(),
            counted(&brief.counts, &brief.header),
            elapsed(brief).map_or_else(none, duration::show),
            words(&brief.header.command),
        ],
        Err(error) => [
            run.id.clone(),
            none(),
            "unreadable".to_owned(),
            none(),
            none(),
            printable(&error.to_string()).into_owned(),
        ],
    }
}

/// How long a run took, or has taken so far.
fn elapsed(brief: &Brief) -> Option<Duration> {
    let so_far = || since(brief.header.at).filter(|_| brief.state == RunStatus::Running);
    brief.elapsed.or_else(so_far)
}

fn since(time: Timestamp) -> Option<Duration> {
    Duration::try_from(Timestamp::now().duration_since(time)).ok()
}

pub(in crate::report) fn words(command: &[Argument]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.0.clone()).collect();
    command_line(&words)
}

/// Counts the stacks by outcome, and those that were left out.
fn counted(counts: &Counts, header: &Header) -> String {
    let counted = [
        (counts.succeeded, "succeeded"),
        (counts.failed, "failed"),
        (counts.unconfirmed, "unconfirmed"),
        (counts.skipped, "skipped"),
        (counts.cancelled, "cancelled"),
    ];
    let mut parts: Vec<String> = counted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    if parts.is_empty() {
        parts.push("nothing has ended".to_owned());
    }
    if !header.left_out.is_empty() {
        parts.push(format!("{} left out", header.left_out.len()));
    }
    parts.join(", ")
}

/// Returns the result of a run, as the rest of a sentence.
fn phrase(state: RunStatus) -> &'static str {
    match state {
        RunStatus::Running => "is in progress",
        RunStatus::Succeeded => "succeeded",
        RunStatus::Failed => "failed",
        RunStatus::Interrupted => "was interrupted",
        RunStatus::Killed => "was killed",
        RunStatus::Unknown => "has not finished",
        RunStatus::DryRun => "did not start: dry run",
    }
}

/// Writes the settings of a run, and how each stack ended.
pub fn write_run(out: &mut impl Write, run: &ShownRun) -> io::Result<()> {
    let header = &run.record.header;
    writeln!(
        out,
        "run {} {}: {}",
        printable(&header.run),
        phrase(run.state),
        counted(&run.record.counts(), header)
    )?;
    for (name, value) in facts(run) {
        writeln!(out, "  {name:8} {value}")?;
    }
    writeln!(out)?;
    let causes = Causes::new(run);
    for shown in run.stacks() {
        let stack = shown.record;
        let word = printable(shown.outcome());
        let path = printable(&stack.path);
        match detail(run, shown) {
            Some(detail) => writeln!(out, "{word:9}  {path}: {detail}")?,
            None => writeln!(out, "{word:9}  {path}")?,
        }
        for line in attempts(stack) {
            writeln!(out, "{:9}    {line}", "")?;
        }
        for followed in causes.of(&stack.path) {
            writeln!(out, "{:9}    {}", "", followed.line())?;
        }
    }
    for problem in policy_problems(&run.record) {
        writeln!(out, "{problem}")?;
    }
    Ok(())
}

/// Writes why the turns of a stack in a run followed others; nothing if none did.
pub fn write_causes(out: &mut impl Write, run: &ShownRun, stack: &str) -> io::Result<()> {
    let shown = run.stacks().find(|shown| shown.record.path == stack);
    if let Some(shown) = shown {
        let word = printable(shown.outcome());
        match detail(run, shown) {
            Some(detail) => writeln!(
                out,
                "{word} in run {}: {detail}",
                printable(&run.record.header.run)
            )?,
            None => writeln!(out, "{word} in run {}", printable(&run.record.header.run))?,
        }
    }
    let turns = Causes::new(run).of(stack);
    if turns.is_empty() {
        writeln!(out, "  no policy asked for it: the run began with it")?;
    }
    for followed in turns {
        writeln!(out, "  {}", followed.line())?;
    }
    Ok(())
}

/// Returns the recorded facts about the run as a whole, each with its name.
pub(in crate::report) fn facts(run: &ShownRun) -> Vec<(&'static str, String)> {
    let header = &run.record.header;
    let took = match &run.record.finished {
        Some(finished) => format!(
            ", took {}",
            duration::show(Duration::from_millis(finished.elapsed_ms))
        ),
        None if run.state == RunStatus::Running => String::new(),
        None => format!(", last heard from {}", local_time(run.record.last)),
    };
    let shown = |text: &str| printable(text).into_owned();
    let mut lines = vec![
        ("command", words(&header.command)),
        ("typed", format!("orch {}", words(&header.arguments))),
        ("in", shown(&header.directory)),
        ("began", format!("{}{took}", local_time(header.at))),
        (
            "by",
            shown(&format!(
                "orch {}, process {} on {}",
                header.orch, header.process, header.host
            )),
        ),
    ];
    for stop in &run.record.stops {
        lines.push(("stopped", stopped(stop)));
    }
    if let Some(resumed) = &header.resumes {
        lines.push(("resumes", shown(resumed)));
    }
    match &header.direction {
        Word::Known(Direction::Forward) => {}
        Word::Known(Direction::Reverse) => lines.push(("order", "reverse".to_owned())),
        Word::Other(word) => lines.push(("order", shown(word))),
    }
    if let Some(base) = &header.base {
        let commit = base.commit.as_deref().unwrap_or("applied");
        lines.push(("base", shown(&format!("{commit}: {}", base.reason))));
    }
    if let Some(head) = &header.head {
        lines.push(("HEAD", shown(head)));
    }
    lines.push(("kept in", shown(&run.folder.to_string_lossy())));
    lines
}

fn stopped(stop: &Stop) -> String {
    let at = local_time(stop.at);
    match &stop.cause {
        StopCause::Signal { signal, reaction } => {
            let reaction = match reaction {
                Word::Known(Reaction::Interrupt) => "commands were interrupted",
                Word::Known(Reaction::Terminate) => "commands were terminated",
                Word::Known(Reaction::Kill) => "commands were killed",
                Word::Other(word) => &printable(word),
            };
            format!("{at} by {}: {reaction}", signal_name(*signal))
        }
        StopCause::TimedOut { timeout_ms } => format!(
            "{at}: it took longer than {}",
            duration::exact(Duration::from_millis(*timeout_ms))
        ),
    }
}

/// Returns a line for each attempt of a stack, unless the end of the stack makes them redundant.
fn attempts(stack: &StackRecord) -> impl Iterator<Item = String> {
    let is_one_of_several = stack.attempts.len() > 1;
    let attempts = stack.attempts.iter();
    let worth = attempts.filter(move |attempt| {
        is_one_of_several || attempt.was_killed || attempt.output_lost.is_some()
    });
    worth.map(attempt)
}

fn attempt(attempt: &AttemptRecord) -> String {
    let elapsed = attempt.elapsed.map(duration::show);
    let after = elapsed.as_ref().map(|elapsed| format!("after {elapsed}"));
    let mut parts = vec![match (&attempt.failure, after) {
        (Some(failure), Some(after)) => failed(failure, &after),
        (None, Some(after)) => format!("ended {after}"),
        (_, None) => "its end was not recorded".to_owned(),
    }];
    if attempt.was_killed {
        parts.push("killed, since it did not end when interrupted".to_owned());
    }
    if let Some(problem) = &attempt.output_lost {
        parts.push(format!("some output was lost: {}", printable(problem)));
    }
    if let Some(wait) = attempt.wait {
        parts.push(format!("the next one was due in {}", duration::exact(wait)));
    }
    let turn = attempt.turn.map(|turn| format!("turn {turn}, "));
    let (turn, number) = (turn.unwrap_or_default(), attempt.number);
    format!("{turn}attempt {number}: {}", parts.join("; "))
}

/// Continues the sentence about how a stack ended.
fn detail(run: &ShownRun, stack: ShownStack) -> Option<String> {
    match &stack.record.state {
        StackState::Waiting => None,
        StackState::Started {
            since: time,
            attempt,
        } if run.state == RunStatus::Running => {
            let so_far = since(*time).unwrap_or_default();
            Some(format!("for {}{}", duration::show(so_far), nth(*attempt)))
        }
        StackState::LeftOut | StackState::Started { .. } => stack.cause(),
        StackState::Ended(ended) => Some(ending(ended)),
    }
}

fn ending(ended: &EndedTurnRecord) -> String {
    let mut text = how_ended(ended).unwrap_or_else(|| stack_elapsed(ended));
    if let Some(changes) = &ended.changes {
        text += &format!(", {}", changes_text(changes));
    }
    if ended.attempts > 1 && ended.failure.is_none() {
        text += &format!(", {} attempts", ended.attempts);
    }
    text
}

fn stack_elapsed(ended: &EndedTurnRecord) -> String {
    duration::show(Duration::from_millis(ended.elapsed_ms))
}
