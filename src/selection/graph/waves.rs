//! How many selected stacks must run before each stack, one after the other.

use super::{Graph, Precedence};
use crate::project::stack::StackIndex;

/// When a stack can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wave {
    /// After this many selected stacks on the longest path to it.
    Number(u32),
    /// After stacks of a cycle in which a stack is selected.
    AfterCycle,
    /// Never: it waits for itself.
    InCycle,
}

impl Graph {
    /// Returns the wave of each stack of the project, meaningful only for selected stacks.
    pub fn waves(&self, is_selected: impl Fn(StackIndex) -> bool) -> Vec<Wave> {
        let components = self.components();
        let mut sizes = vec![0_u32; components.len()];
        for &component in &components {
            sizes[component] += 1;
        }
        let is_step = |node: usize| node < self.n_stacks && is_selected(StackIndex::new(node));
        // A cycle without selected stacks orders its neighbours like any other stack.
        let mut is_unknown = vec![false; components.len()];
        for (node, &component) in components.iter().enumerate() {
            is_unknown[component] |= sizes[component] > 1 && is_step(node);
        }
        let precedence = Precedence::of(self, &components);
        let mut pending = precedence.pending();
        let mut waves = vec![0_u32; components.len()];
        let mut ready: Vec<usize> = (0..components.len())
            .filter(|&node| pending[node] == 0)
            .collect();
        while let Some(node) = ready.pop() {
            let next_wave = waves[node] + u32::from(is_step(node));
            for next in precedence.successors(node) {
                let next = next.node as usize;
                waves[next] = waves[next].max(next_wave);
                is_unknown[next] |= is_unknown[node];
                pending[next] -= 1;
                if pending[next] == 0 {
                    ready.push(next);
                }
            }
        }
        let wave = |(stack, &component): (usize, &usize)| {
            if sizes[component] > 1 {
                Wave::InCycle
            } else if is_unknown[stack] {
                Wave::AfterCycle
            } else {
                Wave::Number(waves[stack])
            }
        };
        components
            .iter()
            .enumerate()
            .take(self.n_stacks)
            .map(wave)
            .collect()
    }
}
