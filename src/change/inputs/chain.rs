//! Limits the number of steps kept for chains to inputs.

use crate::change::cause::Use;

/// The maximum length of one chain. Nobody reads more, and a hostile project can have a chain of thousands of
/// steps for each of thousands of stacks.
pub(super) const MAX_CHAIN: usize = 256;

/// The maximum number of steps of all chains together. A hostile project can have a long chain for each of
/// many inputs.
const MAX_STEPS: usize = 1 << 18;

/// The number of steps kept so far.
#[derive(Default)]
pub(in crate::change) struct ChainBudget(usize);

impl ChainBudget {
    /// Returns a chain without its middle if it is too long; only its ends once the budget is spent.
    pub(in crate::change) fn chain<'u>(
        &mut self,
        steps: impl DoubleEndedIterator<Item = &'u Use> + ExactSizeIterator,
    ) -> Vec<Use> {
        let max = if self.0 < MAX_STEPS { MAX_CHAIN } else { 2 };
        let n_left_out = steps.len().saturating_sub(max);
        let kept = steps
            .enumerate()
            .filter(|&(at, _)| at + 1 < max || at + 1 >= max + n_left_out);
        let chain: Vec<Use> = kept.map(|(_, step)| step.clone()).collect();
        self.0 += chain.len();
        chain
    }
}
