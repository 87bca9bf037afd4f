//! The stacks to which the recorded order relates a stack that is destroyed.

use super::left_behind::DestroyOutcome;
use super::order::RecordedConstraints;
use crate::selection::graph::Precedence;

pub struct Ties {
    n_stacks: usize,
    users: Precedence,
    used: Precedence,
}

impl Ties {
    /// Leaves out constraints that newer declarations contradict.
    pub fn new(recorded: &RecordedConstraints) -> Self {
        let users = recorded.precedence();
        Ties {
            n_stacks: recorded.n_stacks,
            used: users.reversed(),
            users,
        }
    }

    /// Returns by recorded number whether a stack is this one, or ran before or after it.
    pub fn with(&self, stack: usize) -> Vec<bool> {
        let users = self.users.reached(std::iter::once(stack));
        let used = self.used.reached(std::iter::once(stack));
        let both = users.into_iter().zip(used).take(self.n_stacks);
        both.map(|(is_user, is_used)| is_user || is_used).collect()
    }

    /// Returns the kept stacks that ran after one, directly or through stacks that do not exist.
    pub fn staying_users(
        &self,
        stack: usize,
        fate: impl Fn(usize) -> DestroyOutcome,
    ) -> Vec<usize> {
        let mut staying = Vec::new();
        let mut is_seen = vec![false; self.users.n_nodes()];
        is_seen[stack] = true;
        let mut open = vec![stack];
        while let Some(node) = open.pop() {
            for user in self.users.successors(node) {
                let user = user.node as usize;
                if std::mem::replace(&mut is_seen[user], true) {
                    continue;
                }
                let is_stack = user < self.n_stacks;
                match is_stack.then(|| fate(user)) {
                    Some(DestroyOutcome::Destroyed) => {}
                    Some(DestroyOutcome::Kept) => staying.push(user),
                    Some(DestroyOutcome::Missing) | None => open.push(user),
                }
            }
        }
        staying.sort_unstable();
        staying
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::order::RecordedEdge;

    /// Returns the ties of stacks with this precedence. There is one more node, a group.
    fn ties(n_stacks: usize, edges: &[(u32, u32)]) -> Ties {
        let edges = edges.iter().map(|&(earlier, later)| RecordedEdge {
            earlier,
            later,
            serial: None,
        });
        Ties::new(&RecordedConstraints {
            n_stacks,
            n_nodes: n_stacks + 1,
            edges: edges.collect(),
        })
    }

    #[test]
    fn ties_follow_the_recorded_order() {
        for (edges, stack, expected) in [
            (&[(0, 1), (1, 2)][..], 1, &[0, 1, 2][..]),
            (&[(0, 1), (1, 2)], 0, &[0, 1, 2]),
            // Two stacks that ran after the same one are not related.
            (&[(0, 1), (0, 2)], 1, &[0, 1]),
            (&[(0, 1), (0, 2)], 0, &[0, 1, 2]),
            // A tie may lead through a group.
            (&[(0, 4), (4, 2)], 0, &[0, 2]),
            (&[], 3, &[3]),
        ] {
            let with: Vec<usize> = ties(4, edges)
                .with(stack)
                .into_iter()
                .enumerate()
                .filter_map(|(it, is)| is.then_some(it))
                .collect();
            assert_eq!(with, expected, "{edges:?}");
        }
    }

    #[test]
    fn ties_name_kept_users() {
        for (fates, edges, expected) in [
            ("gs", &[(0, 1)][..], &[1][..]),
            ("gs", &[(1, 0)], &[]),
            // Through a stack that does not exist and a group, but not through `g` or `s`.
            ("g-s", &[(0, 1), (1, 2)], &[2]),
            ("g-s", &[(0, 3), (3, 2)], &[2]),
            ("ggs", &[(0, 1), (1, 2)], &[]),
            ("gss", &[(0, 1), (1, 2)], &[1]),
            ("gss", &[(0, 2), (0, 1)], &[1, 2]),
        ] {
            let letters: Vec<char> = fates.chars().collect();
            let fate = |stack: usize| match letters[stack] {
                'g' => DestroyOutcome::Destroyed,
                's' => DestroyOutcome::Kept,
                _ => DestroyOutcome::Missing,
            };
            let found = ties(letters.len(), edges).staying_users(0, fate);
            assert_eq!(found, expected, "{fates} {edges:?}");
        }
    }
}
