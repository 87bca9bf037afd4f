//! The thread that prints the progress and the output of a run.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use orch::report::{Groups, Progress, RunLogs, RunText, StreamWriters};
use orch::run::event::{Ending, Failure, Outcome, RunEvent, RunSummary, Turns};
use orch::run::turn::TurnIndex;

use super::OutputFilter;
use super::painter::Painter;

/// How often the progress lines change.
const REFRESH: Duration = Duration::from_millis(200);

/// How long a log may be silent before a progress line is printed.
const SILENCE: Duration = Duration::from_mins(1);

/// An event for the printer, with its time.
pub(super) struct TimedEvent(pub(super) Instant, pub(super) RunEvent);

pub(super) struct Printer {
    pub(super) turns: Turns,
    pub(super) show: OutputFilter,
    pub(super) is_quiet: bool,
    pub(super) groups: Groups,
    pub(super) progress: Progress,
    /// Shows progress if there is a terminal.
    pub(super) painter: Option<Painter>,
    pub(super) logs: Arc<RunLogs>,
    pub(super) writers: Arc<Mutex<StreamWriters>>,
    /// Failures and durations of earlier attempts of running turns.
    pub(super) failed: HashMap<TurnIndex, Vec<(Failure, Duration)>>,
    /// The turns that were running at an interrupt, whose ends are not yet printed.
    pub(super) interrupted: HashSet<TurnIndex>,
}

impl Printer {
    /// Prints until the run has ended.
    pub(super) fn print(mut self, messages: &Receiver<TimedEvent>) {
        // Progress lines must not flicker.
        let mut painted = Instant::now();
        let mut silent_since = Instant::now();
        let mut n_writes = 0;
        loop {
            let patience = match self.painter {
                Some(_) => REFRESH.saturating_sub(painted.elapsed()),
                None => SILENCE.saturating_sub(silent_since.elapsed()),
            };
            match messages.recv_timeout(patience) {
                Ok(TimedEvent(_, RunEvent::RunFinished(summary))) => return self.over(&summary),
                Ok(TimedEvent(at, event)) => self.event(at, event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if let Some(painter) = &mut self.painter {
                if painted.elapsed() >= REFRESH {
                    painted = Instant::now();
                    let text = RunText::new(&self.turns);
                    painter.show(&self.progress.lines(text, painted, painter.height()));
                }
            } else if silent_since.elapsed() >= SILENCE {
                silent_since = Instant::now();
                let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
                if writers.n_writes() == n_writes && !self.is_quiet {
                    let text = RunText::new(&self.turns);
                    writers.say(&self.progress.sign_of_life(text, silent_since));
                    self.groups.interrupted();
                }
                n_writes = writers.n_writes();
            }
        }
    }

    fn event(&mut self, at: Instant, event: RunEvent) {
        self.turns.follow(&event);
        self.progress.event(&event, at);
        let text = RunText::new(&self.turns);
        let follows = text
            .follows(&event)
            .filter(|_| !self.is_quiet && self.show != OutputFilter::Silent);
        let lines: Vec<String> = text.trouble(&event).into_iter().chain(follows).collect();
        for line in lines {
            self.groups.interrupted();
            self.aside(|_, _, _, writers| writers.say(&line));
        }
        match event {
            RunEvent::Interrupted { running, .. } => self.interrupted.extend(running),
            RunEvent::Retrying {
                turn,
                failure,
                elapsed,
                ..
            } => {
                let failed = self.failed.entry(turn).or_default();
                failed.push((failure, elapsed));
            }
            RunEvent::Ended(ending) if ending.attempts > 0 => {
                let failed = self.failed.remove(&ending.turn).unwrap_or_default();
                self.ended(&ending, &failed);
            }
            _ => {}
        }
    }

    fn ended(&mut self, ending: &Ending, failed: &[(Failure, Duration)]) {
        let is_failure = matches!(ending.outcome, Outcome::Failed(_));
        let has_title = is_failure || !self.is_quiet;
        match self.show {
            OutputFilter::Errors if !is_failure => {}
            OutputFilter::Grouped | OutputFilter::Errors => {
                self.aside(|groups, text, logs, writers| {
                    groups.print(ending, failed, text, logs, has_title, writers);
                });
            }
            OutputFilter::Prefixed | OutputFilter::None if has_title => {
                let title = RunText::new(&self.turns).ended(ending);
                self.aside(|_, _, _, writers| writers.say(&format!("{title}\n")));
            }
            OutputFilter::Prefixed | OutputFilter::None | OutputFilter::Silent => {}
        }
    }

    fn over(mut self, summary: &RunSummary) {
        let is_quiet = self.is_quiet;
        let turns = self.turns.clone();
        if self.show == OutputFilter::Silent {
            return self.aside(|_, _, _, _| {});
        }
        let interrupted = std::mem::take(&mut self.interrupted);
        self.aside(|groups, text, logs, writers| {
            groups.print_failures(text, logs, &interrupted, writers);
            if !(is_quiet && summary.is_success()) {
                let place = |ending: &Ending| logs.place(&turns, ending);
                writers.say(&text.summary(summary, &interrupted, &place, logs.run()));
            }
        });
    }

    /// Prints a text above the progress lines.
    fn aside(&mut self, print: impl FnOnce(&mut Groups, RunText, &RunLogs, &mut StreamWriters)) {
        if let Some(painter) = &mut self.painter {
            painter.clear();
        }
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let text = RunText::new(&self.turns);
        print(&mut self.groups, text, &self.logs, &mut writers);
        writers.report_problem();
        if self.painter.is_some() {
            writers.end_output();
        }
    }
}
