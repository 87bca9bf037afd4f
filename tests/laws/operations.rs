//! The order of a plan's operations, against a model that knows pairs of stacks and their closure, and
//! no groups, nodes or searches.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use orch::plan::order::{
    OperationOrder, RecordedConstraints, RecordedEdge, RelaxedEdge, ReplacementOrder,
    StackOperation, StackWork,
};
use orch::run::order;
use orch::run::schedule::{OnError, Schedule, Skipped};
use orch::run::turn::{Operation, TurnIndex};
use orch::selection::graph::Precedence;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::loaded::Loaded;
use crate::query::with_runnable_query;

/// Which of some things lead where, and whether a failure spreads along one way at least.
pub(crate) type Ways = Vec<Vec<Option<bool>>>;

/// Stacks recorded that are referred to together: before or after what refers to them.
#[derive(Debug, Clone)]
struct Group {
    comes_first: bool,
    stacks: Vec<Index>,
    /// A group that belongs to it, if it is of the same kind and further up in the list.
    inner: Option<Index>,
}

/// A declaration recorded: which stack, names which stack or group, and whether it comes after it if
/// that is a stack; its serial.
type Declaration = (Index, Index, bool, u64);

/// What a plan is made from.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The work on the stacks of the tree.
    in_tree: Vec<StackWork>,
    tree: Vec<(usize, usize, bool)>,
    n_tree_nodes: usize,
    /// The stacks that are recorded and not in the project: whether each is destroyed.
    gone: Vec<bool>,
    /// For each of these, the stack of the tree that may take its place.
    replaced: Vec<Option<Index>>,
    /// Which stacks of the tree may be replaced only when their time has come.
    late: Vec<Index>,
    /// Which stack is nested in which recorded, the lower number outside.
    nested: Vec<(usize, usize)>,
    groups: Vec<Group>,
    declarations: Vec<Declaration>,
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let work = (any::<bool>(), prop::bool::weighted(0.6));
    let work = work.prop_map(|(destroy, apply)| StackWork { destroy, apply });
    let group = (
        any::<bool>(),
        prop::collection::vec(any::<Index>(), 0..4),
        prop::option::of(any::<Index>()),
    );
    let group = group.prop_map(|(comes_first, stacks, inner)| Group {
        comes_first,
        stacks,
        inner,
    });
    let tree_edge = (any::<Index>(), any::<Index>(), prop::bool::weighted(0.8));
    let declaration = (any::<Index>(), any::<Index>(), any::<bool>(), 0..5_u64);
    (
        prop::collection::vec(work, 1..8),
        (
            0..3_usize,
            prop::collection::vec((any::<bool>(), any::<Option<Index>>()), 0..4),
        ),
        any::<u64>(),
        prop::collection::vec(tree_edge, 0..12),
        prop::collection::vec((any::<Index>(), any::<Index>()), 0..3),
        prop::collection::vec(group, 0..4),
        prop::collection::vec(declaration, 0..12),
        prop::collection::vec(any::<Index>(), 0..3),
    )
        .prop_map(
            |(in_tree, (n_tree_groups, gone), seed, edges, nested, groups, declarations, late)| {
                let n_tree_nodes = in_tree.len() + n_tree_groups;
                let (gone, replaced): (Vec<bool>, Vec<Option<Index>>) = gone.into_iter().unzip();
                // Along a line through all nodes there are no cycles.
                let mut line: Vec<usize> = (0..n_tree_nodes).collect();
                line.sort_by_key(|&node| seed.wrapping_mul(2 * node as u64 + 1).rotate_left(17));
                let edge = |(first, second, spreads): (Index, Index, bool)| {
                    let (first, second) = (first.index(n_tree_nodes), second.index(n_tree_nodes));
                    let ends = (first.min(second), first.max(second));
                    (first != second).then(|| (line[ends.0], line[ends.1], spreads))
                };
                let n_stacks = in_tree.len() + gone.len();
                let nested = nested.into_iter().map(|(first, second): (Index, Index)| {
                    let (first, second) = (first.index(n_stacks), second.index(n_stacks));
                    (first.min(second), first.max(second))
                });
                Case {
                    nested: nested.filter(|(outer, inner)| outer != inner).collect(),
                    tree: edges.into_iter().filter_map(edge).collect(),
                    in_tree,
                    n_tree_nodes,
                    gone,
                    replaced,
                    late,
                    groups,
                    declarations,
                }
            },
        )
}

