//! Whole runs: the loop with commands that end as drawn, in an order drawn as well, against a model
//! of what must come of every stack.

use std::collections::{BTreeMap, HashMap};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use orch::project::attempt::{Attempts, Retry};
use orch::project::stack::StackIndex;
use orch::run::event::{CancelCause, Failure, Outcome, Reaction, RunEvent};
use orch::run::execute::{
    Control, Execution, Executor, Inbox, Signal, StepEnd, StepReporter, StepStart, execute,
};
use orch::run::order::{Direction, RunOrder};
use orch::run::schedule::{Limit, OnError};
use orch::run::turn::{Step, Turn, TurnIndex};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use regex::bytes::RegexSet;

use crate::loaded::Loaded;
use crate::model::Set;
use crate::query::with_runnable_query;

/// The exit status that is worth another attempt.
const AGAIN: i32 = 75;

/// The exit statuses of a command, attempt by attempt; the last one stays.
type Fate = Vec<i32>;

fn fate() -> impl Strategy<Value = Fate> {
    let status = prop_oneof![6 => Just(0), 1 => Just(1), 3 => Just(AGAIN)];
    prop::collection::vec(status, 1..4)
}

fn status(fate: &Fate, attempt: u32) -> i32 {
    let last = fate.len() - 1;
    fate[last.min(attempt as usize - 1)]
}

/// What comes of a command that is tried up to so many times: whether it succeeds, and when.
fn end(fate: &Fate, attempts: u32) -> (bool, u32) {
    for attempt in 1..attempts {
        match status(fate, attempt) {
            0 => return (true, attempt),
            AGAIN => {}
            _ => return (false, attempt),
        }
    }
    (status(fate, attempts) == 0, attempts)
}

/// Commands that end when a thread of its own draws them.
struct Fake {
    fates: Vec<Fate>,
    to_conductor: Sender<(StepReporter, i32)>,
}

struct Nothing;

impl Control for Nothing {
    fn react(&self, _reaction: Reaction, _signal: Option<&Signal>) -> bool {
        true
    }
}

impl Executor for Fake {
    type Command = Nothing;

    fn start(&mut self, start: StepStart<'_, Nothing>) -> Result<Nothing, Failure> {
        let status = status(&self.fates[start.index.get()], start.attempt);
        self.to_conductor.send((start.end, status)).unwrap();
        Ok(Nothing)
    }
}

