//! Turns that are added to the operations of a plan, for any stack of the tree, at any time: nothing waits for
//! ever, and nobody overtakes what it runs after.

use std::num::NonZeroUsize;

use orch::run::schedule::OnError;
use orch::run::turn::{Operation, TurnIndex};
use proptest::prelude::*;

use crate::operations::{case, ways};

/// What happens next, as far as it can.
#[derive(Debug, Clone)]
enum Move {
    Start,
    Finish(usize),
    Settle(usize),
    Add(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => Just(Move::Start),
        2 => any::<usize>().prop_map(Move::Finish),
        2 => any::<usize>().prop_map(Move::Settle),
        2 => any::<usize>().prop_map(Move::Add),
    ];
    prop::collection::vec(one, 0..40)
}

/// A turn as the model knows it.
struct Turn {
    stack: usize,
    destroys: bool,
    has_started: bool,
    is_settled: bool,
    /// The turns that must have been settled when it starts.
    waits: Vec<usize>,
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_added_keeps_to_the_tree_and_everything_ends(
        case in case(),
        moves in moves(),
        jobs in 1..4_usize,
    ) {
        let order = case.order();
        let tree = case.tree();
        let n_stacks = tree.n_stacks();
        let ways = ways(&tree);
        let is_before = |first: usize, second: usize| first != second && ways[first][second].is_some();
        let (schedule, first) = order.schedule_with_stacks(&tree);
        let ranks = order.ranks_of_stacks(n_stacks);
        let jobs = NonZeroUsize::new(jobs).unwrap();
        let mut schedule = schedule.on_error(OnError::Continue).at_once(jobs, &[]);
        let mut turns: Vec<Turn> = order.sequence.iter().map(|operation| Turn {
            stack: operation.stack,
            destroys: operation.operation == Operation::Destroy,
            has_started: false,
            is_settled: false,
            waits: Vec::new(),
        }).collect();
        let (mut running, mut ended): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        // In the end, everything goes on until nothing is left.
        let rest = (0..4 * (turns.len() + moves.len()) + 4).map(|number| match number % 3 {
            0 => Move::Start,
            1 => Move::Finish(0),
            _ => Move::Settle(0),
        });
        for next in moves.into_iter().chain(rest) {
            match next {
                Move::Start => {
                    let Some(turn) = schedule.start_next() else { continue };
                    let turn = turn.get();
                    for &before in &turns[turn].waits {
                        prop_assert!(turns[before].is_settled, "{turn} overtakes {before}");
                    }
                    turns[turn].has_started = true;
                    running.push(turn);
                }
                Move::Finish(which) if !running.is_empty() => {
                    let turn = running.remove(which % running.len());
                    schedule.finish(TurnIndex::new(turn), true);
                    ended.push(turn);
                }
                Move::Settle(which) if !ended.is_empty() => {
                    let turn = ended.remove(which % ended.len());
                    turns[turn].is_settled = true;
                    schedule.settle(TurnIndex::new(turn), true);
                }
                Move::Add(stack) => {
                    let stack = stack % n_stacks;
                    let number = turns.len();
                    let brings_forward = |turn: &Turn| turn.stack < n_stacks && !turn.destroys;
                    let waits = turns.iter().enumerate().filter(|(_, turn)| {
                        let is_own = turn.stack == stack;
                        let counts = brings_forward(turn) || is_own && turn.has_started;
                        counts && (is_own || is_before(turn.stack, stack))
                    });
                    let waits: Vec<usize> = waits.map(|(number, _)| number).collect();
                    for turn in turns.iter_mut().filter(|turn| !turn.has_started && brings_forward(turn)) {
                        if is_before(stack, turn.stack) {
                            turn.waits.push(number);
                        }
                    }
                    turns.push(Turn { stack, destroys: false, has_started: false, is_settled: false, waits });
                    let (turn, skipped) = schedule.add(first + stack, ranks[stack], false);
                    prop_assert_eq!(turn.get(), number);
                    prop_assert_eq!(skipped, []);
                }
                Move::Finish(_) | Move::Settle(_) => {}
            }
        }
        prop_assert!(schedule.is_over(), "something waits for ever");
        prop_assert!(turns.iter().all(|turn| turn.is_settled));
    }

    #[test]
    fn without_additions_the_order_is_that_of_the_plan(case in case()) {
        let order = case.order();
        let (mut schedule, _) = order.schedule_with_stacks(&case.tree());
        let mut sequence = Vec::new();
        while let Some(turn) = schedule.start_next() {
            sequence.push(turn.get());
            schedule.finish(turn, true);
            schedule.settle(turn, true);
        }
        prop_assert_eq!(sequence, (0..order.sequence.len()).collect::<Vec<_>>());
    }
}
