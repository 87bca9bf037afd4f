//! Stacks that stay although a stack that they run after is destroyed.

use std::collections::BTreeMap;

use crate::plan::order::{Record, Recorded};
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::selection::graph::{Graph, Precedence};

/// What becomes of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// What it stands for is destroyed.
    Goes,
    /// What it stands for exists, and somebody has to destroy it before what it runs after.
    Stays,
    /// Nothing exists, or what exists belongs to others.
    Nothing,
}

/// A stack that stays although one that it runs after is destroyed. It needs that stack now as much as it did
/// when it was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    /// The stack that stays, as `orch list` prints it. It may be gone from the tree.
    pub stays: String,
    /// The lowest of the stacks that go and that it runs after; one that is gone from the tree, if there is no
    /// other.
    pub goes: String,
}

/// Returns what stays and runs after what goes, in the tree or on record, each once: first the stacks of the
/// tree by path, then those that are gone from it, whose fate depends on their key. Between the two there are
/// only stacks that neither go nor stay.
///
/// It takes time linear in the size of the graphs, where no constraints on record contradict each other.
pub fn left_behind(
    project: &Project,
    graph: &Graph,
    record: &Record<'_>,
    fate: impl Fn(StackIndex) -> Fate,
    fate_of_gone: impl Fn(&str) -> Fate,
) -> Vec<LeftBehind> {
    let in_tree = project.stacks.iter();
    let mut fates: Vec<Fate> = in_tree.map(|(stack, _)| fate(stack)).collect();
    fates.extend(record.gone.iter().map(|key| fate_of_gone(key)));
    let tree = Precedence::new(graph);
    let stacks = project.stacks.iter();
    let in_tree = stacks.map(|(_, stack)| stack.path.as_str());
    let paths: Vec<&str> = in_tree.chain(record.gone.iter().copied()).collect();
    let found = found(&fates, &tree, &record.recorded);
    let found = found.into_iter().map(|(stays, goes)| LeftBehind {
        stays: paths[stays].to_owned(),
        goes: paths[goes].to_owned(),
    });
    found.collect()
}

/// Returns for each stack that stays the lowest of those that go and that it runs after.
fn found(fates: &[Fate], tree: &Precedence, recorded: &Recorded) -> BTreeMap<usize, usize> {
    let goes = |stack: &usize| fates[*stack] == Fate::Goes;
    let going: Vec<usize> = (0..fates.len()).filter(goes).collect();
    if going.is_empty() {
        return BTreeMap::new();
    }
    let mut found = BTreeMap::new();
    for constraints in [tree, &recorded.precedence()] {
        let mut is_opened = vec![false; constraints.n_nodes()];
        // In the tree there are fewer stacks, and groups have the numbers of the others.
        let is_stack = |node: usize| node < constraints.n_stacks();
        for &first in going.iter().filter(|&&first| is_stack(first)) {
            let mut open = vec![first];
            while let Some(node) = open.pop() {
                for successor in constraints.successors(node) {
                    let next = successor.node as usize;
                    match fates.get(next).filter(|_| is_stack(next)) {
                        Some(Fate::Goes) => {}
                        Some(Fate::Stays) => {
                            let known = found.entry(next).or_insert(first);
                            *known = first.min(*known);
                        }
                        Some(Fate::Nothing) | None => {
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

    /// Finds what is left behind, given what goes (`g`) and stays (`s`), what comes before what in the tree,
    /// whose stacks are the first `n_in_tree`, and the same on record with serials.
    fn answer(
        fates: &str,
        (n_in_tree, tree): (usize, &[(u32, u32)]),
        recorded: &[(u32, u32, u64)],
    ) -> Vec<(usize, usize)> {
        let fates = fates.chars().map(|letter| match letter {
            'g' => Fate::Goes,
            's' => Fate::Stays,
            _ => Fate::Nothing,
        });
        let fates: Vec<Fate> = fates.collect();
        let edges = recorded
            .iter()
            .map(|&(earlier, later, serial)| RecordedEdge {
                earlier,
                later,
                serial: Some(serial),
            });
        let recorded = Recorded {
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
            // in the tree, on record, in both, in neither
            ("gs", &[(0, 1)][..], &[][..], &[(1, 0)][..]),
            ("gs", &[], &[(0, 1, 1)], &[(1, 0)]),
            ("ggs", &[(1, 2)], &[(0, 2, 1)], &[(2, 0)]),
            ("gs", &[(1, 0)], &[(1, 0, 1)], &[]),
            // through what does not exist, through a group, and not through what goes or stays itself
            ("g-s", &[(0, 1), (1, 2)], &[], &[(2, 0)]),
            ("gs", &[(0, 2), (2, 1)], &[], &[(1, 0)]),
            ("gs", &[], &[(0, 2, 1), (2, 1, 1)], &[(1, 0)]),
            ("ggs", &[(0, 1), (1, 2)], &[], &[(2, 1)]),
            ("gss", &[(0, 1), (1, 2)], &[], &[(1, 0)]),
            ("g-s", &[(0, 1)], &[(1, 2, 1)], &[]),
            // what newer declarations contradict does not count
            ("gs", &[], &[(0, 1, 1), (1, 0, 2)], &[]),
            ("gs", &[], &[(0, 1, 2), (1, 0, 1)], &[(1, 0)]),
            // nothing goes
            ("-s", &[(0, 1)], &[], &[]),
        ] {
            let n = fates.len();
            assert_eq!(answer(fates, (n, tree), recorded), expected, "{fates}");
        }
        // The last stack is gone from the tree, whose group has the same number.
        let tree = [(0, 2), (2, 1)];
        assert_eq!(answer("gss", (2, &tree), &[]), [(1, 0)]);
        assert_eq!(answer("gss", (2, &[]), &[(0, 2, 1)]), [(2, 0)]);
        // What is gone may go, too.
        assert_eq!(answer("ssg", (2, &tree), &[]), []);
        assert_eq!(answer("ssg", (2, &tree), &[(2, 1, 1)]), [(1, 2)]);
        assert_eq!(answer("gsg", (2, &tree), &[(2, 1, 1)]), [(1, 0)]);
        assert_eq!(answer("ggss", (2, &[]), &[(0, 2, 1), (2, 3, 1)]), [(2, 0)]);
        assert_eq!(answer("g-gs", (2, &[]), &[(0, 2, 1), (2, 3, 1)]), [(3, 2)]);
    }
}
