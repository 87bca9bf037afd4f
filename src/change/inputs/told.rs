//! How much is told of the ways to inputs.

use super::graph::MAX_CHAIN;
use crate::change::Use;

/// Steps of all chains together that are told. A hostile project has a long chain for each of many
/// inputs.
const MAX_STEPS: usize = 1 << 18;

/// Counts the steps that are told.
#[derive(Default)]
pub(crate) struct Told(usize);

impl Told {
    /// Returns a chain, without its middle if it is too long: only its two ends, once enough has been
    /// told.
    pub(crate) fn chain<'u>(
        &mut self,
        steps: impl DoubleEndedIterator<Item = &'u Use> + ExactSizeIterator,
    ) -> Vec<Use> {
        let max = if self.0 < MAX_STEPS { MAX_CHAIN } else { 2 };
        let n_left_out = steps.len().saturating_sub(max);
        let told = steps.enumerate();
        let told = told.filter(|&(at, _)| at + 1 < max || at + 1 >= max + n_left_out);
        let chain: Vec<Use> = told.map(|(_, step)| step.clone()).collect();
        self.0 += chain.len();
        chain
    }
}
