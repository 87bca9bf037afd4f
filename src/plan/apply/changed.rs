//! Stacks whose outputs have changed during this run, as seen by the stacks after them.

use crate::project::stack::StackIndex;
use crate::selection::graph::{Graph, Precedence};

pub(super) struct ChangedOutputs {
    before: Precedence,
    /// By node: for a stack with work, whether its outputs have changed.
    set: Vec<Option<bool>>,
    /// By node: for the others, whether outputs before them have changed, cached.
    known: Vec<Option<bool>>,
}

impl ChangedOutputs {
    pub(super) fn new(graph: &Graph) -> Self {
        let before = Precedence::new(graph).reversed();
        ChangedOutputs {
            set: vec![None; before.n_nodes()],
            known: vec![None; before.n_nodes()],
            before,
        }
    }

    /// Records whether the outputs of a stack with work have changed. Once true, it remains true.
    pub(super) fn set(&mut self, stack: StackIndex, has_changed: bool) {
        let node = stack.get();
        let before = self.set[node];
        self.set[node] = Some(has_changed || before == Some(true));
        if before.or(self.known[node]).is_some() {
            // The stack has new work, so cached results may be outdated.
            self.known.fill(None);
        }
    }

    /// Returns whether outputs of the nearest preceding stacks with work have changed, looking
    /// through stacks without work. Valid only after these have ended.
    pub(super) fn before(&mut self, stack: StackIndex) -> bool {
        // A node, its next predecessor to visit, and the result of those visited.
        let mut open = vec![(stack.get(), 0, false)];
        while let Some((node, position, has_changed)) = open.last_mut() {
            let (node, at) = (*node, *position);
            if let Some(before) = self.before.successors(node).get(at) {
                *position += 1;
                let before = before.node as usize;
                match self.set[before].or(self.known[before]) {
                    Some(known) => *has_changed |= known,
                    None => open.push((before, 0, false)),
                }
                continue;
            }
            let found = *has_changed;
            open.pop();
            let Some((.., has_changed)) = open.last_mut() else {
                return found;
            };
            *has_changed |= found;
            self.known[node] = Some(found);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By node: whether the outputs have changed; `None` for a stack without work.
    fn outcomes() -> impl Strategy<Value = Vec<Option<bool>>> {
        let outcome = prop_oneof![2 => Just(None), 1 => any::<bool>().prop_map(Some)];
        prop::collection::vec(outcome, 1..12)
    }

    fn changed(n: usize, edges: &[(u32, u32)]) -> ChangedOutputs {
        let edges = edges.iter().map(|&(from, to)| (from, to, true));
        ChangedOutputs {
            before: Precedence::from_edges(n, n, edges).reversed(),
            set: vec![None; n],
            known: vec![None; n],
        }
    }

    /// The reference implementation: plain recursion.
    fn naive(outcomes: &[Option<bool>], edges: &[(u32, u32)], node: usize) -> bool {
        let mut before = edges.iter().filter(|(_, to)| *to as usize == node);
        before.any(|&(from, _)| {
            let from = from as usize;
            outcomes[from].unwrap_or_else(|| naive(outcomes, edges, from))
        })
    }

    #[test]
    fn acyclic_accepts_long_chains() {
        let n = 200_000_u32;
        let edges: Vec<(u32, u32)> = (1..n).map(|node| (node - 1, node)).collect();
        let mut changed = changed(n as usize, &edges);
        changed.set(StackIndex::new(0), true);
        assert!(changed.before(StackIndex::new(n as usize - 1)));
        assert!(!changed.before(StackIndex::new(0)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_nearest_stacks_with_work_count(
            outcomes in outcomes(),
            edges in prop::collection::vec((0..12_u32, 0..12_u32), 0..40),
        ) {
            let n = u32::try_from(outcomes.len()).unwrap();
            let edges: Vec<(u32, u32)> = edges.into_iter().map(|(a, b)| (a % n, b % n)).filter(|(from, to)| from < to).collect();
            let mut changed = changed(outcomes.len(), &edges);
            // As in a run: a stack is queried when those before it have ended, and then ends.
            for (node, outcome) in outcomes.iter().enumerate() {
                let stack = StackIndex::new(node);
                prop_assert_eq!(changed.before(stack), naive(&outcomes, &edges, node));
                if let Some(has_changed) = *outcome {
                    changed.set(stack, has_changed);
                }
            }
        }
    }
}