fn number(node: usize) -> u32 {
    u32::try_from(node).expect("there are few")
}

impl Case {
    pub(crate) fn tree(&self) -> Precedence {
        let edges = self.tree.iter();
        let edges = edges.map(|&(from, to, spreads)| (number(from), number(to), spreads));
        Precedence::from_edges(self.in_tree.len(), self.n_tree_nodes, edges)
    }

    /// The number of stacks in the tree and recorded.
    fn n_stacks(&self) -> usize {
        self.in_tree.len() + self.gone.len()
    }

    /// The work on all stacks; on those of the tree, if nothing else is destroyed.
    fn works(&self) -> Vec<StackWork> {
        let gone = self.gone.iter().map(|&destroy| StackWork {
            destroy,
            apply: false,
        });
        let gone = gone.filter(|_| self.gone.contains(&true));
        self.in_tree.iter().copied().chain(gone).collect()
    }

    /// The stacks that are replaced only when their time has come.
    fn late(&self) -> BTreeSet<usize> {
        let late = self.late.iter().map(|it| it.index(self.in_tree.len()));
        let is_replaced = |it: &usize| self.in_tree[*it].destroy && self.in_tree[*it].apply;
        late.filter(is_replaced).collect()
    }

    /// The stacks that are made anew before the old ones go, each with the old one: what such a stack runs after
    /// is not destroyed and made anew in the other order.
    fn created_first(&self) -> Vec<(usize, usize)> {
        let works = self.works();
        let mut tree: Ways = vec![vec![None; self.n_tree_nodes]; self.n_tree_nodes];
        for &(from, to, _) in &self.tree {
            tree[from][to] = Some(true);
        }
        close(&mut tree);
        let late = self.late();
        let is_anew =
            |stack: usize| works[stack].destroy && works[stack].apply && !late.contains(&stack);
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (position, made) in self.replaced.iter().enumerate() {
            let Some(made) = made.map(|made| made.index(self.in_tree.len())) else {
                continue;
            };
            let old = self.in_tree.len() + position;
            let mut used = (0..self.in_tree.len()).filter(|&it| tree[it][made].is_some());
            if works.get(old).is_some_and(|work| work.destroy)
                && works[made].apply
                && !works[made].destroy
                && !used.any(is_anew)
            {
                pairs.push((made, old));
            }
        }
        pairs
    }

    pub(crate) fn order(&self) -> OperationOrder {
        let created_first = self.created_first();
        let tree = self.tree();
        let replacements = ReplacementOrder {
            created_first,
            late: self.late(),
        };
        OperationOrder::with_ties(
            &self.works(),
            &tree,
            &self.recorded(),
            &replacements,
            |it| it,
        )
    }

    /// The group that belongs to another one.
    fn inner(&self, group: usize) -> Option<usize> {
        let inner = self.groups[group].inner.filter(|_| group > 0)?.index(group);
        (self.groups[inner].comes_first == self.groups[group].comes_first).then_some(inner)
    }

    /// All stacks of a group.
    fn members(&self, group: usize) -> BTreeSet<usize> {
        let own = self.groups[group].stacks.iter();
        let mut members: BTreeSet<usize> = own.map(|it| it.index(self.n_stacks())).collect();
        if let Some(inner) = self.inner(group) {
            members.extend(self.members(inner));
        }
        members
    }

