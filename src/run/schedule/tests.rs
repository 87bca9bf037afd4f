//! Cases that the laws meet rarely.

use super::*;

fn turn(number: usize) -> TurnIndex {
    TurnIndex::new(number)
}

fn schedule(pairs: &[(u32, u32)], limits: &[Limit]) -> Schedule {
    let edges = pairs.iter().map(|&(from, to)| (from, to, true));
    let precedence = Precedence::from_edges(3, 3, edges);
    Schedule::new(precedence, [(0, 0), (1, 1), (2, 2)])
        .on_error(OnError::SkipDependents)
        .at_once(NonZeroUsize::new(3).unwrap(), limits)
}

#[test]
fn a_node_that_a_limit_names_twice_counts_once() {
    let limit = Limit {
        at_once: NonZeroUsize::new(2).unwrap(),
        nodes: vec![0, 0, 1, 2],
    };
    let mut schedule = schedule(&[], &[limit]);
    assert_eq!(schedule.start_next(), Some(turn(0)));
    assert_eq!(schedule.start_next(), Some(turn(1)));
    assert_eq!(schedule.start_next(), None);
    schedule.finish(turn(0), true);
    assert_eq!(schedule.start_next(), Some(turn(2)));
}

#[test]
fn of_several_causes_the_first_is_told() {
    let mut schedule = schedule(&[(0, 2), (1, 2)], &[]);
    assert_eq!(schedule.start_next(), Some(turn(0)));
    assert_eq!(schedule.start_next(), Some(turn(1)));
    schedule.finish(turn(1), false);
    assert_eq!(schedule.settle(turn(1), false), []);
    schedule.finish(turn(0), false);
    let (turn, cause) = (turn(2), turn(1));
    assert_eq!(
        schedule.settle(super::TurnIndex::new(0), false),
        [Skipped { turn, cause }]
    );
    assert!(schedule.is_over());
}

#[test]
fn a_turn_that_is_ready_waits_for_one_that_is_added_before_it() {
    let mut schedule = schedule(&[(0, 1)], &[]);
    assert_eq!(schedule.start_next(), Some(turn(0)));
    schedule.finish(turn(0), false);
    let (again, _) = schedule.add(0, 0, false);
    assert_eq!(
        schedule.settle(turn(0), true),
        [],
        "another one stands for it"
    );
    assert_eq!(schedule.start_next(), Some(again));
    assert_eq!(schedule.start_next(), Some(turn(2)));
    assert_eq!(schedule.start_next(), None, "it waits for the added one");
    schedule.finish(again, true);
    assert_eq!(schedule.settle(again, true), []);
    assert_eq!(schedule.start_next(), Some(turn(1)));
}

#[test]
fn a_queued_turn_leaves_the_queue_when_one_is_added_before_it_and_comes_back_once() {
    let mut schedule = schedule(&[(0, 1)], &[]);
    assert_eq!(schedule.start_next(), Some(turn(0)));
    schedule.finish(turn(0), true);
    assert_eq!(schedule.settle(turn(0), true), []);
    // The turn at node 1 is queued now.
    let (added, _) = schedule.add(0, 9, false);
    assert_eq!(schedule.start_next(), Some(turn(2)), "the lowest that may");
    assert_eq!(schedule.start_next(), Some(added));
    schedule.finish(added, true);
    assert_eq!(schedule.settle(added, true), []);
    assert_eq!(schedule.start_next(), Some(turn(1)));
    schedule.finish(turn(1), true);
    assert_eq!(schedule.settle(turn(1), true), []);
    assert_eq!(schedule.start_next(), None);
}

#[test]
fn while_it_is_open_what_a_failure_means_nothing_starts_that_it_may_stop() {
    for (on_error, next) in [(OnError::Stop, None), (OnError::Continue, Some(turn(1)))] {
        let mut schedule = schedule(&[], &[]).on_error(on_error);
        assert_eq!(schedule.start_next(), Some(turn(0)));
        schedule.finish(turn(0), false);
        assert_eq!(schedule.start_next(), next);
        schedule.settle(turn(0), true);
        assert!(schedule.start_next().is_some());
    }
}

#[test]
fn what_is_withdrawn_is_as_if_it_had_never_started() {
    let mut schedule = schedule(&[], &[]);
    assert_eq!(schedule.start_next(), Some(turn(0)));
    schedule.stop();
    schedule.withdraw(turn(0));
    assert_eq!(schedule.waiting().count(), 3);
    assert!(!schedule.is_over());
}
