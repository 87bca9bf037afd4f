//! The schedule of turns: added while a run goes on, settled later than they ended, behind edges that
//! only order. The model knows no nodes that open: it keeps, for each turn, which turns it waits for.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use orch::run::schedule::{OnError, Schedule, Skipped};
use orch::run::turn::TurnIndex;
use orch::selection::graph::Precedence;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Nodes in an order in which edges lead forward: which earlier nodes each waits for, and whether a
/// failure spreads; whether it has a turn from the beginning; its rank.
type Nodes = Vec<(Vec<(Index, bool)>, bool, u32)>;

/// What happens next, as far as it can: a turn starts, or one that runs ends (well or not), or what it
/// means is told (as it ended, or as a success), or a turn is added.
#[derive(Debug, Clone)]
enum Move {
    Start,
    Finish(usize, bool),
    Settle(usize, bool),
    Add(usize, u32),
}

fn nodes() -> impl Strategy<Value = Nodes> {
    let edges = prop::collection::vec((any::<Index>(), prop::bool::weighted(0.7)), 0..3);
    prop::collection::vec((edges, prop::bool::weighted(0.7), 0..4_u32), 1..8)
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => Just(Move::Start),
        3 => (any::<usize>(), prop::bool::weighted(0.6)).prop_map(|(which, well)| Move::Finish(which, well)),
        3 => (any::<usize>(), prop::bool::weighted(0.2)).prop_map(|(which, as_success)| Move::Settle(which, as_success)),
        1 => (any::<usize>(), 0..4_u32).prop_map(|(node, rank)| Move::Add(node, rank)),
    ];
    prop::collection::vec(one, 0..40)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Ended {
        succeeded: bool,
    },
    /// Settled, and whether what comes after it may go on.
    Over {
        opens: bool,
    },
}

struct Turn {
    node: usize,
    rank: u32,
    state: State,
    /// The turns that it waits for, and whether their failure reaches it.
    waits: Vec<(usize, bool)>,
}

struct Model {
    on_error: OnError,
    /// From node to node: whether a way leads there, and whether a failure spreads along one.
    reaches: Vec<Vec<Option<bool>>>,
    turns: Vec<Turn>,
    is_stopped: bool,
}

impl Model {
    fn new(edges: &BTreeSet<(usize, usize, bool)>, nodes: &Nodes, on_error: OnError) -> Self {
        let n = nodes.len();
        let mut reaches = vec![vec![None; n]; n];
        for &(from, to, spreads) in edges {
            reaches[from][to] = reaches[from][to].max(Some(spreads));
        }
        for middle in 0..n {
            for from in 0..n {
                for to in 0..n {
                    if let (Some(first), Some(second)) =
                        (reaches[from][middle], reaches[middle][to])
                    {
                        reaches[from][to] = reaches[from][to].max(Some(first && second));
                    }
                }
            }
        }
        let mut turns: Vec<Turn> = Vec::new();
        for (node, (_, has_turn, rank)) in nodes.iter().enumerate() {
            if *has_turn {
                // Edges lead forward, so all that it waits for is there.
                let before = turns.iter().enumerate();
                let waits =
                    before.filter_map(|(other, turn)| Some((other, reaches[turn.node][node]?)));
                let waits = waits.collect();
                turns.push(Turn {
                    node,
                    rank: *rank,
                    state: State::Waiting,
                    waits,
                });
            }
        }
        Model {
            on_error,
            reaches,
            turns,
            is_stopped: false,
        }
    }

    /// Whether a failure leads from one node to another; no failure leaves the node where it happened
    /// without reaching further turns there.
    fn way(&self, from: usize, to: usize) -> Option<bool> {
        if from == to {
            Some(true)
        } else {
            self.reaches[from][to]
        }
    }

    fn add(&mut self, node: usize, rank: u32) {
        let number = self.turns.len();
        let mut waits = Vec::new();
        for other in 0..number {
            let turn = &self.turns[other];
            let is_settled = turn.state == State::Over { opens: true };
            if let Some(spreads) = self.way(turn.node, node)
                && !is_settled
            {
                waits.push((other, spreads));
            }
            if turn.node != node
                && turn.state == State::Waiting
                && let Some(spreads) = self.way(node, turn.node)
            {
                self.turns[other].waits.push((number, spreads));
            }
        }
        self.turns.push(Turn {
            node,
            rank,
            state: State::Waiting,
            waits,
        });
    }

    fn is_free(&self, turn: usize) -> bool {
        let mut waits = self.turns[turn].waits.iter();
        self.turns[turn].state == State::Waiting
            && waits.all(|&(other, _)| matches!(self.turns[other].state, State::Over { .. }))
    }

    fn is_blocked(&self, turn: usize) -> bool {
        let mut waits = self.turns[turn].waits.iter();
        waits.any(|&(other, spreads)| {
            spreads && self.turns[other].state == State::Over { opens: false }
        })
    }

    /// Skips what waits for nothing more and in vain, and returns it.
    fn skip(&mut self) -> BTreeSet<usize> {
        let mut skipped = BTreeSet::new();
        while let Some(turn) =
            (0..self.turns.len()).find(|&it| self.is_free(it) && self.is_blocked(it))
        {
            self.turns[turn].state = State::Over { opens: false };
            skipped.insert(turn);
        }
        skipped
    }

