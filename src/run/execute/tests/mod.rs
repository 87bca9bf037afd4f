//! The loop with commands that are no processes: what it decides when things coincide.

mod turns;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::rc::Rc;
use std::sync::Arc;

use regex::bytes::RegexSet;

use super::interruption::ECHO;
use super::*;
use crate::path::ProjectPath;
use crate::project::attempt::Retry;
use crate::run::event::{CancelCause, Outcome, RunEvent, RunSummary};
use crate::run::schedule::OnError;
use crate::run::turn::Step;
use crate::selection::graph::Precedence;

const HOUR: Duration = Duration::from_hours(1);

/// Prepares a run of turns of one step that do not depend on each other.
fn plan(n_turns: usize, on_error: OnError, at_once: usize) -> Execution {
    plan_with(n_turns, &[], on_error, at_once)
}

/// Prepares a run of turns, the first of each of these pairs before the second.
fn plan_with(n_turns: usize, pairs: &[(u32, u32)], on_error: OnError, at_once: usize) -> Execution {
    let edges = pairs.iter().map(|&(from, to)| (from, to, true));
    let precedence = Precedence::from_edges(n_turns, n_turns, edges);
    let schedule = Schedule::new(precedence, (0..n_turns).zip(0..))
        .on_error(on_error)
        .at_once(NonZeroUsize::new(at_once).unwrap(), &[]);
    Execution {
        schedule,
        turns: (0..n_turns).map(|number| turn(number, 1)).collect(),
        attempts: vec![Attempts::default(); n_turns],
        timeout: None,
        grace: HOUR,
        detailed_exit_code: false,
        had_changes: false,
        left_out_status: 0,
        n_earlier: 0,
        is_rejected: false,
    }
}

/// A turn of so many commands.
fn turn(number: usize, n_steps: usize) -> Turn {
    let stack = ProjectPath::root().join(&format!("s{number}"));
    let step = |number: usize| Step::Command(format!("{number}").into());
    Turn::of_command(stack, &(0..n_steps).map(step).collect())
}

const A: TurnIndex = TurnIndex::new(0);
const B: TurnIndex = TurnIndex::new(1);
const C: TurnIndex = TurnIndex::new(2);

/// What the world knows of the commands that run.
#[derive(Default)]
struct World {
    running: BTreeMap<TurnIndex, StepReporter>,
    /// The steps that were started, in that order.
    steps: Vec<(TurnIndex, usize)>,
    reactions: Vec<(TurnIndex, Reaction)>,
    /// Whether not even being killed ends a command.
    is_immortal: bool,
}

impl World {
    fn end(&mut self, turn: TurnIndex, result: Result<(), Failure>) {
        let end = self.running.remove(&turn).expect("it is running");
        end.tell(StepEnd {
            result,
            changes: None,
            output_matches: false,
            output_lost: None,
        });
    }
}

type Shared = Rc<RefCell<World>>;

/// Starts commands that do what a test says.
struct Fake<S>(Shared, S);

struct FakeCommand(Shared, TurnIndex);

impl<S: FnMut(&mut World, TurnIndex, u32) -> Result<(), Failure>> Executor for Fake<S> {
    type Command = FakeCommand;

    fn start(&mut self, start: StepStart<'_, FakeCommand>) -> Result<FakeCommand, Failure> {
        let mut world = self.0.borrow_mut();
        world.steps.push((start.index, start.step));
        assert_eq!(start.previous.is_some(), start.step > 0);
        world.running.insert(start.index, start.end);
        (self.1)(&mut world, start.index, start.attempt)?;
        Ok(FakeCommand(self.0.clone(), start.index))
    }
}

impl Control for FakeCommand {
    fn react(&self, reaction: Reaction, _signal: Option<&Signal>) -> bool {
        let mut world = self.0.borrow_mut();
        world.reactions.push((self.1, reaction));
        if reaction == Reaction::Kill && !world.is_immortal {
            world.end(self.1, Err(Failure::Signalled(9)));
        }
        true
    }
}

fn interrupt() -> Message {
    Message::Signal(signal(2))
}

fn signal(number: i32) -> Signal {
    Signal {
        number,
        from_process: true,
        at: Instant::now(),
    }
}

fn retrying(backoff: Duration) -> Attempts {
    Attempts {
        timeout: None,
        retry: Some(Arc::new(Retry {
            attempts: NonZeroU32::new(3).unwrap(),
            backoff,
            on_exit: vec![1],
            on_output: RegexSet::empty(),
        })),
        ..Attempts::default()
    }
}

