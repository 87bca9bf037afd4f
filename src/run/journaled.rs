//! Translates a run into the words of its journal, and back.
//!
//! The journal doesn't know runs.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::project::attempt::ExitCodes;
use crate::project::config::TagLimit;
use crate::record::journal::{
    self, Counts, DroppedRecord, EndedTurnRecord, EvaluatedRecord, Event, Finished, FollowRecord,
    JournalEntry, ReasonRecord, Word,
};
use crate::run::evaluated::{Follow, FollowReason, TurnEvaluation, WhyDropped};
use crate::run::event::{CancelCause, Ending, Failure, Outcome, RunEvent, RunSummary, Turns};
use crate::run::settings::RunSettings;
use crate::run::turn::{Operation, TurnIndex};

/// Returns a duration in whole milliseconds.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the journal line for an event, or `None` if the header already says it.
pub fn entry(at: Timestamp, happened: &RunEvent, turns: &Turns) -> Option<JournalEntry> {
    let mut entry = JournalEntry::new(at, event(happened, turns)?);
    let (turn, step) = match happened {
        RunEvent::Added { turn, .. }
        | RunEvent::Started { turn, .. }
        | RunEvent::Retrying { turn, .. }
        | RunEvent::TimedOut { turn, .. }
        | RunEvent::Killed(turn)
        | RunEvent::OutputLost { turn, .. }
        | RunEvent::Ended(Ending { turn, .. }) => (turn, None),
        RunEvent::StepStarted { turn, step } => (turn, Some(step + 1)),
        RunEvent::Evaluated(evaluated) => {
            let earlier = evaluated.earlier.as_ref().map(|(_, turn)| *turn);
            entry.turn = match evaluated.turn {
                Some(turn) => further(turns, turn),
                None => earlier.filter(|turn| *turn > 1),
            };
            return Some(entry);
        }
        RunEvent::RunStarted { .. }
        | RunEvent::WantsTerminal { .. }
        | RunEvent::RunTimedOut { .. }
        | RunEvent::Interrupted { .. }
        | RunEvent::NotKept(_)
        | RunEvent::RunFinished(_) => return Some(entry),
    };
    entry.turn = further(turns, *turn);
    entry.operation = match turns[*turn].operation {
        Operation::Run => None,
        Operation::Plan => Some("ask".to_owned()),
        Operation::Apply => Some("apply".to_owned()),
        Operation::Destroy => Some("destroy".to_owned()),
    };
    entry.step = step.and_then(|step| u32::try_from(step).ok());
    Some(entry)
}

fn event(event: &RunEvent, turns: &Turns) -> Option<Event> {
    let path = |turn: TurnIndex| turns[turn].stack.to_string();
    let paths = |of: &[TurnIndex]| of.iter().copied().map(path).collect();
    Some(match event {
        // The failure of the turn records the cause.
        RunEvent::RunStarted { .. } | RunEvent::WantsTerminal { .. } | RunEvent::NotKept(_) => {
            return None;
        }
        RunEvent::Added { turn, follows, .. } => Event::Added {
            stack: path(*turn),
            follows: follows.as_ref().map(|reason| reason_record(reason, turns)),
        },
        RunEvent::StepStarted { turn, .. } => Event::StepStarted { stack: path(*turn) },
        RunEvent::Started { turn, attempt } => Event::Started {
            stack: path(*turn),
            attempt: *attempt,
        },
        RunEvent::Retrying {
            turn,
            attempt,
            failure,
            elapsed,
            wait,
        } => Event::Retrying {
            stack: path(*turn),
            attempt: *attempt,
            failure: failure.into(),
            elapsed_ms: milliseconds(*elapsed),
            wait_ms: milliseconds(*wait),
        },
        RunEvent::TimedOut {
            turn,
            timeout,
            grace,
        } => Event::TimedOut {
            stack: path(*turn),
            timeout_ms: milliseconds(*timeout),
            grace_ms: milliseconds(*grace),
        },
        RunEvent::RunTimedOut {
            timeout,
            grace,
            running,
        } => Event::RunTimedOut {
            timeout_ms: milliseconds(*timeout),
            grace_ms: milliseconds(*grace),
            running: paths(running),
        },
        RunEvent::Killed(turn) => Event::Killed { stack: path(*turn) },
        RunEvent::OutputLost { turn, problem } => Event::OutputLost {
            stack: path(*turn),
            problem: problem.clone(),
        },
        RunEvent::Interrupted {
            signal,
            reaction,
            running,
            is_evaluating: _,
        } => Event::Interrupted {
            signal: *signal,
            reaction: Word::Known(*reaction),
            running: paths(running),
        },
        RunEvent::Ended(ending) => Event::Ended(ended(ending, turns)),
        RunEvent::Evaluated(evaluated) => Event::Evaluated(evaluated_record(evaluated, turns)),
        RunEvent::RunFinished(summary) => Event::Finished(finished(summary)),
    })
}

