//! The messages of a run: its events, and a summary at the end.

use std::collections::HashSet;
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use crate::duration;
use crate::printable::{first_of, printable};
use crate::report::alike::{alike, names};
use crate::report::failure::{self, REJECTED, STATE_LOST, failed, signal_name};
use crate::report::resources::changes_text;
use crate::run::event::{
    CancelCause, Ending, Failure, Outcome, Reaction, RunEvent, RunSummary, Turns,
};
use crate::run::turn::{Operation, TurnIndex};

const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(super) const PALE: Style = AnsiColor::Yellow.on_default().bold();

/// Turns the events of a run into lines. They have colours, which the caller may drop, and end with
/// a line feed.
#[derive(Debug, Clone, Copy)]
pub struct RunText<'a> {
    pub(super) turns: &'a Turns,
}

impl<'a> RunText<'a> {
    pub fn new(turns: &'a Turns) -> Self {
        RunText { turns }
    }

    /// Returns the name of a turn: the path of its stack, made printable, and its number if the
    /// stack has several turns.
    pub fn path(self, index: TurnIndex) -> String {
        let turn = &self.turns[index];
        let path = printable(turn.stack.as_str());
        match (turn.operation, self.turns.position_at_stack(index)) {
            (Operation::Destroy, _) => format!("{path} (destroy)"),
            (_, 1) => path.into_owned(),
            (_, position) => format!("{path} (turn {position})"),
        }
    }

    /// Returns the name of the first turn and the number of the others.
    fn paths(self, turns: &[TurnIndex]) -> String {
        match turns {
            [] => "nothing".to_owned(),
            turns => first_of(turns.iter().map(|turn| self.path(*turn)), 1),
        }
    }

    /// Returns the line for a command that is about to start. `command` was made printable.
    pub fn started(self, turn: TurnIndex, attempt: u32, command: &str) -> String {
        let path = self.path(turn);
        match attempt {
            1 => format!("{BOLD}orch: {path}:{BOLD:#} {command}\n"),
            attempt => format!("{BOLD}orch: {path}:{BOLD:#} attempt {attempt}: {command}\n"),
        }
    }

    /// Returns a line for an event that reports a problem, `None` for others.
    pub fn trouble(self, event: &RunEvent) -> Option<String> {
        Some(match event {
            RunEvent::Retrying {
                turn,
                attempt,
                failure,
                elapsed,
                wait,
            } => format!(
                "orch: {}: attempt {attempt} failed: {}; the next one in {}\n",
                self.path(*turn),
                failed_after(failure, *elapsed),
                duration::exact(*wait)
            ),
            RunEvent::TimedOut {
                turn,
                timeout,
                grace,
            } => format!(
                "orch: {}: took longer than {}; interrupted; it will be killed if it has not ended in {}\n",
                self.path(*turn),
                duration::exact(*timeout),
                duration::exact(*grace)
            ),
            RunEvent::WantsTerminal { turn, grace } => format!(
                "orch: {}: asks for the terminal, which it gets only with `-j 1 --output live`; interrupted; it will be killed if it has not ended in {}\n",
                self.path(*turn),
                duration::exact(*grace)
            ),
            RunEvent::RunTimedOut {
                timeout,
                grace,
                running,
            } => {
                let timeout = duration::exact(*timeout);
                if running.is_empty() {
                    return Some(format!(
                        "orch: the run took longer than {timeout}: nothing new starts\n"
                    ));
                }
                format!(
                    "orch: the run took longer than {timeout}: nothing new starts; interrupted {}; killed if still running in {}\n",
                    self.paths(running),
                    duration::exact(*grace)
                )
            }
            RunEvent::Killed(turn) => format!(
                "orch: {}: has not ended after its interrupt; killed\n",
                self.path(*turn)
            ),
            RunEvent::OutputLost { turn, problem } => format!(
                "orch: {}: some of its output was lost: {}\n",
                self.path(*turn),
                printable(problem)
            ),
            RunEvent::Interrupted {
                signal,
                reaction,
                running,
                is_evaluating,
            } => {
                let signal = signal_name(*signal);
                if running.is_empty() {
                    let what = match (is_evaluating, reaction) {
                        (false, _) => "nothing new starts",
                        (true, Reaction::Interrupt) => {
                            "nothing new starts; waiting for policies to be evaluated (again: stop waiting)"
                        }
                        (true, _) => "policies are not evaluated any more",
                    };
                    return Some(format!("orch: {signal}: {what}\n"));
                }
                let paths = self.paths(running);
                let them = if running.len() == 1 { "it" } else { "them" };
                match reaction {
                    Reaction::Interrupt => format!(
                        "orch: {signal}: nothing new starts; waiting for {paths} to end (again: terminate {them})\n"
                    ),
                    Reaction::Terminate => {
                        format!("orch: {signal}: terminating {paths} (again: kill {them})\n")
                    }
                    Reaction::Kill => format!("orch: {signal}: killing {paths}\n"),
                }
            }
            RunEvent::NotKept(problem) => {
                format!("{PALE}warning{PALE:#}: {}\n", printable(problem))
            }
            RunEvent::Evaluated(evaluated) => return self.policy_problems(evaluated),
            RunEvent::RunStarted { .. }
            | RunEvent::Added { .. }
            | RunEvent::Started { .. }
            | RunEvent::StepStarted { .. }
            | RunEvent::Ended(_)
            | RunEvent::RunFinished(_) => return None,
        })
    }