    /// The declarations: the stack that declares, the stack or group (beyond the stacks) that it names,
    /// whether it comes after that, and the serial.
    fn declared(&self) -> impl Iterator<Item = (usize, usize, bool, u64)> {
        let n_stacks = self.n_stacks();
        let n_nodes = n_stacks + self.groups.len();
        self.declarations
            .iter()
            .map(move |&(from, to, after, serial)| {
                let named = to.index(n_nodes);
                let group = named.checked_sub(n_stacks);
                let after = group.map_or(after, |group| self.groups[group].comes_first);
                (from.index(n_stacks), named, after, serial)
            })
    }

    fn recorded(&self) -> RecordedConstraints {
        let n_stacks = self.n_stacks();
        let edge = |first: usize, second: usize, forward: bool, serial: Option<u64>| {
            let (earlier, later) = if forward {
                (first, second)
            } else {
                (second, first)
            };
            RecordedEdge {
                earlier: number(earlier),
                later: number(later),
                serial,
            }
        };
        let mut edges: Vec<RecordedEdge> = self
            .declared()
            .map(|(from, named, after, serial)| edge(named, from, after, Some(serial)))
            .collect();
        for &(outer, inner) in &self.nested {
            edges.push(edge(outer, inner, true, None));
        }
        for (number, group) in self.groups.iter().enumerate() {
            let own = group.stacks.iter().map(|stack| stack.index(n_stacks));
            let inner = self.inner(number).map(|inner| n_stacks + inner);
            for member in own.chain(inner) {
                edges.push(edge(member, n_stacks + number, group.comes_first, None));
            }
        }
        RecordedConstraints {
            n_stacks,
            n_nodes: n_stacks + self.groups.len(),
            edges,
        }
    }

    /// Which stacks come before which recorded, taking pairs of stacks by falling serial as long as they
    /// close no cycle; and those that do.
    fn model_record(&self) -> (Ways, Vec<RecordedEdge>) {
        let n_stacks = self.n_stacks();
        let mut declared: Vec<_> = self.declared().collect();
        declared.sort_by_key(|&(.., serial)| Reverse(serial));
        let mut ways: Ways = vec![vec![None; n_stacks]; n_stacks];
        for &(outer, inner) in &self.nested {
            ways[outer][inner] = Some(true);
        }
        let mut pairs = ways.clone();
        close(&mut ways);
        let mut left_out = Vec::new();
        for (from, named, after, serial) in declared {
            let named = match named.checked_sub(n_stacks) {
                Some(group) => self.members(group),
                None => BTreeSet::from([named]),
            };
            for named in named {
                let (earlier, later) = if after { (named, from) } else { (from, named) };
                if earlier == later || ways[later][earlier].is_some() {
                    left_out.push(RecordedEdge {
                        earlier: number(earlier),
                        later: number(later),
                        serial: Some(serial),
                    });
                    continue;
                }
                ways[earlier][later] = Some(true);
                pairs[earlier][later] = Some(true);
                close(&mut ways);
            }
        }
        (pairs, left_out)
    }

    fn operations(&self) -> Vec<StackOperation> {
        let mut operations = Vec::new();
        for (stack, work) in self.works().iter().enumerate() {
            for (is_wanted, operation) in [
                (work.destroy, Operation::Destroy),
                (work.apply, Operation::Apply),
            ] {
                if is_wanted {
                    operations.push(StackOperation { stack, operation });
                }
            }
        }
        operations
    }