fn outcome(summary: &RunSummary, turn: TurnIndex) -> Outcome {
    let mut endings = summary.endings.iter().filter(|it| it.turn == turn);
    let ending = endings.next().expect("each turn ends");
    assert!(endings.next().is_none(), "once");
    ending.outcome.clone()
}

fn pass(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() <= time {
        std::hint::spin_loop();
    }
}

#[test]
fn the_time_of_the_run_is_over_even_if_starting_keeps_the_loop_busy() {
    let mut plan = plan(3, OnError::Continue, 1);
    let timeout = Duration::from_millis(2);
    plan.timeout = Some(timeout);
    let failure = Failure::NotStarted("no".to_owned());
    let mut fake = Fake(Shared::default(), |_: &mut World, _, _| {
        pass(timeout);
        Err(failure.clone())
    });
    let summary = execute(plan, &mut fake, &Inbox::without_signals(), &mut |_| {});
    assert_eq!(outcome(&summary, A), Outcome::Failed(failure.clone()));
    for turn in [B, C] {
        let cause = CancelCause::RunTimedOut(timeout);
        assert_eq!(outcome(&summary, turn), Outcome::Cancelled(cause));
    }
}

#[test]
fn a_run_that_is_done_is_not_late() {
    let mut plan = plan(1, OnError::Stop, 1);
    let timeout = Duration::from_millis(2);
    plan.timeout = Some(timeout);
    let mut fake = Fake(Shared::default(), |world: &mut World, turn, _| {
        pass(timeout);
        world.end(turn, Ok(()));
        Ok(())
    });
    let mut is_late = false;
    let summary = execute(plan, &mut fake, &Inbox::without_signals(), &mut |event| {
        is_late |= matches!(event, RunEvent::RunTimedOut { .. });
    });
    assert!(summary.is_success() && !is_late);
}

#[test]
fn a_signal_and_then_a_timeout_interrupt_once() {
    let mut plan = plan(1, OnError::Stop, 1);
    let timeout = Duration::from_nanos(1);
    let attempts = Attempts {
        timeout: Some(timeout),
        ..Attempts::default()
    };
    plan.attempts[A.get()] = attempts;
    plan.grace = Duration::ZERO;
    let inbox = Inbox::without_signals();
    let sender = inbox.sender.clone();
    let world = Shared::default();
    let mut fake = Fake(world.clone(), |_: &mut World, _, _| {
        sender.send(interrupt()).unwrap();
        Ok(())
    });
    let summary = execute(plan, &mut fake, &inbox, &mut |_| {});
    let expected = [(A, Reaction::Interrupt), (A, Reaction::Kill)];
    assert_eq!(world.borrow().reactions, expected);
    assert_eq!(summary.signal, Some(2));
    let failure = Failure::TimedOut(timeout);
    assert_eq!(outcome(&summary, A), Outcome::Failed(failure));
}

#[test]
fn a_timeout_and_then_a_signal_interrupt_once() {
    let mut plan = plan(1, OnError::Stop, 1);
    let timeout = Duration::from_nanos(1);
    let attempts = Attempts {
        timeout: Some(timeout),
        ..Attempts::default()
    };
    plan.attempts[A.get()] = attempts;
    let inbox = Inbox::without_signals();
    let sender = inbox.sender.clone();
    let world = Shared::default();
    let mut fake = Fake(world.clone(), |_: &mut World, _, _| Ok(()));
    let summary = execute(plan, &mut fake, &inbox, &mut |event| match event {
        RunEvent::TimedOut { .. } => sender.send(interrupt()).unwrap(),
        RunEvent::Interrupted { running, .. } => {
            assert_eq!(*running, [A], "it is still told of");
            world.borrow_mut().end(A, Ok(()));
        }
        _ => {}
    });
    assert_eq!(world.borrow().reactions, [(A, Reaction::Interrupt)]);
    let failure = Failure::TimedOut(timeout);
    assert_eq!(outcome(&summary, A), Outcome::Failed(failure));
}