    /// Returns how a turn that has run ended, without a line feed: the title of its output.
    pub fn ended(self, ending: &Ending) -> String {
        let path = self.path(ending.turn);
        let elapsed = after(ending, "in");
        if let Some(failure) = failure_text(ending) {
            return format!("{BOLD}orch: {path}:{BOLD:#} {BAD}failed{BAD:#}: {failure}");
        }
        if ending.outcome == Outcome::Unconfirmed {
            return format!(
                "{BOLD}orch: {path}:{BOLD:#} unconfirmed {elapsed}: its changes wait for approval"
            );
        }
        let changes = ending.changes.map(|changes| changes_text(&changes));
        let changes = changes.map_or(String::new(), |changes| format!(": {changes}"));
        format!("{BOLD}orch: {path}:{BOLD:#} {GOOD}succeeded{GOOD:#} {elapsed}{changes}")
    }

    pub fn attempt_failed(
        self,
        turn: TurnIndex,
        attempt: u32,
        failure: &Failure,
        elapsed: Duration,
    ) -> String {
        format!(
            "orch: {}: attempt {attempt}: {}\n",
            self.path(turn),
            failed_after(failure, elapsed)
        )
    }

    pub fn last_attempt(self, turn: TurnIndex, attempt: u32) -> String {
        format!("orch: {}: attempt {attempt}:\n", self.path(turn))
    }

    /// Returns the result of the run: the number of turns by outcome, and each that did not
    /// succeed, with the cause; the failures of some turns have been `reported`. `log` returns the
    /// location of a log, made printable; `run` is the id of the run if it is recorded.
    pub fn summary(
        self,
        summary: &RunSummary,
        reported: &HashSet<TurnIndex>,
        log: &dyn Fn(&Ending) -> Option<String>,
        run: Option<&str>,
    ) -> String {
        if summary.endings.is_empty() && summary.exit_status() == 0 {
            // Only policies were evaluated.
            return "orch: nothing follows\n".to_owned();
        }
        let count = |is: fn(&Outcome) -> bool| {
            let endings = summary.endings.iter();
            let counted = endings.filter(|ending| !summary.replaced.contains(&ending.turn));
            counted.filter(|ending| is(&ending.outcome)).count()
        };
        let counts = [
            (
                count(|outcome| *outcome == Outcome::Succeeded),
                "succeeded",
                GOOD,
            ),
            (
                count(|outcome| matches!(outcome, Outcome::Failed(_))),
                "failed",
                BAD,
            ),
            (summary.replaced.len(), "retried", PALE),
            (
                count(|outcome| *outcome == Outcome::Unconfirmed),
                "unconfirmed",
                PALE,
            ),
            (
                count(|outcome| matches!(outcome, Outcome::Skipped { .. })),
                "skipped",
                PALE,
            ),
            (
                count(|outcome| matches!(outcome, Outcome::Cancelled(_))),
                "cancelled",
                PALE,
            ),
        ];
        let (mut text, n_changed) = self.changes(&summary.endings);
        text += &self.not_run(&summary.endings, run);
        // Failures come last, next to the counts.
        for ending in &summary.endings {
            if !reported.contains(&ending.turn)
                && let Some(failure) = failure_text(ending)
            {
                let path = self.path(ending.turn);
                let log = log(ending).map(|log| format!("; log: {log}"));
                let (style, word) = if summary.replaced.contains(&ending.turn) {
                    (PALE, "retried")
                } else {
                    (BAD, "failed")
                };
                text += &format!(
                    "orch: {style}{word}{style:#} {path}: {failure}{}\n",
                    log.unwrap_or_default()
                );
            }
        }
        let parts: Vec<String> = counts
            .iter()
            .filter(|(count, word, _)| *count > 0 || *word == "succeeded")
            .map(|(count, word, style)| {
                let changed = match *word {
                    "succeeded" if n_changed > 0 => format!(" ({n_changed} with changes)"),
                    _ => String::new(),
                };
                format!("{style}{count} {word}{style:#}{changed}")
            })
            .collect();
        let elapsed = duration::show(summary.elapsed);
        text += &format!("orch: {} in {elapsed}\n", parts.join(", "));
        text
    }