/// Ends commands in an order of its own.
fn conduct(started: &Receiver<(StepReporter, i32)>, draws: &[Index]) {
    let mut draws = draws.iter().cycle();
    let mut running = Vec::new();
    while let Ok(command) = started.recv() {
        running.push(command);
        while !running.is_empty() {
            thread::yield_now();
            running.extend(started.try_iter());
            let draw = draws.next().expect("it begins anew").index(running.len());
            let (end, status): (StepReporter, i32) = running.swap_remove(draw);
            end.tell(StepEnd {
                result: if status == 0 {
                    Ok(())
                } else {
                    Err(Failure::Exited(status))
                },
                changes: None,
                output_matches: false,
                output_lost: None,
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_stack_ends_as_the_failures_before_it_say(
        (tree, query) in with_runnable_query(),
        on_error in select(vec![OnError::Stop, OnError::SkipDependents, OnError::Continue]),
        direction in select(vec![Direction::Forward, Direction::Reverse]),
        jobs in 1..5_usize,
        limits in prop::collection::vec((1..3_usize, prop::collection::vec(any::<Index>(), 1..6)), 0..3),
        fates in prop::collection::vec(fate(), 16),
        attempts in 1..4_u32,
        draws in prop::collection::vec(any::<Index>(), 16),
    ) {
        let loaded = Loaded::new(&tree);
        let model = &loaded.model;
        let selection = loaded.select(&query);
        let order = RunOrder::new(&loaded.graph, &selection);
        let sequence = order.sequence_of_turns(direction);
        let all: Vec<StackIndex> = loaded.project.stacks.iter().map(|(index, _)| index).collect();
        let limits: Vec<Limit> = limits
            .into_iter()
            .filter(|_| !all.is_empty())
            .map(|(at_once, stacks)| {
                let mut stacks: Vec<_> = stacks.iter().map(|index| *index.get(&all)).collect();
                stacks.sort_unstable();
                stacks.dedup();
                let nodes = stacks.iter().map(|stack| stack.get()).collect();
                Limit { at_once: NonZeroUsize::new(at_once).unwrap(), nodes }
            })
            .collect();
        let fates: HashMap<StackIndex, Fate> = sequence
            .iter()
            .map(|&stack| (stack, fates[loaded.number(stack) % fates.len()].clone()))
            .collect();
        let retry = Retry {
            attempts: NonZeroU32::new(attempts).unwrap(),
            backoff: Duration::ZERO,
            on_exit: vec![AGAIN],
            on_output: RegexSet::empty(),
        };
        let policy = Attempts { retry: Some(Arc::new(retry)), ..Attempts::default() };
        let steps: Arc<[Step]> = [Step::Command("command".into())].into();
        let turn = |stack: &StackIndex| {
            let path = loaded.project.stacks[*stack].path.clone();
            Turn::of_command(path, &steps)
        };
        let execution = Execution {
            schedule: order
                .schedule(direction, on_error)
                .at_once(NonZeroUsize::new(jobs).unwrap(), &limits),
            turns: sequence.iter().map(turn).collect(),
            attempts: vec![policy; sequence.len()],
            timeout: None,
            grace: Duration::ZERO,
            detailed_exit_code: false,
            had_changes: false,
            left_out_status: 0,
            n_earlier: 0,
            is_rejected: false,
        };
        let (to_conductor, started) = mpsc::channel();
        let by_turn = sequence.iter().map(|stack| fates[stack].clone()).collect();
        let mut fake = Fake { fates: by_turn, to_conductor };
        let mut events = Vec::new();
        let summary = thread::scope(|scope| {
            let draws = &draws;
            scope.spawn(move || conduct(&started, draws));
            let mut keep = |event: &RunEvent| events.push(event.clone());
            let summary = execute(execution, &mut fake, &Inbox::without_signals(), &mut keep);
            drop(fake); // nothing more will start
            summary
        });

        // What happened, in the order in which it was told.
        let reaches = model.closure(|_| true);
        let is_before = |first: StackIndex, second: StackIndex| {
            let (first, second) = (loaded.number(first), loaded.number(second));
            match direction {
                Direction::Forward => reaches[first][second],
                Direction::Reverse => reaches[second][first],
            }
        };
        let stack_of = |turn: TurnIndex| sequence[turn.get()];
        let begins = matches!(events.first(), Some(RunEvent::RunStarted { .. }));
        let ends = matches!(events.last(), Some(RunEvent::RunFinished(_)));
        prop_assert!(begins && ends);
        let mut running: BTreeMap<StackIndex, u32> = BTreeMap::new();
        let mut outcomes: BTreeMap<StackIndex, Outcome> = BTreeMap::new();
        for event in &events[1..events.len() - 1] {
            match event {
                RunEvent::Started { turn, attempt } => {
                    let stack = &stack_of(*turn);
                    if *attempt == 1 {
                        for &other in &sequence {
                            prop_assert!(!is_before(other, *stack) || outcomes.contains_key(&other));
                        }
                    }
                    let is_failure = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_));
                    let has_failed = outcomes.values().any(is_failure);
                    prop_assert!(on_error != OnError::Stop || !has_failed, "nothing new starts");
                    prop_assert_eq!(running.insert(*stack, *attempt).unwrap_or(0), attempt - 1);
                    prop_assert!(running.len() <= jobs);
                    for limit in &limits {
                        let now = running.keys().filter(|stack| limit.nodes.contains(&stack.get())).count();
                        prop_assert!(now <= limit.at_once.get(), "{:?} run", running);
                    }
                }
                RunEvent::Retrying { turn, attempt, failure, .. } => {
                    prop_assert_eq!(running[&stack_of(*turn)], *attempt);
                    prop_assert_eq!(failure, &Failure::Exited(AGAIN));
                }
                RunEvent::Ended(ending) => {
                    let attempts = running.remove(&stack_of(ending.turn)).unwrap_or(0);
                    prop_assert_eq!(ending.attempts, attempts);
                    prop_assert!(outcomes.insert(stack_of(ending.turn), ending.outcome.clone()).is_none());
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
        prop_assert!(running.is_empty());
        let mut selected = sequence.clone();
        selected.sort_unstable();
        prop_assert_eq!(outcomes.keys().copied().collect::<Vec<_>>(), selected);
        let told = summary.endings.iter().map(|ending| (stack_of(ending.turn), ending.outcome.clone()));
        prop_assert_eq!(&told.collect::<BTreeMap<_, _>>(), &outcomes);
        prop_assert_eq!(summary.is_success(), outcomes.values().all(|outcome| *outcome == Outcome::Succeeded));

        // What must come of each stack, in an order in which everything before it is known.
        let protects = on_error == OnError::SkipDependents || direction == Direction::Reverse;
        let mut unsuccessful = Set::new();
        for &stack in &sequence {
            let before = || sequence.iter().copied().filter(|&other| is_before(other, stack));
            let blocked = before().any(|other| unsuccessful.contains(&loaded.number(other)));
            let (succeeds, tries) = end(&fates[&stack], attempts);
            let outcome = &outcomes[&stack];
            match outcome {
                Outcome::Skipped { cause } => {
                    prop_assert!(protects && on_error != OnError::Stop);
                    let cause = &stack_of(*cause);
                    prop_assert!(is_before(*cause, stack));
                    prop_assert!(matches!(outcomes[cause], Outcome::Failed(_)), "the cause has failed itself");
                }
                Outcome::Cancelled(CancelCause::Failed(cause)) => {
                    prop_assert_eq!(on_error, OnError::Stop);
                    prop_assert!(matches!(outcomes[&stack_of(*cause)], Outcome::Failed(_)));
                }
                Outcome::Cancelled(_) | Outcome::Unconfirmed => prop_assert!(false, "{:?}", outcome),
                Outcome::Succeeded => prop_assert!(succeeds),
                // Another attempt may have been given up when another stack failed.
                Outcome::Failed(Failure::Exited(AGAIN)) if on_error == OnError::Stop => {}
                Outcome::Failed(failure) => {
                    prop_assert!(!succeeds);
                    prop_assert_eq!(failure, &Failure::Exited(status(&fates[&stack], tries)));
                }
            }
            if on_error != OnError::Stop {
                let is_skipped = matches!(outcome, Outcome::Skipped { .. });
                prop_assert_eq!(is_skipped, protects && blocked, "{:?}", stack);
            }
            let is_cancelled = matches!(outcome, Outcome::Cancelled(_));
            prop_assert!(!is_cancelled || outcomes.values().any(|outcome| matches!(outcome, Outcome::Failed(_))));
            if *outcome != Outcome::Succeeded {
                unsuccessful.insert(loaded.number(stack));
            }
        }
    }
}
