//! The outputs that stacks are applied with: one by one those of their `input` blocks, and a digest of all others.
//!
//! This module knows digests of outputs, and no values.

use std::collections::{BTreeMap, BTreeSet};

use super::state::Entries;
use super::upstream::{Upstream, outputs_differ, outputs_digest};
use crate::path::StackPath;
use crate::project::Project;
use crate::project::sharing::INPUT;
use crate::project::stack::StackIndex;
use crate::selection::graph::Graph;
use crate::state::document::Applied;

/// The digests of the outputs that a stack is applied with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedDigests {
    /// Of those in `input` blocks, by the name of the input.
    pub inputs: BTreeMap<String, String>,
    pub upstream: String,
}

impl UsedDigests {
    /// Returns what was recorded, if anything was.
    pub fn of(applied: &Applied) -> Option<Self> {
        Some(UsedDigests {
            inputs: applied.inputs_used.clone(),
            upstream: applied.upstream.clone()?,
        })
    }
}

pub struct UsedOutputs<'p> {
    project: &'p Project,
    upstream: Upstream,
    inputs: BTreeMap<StackIndex, Vec<UsedInput<'p>>>,
    /// The outputs of the stacks that inputs come from; none if unknown, as in `upstream`.
    sources: BTreeMap<StackIndex, BTreeMap<String, String>>,
}

struct UsedInput<'p> {
    name: &'p str,
    source: StackIndex,
    /// The outputs in its value; `None` if it may use any.
    outputs: Option<BTreeSet<&'p str>>,
}

#[derive(Debug, Default)]
pub struct OutputDifferences<'p> {
    /// The inputs that use changed outputs and count, each with the stack that has these outputs.
    pub inputs: Vec<(&'p str, StackIndex)>,
    /// The inputs that use changed outputs and that `ignore_changes` leaves out.
    pub ignored: Vec<&'p str>,
    pub others: bool,
}

impl OutputDifferences<'_> {
    /// Returns whether nothing differs that counts.
    pub fn is_none(&self) -> bool {
        self.inputs.is_empty() && !self.others
    }
}

