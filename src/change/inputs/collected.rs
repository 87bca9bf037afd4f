//! The inputs of one stack, collected from all rules.

use std::cmp::Reverse;
use std::collections::hash_map::{Entry, HashMap};

use super::chain::ChainBudget;
use super::linked_changes::ChangedInput;
use crate::change::cause::{Ignored, Input, InputLocation, Use, UseKind};
use crate::git::ChangedFile;

/// The inputs of one stack as they are found. A place that several chains of one kind reach counts once, with
/// the shortest chain by which it changed.
#[derive(Default)]
pub(in crate::change) struct CollectedInputs {
    all: Vec<Input>,
    /// The index, by kind of chain and place.
    known: HashMap<(usize, InputLocation), usize>,
    budget: ChainBudget,
}

impl CollectedInputs {
    /// Adds an input reached through the chain to a module and further steps.
    pub(in crate::change) fn add(
        &mut self,
        location: InputLocation,
        path: &[&Use],
        steps: &[Use],
        touch: Option<ChangedInput>,
    ) {
        let chain: Vec<&Use> = path.iter().copied().chain(steps).collect();
        let index = match self
            .known
            .entry((rank(chain.last().copied()), location.clone()))
        {
            Entry::Vacant(entry) => {
                entry.insert(self.all.len());
                None
            }
            Entry::Occupied(entry) => Some(*entry.get()),
        };
        let worth = (touch.is_some(), Reverse(chain.len()));
        let is_better =
            |known: &Input| worth > (known.change.is_some(), Reverse(known.chain.len()));
        if index.is_some_and(|index| !is_better(&self.all[index])) {
            return;
        }
        let (change, links): (Option<ChangedFile>, _) = match touch {
            Some(touch) => (Some(touch.file.clone()), touch.links),
            None => (None, Vec::new()),
        };
        let input = Input {
            location,
            chain: self.budget.chain(chain.into_iter()),
            change,
            links,
            uncounted: Vec::new(),
            ignored: Ignored::Nothing,
        };
        match index {
            Some(index) => self.all[index] = input,
            None => self.all.push(input),
        }
    }

    pub(in crate::change) fn same(&self, input: &Input) -> Option<&Input> {
        let key = (rank(input.chain.last()), input.location.clone());
        self.known.get(&key).map(|&index| &self.all[index])
    }

    pub(in crate::change) fn in_order(self) -> Vec<Input> {
        let mut all = self.all;
        all.sort_by_key(|input| rank(input.chain.last()));
        all
    }
}

/// Returns the rank of an input by the last step to it.
fn rank(last: Option<&Use>) -> usize {
    match last.map(|step| &step.kind) {
        None => 0,
        Some(UseKind::Watch) => 1,
        Some(UseKind::Import) => 2,
        Some(UseKind::Module(_)) => 3,
        Some(UseKind::Read(_)) => 4,
        Some(UseKind::Link) => 5,
        Some(UseKind::Terragrunt(_)) => 6,
        Some(
            UseKind::Environment { .. }
            | UseKind::Attribute(_)
            | UseKind::Global { .. }
            | UseKind::Let { .. }
            | UseKind::Hidden
            | UseKind::StackList,
        ) => 7,
    }
}
