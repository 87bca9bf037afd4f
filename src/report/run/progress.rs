//! The progress of a run: the running stacks and their durations, the finished part, an estimate of
//! the rest. The caller passes the time; nothing here reads a clock.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use super::RunText;
use crate::duration;
use crate::printable::first_of;
use crate::run::event::{Outcome, RunEvent};
use crate::run::turn::{Turn, TurnIndex};

/// How many turns a line for a log names at most.
const NAMED: usize = 3;

/// Follows a run by its events.
pub struct Progress {
    begun: Instant,
    jobs: NonZeroUsize,
    total: usize,
    failed: usize,
    running: BTreeMap<TurnIndex, Instant>,
    /// The turns that have not started.
    waiting: HashSet<TurnIndex>,
    /// The earlier durations of these stacks' turns, by path.
    past: HashMap<String, Duration>,
    /// The earlier durations of this run's turns that have not ended.
    expected: HashMap<TurnIndex, Duration>,
}

impl Progress {
    /// Begins a run in which `jobs` turns run at once. `past` has earlier durations of stacks, by
    /// path.
    pub fn new(begun: Instant, jobs: NonZeroUsize, past: HashMap<String, Duration>) -> Self {
        Progress {
            begun,
            jobs,
            total: 0,
            failed: 0,
            running: BTreeMap::new(),
            waiting: HashSet::new(),
            past,
            expected: HashMap::new(),
        }
    }

    pub fn event(&mut self, event: &RunEvent, now: Instant) {
        match event {
            RunEvent::RunStarted { turns } => {
                for (number, turn) in turns.iter().enumerate() {
                    self.add(TurnIndex::new(number), turn);
                }
            }
            RunEvent::Added { turn, added, .. } => self.add(*turn, added),
            RunEvent::Started { turn, .. } => {
                self.waiting.remove(turn);
                self.running.entry(*turn).or_insert(now);
            }
            RunEvent::Ended(ending) => {
                self.waiting.remove(&ending.turn);
                self.running.remove(&ending.turn);
                self.failed += usize::from(matches!(ending.outcome, Outcome::Failed(_)));
            }
            _ => {}
        }
    }

    fn add(&mut self, index: TurnIndex, turn: &Turn) {
        self.total += 1;
        self.waiting.insert(index);
        if let Some(past) = self.past.get(turn.stack.as_str()) {
            self.expected.insert(index, *past);
        }
    }

    /// Returns at most `height` lines: the running turns, the longest first, and the counts.
    pub fn lines(&self, text: RunText, now: Instant, height: usize) -> Vec<String> {
        let room = height.saturating_sub(1).max(1);
        let running = self.running();
        let shown = if running.len() > room {
            room - 1
        } else {
            running.len()
        };
        let mut lines: Vec<String> = running[..shown]
            .iter()
            .map(|&(turn, since)| {
                let path = text.path(turn);
                format!(
                    "{path} {}",
                    duration::show(now.saturating_duration_since(since))
                )
            })
            .collect();
        match running.len() - shown {
            0 => {}
            left if shown == 0 => lines.push(format!("{left} running")),
            left => lines.push(format!("and {left} more")),
        }
        lines.push(self.counts(now));
        lines
    }

    /// Returns a line for a log that has been silent for long.
    pub fn sign_of_life(&self, text: RunText, now: Instant) -> String {
        let running = self.running();
        let named = running.iter().map(|&(turn, since)| {
            let elapsed = duration::show(now.saturating_duration_since(since));
            format!("{} for {elapsed}", text.path(turn))
        });
        let named = match running.len() {
            0 => "nothing".to_owned(),
            _ => first_of(named, NAMED),
        };
        format!("orch: running: {named}; {}\n", self.counts(now))
    }

    fn running(&self) -> Vec<(TurnIndex, Instant)> {
        let mut running: Vec<_> = self.running.iter().map(|(&turn, &at)| (turn, at)).collect();
        running.sort_by_key(|&(turn, since)| (since, turn));
        running
    }

    fn counts(&self, now: Instant) -> String {
        let done = self.total - self.waiting.len() - self.running.len();
        let mut text = format!("{done} of {} done", self.total);
        if self.failed > 0 {
            text += &format!(", {} failed", self.failed);
        }
        text += &format!(
            ", {}",
            duration::show(now.saturating_duration_since(self.begun))
        );
        if let Some(left) = self.estimate(now) {
            text += &format!(", about {} left", duration::show(left));
        }
        text
    }

