//! Turns that count for other nodes than their own, at which turns are added.

use std::collections::BTreeMap;

use super::Schedule;
use crate::run::turn::TurnIndex;

/// A turn at another node that counts for a node where turns are added.
#[derive(Debug, Clone, Copy)]
pub struct CoveringTurn {
    pub turn: TurnIndex,
    /// Whether it is waited for only while it runs, and waits for nothing that is added: together with what it
    /// waits for at its own node, that could close a cycle.
    pub is_loose: bool,
}

impl Schedule {
    /// Makes turns count for nodes at which none stands, and others are added: these wait for them, and they
    /// for these, as if they stood there. To be called before anything has started.
    ///
    /// # Panics
    ///
    /// If a turn stands at such a node.
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
