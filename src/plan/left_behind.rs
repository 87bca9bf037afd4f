//! Stacks that are kept although a stack that they depend on is destroyed.

use std::collections::BTreeMap;

use crate::plan::order::{NamedConstraints, RecordedConstraints};
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::selection::graph::{Graph, Precedence};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestroyOutcome {
    Destroyed,
    /// It exists and is kept.
    Kept,
    /// It does not exist, or others manage it.
    Missing,
}

/// A kept stack that still depends on a destroyed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    /// The kept stack, as `orch list` prints it. It may be removed from this commit.
    pub kept: String,
    /// The lowest destroyed stack that it runs after; a removed one only if there is no other.
    pub destroyed: String,
}

/// Returns kept stacks that run after destroyed ones, according to this commit or the state: this
/// commit's stacks by path, then removed ones, whose outcomes are by key. All stacks between the
/// two do not exist. Linear in the size of the graphs unless recorded constraints contradict each
/// other.
pub fn left_behind(
    project: &Project,
    graph: &Graph,
    record: &NamedConstraints<'_>,
    fate: impl Fn(StackIndex) -> DestroyOutcome,
    outcome_of_removed: impl Fn(&str) -> DestroyOutcome,
) -> Vec<LeftBehind> {
    let in_tree = project.stacks.iter();
    let mut outcomes: Vec<DestroyOutcome> = in_tree.map(|(stack, _)| fate(stack)).collect();
    outcomes.extend(record.removed.iter().map(|key| outcome_of_removed(key)));
    let tree = Precedence::new(graph);
    let stacks = project.stacks.iter();
    let in_tree = stacks.map(|(_, stack)| stack.path.as_str());
    let paths: Vec<&str> = in_tree.chain(record.removed.iter().copied()).collect();
    let found = found(&outcomes, &tree, &record.recorded)
        .into_iter()
        .map(|(kept, destroyed)| LeftBehind {
            kept: paths[kept].to_owned(),
            destroyed: paths[destroyed].to_owned(),
        });
    found.collect()
}

/// Returns for each kept stack the lowest destroyed one that it runs after.
fn found(
    outcomes: &[DestroyOutcome],
    tree: &Precedence,
    recorded: &RecordedConstraints,
) -> BTreeMap<usize, usize> {
    let is_destroyed = |stack: &usize| outcomes[*stack] == DestroyOutcome::Destroyed;
    let destroyed: Vec<usize> = (0..outcomes.len()).filter(is_destroyed).collect();
    if destroyed.is_empty() {
        return BTreeMap::new();
    }
    let mut found = BTreeMap::new();
    for constraints in [tree, &recorded.precedence()] {
        let mut is_opened = vec![false; constraints.n_nodes()];
        // This commit has fewer stacks, so its groups have the numbers of recorded stacks.
        let is_stack = |node: usize| node < constraints.n_stacks();
        for &first in destroyed.iter().filter(|&&first| is_stack(first)) {
            let mut open = vec![first];
            while let Some(node) = open.pop() {
                for successor in constraints.successors(node) {
                    let next = successor.node as usize;
                    match outcomes.get(next).filter(|_| is_stack(next)) {
                        Some(DestroyOutcome::Destroyed) => {}
                        Some(DestroyOutcome::Kept) => {
                            let known = found.entry(next).or_insert(first);
                            *known = first.min(*known);
                        }
                        Some(DestroyOutcome::Missing) | None => {
                            if !std::mem::replace(&mut is_opened[next], true) {
                                open.push(next);
                            }
                        }
                    }
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::order::RecordedEdge;

    /// Runs the search on outcomes (`g` destroyed, `s` kept). The first precedence is of this
    /// commit, whose stacks are the first `n_in_tree`; the second is recorded, with serials.
    fn answer(
        outcomes: &str,
        (n_in_tree, tree): (usize, &[(u32, u32)]),
        recorded: &[(u32, u32, u64)],
    ) -> Vec<(usize, usize)> {
        let outcomes: Vec<DestroyOutcome> = outcomes
            .chars()
            .map(|letter| match letter {
                'g' => DestroyOutcome::Destroyed,
                's' => DestroyOutcome::Kept,
                _ => DestroyOutcome::Missing,
            })
            .collect();
        let edges = recorded
            .iter()
            .map(|&(earlier, later, serial)| RecordedEdge {
                earlier,
                later,
                serial: Some(serial),
            });
        let recorded = RecordedConstraints {
            n_stacks: outcomes.len(),
            n_nodes: outcomes.len() + 1,
            edges: edges.collect(),
        };
        let edges = tree.iter().map(|&(earlier, later)| (earlier, later, true));
        let tree = Precedence::from_edges(n_in_tree, n_in_tree + 1, edges);
        found(&outcomes, &tree, &recorded).into_iter().collect()
    }

    #[test]
    fn left_behind_names_each_kept_stack_once() {
        for (outcomes, tree, recorded, expected) in [
            // in this commit, in the state, in both, in neither
            ("gs", &[(0, 1)][..], &[][..], &[(1, 0)][..]),
            ("gs", &[], &[(0, 1, 1)], &[(1, 0)]),
            ("ggs", &[(1, 2)], &[(0, 2, 1)], &[(2, 0)]),
            ("gs", &[(1, 0)], &[(1, 0, 1)], &[]),
            // through a stack that does not exist and through a group, but not through `g` or `s`
            ("g-s", &[(0, 1), (1, 2)], &[], &[(2, 0)]),
            ("gs", &[(0, 2), (2, 1)], &[], &[(1, 0)]),
            ("gs", &[], &[(0, 2, 1), (2, 1, 1)], &[(1, 0)]),
            ("ggs", &[(0, 1), (1, 2)], &[], &[(2, 1)]),
            ("gss", &[(0, 1), (1, 2)], &[], &[(1, 0)]),
            ("g-s", &[(0, 1)], &[(1, 2, 1)], &[]),
            // an edge that newer declarations contradict does not count
            ("gs", &[], &[(0, 1, 1), (1, 0, 2)], &[]),
            ("gs", &[], &[(0, 1, 2), (1, 0, 1)], &[(1, 0)]),
            // nothing is destroyed
            ("-s", &[(0, 1)], &[], &[]),
        ] {
            let n = outcomes.len();
            assert_eq!(
                answer(outcomes, (n, tree), recorded),
                expected,
                "{outcomes}"
            );
        }
        // The last stack is removed; this commit's group has the same number.
        let tree = [(0, 2), (2, 1)];
        assert_eq!(answer("gss", (2, &tree), &[]), [(1, 0)]);
        assert_eq!(answer("gss", (2, &[]), &[(0, 2, 1)]), [(2, 0)]);
        // A removed stack may be destroyed, too.
        assert_eq!(answer("ssg", (2, &tree), &[]), []);
        assert_eq!(answer("ssg", (2, &tree), &[(2, 1, 1)]), [(1, 2)]);
        assert_eq!(answer("gsg", (2, &tree), &[(2, 1, 1)]), [(1, 0)]);
        assert_eq!(answer("ggss", (2, &[]), &[(0, 2, 1), (2, 3, 1)]), [(2, 0)]);
        assert_eq!(answer("g-gs", (2, &[]), &[(0, 2, 1), (2, 3, 1)]), [(3, 2)]);
    }
}
