//! Which stacks have other outputs since this run, and who notices.

use crate::project::stack::StackIndex;
use crate::selection::graph::{Graph, Precedence};

/// What has become of the outputs of stacks during a run.
#[derive(Debug)]
pub(super) struct ChangedOutputs {
    /// Who runs right after whom, turned round.
    before: Precedence,
    /// By node: of a stack with work, whether its outputs have changed; of any other node, once it was
    /// asked for, whether those before it have. All of these have ended by then.
    known: Vec<Option<bool>>,
}

impl ChangedOutputs {
    pub(super) fn new(graph: &Graph) -> Self {
        let before = Precedence::new(graph).reversed();
        ChangedOutputs {
            known: vec![None; before.n_nodes()],
            before,
        }
    }

    /// Says whether the outputs of a stack with work have changed.
    pub(super) fn set(&mut self, stack: StackIndex, has_changed: bool) {
        self.known[stack.get()] = Some(has_changed);
    }

    /// Returns whether the outputs of a stack with work have changed that a stack runs after: the nearest
    /// such stacks count, through those without. To be asked once these have ended.
    pub(super) fn before(&mut self, stack: StackIndex) -> bool {
        // A node, its next predecessor to look at, and what those before have said.
        let mut open = vec![(stack.get(), 0, false)];
        while let Some((node, position, has_changed)) = open.last_mut() {
            let (node, at) = (*node, *position);
            if let Some(before) = self.before.successors(node).get(at) {
                *position += 1;
                let before = before.node as usize;
                match self.known[before] {
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