    /// Lists the turns with changes, and counts the stacks without any. Also returns the number of
    /// turns with changes.
    fn changes(self, endings: &[Ending]) -> (String, usize) {
        let mut text = String::new();
        let mut n_changed = 0;
        let (mut unchanged, mut others) = (HashSet::new(), HashSet::new());
        for ending in endings {
            let stack = &self.turns[ending.turn].stack;
            let Some(changes) = ending.changes else {
                others.insert(stack); // it may have changed something in that turn
                continue;
            };
            if !changes.has_changes {
                unchanged.insert(stack);
                continue;
            }
            others.insert(stack);
            n_changed += 1;
            let path = self.path(ending.turn);
            text += &match changes_text(&changes).as_str() {
                "changes" => format!("orch: {PALE}changes{PALE:#} in {path}\n"),
                counted => format!("orch: {PALE}changes{PALE:#} in {path}: {counted}\n"),
            };
        }
        text += &match unchanged.difference(&others).count() {
            0 => String::new(),
            1 => "orch: no changes in 1 stack\n".to_owned(),
            n_unchanged => format!("orch: no changes in {n_unchanged} stacks\n"),
        };
        (text, n_changed)
    }

    /// Lists the turns that did not start, with the cause: each, or the first of many with the same
    /// cause.
    fn not_run(self, endings: &[Ending], run: Option<&str>) -> String {
        let unconfirmed: HashSet<TurnIndex> = endings
            .iter()
            .filter(|it| it.outcome == Outcome::Unconfirmed)
            .map(|ending| ending.turn)
            .collect();
        // If a retry changes nothing, the turn before it has failed.
        let failed = |turn: TurnIndex| {
            if unconfirmed.contains(&turn) {
                printable(self.turns[turn].stack.as_str()).into_owned()
            } else {
                self.path(turn)
            }
        };
        let why = |ending: &Ending, runs| why_not_run(&ending.outcome, runs, &failed);
        let not_run = endings
            .iter()
            .filter(|ending| why(ending, "runs").is_some());
        let mut text = String::new();
        let mut are_many = false;
        for group in alike(not_run, |ending| why(ending, "runs")) {
            let is_one = group.len() == 1;
            are_many |= !is_one;
            let runs = if is_one { "runs" } else { "they run" };
            let (word, cause) = why(group[0], runs).unwrap_or_default();
            let which = names(&group, |ending| self.path(ending.turn));
            text += &format!("orch: {PALE}{word}{PALE:#} {which}: {cause}\n");
        }
        if let Some(run) = run.filter(|_| are_many) {
            text += &format!("orch: all of them: orch runs show {run}\n");
        }
        text
    }
}

/// Returns the outcome of a turn that did not start, as a word, and the cause, as a clause. `failed` names a turn
/// that others did not run for.
fn why_not_run(
    outcome: &Outcome,
    runs: &str,
    failed: &dyn Fn(TurnIndex) -> String,
) -> Option<(&'static str, String)> {
    let cause = match outcome {
        Outcome::Succeeded | Outcome::Failed(_) | Outcome::Unconfirmed => return None,
        Outcome::Skipped { cause } => {
            let cause = format!("{runs} after {}, which failed", failed(*cause));
            return Some(("skipped", cause));
        }
        Outcome::Cancelled(cause) => cause,
    };
    let cause = match cause {
        CancelCause::Failed(cause) => {
            format!("the run stopped when {} failed", failed(*cause))
        }
        CancelCause::Signal(signal) => {
            format!("the run was interrupted by {}", signal_name(*signal))
        }
        CancelCause::RunTimedOut(timeout) => {
            format!("the run took longer than {}", duration::exact(*timeout))
        }
        CancelCause::Rejected => REJECTED.to_owned(),
        CancelCause::StateLost => STATE_LOST.to_owned(),
        CancelCause::Stuck => "nothing ran before it, and it could not start".to_owned(),
    };
    Some(("cancelled", cause))
}

/// Returns how a turn failed and how long it took, if it failed.
pub fn failure_text(ending: &Ending) -> Option<String> {
    let Outcome::Failed(failure) = &ending.outcome else {
        return None;
    };
    Some(failed(&failure.into(), &after(ending, "after")))
}

/// Returns why a turn failed, without its duration; `None` if it did not fail.
pub fn failure_reason(ending: &Ending) -> Option<String> {
    let Outcome::Failed(failure) = &ending.outcome else {
        return None;
    };
    Some(failed(&failure.into(), "").trim_end().to_owned())
}

fn failed_after(failure: &Failure, elapsed: Duration) -> String {
    failed(
        &failure.into(),
        &format!("after {}", duration::show(elapsed)),
    )
}

/// Returns how long a turn took, and how many attempts if it was more than one.
fn after(ending: &Ending, preposition: &str) -> String {
    failure::after(preposition, ending.attempts, ending.elapsed)
}