    /// Which operations wait for which by the rules that hold in any case, in the order of
    /// [`Self::operations`].
    fn strict(&self) -> Ways {
        let mut tree: Ways = vec![vec![None; self.n_tree_nodes]; self.n_tree_nodes];
        for &(from, to, spreads) in &self.tree {
            tree[from][to] = tree[from][to].max(Some(spreads));
        }
        close(&mut tree);
        let (mut recorded, _) = self.model_record();
        close(&mut recorded);
        let operations = self.operations();
        let created_first = self.created_first();
        let late = self.late();
        let is_late = |it: &StackOperation| late.contains(&it.stack);
        let rule =
            |first: &StackOperation, then: &StackOperation| match (first.operation, then.operation)
            {
                (Operation::Apply, Operation::Apply) => tree[first.stack][then.stack],
                (Operation::Apply, Operation::Destroy) if is_late(then) => {
                    tree[first.stack][then.stack]
                }
                (Operation::Destroy, Operation::Destroy) if is_late(first) || is_late(then) => None,
                (Operation::Destroy, Operation::Destroy) => recorded[then.stack][first.stack],
                (Operation::Destroy, Operation::Apply) => {
                    (first.stack == then.stack).then_some(true)
                }
                (Operation::Apply, Operation::Destroy) => created_first
                    .contains(&(first.stack, then.stack))
                    .then_some(true),
                _ => None,
            };
        let row = |first| operations.iter().map(|then| rule(first, then)).collect();
        operations.iter().map(row).collect()
    }

    /// What the rules ask for that may be relaxed: the rule, the user and what it used. On record the one ran after the
    /// other: by rule 4 directly or through stacks that stay, by rule 5 directly or through stacks without work.
    fn asked(&self) -> BTreeSet<(u8, u32, u32)> {
        let works = self.works();
        let work = |stack: usize| works.get(stack).copied().unwrap_or_default();
        let (mut recorded, _) = self.model_record();
        let (created_first, late) = (self.created_first(), self.late());
        let is_made = |stack: usize| created_first.iter().any(|(made, _)| *made == stack);
        // What is made anew first changes nothing, so it stands between others.
        let mut of_changes = recorded.clone();
        close_through(&mut of_changes, |stack| {
            work(stack) == StackWork::default() || is_made(stack)
        });
        close_through(&mut recorded, |stack| {
            !work(stack).destroy || work(stack).apply
        });
        let mut asked = BTreeSet::new();
        for (used, users) in recorded.iter().enumerate() {
            for user in (0..users.len()).filter(|&user| users[user].is_some()) {
                if work(user).apply && work(used).destroy && !work(used).apply {
                    asked.insert((4, number(user), number(used)));
                }
            }
        }
        for (used, users) in of_changes.iter().enumerate() {
            for user in (0..users.len()).filter(|&user| users[user].is_some()) {
                let is_late = late.contains(&user);
                if work(user).destroy && !is_late && work(used).apply && !is_made(used) {
                    asked.insert((5, number(user), number(used)));
                }
            }
        }
        asked
    }

    /// Which operations wait for which, by all rules, if this is left out of what they ask for. Checks that
    /// each of it is left out since it would close a cycle with what is asked for by the rules before it, and
    /// with what is kept of its own rule.
    fn model(&self, left_out: &[RelaxedEdge]) -> Result<Ways, TestCaseError> {
        let mut asked = self.asked();
        let mut relaxed = Vec::new();
        for left_out in left_out {
            if let RelaxedEdge::Rule { rule, user, used } = *left_out {
                prop_assert!(asked.remove(&(rule, user, used)), "{:?}", left_out);
                relaxed.push((rule, user, used));
            }
        }
        let (operations, late) = (self.operations(), self.late());
        // The positions of what comes first and of what comes then.
        let ends = |(rule, user, used): (u8, u32, u32)| {
            let (first, then) = match rule {
                4 => (Operation::Apply, Operation::Destroy),
                _ if late.contains(&(used as usize)) => (Operation::Destroy, Operation::Destroy),
                _ => (Operation::Destroy, Operation::Apply),
            };
            let position = |stack: u32, operation| {
                let mut all = operations.iter();
                let found =
                    all.position(|it| number(it.stack) == stack && it.operation == operation);
                found.expect("it is planned")
            };
            (position(user, first), position(used, then))
        };
        let mut waits = self.strict();
        for rule in [4, 5] {
            for &pair in asked.iter().filter(|pair| pair.0 == rule) {
                let (first, then) = ends(pair);
                waits[first][then] = waits[first][then].max(Some(rule == 4));
            }
            close(&mut waits);
            for &pair in relaxed.iter().filter(|pair| pair.0 == rule) {
                let (first, then) = ends(pair);
                prop_assert!(waits[then][first].is_some(), "{:?} closes no cycle", pair);
            }
        }
        prop_assert!((0..waits.len()).all(|operation| waits[operation][operation].is_none()));
        Ok(waits)
    }
}