/// Returns which turn of its stack a turn is, from 1, unless it is the first.
fn further(turns: &Turns, turn: TurnIndex) -> Option<u32> {
    Some(turns.position_at_stack(turn)).filter(|&position| position > 1)
}

fn reason_record(reason: &FollowReason, turns: &Turns) -> ReasonRecord {
    let (run, turn) = match &reason.earlier {
        Some((run, number)) => (
            Some(run.clone()),
            Some(*number).filter(|number| *number > 1),
        ),
        None => (None, reason.after.and_then(|turn| further(turns, turn))),
    };
    ReasonRecord {
        policies: reason.policies.clone(),
        stack: reason.stack.to_string(),
        run,
        turn,
    }
}

fn evaluated_record(evaluated: &TurnEvaluation, turns: &Turns) -> EvaluatedRecord {
    let follows = |follows: &[Follow]| {
        let record = |follow: &Follow| FollowRecord {
            stack: follow.stack.to_string(),
            turn: further(turns, follow.turn),
            policies: follow.policies.clone(),
        };
        follows.iter().map(record).collect()
    };
    let dropped = evaluated.dropped.iter().map(|dropped| {
        let (why, chain) = match &dropped.why {
            WhyDropped::Unknown => ("unknown", None),
            WhyDropped::Ambiguous { .. } => ("ambiguous", None),
            WhyDropped::Excluded => ("excluded", None),
            WhyDropped::Limit { setting, chain, .. } => (*setting, Some(chain.clone())),
        };
        DroppedRecord {
            name: dropped.name.clone(),
            policies: dropped.policies.clone(),
            why: why.to_owned(),
            chain,
        }
    });
    EvaluatedRecord {
        stack: evaluated.stack.to_string(),
        run: evaluated.earlier.as_ref().map(|(run, _)| run.clone()),
        state: evaluated.state.word().to_owned(),
        policies: evaluated.policies.clone(),
        queued: follows(&evaluated.queued),
        joined: follows(&evaluated.joined),
        dropped: dropped.collect(),
    }
}

fn finished(summary: &RunSummary) -> Finished {
    let mut counts = Counts::default();
    // The end of the retry reports a retried turn.
    let is_counted = |ending: &&Ending| !summary.replaced.contains(&ending.turn);
    for ending in summary.endings.iter().filter(is_counted) {
        counts.add(&(&ending.outcome).into());
    }
    Finished {
        status: summary.exit_status(),
        elapsed_ms: milliseconds(summary.elapsed),
        counts,
    }
}

fn ended(ending: &Ending, turns: &Turns) -> EndedTurnRecord {
    let path = |turn: TurnIndex| turns[turn].stack.to_string();
    let (failure, cause) = match &ending.outcome {
        Outcome::Succeeded | Outcome::Unconfirmed => (None, None),
        Outcome::Failed(failure) => (Some(failure.into()), None),
        Outcome::Skipped { cause } => {
            let stack = path(*cause);
            (None, Some(journal::CauseRecord::Failed { stack }))
        }
        Outcome::Cancelled(cause) => {
            let cause = match *cause {
                CancelCause::Failed(stack) => journal::CauseRecord::Failed { stack: path(stack) },
                CancelCause::Signal(signal) => journal::CauseRecord::Signal { signal },
                CancelCause::RunTimedOut(timeout) => journal::CauseRecord::RunTimedOut {
                    timeout_ms: milliseconds(timeout),
                },
                CancelCause::Rejected => journal::CauseRecord::Rejected,
                CancelCause::StateLost => journal::CauseRecord::StateLost,
                CancelCause::Stuck => journal::CauseRecord::Stuck,
            };
            (None, Some(cause))
        }
    };
    EndedTurnRecord {
        stack: path(ending.turn),
        outcome: (&ending.outcome).into(),
        failure,
        cause,
        elapsed_ms: milliseconds(ending.elapsed),
        attempts: ending.attempts,
        changes: ending.changes,
    }
}

impl From<&Outcome> for journal::OutcomeRecord {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => journal::OutcomeRecord::Succeeded,
            Outcome::Failed(_) => journal::OutcomeRecord::Failed,
            Outcome::Unconfirmed => journal::OutcomeRecord::Unconfirmed,
            Outcome::Skipped { .. } => journal::OutcomeRecord::Skipped,
            Outcome::Cancelled(_) => journal::OutcomeRecord::Cancelled,
        }
    }
}