#[test]
fn what_ended_the_run_first_is_the_cause() {
    let plan = plan(3, OnError::Stop, 2);
    let inbox = Inbox::without_signals();
    let sender = inbox.sender.clone();
    let world = Shared::default();
    let mut fake = Fake(world.clone(), |world: &mut World, turn, _| {
        if turn == B {
            world.end(A, Err(Failure::Exited(1)));
        }
        Ok(())
    });
    let summary = execute(plan, &mut fake, &inbox, &mut |event| match event {
        RunEvent::Ended(ending) if ending.turn == A => sender.send(interrupt()).unwrap(),
        RunEvent::Interrupted { .. } => world.borrow_mut().end(B, Ok(())),
        _ => {}
    });
    let interrupted = Outcome::Failed(Failure::Interrupted(2));
    assert_eq!(outcome(&summary, B), interrupted);
    let cause = CancelCause::Failed(A);
    assert_eq!(outcome(&summary, C), Outcome::Cancelled(cause));
    assert_eq!(summary.signal, Some(2), "which still gives the exit status");
}

#[test]
fn a_signal_ends_the_wait_for_another_attempt() {
    let mut plan = plan(2, OnError::Continue, 1);
    plan.attempts[A.get()] = retrying(HOUR);
    let inbox = Inbox::without_signals();
    let sender = inbox.sender.clone();
    let mut fake = Fake(Shared::default(), |world: &mut World, turn, _| {
        world.end(turn, Err(Failure::Exited(1)));
        Ok(())
    });
    let summary = execute(plan, &mut fake, &inbox, &mut |event| {
        if let RunEvent::Retrying { .. } = event {
            sender.send(interrupt()).unwrap();
        }
    });
    assert_eq!(summary.endings[0].attempts, 1);
    let failure = Failure::Exited(1);
    assert_eq!(outcome(&summary, A), Outcome::Failed(failure));
    let cause = CancelCause::Signal(2);
    assert_eq!(outcome(&summary, B), Outcome::Cancelled(cause));
}

#[test]
fn a_failure_elsewhere_ends_the_wait_for_another_attempt() {
    let mut plan = plan(2, OnError::Stop, 2);
    plan.attempts[A.get()] = retrying(HOUR);
    let world = Shared::default();
    let mut fake = Fake(world.clone(), |world: &mut World, turn, _| {
        if turn == B {
            world.end(A, Err(Failure::Exited(1)));
        }
        Ok(())
    });
    let summary = execute(plan, &mut fake, &Inbox::without_signals(), &mut |event| {
        if let RunEvent::Retrying { .. } = event {
            world.borrow_mut().end(B, Err(Failure::Exited(9)));
        }
    });
    assert_eq!(outcome(&summary, B), Outcome::Failed(Failure::Exited(9)));
    assert_eq!(outcome(&summary, A), Outcome::Failed(Failure::Exited(1)));
}

#[test]
fn a_stack_that_waits_for_another_attempt_keeps_its_place() {
    let mut plan = plan(2, OnError::Stop, 1);
    plan.attempts[A.get()] = retrying(Duration::from_millis(5));
    let mut started = Vec::new();
    let mut fake = Fake(Shared::default(), |world: &mut World, turn, attempt| {
        let is_good = turn == B || attempt == 3;
        let result = is_good.then_some(()).ok_or(Failure::Exited(1));
        world.end(turn, result);
        Ok(())
    });
    let summary = execute(plan, &mut fake, &Inbox::without_signals(), &mut |event| {
        if let RunEvent::Started { turn, attempt } = event {
            started.push((*turn, *attempt));
        }
    });
    assert_eq!(started, [(A, 1), (A, 2), (A, 3), (B, 1)]);
    assert!(summary.is_success());
    assert_eq!(summary.endings[0].attempts, 3);
}

#[test]
fn nothing_is_tried_again_once_the_run_is_ending() {
    let mut plan = plan(2, OnError::Stop, 2);
    plan.attempts[B.get()] = retrying(Duration::ZERO);
    let world = Shared::default();
    let mut fake = Fake(world.clone(), |world: &mut World, turn, attempt| {
        assert_eq!(attempt, 1);
        if turn == B {
            world.end(A, Err(Failure::Exited(1)));
            world.end(B, Err(Failure::Exited(1)));
        }
        Ok(())
    });
    let summary = execute(plan, &mut fake, &Inbox::without_signals(), &mut |event| {
        assert!(
            !matches!(event, RunEvent::Retrying { .. }),
            "nor is it said"
        );
    });
    assert_eq!(outcome(&summary, B), Outcome::Failed(Failure::Exited(1)));
}