    fn count(&self, state: impl Fn(State) -> bool) -> usize {
        self.turns.iter().filter(|turn| state(turn.state)).count()
    }

    fn next(&self, jobs: usize) -> Option<usize> {
        let n_running = self.count(|state| state == State::Running);
        let is_open = self.count(|state| state == State::Ended { succeeded: false }) > 0;
        if self.is_stopped || n_running == jobs || (is_open && self.on_error == OnError::Stop) {
            return None;
        }
        let free = (0..self.turns.len()).filter(|&turn| self.is_free(turn));
        free.min_by_key(|&turn| (self.turns[turn].rank, turn))
    }

    fn settle(&mut self, turn: usize, counts_as_success: bool) {
        let opens = counts_as_success || self.on_error != OnError::SkipDependents;
        self.is_stopped |= !counts_as_success && self.on_error == OnError::Stop;
        self.turns[turn].state = State::Over { opens };
    }

    /// The turns in one of these states.
    fn all(&self, is: impl Fn(State) -> bool) -> Vec<usize> {
        let all = 0..self.turns.len();
        all.filter(|&turn| is(self.turns[turn].state)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_schedule_to_which_turns_are_added_agrees_with_what_each_turn_waits_for(
        nodes in nodes(),
        on_error in select(vec![OnError::Stop, OnError::SkipDependents, OnError::Continue]),
        jobs in 1..4_usize,
        moves in moves(),
    ) {
        let edges: BTreeSet<(usize, usize, bool)> = nodes
            .iter()
            .enumerate()
            .filter(|(node, _)| *node > 0)
            .flat_map(|(node, (before, ..))| before.iter().map(move |(from, spreads)| (from.index(node), node, *spreads)))
            .collect();
        let numbers = edges.iter().map(|&(from, to, spreads)| {
            let number = |node| u32::try_from(node).expect("there are few");
            (number(from), number(to), spreads)
        });
        let numbers: Vec<_> = numbers.collect();
        let precedence = Precedence::from_edges(nodes.len(), nodes.len(), numbers.iter().copied());
        let turns = nodes.iter().enumerate().filter(|(_, (_, has_turn, _))| *has_turn);
        let mut schedule = Schedule::new(precedence, turns.map(|(node, (.., rank))| (node, *rank)))
            .on_error(on_error)
            .at_once(NonZeroUsize::new(jobs).expect("not zero"), &[]);
        let mut model = Model::new(&edges, &nodes, on_error);

        // In the end everything runs that may.
        let rest = (0..3 * (nodes.len() + moves.len())).map(|_| [
            Move::Start,
            Move::Finish(0, true),
            Move::Settle(0, false),
        ]);
        let drawn: Vec<Move> = moves.into_iter().chain(rest.flatten()).collect();
        for next in drawn {
            let skipped = match next {
                Move::Start => {
                    let expected = model.next(jobs);
                    let started = schedule.start_next().map(TurnIndex::get);
                    prop_assert_eq!(started, expected);
                    if let Some(turn) = started {
                        model.turns[turn].state = State::Running;
                    }
                    continue;
                }
                Move::Finish(which, succeeded) => {
                    let running = model.all(|state| state == State::Running);
                    if running.is_empty() {
                        continue;
                    }
                    let turn = running[which % running.len()];
                    schedule.finish(TurnIndex::new(turn), succeeded);
                    model.turns[turn].state = State::Ended { succeeded };
                    continue;
                }
                Move::Settle(which, as_success) => {
                    let ended = model.all(|state| matches!(state, State::Ended { .. }));
                    if ended.is_empty() {
                        continue;
                    }
                    let turn = ended[which % ended.len()];
                    let succeeded = model.turns[turn].state == State::Ended { succeeded: true };
                    model.settle(turn, succeeded || as_success);
                    schedule.settle(TurnIndex::new(turn), succeeded || as_success)
                }
                Move::Add(node, rank) => {
                    let node = node % nodes.len();
                    model.add(node, rank);
                    let (turn, skipped) = schedule.add(node, rank, false);
                    prop_assert_eq!(turn.get(), model.turns.len() - 1);
                    skipped
                }
            };
            for Skipped { turn, cause } in &skipped {
                let cause = &model.turns[cause.get()];
                prop_assert!(cause.state == State::Over { opens: false }, "{:?} failed", turn);
                prop_assert!(model.way(cause.node, model.turns[turn.get()].node).is_some());
            }
            let skipped: Vec<usize> = skipped.iter().map(|skipped| skipped.turn.get()).collect();
            let expected = model.skip();
            prop_assert_eq!(skipped.len(), expected.len(), "each once");
            prop_assert_eq!(skipped.into_iter().collect::<BTreeSet<_>>(), expected);
        }
        let waiting: Vec<usize> = schedule.waiting().map(TurnIndex::get).collect();
        prop_assert_eq!(&waiting, &model.all(|state| state == State::Waiting));
        prop_assert_eq!(schedule.is_over(), waiting.is_empty());
        prop_assert!(waiting.is_empty() || model.is_stopped, "nothing is forgotten");
    }
}
