//! The loop with commands that are no processes: what it decides when things coincide.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::rc::Rc;
use std::sync::Arc;

use regex::bytes::RegexSet;

use super::run_loop::ECHO;
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
    running: BTreeMap<TurnIndex, End>,
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

    fn start(&mut self, start: Start<'_, FakeCommand>) -> Result<FakeCommand, Failure> {
        let mut world = self.0.borrow_mut();
        world.steps.push((start.index, start.step));
        assert_eq!(start.previous.is_some(), start.step > 0);
        world.running.insert(start.index, start.end);
        (self.1)(&mut world, start.index, start.attempt)?;
        Ok(FakeCommand(self.0.clone(), start.index))
    }
}

impl Control for FakeCommand {
    fn react(&self, reaction: Reaction, _signal: Option<&Signal>) {
        let mut world = self.0.borrow_mut();
        world.reactions.push((self.1, reaction));
        if reaction == Reaction::Kill && !world.is_immortal {
            world.end(self.1, Err(Failure::Signalled(9)));
        }
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
        retry: None,
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
        retry: None,
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
    assert_eq!(outcome(&summary, B), Outcome::Succeeded);
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
        retry: None,
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
    let summary = execute(plan, &mut fake, &Inbox::without_signals(), &mut |_| {});
    assert_eq!(world.borrow().reactions, [(A, Reaction::Interrupt)]);
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

#[test]
fn steps_run_one_after_the_other_and_each_attempt_begins_with_the_first() {
    let mut plan = plan(2, OnError::Stop, 1);
    plan.turns[0] = turn(0, 3);
    plan.attempts[0] = retrying(Duration::ZERO);
    let world = Shared::default();
    let mut fake = Fake(world.clone(), |world: &mut World, turn, attempt| {
        let fails = world.steps.last() == Some(&(A, 1)) && attempt == 1;
        let result = if fails {
            Err(Failure::Exited(1))
        } else {
            Ok(())
        };
        world.end(turn, result);
        Ok(())
    });
    let mut told = Vec::new();
    let summary = execute(plan, &mut fake, &Inbox::without_signals(), &mut |event| {
        if let RunEvent::StepStarted { turn, step } = event {
            told.push((*turn, *step));
        }
    });
    let expected = [(A, 0), (A, 1), (A, 0), (A, 1), (A, 2), (B, 0)];
    assert_eq!(world.borrow().steps, expected);
    assert_eq!(told, [(A, 1), (A, 1), (A, 2)]);
    assert!(summary.is_success());
    assert_eq!(summary.endings[0].attempts, 2);
}

#[test]
fn after_a_signal_no_further_step_starts() {
    let mut plan = plan(1, OnError::Stop, 1);
    plan.turns[0] = turn(0, 2);
    let inbox = Inbox::without_signals();
    let sender = inbox.sender.clone();
    let world = Shared::default();
    let mut fake = Fake(world.clone(), |_: &mut World, _, _| {
        sender.send(interrupt()).unwrap();
        Ok(())
    });
    let summary = execute(plan, &mut fake, &inbox, &mut |event| {
        if let RunEvent::Interrupted { .. } = event {
            world.borrow_mut().end(A, Ok(())); // that step succeeds
        }
    });
    assert_eq!(world.borrow().steps, [(A, 0)]);
    let failure = Failure::Signalled(2);
    assert_eq!(outcome(&summary, A), Outcome::Failed(failure));
}

#[test]
fn a_turn_that_waits_for_a_confirmation_holds_its_slot_and_is_cancelled_as_if_it_had_never_started()
{
    let ask = |plan: &mut Execution| {
        plan.turns[0].steps = [Step::Confirmation, Step::Command("apply".into())].into();
    };
    // Confirmed: it goes on, and the next turn only then.
    let mut confirmed = plan(2, OnError::Stop, 1);
    ask(&mut confirmed);
    let world = Shared::default();
    let mut fake = Fake(world.clone(), |world: &mut World, turn, _| {
        world.end(turn, Ok(()));
        Ok(())
    });
    let summary = execute(confirmed, &mut fake, &Inbox::without_signals(), &mut |_| {});
    assert_eq!(world.borrow().steps, [(A, 0), (A, 1), (B, 0)]);
    assert!(summary.is_success());
    // A signal and a time limit.
    for timeout in [None, Some(Duration::from_millis(1))] {
        let mut asked = plan(2, OnError::Stop, 1);
        ask(&mut asked);
        asked.timeout = timeout;
        let inbox = Inbox::without_signals();
        let sender = inbox.sender.clone();
        let world = Shared::default();
        let mut fake = Fake(world.clone(), |_: &mut World, _, _| {
            if timeout.is_none() {
                sender.send(interrupt()).unwrap();
            }
            Ok(())
        });
        let summary = execute(asked, &mut fake, &inbox, &mut |_| {});
        let cause = match timeout {
            None => CancelCause::Signal(2),
            Some(timeout) => CancelCause::RunTimedOut(timeout),
        };
        for turn in [A, B] {
            assert_eq!(outcome(&summary, turn), Outcome::Cancelled(cause));
        }
        assert_eq!(summary.endings[0].attempts, 0);
        let world = world.borrow();
        assert_eq!(
            world.reactions,
            [(A, Reaction::Interrupt)],
            "so the question goes"
        );
    }
}

/// Commands whose ends are judged by a test.
struct Judged<S, J>(Fake<S>, J);

impl<S, J> Executor for Judged<S, J>
where
    S: FnMut(&mut World, TurnIndex, u32) -> Result<(), Failure>,
    J: FnMut(&Ending, Later) -> Option<Settlement>,
{
    type Command = FakeCommand;

    fn start(&mut self, start: Start<'_, FakeCommand>) -> Result<FakeCommand, Failure> {
        self.0.start(start)
    }

    fn settle(&mut self, ending: &Ending, later: Later) -> Option<Settlement> {
        (self.1)(ending, later)
    }
}

#[test]
fn a_turn_added_in_place_of_a_failed_one_makes_good_for_it() {
    let plan = plan_with(2, &[(0, 1)], OnError::Stop, 2);
    let fake = Fake(Shared::default(), |world: &mut World, turn, _| {
        let result = (turn != A).then_some(()).ok_or(Failure::Exited(1));
        world.end(turn, result);
        Ok(())
    });
    let mut judged = Judged(fake, |ending: &Ending, _| {
        let mut settlement = Settlement::by_itself(true);
        if ending.turn == A {
            settlement.added.push(Added {
                turn: turn(0, 1),
                attempts: Attempts::default(),
                node: 0,
                rank: 0,
            });
        }
        Some(settlement)
    });
    let mut ended = Vec::new();
    let summary = execute(plan, &mut judged, &Inbox::without_signals(), &mut |event| {
        if let RunEvent::Ended(ending) = event {
            ended.push(ending.turn);
        }
    });
    assert_eq!(
        ended,
        [A, C, B],
        "what waits for the first waits for the added one"
    );
    assert!(summary.is_success() && summary.exit_status() == 0);
    assert_eq!(summary.replaced.iter().copied().collect::<Vec<_>>(), [A]);
}

#[test]
fn nothing_behind_a_turn_starts_before_it_is_settled_and_a_signal_ends_that_wait() {
    for is_interrupted in [false, true] {
        let plan = plan_with(2, &[(0, 1)], OnError::Continue, 2);
        let inbox = Inbox::without_signals();
        let sender = inbox.sender.clone();
        let world = Shared::default();
        let fake = Fake(world.clone(), |world: &mut World, turn, _| {
            world.end(turn, Ok(()));
            Ok(())
        });
        let mut open = Vec::new();
        let mut judged = Judged(fake, |ending: &Ending, later: Later| {
            if ending.turn == B {
                return Some(Settlement::by_itself(true));
            }
            if is_interrupted {
                sender.send(interrupt()).unwrap();
                open.push(later); // and nobody ever tells
            } else {
                later.tell(Settlement::by_itself(true));
            }
            None
        });
        let summary = execute(plan, &mut judged, &inbox, &mut |_| {});
        let expected = if is_interrupted {
            Outcome::Cancelled(CancelCause::Signal(2))
        } else {
            Outcome::Succeeded
        };
        assert_eq!(outcome(&summary, B), expected);
        assert_eq!(outcome(&summary, A), Outcome::Succeeded);
    }
}
