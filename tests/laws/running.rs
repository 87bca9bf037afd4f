//! The schedule of a run, whatever fails and however many stacks run at a time.

use std::num::NonZeroUsize;

use orch::run::order::{Direction, RunOrder};
use orch::run::schedule::{Limit, OnError, Skipped};
use orch::run::turn::TurnIndex;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::loaded::Loaded;
use crate::model::Set;
use crate::query::with_runnable_query;

const ON_ERROR: [OnError; 3] = [OnError::Stop, OnError::SkipDependents, OnError::Continue];

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Reverse];

/// How a stack ends: which of the running ones, and whether well. A run with more stacks begins again.
fn endings() -> impl Strategy<Value = Vec<(Index, bool)>> {
    prop::collection::vec((any::<Index>(), prop::bool::weighted(0.75)), 16)
}

/// Limits: how many at once, and whether of a stack, by its number.
fn limits() -> impl Strategy<Value = Vec<(usize, Vec<bool>)>> {
    prop::collection::vec((1..3_usize, prop::collection::vec(any::<bool>(), 8)), 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_starts_too_early_and_only_what_a_failure_blocks_is_skipped(
        (tree, query) in with_runnable_query(),
        on_error in select(ON_ERROR.to_vec()),
        direction in select(DIRECTIONS.to_vec()),
        at_a_time in 1..4_usize,
        limits in limits(),
        endings in endings(),
    ) {
        let loaded = Loaded::new(&tree);
        let model = &loaded.model;
        let selection = loaded.select(&query);
        let selected = model.selection(&query);
        let mut sequence = model.order(&selected);
        // Ties: by path, or by the sequence from its end.
        let mut rank: Vec<usize> = selected.iter().copied().collect();
        if direction == Direction::Reverse {
            sequence.reverse();
            rank.clone_from(&sequence);
        }
        let reaches = model.closure(|_| true);
        let is_before = |first: usize, second: usize| match direction {
            Direction::Forward => reaches[first][second],
            Direction::Reverse => reaches[second][first],
        };
        let at_once = NonZeroUsize::new(at_a_time).expect("not zero");
        let is_limited = |(_, limited): &&(usize, Vec<bool>), stack: usize| limited[stack % limited.len()];
        let limit = |limit: &(usize, Vec<bool>)| Limit {
            at_once: NonZeroUsize::new(limit.0).expect("not zero"),
            nodes: (0..model.stacks.len()).filter(|&stack| is_limited(&limit, stack)).map(|stack| loaded.index(stack).get()).collect(),
        };
        let order = RunOrder::new(&loaded.graph, &selection);
        let turns = loaded.numbers(order.sequence_of_turns(direction));
        let number = |turn: TurnIndex| turns[turn.get()];
        let turn_of = |stack: usize| {
            let position = turns.iter().position(|&other| other == stack);
            TurnIndex::new(position.expect("it is selected"))
        };
        let mut schedule = order
            .schedule(direction, on_error)
            .at_once(at_once, &limits.iter().map(limit).collect::<Vec<_>>());
        // In reverse, a failure protects what the failed stack depends on.
        let on_error = match (direction, on_error) {
            (Direction::Reverse, OnError::Continue) => OnError::SkipDependents,
            (_, on_error) => on_error,
        };
        let (mut running, mut ended, mut failed, mut skipped) = (Vec::new(), Set::new(), Set::new(), Set::new());
        let mut started: Vec<usize> = Vec::new();
        let mut endings = endings.into_iter().cycle();
        loop {
            loop {
                if running.len() == at_a_time {
                    prop_assert_eq!(schedule.start_next(), None, "no slot is free");
                    break;
                }
                let expected = rank.iter().copied().find(|&stack| {
                    let before = || selected.iter().copied().filter(|&other| is_before(other, stack));
                    let is_blocked = match on_error {
                        OnError::Stop => !failed.is_empty(),
                        OnError::SkipDependents => before().any(|other| failed.contains(&other)),
                        OnError::Continue => false,
                    };
                    let has_room = limits.iter().filter(|limit| is_limited(limit, stack)).all(|limit| {
                        running.iter().filter(|&&other| is_limited(&limit, other)).count() < limit.0
                    });
                    !started.contains(&stack) && !is_blocked && has_room && before().all(|other| ended.contains(&other))
                });
                let next = schedule.start_next().map(number);
                prop_assert_eq!(next, expected, "after {:?} with {:?} running", started, running);
                let Some(next) = next else { break };
                started.push(next);
                running.push(next);
            }
            if running.is_empty() {
                break;
            }
            let (which, succeeded) = endings.next().expect("there are some");
            let stack = running.remove(which.index(running.len()));
            ended.insert(stack);
            if !succeeded {
                failed.insert(stack);
            }
            schedule.finish(turn_of(stack), succeeded);
            for Skipped { turn, cause } in schedule.settle(turn_of(stack), succeeded) {
                let (stack, cause) = (number(turn), number(cause));
                prop_assert!(failed.contains(&cause) && is_before(cause, stack));
                prop_assert!(skipped.insert(stack), "skipped once");
            }
        }
        let never: Set = selected.iter().copied().filter(|stack| !started.contains(stack)).collect();
        let blocked: Set = selected
            .iter()
            .copied()
            .filter(|&stack| failed.iter().any(|&cause| is_before(cause, stack)))
            .collect();
        match on_error {
            OnError::Stop => {
                prop_assert!(skipped.is_empty());
                prop_assert!(never.is_empty() || !failed.is_empty());
                prop_assert!(blocked.is_subset(&never));
            }
            OnError::SkipDependents => {
                prop_assert_eq!(&skipped, &blocked);
                prop_assert_eq!(&never, &blocked);
            }
            OnError::Continue => prop_assert!(skipped.is_empty() && never.is_empty()),
        }
        if at_a_time == 1 && failed.is_empty() {
            prop_assert_eq!(started, sequence);
        }
    }

    #[test]
    fn a_serial_run_is_the_sequence_and_in_reverse_exactly_the_reversed_one((tree, query) in with_runnable_query()) {
        let loaded = Loaded::new(&tree);
        let selection = loaded.select(&query);
        let order = RunOrder::new(&loaded.graph, &selection);
        for direction in DIRECTIONS {
            let mut expected = order.sequence.clone();
            if direction == Direction::Reverse {
                expected.reverse();
            }
            for on_error in ON_ERROR {
                let mut schedule = order.schedule(direction, on_error);
                let mut run = Vec::new();
                let turns = order.sequence_of_turns(direction);
                while let Some(turn) = schedule.start_next() {
                    schedule.finish(turn, true);
                    prop_assert_eq!(schedule.settle(turn, true), vec![]);
                    run.push(turns[turn.get()]);
                }
                prop_assert_eq!(&run, &expected);
            }
        }
    }

    #[test]
    fn a_stopped_schedule_starts_nothing_more((tree, query) in with_runnable_query(), after in 0..5_usize) {
        let loaded = Loaded::new(&tree);
        let selection = loaded.select(&query);
        let order = RunOrder::new(&loaded.graph, &selection);
        let mut schedule = order.schedule(Direction::Forward, OnError::Continue);
        let started: Vec<_> = (0..after).map_while(|_| schedule.start_next()).collect();
        schedule.stop();
        prop_assert_eq!(schedule.start_next(), None);
        for turn in started {
            schedule.finish(turn, true);
            prop_assert_eq!(schedule.settle(turn, true), vec![]);
            prop_assert_eq!(schedule.start_next(), None);
        }
    }
}