impl<'p> UsedOutputs<'p> {
    /// Takes the digests of each stack's outputs, if they are known.
    pub fn new<'o>(
        project: &'p Project,
        graph: &Graph,
        outputs: impl Fn(StackIndex) -> Option<&'o BTreeMap<String, String>>,
    ) -> Self {
        let stacks = &project.stacks;
        let own = stacks
            .iter()
            .map(|(stack, _)| outputs(stack).map(outputs_digest));
        let inputs: BTreeMap<StackIndex, Vec<UsedInput<'p>>> = stacks
            .iter()
            .map(|(stack, _)| (stack, inputs(project, stack)))
            .filter(|(_, inputs)| !inputs.is_empty())
            .collect();
        let sources = inputs.values().flatten().map(|input| input.source);
        let sources: BTreeSet<StackIndex> = sources.collect();
        let of_source = |source| (source, outputs(source).cloned().unwrap_or_default());
        UsedOutputs {
            project,
            upstream: Upstream::new(graph, stacks, own.collect()),
            sources: sources.into_iter().map(of_source).collect(),
            inputs,
        }
    }

    /// Sets the digests of a stack's outputs; `None` if they are unknown.
    pub fn set(&mut self, stack: StackIndex, outputs: Option<&BTreeMap<String, String>>) {
        self.upstream.set(stack, outputs.map(outputs_digest));
        if let Some(known) = self.sources.get_mut(&stack) {
            *known = outputs.cloned().unwrap_or_default();
        }
    }

    pub fn of(&mut self, stack: StackIndex) -> UsedDigests {
        let inputs = self.inputs.get(&stack).map_or(&[][..], Vec::as_slice);
        let digests = inputs.iter().map(|input| {
            let outputs = self.sources[&input.source].iter();
            let used = outputs.filter(|(name, _)| input.uses(name));
            let used = used.map(|(name, digest)| (name.clone(), digest.clone()));
            (input.name.to_owned(), outputs_digest(&used.collect()))
        });
        let digests = digests.collect();
        let sources: BTreeSet<StackIndex> = inputs.iter().map(|input| input.source).collect();
        let others = sources.into_iter().map(|source| {
            let is_used = |output: &str| {
                let mut of_source = inputs.iter().filter(|input| input.source == source);
                of_source.any(|input| input.uses(output))
            };
            let outputs = self.sources[&source].iter();
            let others = outputs.filter(|(name, _)| !is_used(name));
            let others = others.map(|(name, digest)| (name.clone(), digest.clone()));
            (source, outputs_digest(&others.collect()))
        });
        let others = others.collect();
        UsedDigests {
            upstream: self.upstream.replacing(stack, &others),
            inputs: digests,
        }
    }

    /// Returns what differs from the outputs that a stack was applied with.
    pub fn differences(
        &mut self,
        stack: StackIndex,
        before: &UsedDigests,
    ) -> OutputDifferences<'p> {
        let mut differences = OutputDifferences::default();
        let now = self.of(stack);
        if before.inputs.is_empty() {
            // Without recorded inputs, the digest covers all outputs.
            differences.others = self.upstream.of(stack) != before.upstream;
            return differences;
        }
        let rule = self.project.rules_of(stack).ignore_changes;
        let is_ignored = |name| rule.is_some_and(|rule| rule.value.leaves_out_input(name));
        for input in self.inputs.get(&stack).into_iter().flatten() {
            if now.inputs.get(input.name) == before.inputs.get(input.name) {
                continue;
            }
            if is_ignored(input.name) {
                differences.ignored.push(input.name);
            } else {
                differences.inputs.push((input.name, input.source));
            }
        }
        differences.others = now.upstream != before.upstream;
        differences
    }

    /// Returns the stacks whose outputs a stack may use and that may have changed them since it was applied: an attempt
    /// or a refresh is newer, or the outputs are unknown.
    pub fn newer_sources(
        &self,
        stack: StackIndex,
        entries: &Entries<'_>,
        is_changed: impl Fn(StackIndex) -> bool,
    ) -> Vec<StackIndex> {
        let entry = |stack| entries.get(&stack).map(|(_, entry)| *entry);
        let applied = entry(stack).and_then(|entry| entry.applied.as_ref());
        let own = applied.map(|applied| applied.serial);
        let is_newer = |source: &StackIndex| {
            let Some(theirs) = entry(*source) else {
                return true; // forgotten, or never applied
            };
            let is_unknown = theirs.outputs.is_some() && theirs.known_outputs().is_none();
            is_changed(*source) || is_unknown || own.is_some() && theirs.last_serial() > own
        };
        let (mut newer, mut passed) = self.upstream.sources(stack);
        newer.retain(is_newer);
        if newer.is_empty() {
            passed.retain(is_newer);
            return passed;
        }
        newer
    }

    /// Describes differences that count, given the newer sources.
    pub fn described(&self, differences: &OutputDifferences<'_>, newer: &[StackIndex]) -> String {
        let stacks = &self.project.stacks;
        match &differences.inputs[..] {
            [] => {
                let paths: Vec<&StackPath> = newer.iter().map(|it| &stacks[*it].path).collect();
                outputs_differ(&paths)
            }
            [(name, of)] => format!("{INPUT}.{name} differs: an output of {}", stacks[*of].path),
            [(name, _), others @ ..] => {
                format!("{INPUT}.{name} and {} more inputs differ", others.len())
            }
        }
    }
}

impl UsedInput<'_> {
    fn uses(&self, output: &str) -> bool {
        let outputs = self.outputs.as_ref();
        outputs.is_none_or(|outputs| outputs.contains(output))
    }
}

/// Returns the inputs of a stack whose stack is known.
fn inputs(project: &Project, stack: StackIndex) -> Vec<UsedInput<'_>> {
    let blocks = project.inputs_of(stack).iter();
    let inputs = blocks.filter_map(|block| {
        let mut uses = project.stacks[stack].uses.iter();
        let source = &uses.find(|it| it.span == block.span)?.stack;
        Some(UsedInput {
            name: &block.name.value,
            source: project.stacks.find(source)?,
            outputs: block.outputs(),
        })
    });
    inputs.collect()
}
