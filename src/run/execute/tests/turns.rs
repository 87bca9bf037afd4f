//! Turns of several steps, turns that are settled later, and turns that are added.

use std::cell::Cell;

use super::*;
use crate::run::event::Ending;

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
    let failure = Failure::Interrupted(2);
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

#[test]
fn the_time_of_an_attempt_begins_after_its_confirmation() {
    let timeout = Duration::from_millis(20);
    let mut plan = plan(1, OnError::Stop, 1);
    plan.turns[0].steps = [Step::Confirmation, Step::Command("apply".into())].into();
    plan.attempts[0].timeout = Some(timeout);
    let world = Shared::default();
    let mut fake = Fake(world.clone(), |world: &mut World, turn, _| {
        let is_question = world.steps.len() == 1;
        if is_question {
            pass(timeout);
            world.end(turn, Ok(()));
        } // else it is not done in time
        Ok(())
    });
    let begun = Instant::now();
    let summary = execute(plan, &mut fake, &Inbox::without_signals(), &mut |event| {
        if let RunEvent::TimedOut { .. } = event {
            world.borrow_mut().end(A, Err(Failure::Signalled(2)));
        }
    });
    assert!(begun.elapsed() >= 2 * timeout);
    assert_eq!(
        outcome(&summary, A),
        Outcome::Failed(Failure::TimedOut(timeout))
    );
}

/// Holds a step of B, the first time it is asked.
struct Holding<S, H> {
    fake: Fake<S>,
    step: usize,
    on_hold: Option<H>,
    is_over: Rc<Cell<bool>>,
}

impl<S, H> Executor for Holding<S, H>
where
    S: FnMut(&mut World, TurnIndex, u32) -> Result<(), Failure>,
    H: FnOnce(&mut World),
{
    type Command = FakeCommand;

    fn is_held(&mut self, step: &UpcomingStep<'_>) -> bool {
        let is_held = (step.index, step.step) == (B, self.step) && !self.is_over.get();
        if let Some(on_hold) = self.on_hold.take_if(|_| is_held) {
            on_hold(&mut self.fake.0.borrow_mut());
        }
        is_held
    }

    fn start(&mut self, start: StepStart<'_, FakeCommand>) -> Result<FakeCommand, Failure> {
        self.fake.start(start)
    }
}

#[test]
fn a_held_turn_keeps_its_slot_and_goes_on_with_the_step() {
    for step in [0, 1] {
        let mut plan = plan(3, OnError::Stop, 2);
        plan.turns[1] = turn(1, 2);
        let world = Shared::default();
        let is_over = Rc::new(Cell::new(false));
        let mut executor = Holding {
            fake: Fake(world.clone(), |world: &mut World, turn, _| {
                if turn != A {
                    world.end(turn, Ok(()));
                }
                Ok(())
            }),
            step,
            on_hold: Some(|world: &mut World| world.end(A, Ok(()))),
            is_over: is_over.clone(),
        };
        let inbox = Inbox::without_signals();
        let summary = execute(plan, &mut executor, &inbox, &mut |event| {
            if let RunEvent::Ended(ending) = event {
                is_over.set(is_over.get() || ending.turn == A);
            }
        });
        assert!(summary.is_success());
        let steps = &world.borrow().steps;
        let of_b = steps.iter().filter(|(turn, _)| *turn == B);
        assert_eq!(of_b.collect::<Vec<_>>(), [&(B, 0), &(B, 1)]);
    }
}