#[test]
fn further_signals_terminate_and_kill_each_command() {
    let plan = plan(3, OnError::Stop, 2);
    let inbox = Inbox::without_signals();
    let sender = inbox.sender.clone();
    let world = Shared::default();
    let at = Instant::now();
    let mut fake = Fake(world.clone(), |_: &mut World, turn, _| {
        for number in (0..3).filter(|_| turn == B) {
            let at = at + number * 2 * ECHO;
            let signal = Signal { at, ..signal(15) };
            sender.send(Message::Signal(signal)).unwrap();
        }
        Ok(())
    });
    let summary = execute(plan, &mut fake, &inbox, &mut |_| {});
    let steps = [Reaction::Interrupt, Reaction::Terminate, Reaction::Kill];
    let expected = steps.map(|reaction| [(A, reaction), (B, reaction)]);
    assert_eq!(world.borrow().reactions, expected.concat());
    let cause = CancelCause::Signal(15);
    assert_eq!(outcome(&summary, C), Outcome::Cancelled(cause));
}

#[test]
fn what_is_killed_and_does_not_end_is_given_up() {
    let plan = plan(2, OnError::Stop, 2);
    let inbox = Inbox::without_signals();
    let sender = inbox.sender.clone();
    let world = Shared::default();
    world.borrow_mut().is_immortal = true;
    let at = Instant::now();
    let mut fake = Fake(world.clone(), |_: &mut World, turn, _| {
        for number in (0..3).filter(|_| turn == B) {
            let at = at + number * 2 * ECHO;
            sender
                .send(Message::Signal(Signal { at, ..signal(15) }))
                .unwrap();
        }
        Ok(())
    });
    let summary = execute(plan, &mut fake, &inbox, &mut |event| {
        if let RunEvent::Ended(ending) = event
            && ending.turn == A
        {
            world.borrow_mut().end(A, Ok(())); // too late
        }
    });
    let failure = Failure::Lost("it was killed and has not ended".to_owned());
    for turn in [A, B] {
        assert_eq!(outcome(&summary, turn), Outcome::Failed(failure.clone()));
    }
}

#[test]
fn so_is_what_is_killed_for_taking_too_long() {
    let mut plan = plan(2, OnError::Continue, 1);
    let timeout = Duration::from_millis(2);
    let attempts = Attempts {
        timeout: Some(timeout),
        ..Attempts::default()
    };
    plan.attempts[A.get()] = attempts;
    plan.grace = Duration::ZERO;
    let world = Shared::default();
    world.borrow_mut().is_immortal = true;
    let mut fake = Fake(world.clone(), |world: &mut World, turn, _| {
        if turn == B {
            world.end(A, Ok(())); // too late
            world.end(B, Ok(()));
        }
        Ok(())
    });
    let summary = execute(plan, &mut fake, &Inbox::without_signals(), &mut |_| {});
    let failure = Failure::TimedOut(timeout);
    assert_eq!(outcome(&summary, A), Outcome::Failed(failure));
    assert_eq!(outcome(&summary, B), Outcome::Succeeded);
}

#[test]
fn a_command_that_asks_for_the_terminal_is_interrupted_and_has_failed() {
    let plan = plan(1, OnError::Stop, 1);
    let world = Shared::default();
    let mut fake = Fake(world.clone(), |world: &mut World, turn, _| {
        let end = &world.running[&turn];
        end.wants_terminal();
        end.wants_terminal();
        world.end(turn, Ok(()));
        Ok(())
    });
    let mut n_reports = 0;
    let summary = execute(plan, &mut fake, &Inbox::without_signals(), &mut |event| {
        n_reports += usize::from(matches!(event, RunEvent::WantsTerminal { .. }));
    });
    assert_eq!(world.borrow().reactions, [(A, Reaction::Interrupt)]);
    // It may ignore the interrupt: whoever waits has to know why.
    assert_eq!(n_reports, 1);
    let failure = Failure::WantedTerminal;
    assert_eq!(outcome(&summary, A), Outcome::Failed(failure));
}

#[test]
fn a_run_that_cannot_go_on_ends_and_names_the_turns() {
    // No graph has a cycle by the time it is scheduled; this one pretends.
    let plan = plan_with(4, &[(1, 2), (2, 1), (2, 3)], OnError::Continue, 2);
    let mut started = Vec::new();
    let mut fake = Fake(Shared::default(), |world: &mut World, turn, _| {
        started.push(turn);
        world.end(turn, Ok(()));
        Ok(())
    });
    let summary = execute(plan, &mut fake, &Inbox::without_signals(), &mut |_| {});
    assert_eq!(
        summary.stuck().collect::<Vec<_>>(),
        [B, C, TurnIndex::new(3)]
    );
    assert!(!summary.is_success());
    assert_eq!(started, [A]);
}