fn close(ways: &mut Ways) {
    close_through(ways, |_| true);
}

/// Adds the ways through some of the things.
fn close_through(ways: &mut Ways, through: impl Fn(usize) -> bool) {
    let n = ways.len();
    for middle in (0..n).filter(|&middle| through(middle)) {
        for from in 0..n {
            for to in 0..n {
                if let (Some(first), Some(second)) = (ways[from][middle], ways[middle][to]) {
                    ways[from][to] = ways[from][to].max(Some(first && second));
                }
            }
        }
    }
}

/// Which nodes lead to which.
pub(crate) fn ways(precedence: &Precedence) -> Ways {
    let n = precedence.n_nodes();
    let mut ways: Ways = vec![vec![None; n]; n];
    for (from, ways) in ways.iter_mut().enumerate() {
        for successor in precedence.successors(from) {
            let way = &mut ways[successor.node as usize];
            *way = (*way).max(Some(successor.spreads_failure));
        }
    }
    close(&mut ways);
    ways
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn operations_wait_for_what_the_rules_say_and_the_lowest_that_may_goes_first(case in case()) {
        let order = case.order();
        let (_, left_out) = case.model_record();
        let left_out: Vec<RelaxedEdge> = left_out.into_iter().map(RelaxedEdge::Recorded).collect();
        let (of_record, of_rules) = order.relaxed.split_at(left_out.len());
        prop_assert_eq!(of_record, &left_out);

        let operations = case.operations();
        let waits = case.model(of_rules)?;
        let mut expected = Vec::new();
        let mut is_done = vec![false; operations.len()];
        let all = 0..operations.len();
        while let Some(next) = all.clone().find(|&next| {
            !is_done[next] && all.clone().all(|other| is_done[other] || waits[other][next].is_none())
        }) {
            is_done[next] = true;
            expected.push(next);
        }
        prop_assert_eq!(expected.len(), operations.len(), "no cycle");
        let sequence: Vec<StackOperation> = expected.iter().map(|&it| operations[it]).collect();
        prop_assert_eq!(&order.sequence, &sequence);

        // Neither more nor less, and no node that nothing waits through.
        let found = ways(&order.precedence);
        for (position, &first) in expected.iter().enumerate() {
            for (other, &then) in expected.iter().enumerate() {
                prop_assert_eq!(found[position][other], waits[first][then], "{:?}: {} before {}", order, position, other);
            }
        }
        prop_assert_eq!(order.precedence.n_stacks(), expected.len());
        let is_between = |node: usize| {
            let all = 0..expected.len();
            all.clone().any(|it| found[it][node].is_some()) && all.clone().any(|it| found[node][it].is_some())
        };
        prop_assert!((expected.len()..order.precedence.n_nodes()).all(is_between));
    }

    #[test]
    fn no_operation_starts_before_what_it_waits_for_or_after_its_failure(
        case in case(),
        on_error in select(vec![OnError::Stop, OnError::SkipDependents, OnError::Continue]),
        at_a_time in 1..5_usize,
        endings in prop::collection::vec((any::<Index>(), prop::bool::weighted(0.75)), 16),
    ) {
        let order = case.order();
        let operations = case.operations();
        let waits = case.model(&order.relaxed)?;
        // The model's number of a turn.
        let number = |turn: TurnIndex| {
            let operation = order.sequence[turn.get()];
            operations.iter().position(|&other| other == operation).expect("it is planned")
        };
        let at_once = NonZeroUsize::new(at_a_time).expect("not zero");
        let mut schedule: Schedule = order.schedule().on_error(on_error).at_once(at_once, &[]);
        let all = 0..operations.len();
        let (mut started, mut over, mut failed, mut skipped) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut running: Vec<TurnIndex> = Vec::new();
        let mut endings = endings.into_iter().cycle();
        loop {
            let is_stopped = on_error == OnError::Stop && !failed.is_empty();
            let is_free = |next: &usize| {
                let mut before = all.clone().filter(|&other| waits[other][*next].is_some());
                !started.contains(next) && !over.contains(next) && before.all(|other| over.contains(&other))
            };
            let has_room = !is_stopped && running.len() < at_a_time;
            let expected = all.clone().find(is_free).filter(|_| has_room);
            let next = schedule.start_next();
            prop_assert_eq!(next.map(number), expected, "with {:?} over in {:?}", over, order);
            if let Some(next) = next {
                started.insert(number(next));
                running.push(next);
                continue;
            }
            if running.is_empty() {
                break;
            }
            let (which, succeeded) = endings.next().expect("there are some");
            let turn = running.remove(which.index(running.len()));
            over.insert(number(turn));
            if !succeeded {
                failed.insert(number(turn));
            }
            schedule.finish(turn, succeeded);
            for Skipped { turn, cause } in schedule.settle(turn, succeeded) {
                let (turn, cause) = (number(turn), number(cause));
                prop_assert!(failed.contains(&cause) && waits[cause][turn] == Some(true));
                prop_assert!(skipped.insert(turn) && !started.contains(&turn));
                over.insert(turn);
            }
        }
        // What could not be destroyed may still need what comes after it.
        let spreads = |cause: &usize| match on_error {
            OnError::Stop => false,
            OnError::SkipDependents => true,
            OnError::Continue => operations[*cause].operation == Operation::Destroy,
        };
        let causes: Vec<usize> = failed.iter().copied().filter(spreads).collect();
        let in_vain = |&operation: &usize| causes.iter().any(|&cause| waits[cause][operation] == Some(true));
        let expected: BTreeSet<usize> = all.clone().filter(in_vain).collect();
        prop_assert_eq!(&skipped, &expected);
        prop_assert!(over.len() == operations.len() || on_error == OnError::Stop && !failed.is_empty());
    }

    #[test]
    fn what_a_tree_brings_forward_has_the_order_of_a_run_and_is_destroyed_against_it((tree, query) in with_runnable_query()) {
        let loaded = Loaded::new(&tree);
        let selection = loaded.select(&query);
        let works = |destroy: bool| {
            let works = loaded.project.stacks.iter().map(|(stack, _)| {
                let is_selected = selection.contains(stack);
                StackWork { destroy: is_selected && destroy, apply: is_selected && !destroy }
            });
            works.collect::<Vec<StackWork>>()
        };
        let precedence = Precedence::new(&loaded.graph);
        let recorded = RecordedConstraints::as_in_the_tree(&precedence);
        let forward = OperationOrder::new(&works(false), &precedence, &recorded);
        let run = order::RunOrder::new(&loaded.graph, &selection);
        let stacks = |order: &OperationOrder| order.sequence.iter().map(|it| it.stack).collect::<Vec<_>>();
        let expected: Vec<usize> = run.sequence.iter().map(|stack| stack.get()).collect();
        prop_assert_eq!(stacks(&forward), expected);

        let backward = OperationOrder::new(&works(true), &precedence, &recorded);
        prop_assert_eq!(&backward.relaxed, &[]);
        let sequence = stacks(&backward);
        prop_assert_eq!(sequence.len(), forward.sequence.len());
        let reaches = loaded.model.closure(|_| true);
        let stacks: Vec<usize> = sequence.iter().map(|&stack| {
            let found = loaded.project.stacks.iter().find(|(index, _)| index.get() == stack);
            loaded.number(found.expect("it is in the project").0)
        }).collect();
        for (position, &first) in stacks.iter().enumerate() {
            for &then in &stacks[position + 1..] {
                prop_assert!(!reaches[first][then], "{} after {}", loaded.model.path(first), loaded.model.path(then));
            }
        }
    }
}