    /// Returns how long the rest takes if each turn takes as long as in the past, or `None` if the
    /// past is known for less than half of it. Turns without a past count as the mean of the
    /// others.
    fn estimate(&self, now: Instant) -> Option<Duration> {
        let left_of = |(turn, since): (&TurnIndex, Option<Instant>)| {
            let elapsed =
                since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
            Some(self.expected.get(turn)?.saturating_sub(elapsed))
        };
        let running = self
            .running
            .iter()
            .map(|(turn, &since)| (turn, Some(since)));
        let waiting = self.waiting.iter().map(|turn| (turn, None));
        let known: Vec<Duration> = running.chain(waiting).filter_map(left_of).collect();
        let n_left = self.running.len() + self.waiting.len();
        if known.is_empty() || known.len() * 2 < n_left {
            return None;
        }
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let sum: Duration = known.iter().sum();
        let sum = sum.saturating_mul(number(n_left)) / number(known.len());
        let longest = known.iter().max().copied()?;
        Some(longest.max(sum / number(self.jobs.get())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::run::tests::turns;
    use crate::run::event::{Ending, Failure};

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    fn started(turn: usize) -> RunEvent {
        let turn = TurnIndex::new(turn);
        RunEvent::Started { turn, attempt: 1 }
    }

    fn ended(turn: usize, outcome: Outcome) -> RunEvent {
        RunEvent::Ended(Ending {
            turn: TurnIndex::new(turn),
            outcome,
            elapsed: seconds(1),
            attempts: 1,
            changes: None,
        })
    }

    /// Calls `check` with a run of eight stacks in which three have ended after ten seconds, and four
    /// are running since one to four seconds.
    fn check(past: &[(usize, u64)], check: impl FnOnce(&Progress, RunText, Instant)) {
        let turns = turns(8);
        let past = past
            .iter()
            .map(|&(stack, time)| (format!("/s{stack}"), seconds(time)));
        let begun = Instant::now();
        let jobs = NonZeroUsize::new(4).expect("it is four");
        let mut progress = Progress::new(begun, jobs, past.collect());
        let all = turns.iter().map(|(_, turn)| turn.clone());
        let started_with = RunEvent::RunStarted {
            turns: all.collect(),
        };
        progress.event(&started_with, begun);
        for stack in 0..3 {
            progress.event(&started(stack), begun);
        }
        progress.event(&ended(0, Outcome::Succeeded), begun);
        progress.event(&ended(1, Outcome::Failed(Failure::Exited(1))), begun);
        progress.event(&ended(2, Outcome::Succeeded), begun);
        for stack in 3..7 {
            progress.event(&started(stack), begun + seconds(3 + stack as u64));
        }
        check(&progress, RunText::new(&turns), begun + seconds(10));
    }

    #[test]
    fn lines_are_as_many_as_there_is_room_for() {
        check(&[], |progress, text, now| {
            let counts = "3 of 8 done, 1 failed, 10.0s";
            let all = ["/s3 4.0s", "/s4 3.0s", "/s5 2.0s", "/s6 1.0s", counts];
            assert_eq!(progress.lines(text, now, 24), all);
            assert_eq!(progress.lines(text, now, 5), all);
            let some = ["/s3 4.0s", "/s4 3.0s", "and 2 more", counts];
            assert_eq!(progress.lines(text, now, 4), some);
            assert_eq!(progress.lines(text, now, 2), ["4 running", counts]);
            assert_eq!(progress.lines(text, now, 0), ["4 running", counts]);
        });
    }

    #[test]
    fn progress_names_the_longest_running_stack() {
        check(&[], |progress, text, now| {
            assert_eq!(
                progress.sign_of_life(text, now),
                "orch: running: /s3 for 4.0s, /s4 for 3.0s, /s5 for 2.0s and 1 more; 3 of 8 done, 1 failed, 10.0s\n"
            );
        });
    }

    #[test]
    fn an_estimate_needs_the_past_of_most_stacks() {
        let estimate = |past: &[(usize, u64)]| {
            let mut found = None;
            check(past, |progress, _, now| found = progress.estimate(now));
            found.map(|left| left.as_secs())
        };
        assert_eq!(estimate(&[]), None);
        assert_eq!(
            estimate(&[(0, 9), (1, 9), (2, 9), (3, 9), (4, 9)]),
            None,
            "2 of 5"
        );
        // Each has four seconds left, so twenty in all, four at once.
        let alike = [(3, 8), (4, 7), (5, 6), (6, 5), (7, 4)];
        assert_eq!(estimate(&alike), Some(5));
        assert_eq!(
            estimate(&alike[..3]),
            Some(5),
            "the others count as the mean"
        );
        // The longest turn cannot be shared.
        assert_eq!(estimate(&[(3, 104), (4, 7), (5, 6)]), Some(100));
        // A turn that takes longer than before may end at any moment.
        assert_eq!(estimate(&[(3, 1), (4, 1), (5, 1), (6, 1), (7, 0)]), Some(0));
    }
}
