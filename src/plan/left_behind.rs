//! Stacks that are kept although a stack that they depend on is destroyed.

use std::collections::BTreeMap;

use crate::plan::order::{NamedConstraints, RecordedConstraints};
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::selection::graph::{Graph, Precedence};

/// What a destroy does to a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestroyOutcome {
    Goes,
    /// It exists and is kept.
    Stays,
    /// It does not exist, or others manage it.
    Nothing,
}

/// A kept stack that still depends on a destroyed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    /// The kept stack, as `orch list` prints it. It may be removed from this commit.
    pub stays: String,
    /// The lowest destroyed stack that it runs after; a removed one only if there is no other.
    pub goes: String,
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
    fate_of_gone: impl Fn(&str) -> DestroyOutcome,
) -> Vec<LeftBehind> {
    let in_tree = project.stacks.iter();
    let mut fates: Vec<DestroyOutcome> = in_tree.map(|(stack, _)| fate(stack)).collect();
    fates.extend(record.gone.iter().map(|key| fate_of_gone(key)));
    let tree = Precedence::new(graph);
    let stacks = project.stacks.iter();
    let in_tree = stacks.map(|(_, stack)| stack.path.as_str());
    let paths: Vec<&str> = in_tree.chain(record.gone.iter().copied()).collect();
    let found = found(&fates, &tree, &record.recorded)
        .into_iter()
        .map(|(stays, goes)| LeftBehind {
            stays: paths[stays].to_owned(),
            goes: paths[goes].to_owned(),
        });
    found.collect()
}

/// Returns for each kept stack the lowest destroyed one that it runs after.
fn found(
    fates: &[DestroyOutcome],
    tree: &Precedence,
    recorded: &RecordedConstraints,
) -> BTreeMap<usize, usize> {
    let goes = |stack: &usize| fates[*stack] == DestroyOutcome::Goes;
    let going: Vec<usize> = (0..fates.len()).filter(goes).collect();
    if going.is_empty() {
        return BTreeMap::new();
    }
    let mut found = BTreeMap::new();
    for constraints in [tree, &recorded.precedence()] {
        let mut is_opened = vec![false; constraints.n_nodes()];
        // This commit has fewer stacks, so its groups have the numbers of recorded stacks.
        let is_stack = |node: usize| node < constraints.n_stacks();
        for &first in going.iter().filter(|&&first| is_stack(first)) {
            let mut open = vec![first];
            while let Some(node) = open.pop() {
                for successor in constraints.successors(node) {
                    let next = successor.node as usize;
                    match fates.get(next).filter(|_| is_stack(next)) {
                        Some(DestroyOutcome::Goes) => {}
                        Some(DestroyOutcome::Stays) => {
                            let known = found.entry(next).or_insert(first);
                            *known = first.min(*known);
                        }
                        Some(DestroyOutcome::Nothing) | None => {
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
        fates: &str,
        (n_in_tree, tree): (usize, &[(u32, u32)]),
        recorded: &[(u32, u32, u64)],
    ) -> Vec<(usize, usize)> {
        let fates: Vec<DestroyOutcome> = fates
            .chars()
            .map(|letter| match letter {
                'g' => DestroyOutcome::Goes,
                's' => DestroyOutcome::Stays,
                _ => DestroyOutcome::Nothing,
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
            n_stacks: fates.len(),
            n_nodes: fates.len() + 1,
            edges: edges.collect(),
        };
        let edges = tree.iter().map(|&(earlier, later)| (earlier, later, true));
        let tree = Precedence::from_edges(n_in_tree, n_in_tree + 1, edges);
        found(&fates, &tree, &recorded).into_iter().collect()
    }

    #[test]
    fn what_stays_is_named_once_with_the_lowest_that_goes_before_it() {
        for (fates, tree, recorded, expected) in [
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
            let n = fates.len();
            assert_eq!(answer(fates, (n, tree), recorded), expected, "{fates}");
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