impl From<&Failure> for journal::FailureRecord {
    fn from(failure: &Failure) -> Self {
        match failure {
            Failure::Exited(status) => journal::FailureRecord::Exited { status: *status },
            Failure::Signalled(signal) => journal::FailureRecord::Signalled { signal: *signal },
            Failure::Interrupted(signal) => journal::FailureRecord::Interrupted { signal: *signal },
            Failure::TimedOut(timeout) => journal::FailureRecord::TimedOut {
                timeout_ms: milliseconds(*timeout),
            },
            Failure::RunTimedOut(timeout) => journal::FailureRecord::RunTimedOut {
                timeout_ms: milliseconds(*timeout),
            },
            Failure::NotStarted(problem) => journal::FailureRecord::NotStarted {
                problem: problem.clone(),
            },
            Failure::Refused(problem) => journal::FailureRecord::Refused {
                problem: problem.clone(),
            },
            Failure::Condition(problem) => journal::FailureRecord::Condition {
                problem: problem.clone(),
            },
            Failure::WantedTerminal => journal::FailureRecord::WantedTerminal,
            Failure::Lost(problem) => journal::FailureRecord::Lost {
                problem: problem.clone(),
            },
        }
    }
}

impl From<&RunSettings> for journal::SettingsRecord {
    fn from(settings: &RunSettings) -> Self {
        let limits = settings.limits.iter().map(|limit| journal::TagLimitRecord {
            tag: limit.tag.clone(),
            at_once: limit.at_once.get(),
        });
        journal::SettingsRecord {
            on_error: Word::Known(settings.on_error()),
            jobs: settings.jobs().get(),
            limits: limits.collect(),
            timeout_ms: settings.timeout.map(milliseconds),
            run_timeout_ms: settings.run_timeout.map(milliseconds),
            grace_ms: settings.grace.map(milliseconds),
            retries: settings.retries,
            retry_on_exit: settings.retry_on_exit.clone(),
            retry_on_output: settings.retry_on_output.clone(),
            retry_backoff_ms: settings.retry_backoff.map(milliseconds),
            success_exit_codes: settings.exit_codes.success.as_deref().map(<[i32]>::to_vec),
            changes_exit_codes: settings.exit_codes.changes.as_deref().map(<[i32]>::to_vec),
            detailed_exit_code: settings.detailed_exit_code,
            recording: settings.recording.map(Word::Known),
            sharing: settings.sharing,
        }
    }
}

impl RunSettings {
    /// Returns the settings in a journal, without `on_error` and `recording`: an unknown word in these matters only
    /// if no flag sets them.
    pub fn recorded(settings: &journal::SettingsRecord) -> Self {
        let limits = settings.limits.iter().filter_map(|limit| {
            Some(TagLimit {
                tag: limit.tag.clone(),
                at_once: NonZeroUsize::new(limit.at_once)?,
            })
        });
        RunSettings {
            on_error: None,
            jobs: NonZeroUsize::new(settings.jobs),
            limits: limits.collect(),
            timeout: settings.timeout_ms.map(Duration::from_millis),
            run_timeout: settings.run_timeout_ms.map(Duration::from_millis),
            grace: settings.grace_ms.map(Duration::from_millis),
            retries: settings.retries,
            retry_on_exit: settings.retry_on_exit.clone(),
            retry_on_output: settings.retry_on_output.clone(),
            retry_backoff: settings.retry_backoff_ms.map(Duration::from_millis),
            exit_codes: ExitCodes {
                success: settings.success_exit_codes.as_deref().map(Arc::from),
                changes: settings.changes_exit_codes.as_deref().map(Arc::from),
                success_on_interrupt: None,
            },
            detailed_exit_code: settings.detailed_exit_code,
            recording: None,
            sharing: settings.sharing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::ProjectPath;
    use crate::run::turn::{Step, Turn};

    #[test]
    fn further_turns_and_steps_of_a_stack_are_told_apart() {
        let steps = [Step::Command("plan".into()), Step::Command("apply".into())];
        let first = Turn::of_command(ProjectPath::root().join("a"), &steps.into());
        let mut second = first.clone();
        second.operation = Operation::Destroy;
        let turn = TurnIndex::new(1);
        let mut turns = Turns::default();
        let events = [
            RunEvent::RunStarted {
                turns: [first].into(),
            },
            RunEvent::Started {
                turn: TurnIndex::new(0),
                attempt: 1,
            },
            RunEvent::Added {
                turn,
                added: second,
                follows: None,
            },
            RunEvent::Started { turn, attempt: 1 },
            RunEvent::StepStarted { turn, step: 1 },
        ];
        let mut lines = Vec::new();
        for event in &events {
            turns.follow(event);
            let entry = entry(Timestamp::UNIX_EPOCH, event, &turns);
            lines.extend(entry.map(|entry| serde_json::to_string(&entry).unwrap()));
        }
        let at = r#""at":"1970-01-01T00:00:00Z""#;
        let second = r#""turn":2,"operation":"destroy""#;
        assert_eq!(
            lines,
            [
                format!(r#"{{{at},"event":"started","stack":"/a","attempt":1}}"#),
                format!(r#"{{{at},{second},"event":"added","stack":"/a"}}"#),
                format!(r#"{{{at},{second},"event":"started","stack":"/a","attempt":1}}"#),
                format!(r#"{{{at},{second},"step":2,"event":"step-started","stack":"/a"}}"#),
            ]
        );
    }
}
