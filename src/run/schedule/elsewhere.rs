//! Turns that count for other nodes than their own, at which turns are added.

use std::collections::BTreeMap;

use super::Schedule;
use crate::run::turn::TurnIndex;

/// A turn at another node that counts for a node with added turns.
#[derive(Debug, Clone, Copy)]
pub struct CoveringTurn {
    pub turn: TurnIndex,
    /// Whether others wait for it only while it runs, and it waits for no added turn: with its constraints at its own
    /// node, that could close a cycle.
    pub is_loose: bool,
}

impl Schedule {
    /// Makes turns count for nodes without a turn of their own, where others are added: they wait for each other as
    /// if all were at that node. Call it before anything has started.
    ///
    /// # Panics
    ///
    /// If such a node has a turn.
    #[must_use]
    pub fn with_elsewhere(mut self, elsewhere: BTreeMap<usize, Vec<CoveringTurn>>) -> Self {
        let is_free = |node: &usize| self.first[*node].is_none();
        assert!(elsewhere.keys().all(is_free), "a turn stands there");
        self.elsewhere = elsewhere;
        self
    }

    /// Returns the turns that count for a node, and whether each is loose.
    pub(super) fn turns_at(&self, node: usize) -> Vec<(TurnIndex, bool)> {
        let added = self.added.get(&node).map_or(&[][..], Vec::as_slice);
        let here = self.first[node].iter().chain(added);
        let elsewhere = self
            .elsewhere
            .get(&node)
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .map(|it| (it.turn, it.is_loose));
        here.map(|turn| (*turn, false)).chain(elsewhere).collect()
    }
}
