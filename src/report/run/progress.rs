//! What is going on in a run: what runs and for how long, how much is done, how long it may still
//! take. Time is given, nothing here looks at a clock.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use super::RunText;
use crate::duration;
use crate::project::stack::StackIndex;
use crate::run::event::{Outcome, RunEvent};

/// How many stacks a line for a log names.
const NAMED: usize = 3;

/// Follows a run by its events.
#[derive(Debug)]
pub struct Progress<'a> {
    text: RunText<'a>,
    begun: Instant,
    jobs: NonZeroUsize,
    total: usize,
    failed: usize,
    /// What has been started, and when.
    running: BTreeMap<StackIndex, Instant>,
    /// What has not been started.
    waiting: HashSet<StackIndex>,
    /// How long stacks took in the past.
    past: HashMap<StackIndex, Duration>,
}

impl<'a> Progress<'a> {
    /// Begins a run of these stacks, of which `jobs` run at once. `past` is how long some of them
    /// took before.
    pub fn new(
        text: RunText<'a>,
        begun: Instant,
        jobs: NonZeroUsize,
        sequence: &[StackIndex],
        past: HashMap<StackIndex, Duration>,
    ) -> Self {
        Progress {
            text,
            begun,
            jobs,
            total: sequence.len(),
            failed: 0,
            running: BTreeMap::new(),
            waiting: sequence.iter().copied().collect(),
            past,
        }
    }

    /// Takes note of what happened.
    pub fn event(&mut self, event: &RunEvent, now: Instant) {
        match event {
            RunEvent::Started { stack, .. } => {
                self.waiting.remove(stack);
                self.running.entry(*stack).or_insert(now);
            }
            RunEvent::Ended(ending) => {
                self.waiting.remove(&ending.stack);
                self.running.remove(&ending.stack);
                self.failed += usize::from(matches!(ending.outcome, Outcome::Failed(_)));
            }
            _ => {}
        }
    }

    /// Returns lines about all this, at most `height`: what runs, the longest first, and the counts.
    pub fn lines(&self, now: Instant, height: usize) -> Vec<String> {
        let room = height.saturating_sub(1).max(1);
        let running = self.running();
        let shown = if running.len() > room {
            room - 1
        } else {
            running.len()
        };
        let mut lines: Vec<String> = running[..shown]
            .iter()
            .map(|&(stack, since)| {
                let path = self.text.path(stack);
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

    /// Returns a line for a log where nothing else has been printed for long.
    pub fn sign_of_life(&self, now: Instant) -> String {
        let running = self.running();
        let mut parts: Vec<String> = running
            .iter()
            .take(NAMED)
            .map(|&(stack, since)| {
                let elapsed = duration::show(now.saturating_duration_since(since));
                format!("{} for {elapsed}", self.text.path(stack))
            })
            .collect();
        if running.is_empty() {
            parts.push("nothing".to_owned());
        }
        if running.len() > NAMED {
            parts.push(format!("{} more", running.len() - NAMED));
        }
        format!(
            "orch: running: {}; {}\n",
            parts.join(", "),
            self.counts(now)
        )
    }

    fn running(&self) -> Vec<(StackIndex, Instant)> {
        let mut running: Vec<_> = self
            .running
            .iter()
            .map(|(&stack, &at)| (stack, at))
            .collect();
        running.sort_by_key(|&(stack, since)| (since, stack));
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

    /// Returns how long the rest takes if it takes as long as before; nothing if that is known of
    /// less than half of it. Stacks of which it is not known count as the mean of the others.
    fn estimate(&self, now: Instant) -> Option<Duration> {
        let left_of = |(stack, since): (&StackIndex, Option<Instant>)| {
            let elapsed =
                since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
            Some(self.past.get(stack)?.saturating_sub(elapsed))
        };
        let running = self
            .running
            .iter()
            .map(|(stack, &since)| (stack, Some(since)));
        let waiting = self.waiting.iter().map(|stack| (stack, None));
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
    use crate::report::run::tests::stacks;
    use crate::run::event::{Ending, Failure};

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    fn started(stack: usize) -> RunEvent {
        let stack = StackIndex::new(stack);
        RunEvent::Started { stack, attempt: 1 }
    }

    fn ended(stack: usize, outcome: Outcome) -> RunEvent {
        RunEvent::Ended(Ending {
            stack: StackIndex::new(stack),
            outcome,
            elapsed: seconds(1),
            attempts: 1,
        })
    }

    /// Calls `check` with a run of eight stacks in which three have ended after ten seconds, and four
    /// are running since one to four seconds.
    fn check(past: &[(usize, u64)], check: impl FnOnce(&Progress, Instant)) {
        let stacks = stacks(8);
        let sequence: Vec<StackIndex> = (0..8).map(StackIndex::new).collect();
        let past = past
            .iter()
            .map(|&(stack, time)| (StackIndex::new(stack), seconds(time)));
        let begun = Instant::now();
        let jobs = NonZeroUsize::new(4).expect("it is four");
        let text = RunText::new(&stacks);
        let mut progress = Progress::new(text, begun, jobs, &sequence, past.collect());
        for stack in 0..3 {
            progress.event(&started(stack), begun);
        }
        progress.event(&ended(0, Outcome::Succeeded), begun);
        progress.event(&ended(1, Outcome::Failed(Failure::Exited(1))), begun);
        progress.event(&ended(2, Outcome::Succeeded), begun);
        for stack in 3..7 {
            progress.event(&started(stack), begun + seconds(3 + stack as u64));
        }
        check(&progress, begun + seconds(10));
    }

    #[test]
    fn lines_are_as_many_as_there_is_room_for() {
        check(&[], |progress, now| {
            let counts = "3 of 8 done, 1 failed, 10.0s";
            let all = ["/s3 4.0s", "/s4 3.0s", "/s5 2.0s", "/s6 1.0s", counts];
            assert_eq!(progress.lines(now, 24), all);
            assert_eq!(progress.lines(now, 5), all);
            let some = ["/s3 4.0s", "/s4 3.0s", "and 2 more", counts];
            assert_eq!(progress.lines(now, 4), some);
            assert_eq!(progress.lines(now, 2), ["4 running", counts]);
            assert_eq!(progress.lines(now, 0), ["4 running", counts]);
        });
    }

    #[test]
    fn a_sign_of_life_names_what_runs_the_longest() {
        check(&[], |progress, now| {
            assert_eq!(
                progress.sign_of_life(now),
                "orch: running: /s3 for 4.0s, /s4 for 3.0s, /s5 for 2.0s, 1 more; 3 of 8 done, 1 failed, 10.0s\n"
            );
        });
    }

    #[test]
    fn an_estimate_needs_the_past_of_most_stacks() {
        let estimate = |past: &[(usize, u64)]| {
            let mut found = None;
            check(past, |progress, now| found = progress.estimate(now));
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
        // What takes the longest is not to be shared.
        assert_eq!(estimate(&[(3, 104), (4, 7), (5, 6)]), Some(100));
        // What takes longer than ever may end at any moment.
        assert_eq!(estimate(&[(3, 1), (4, 1), (5, 1), (6, 1), (7, 0)]), Some(0));
    }
}