#[test]
fn a_held_turn_that_has_not_begun_is_cancelled_and_another_one_fails() {
    for (step, signalled) in [(0, true), (1, true), (0, false)] {
        let mut plan = plan(2, OnError::Stop, 2);
        plan.turns[1] = turn(1, 2);
        let inbox = Inbox::without_signals();
        let sender = inbox.sender.clone();
        let world = Shared::default();
        let mut executor = Holding {
            fake: Fake(world.clone(), |world: &mut World, turn, _| {
                if turn == B {
                    world.end(turn, Ok(()));
                }
                Ok(())
            }),
            step,
            on_hold: Some(|world: &mut World| {
                if signalled {
                    sender.send(interrupt()).unwrap();
                } else {
                    world.end(A, Err(Failure::Exited(1)));
                }
            }),
            is_over: Rc::default(),
        };
        let summary = execute(plan, &mut executor, &inbox, &mut |event| {
            if let RunEvent::Interrupted { .. } = event {
                world.borrow_mut().end(A, Err(Failure::Signalled(2)));
            }
        });
        let expected = match (step, signalled) {
            (1, _) => Outcome::Failed(Failure::Signalled(2)),
            (_, true) => Outcome::Cancelled(CancelCause::Signal(2)),
            (_, false) => Outcome::Cancelled(CancelCause::Failed(A)),
        };
        assert_eq!(outcome(&summary, B), expected);
        let of_b = world.borrow().steps.iter().filter(|it| it.0 == B).count();
        assert_eq!(of_b, step);
    }
}

#[test]
fn the_time_of_an_attempt_passes_while_its_turn_is_held() {
    let timeout = Duration::from_millis(20);
    let mut plan = plan(2, OnError::Continue, 2);
    plan.turns[1] = turn(1, 2);
    plan.attempts[1].timeout = Some(timeout);
    let world = Shared::default();
    let mut executor = Holding {
        fake: Fake(world.clone(), |world: &mut World, turn, _| {
            if turn == B {
                world.end(turn, Ok(()));
            }
            Ok(())
        }),
        step: 1,
        on_hold: None::<fn(&mut World)>,
        is_over: Rc::default(),
    };
    let inbox = Inbox::without_signals();
    let summary = execute(plan, &mut executor, &inbox, &mut |event| {
        if let RunEvent::Ended(ending) = event
            && ending.turn == B
        {
            world.borrow_mut().end(A, Ok(()));
        }
    });
    let failure = Failure::TimedOut(timeout);
    assert_eq!(outcome(&summary, B), Outcome::Failed(failure));
    assert_eq!(outcome(&summary, A), Outcome::Succeeded);
}

/// Commands whose ends are judged by a test.
struct Judged<S, J>(Fake<S>, J);

impl<S, J> Executor for Judged<S, J>
where
    S: FnMut(&mut World, TurnIndex, u32) -> Result<(), Failure>,
    J: FnMut(&Ending, SettlementSender) -> Option<Settlement>,
{
    type Command = FakeCommand;

    fn start(&mut self, start: StepStart<'_, FakeCommand>) -> Result<FakeCommand, Failure> {
        self.0.start(start)
    }

    fn settle(&mut self, ending: &Ending, later: SettlementSender) -> Option<Settlement> {
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
            settlement.added.push(AddedTurn {
                turn: turn(0, 1),
                attempts: Attempts::default(),
                node: 0,
                rank: 0,
                follows: None,
                answers_failure: false,
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
fn nothing_behind_a_turn_starts_before_it_is_settled_and_a_second_signal_ends_that_wait() {
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
        let mut judged = Judged(fake, |ending: &Ending, later: SettlementSender| {
            if ending.turn == B {
                return Some(Settlement::by_itself(true));
            }
            if is_interrupted {
                sender.send(interrupt()).unwrap();
                sender.send(Message::Signal(signal(15))).unwrap();
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

#[test]
fn a_run_does_not_wait_for_whoever_is_gone() {
    let mut plan = plan_with(2, &[(0, 1)], OnError::Continue, 1);
    let fake = Fake(Shared::default(), |world: &mut World, turn, _| {
        world.end(turn, Ok(()));
        Ok(())
    });
    let mut judged = Judged(fake, |_: &Ending, later: SettlementSender| {
        drop(later); // as by a panic
        None
    });
    let inbox = Inbox::without_signals();
    plan.n_earlier = 1;
    drop(inbox.earlier());
    let summary = execute(plan, &mut judged, &inbox, &mut |_| {});
    assert_eq!(summary.endings.len(), 2);
    assert_eq!(summary.exit_status(), 1, "something was lost");
}
