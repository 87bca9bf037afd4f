//! Text for people: the progress and summary of a run.

use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use crate::event::{CancelCause, Ending, Outcome, Reaction, RunEvent, RunSummary};
use crate::printable::printable;
use crate::stack::{StackIndex, Stacks};

const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const PALE: Style = AnsiColor::Yellow.on_default().bold();

/// Writes the events of a run as lines, and a summary at the end.
pub struct RunText<'a, W: Write> {
    out: W,
    stacks: &'a Stacks,
    command: String,
    is_quiet: bool,
}

impl<'a, W: Write> RunText<'a, W> {
    /// Starts with nothing said. `command` is made printable by the caller.
    pub fn new(out: W, stacks: &'a Stacks, command: String, is_quiet: bool) -> Self {
        RunText {
            out,
            stacks,
            command,
            is_quiet,
        }
    }

    fn path(&self, stack: StackIndex) -> String {
        printable(self.stacks[stack].path.as_str()).into_owned()
    }

    /// Says what happened.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn event(&mut self, event: &RunEvent) -> io::Result<()> {
        match event {
            RunEvent::Started { stack, .. } if !self.is_quiet => {
                let path = self.path(*stack);
                writeln!(self.out, "{BOLD}orch: {path}:{BOLD:#} {}", self.command)
            }
            RunEvent::Interrupted {
                signal,
                reaction,
                running,
            } => {
                let signal = signal_name(*signal);
                let Some(stack) = running.first() else {
                    return writeln!(self.out, "orch: {signal}: nothing new starts");
                };
                let path = self.path(*stack);
                match reaction {
                    Reaction::Interrupt => writeln!(
                        self.out,
                        "orch: {signal}: nothing new starts; waiting for {path} to end (again: terminate it)"
                    ),
                    Reaction::Terminate => {
                        writeln!(
                            self.out,
                            "orch: {signal}: terminating {path} (again: kill it)"
                        )
                    }
                    Reaction::Kill => writeln!(self.out, "orch: {signal}: killing {path}"),
                }
            }
            _ => Ok(()),
        }
    }

    /// Says how the run went: how many stacks ended in which way, and each that did not succeed with
    /// its cause.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn summary(&mut self, summary: &RunSummary) -> io::Result<()> {
        let count = |is: fn(&Outcome) -> bool| {
            summary
                .endings
                .iter()
                .filter(|ending| is(&ending.outcome))
                .count()
        };
        let succeeded = count(|outcome| *outcome == Outcome::Succeeded);
        let counts = [
            (succeeded, "succeeded", GOOD),
            (
                count(|outcome| matches!(outcome, Outcome::Failed(_))),
                "failed",
                BAD,
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
        let all_succeeded = succeeded == summary.endings.len();
        if self.is_quiet && all_succeeded {
            return Ok(());
        }
        // What failed comes last, next to the counts.
        for is_failed in [false, true] {
            for ending in &summary.endings {
                if matches!(ending.outcome, Outcome::Failed(_)) == is_failed {
                    self.unsuccessful(ending)?;
                }
            }
        }
        let parts: Vec<String> = counts
            .iter()
            .filter(|(count, word, _)| *count > 0 || *word == "succeeded")
            .map(|(count, word, style)| format!("{style}{count} {word}{style:#}"))
            .collect();
        writeln!(
            self.out,
            "orch: {} in {}",
            parts.join(", "),
            duration(summary.elapsed)
        )
    }

    fn unsuccessful(&mut self, ending: &Ending) -> io::Result<()> {
        let (word, style, cause) = match &ending.outcome {
            Outcome::Succeeded => return Ok(()),
            Outcome::Failed(failure) => {
                let elapsed = duration(ending.elapsed);
                (
                    "failed",
                    BAD,
                    format!("{} after {elapsed}", printable(&failure.to_string())),
                )
            }
            Outcome::Skipped { cause } => (
                "skipped",
                PALE,
                format!("runs after {}, which failed", self.path(*cause)),
            ),
            Outcome::Cancelled(CancelCause::Failed(cause)) => (
                "cancelled",
                PALE,
                format!("the run stopped when {} failed", self.path(*cause)),
            ),
            Outcome::Cancelled(CancelCause::Signal(signal)) => (
                "cancelled",
                PALE,
                format!("the run was interrupted by {}", signal_name(*signal)),
            ),
            Outcome::Cancelled(CancelCause::RunTimedOut(timeout)) => (
                "cancelled",
                PALE,
                format!("the run took longer than {}", duration(*timeout)),
            ),
            Outcome::Cancelled(CancelCause::Stuck) => (
                "cancelled",
                PALE,
                "nothing ran before it, and it could not start".to_owned(),
            ),
        };
        let path = self.path(ending.stack);
        writeln!(self.out, "orch: {style}{word}{style:#} {path}: {cause}")
    }
}

fn signal_name(signal: i32) -> String {
    match signal {
        1 => "SIGHUP".to_owned(),
        2 => "SIGINT".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    }
}

/// Writes a duration for people: `0.3s`, `2m 05s`, `1h 02m`.
fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{:.1}s", duration.as_secs_f64()),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_precision_that_people_want() {
        assert_eq!(duration(Duration::from_millis(340)), "0.3s");
        assert_eq!(duration(Duration::from_secs(125)), "2m 05s");
        assert_eq!(duration(Duration::from_secs(3725)), "1h 02m");
    }
}
