//! Finds the stacks that have a changed input, with the chain from the stack to it, and all inputs of
//! one stack in the same way.
//!
//! Inputs are the modules that a stack's Terraform files name, the files that they read, what
//! symbolic links lead to, and what Terragrunt reads. All of it is a guess at what another tool will
//! do, so anything that cannot be understood causes a warning, never an error.
//!
//! Each file is read once. A change goes through the graph of modules once, from the directories it
//! touches back to the stacks; only paths that name a different file for each stack are resolved
//! per stack.
//!
//! This module does not know how files changed, or which stacks the other rules have found.

mod called;
mod chain;
mod collected;
mod constants;
mod covered;
mod extract;
mod follow;
mod graph;
mod json;
mod links;
mod node;
mod problems;
mod terraform;
mod terragrunt;
mod text;
mod tree;
mod walk;

use std::collections::BTreeMap;

pub(super) use self::called::calls;
pub(super) use self::collected::Inputs;
pub(super) use self::covered::{Touch, moved};
pub(super) use self::follow::links_in;
pub(super) use self::graph::{InputGraph, each_root_read};
pub(super) use self::links::owners;
pub(super) use self::node::InputNode;
pub(super) use self::problems::InputProblems;
pub(super) use self::tree::{Tree, place_read};
use crate::change::cause::{ChangeCause, Use};
use crate::path::ProjectPath;
use crate::project::stack::{StackIndex, Stacks};

/// Finds the candidates that have an input that changed, each with the shortest way to one, on the
/// pool of threads that this is called on. The candidates must be in path order. Instances of
/// one directory have the same inputs here, so they are looked for once for all of them.
///
/// Changed Terraform files are checked whether or not a candidate needs them: the user who has just
/// broken one wants to know.
pub(super) fn changed_inputs(
    tree: &Tree,
    stacks: &Stacks,
    candidates: &[StackIndex],
    terragrunt: bool,
) -> BTreeMap<StackIndex, ChangeCause> {
    let directory = |stack: &StackIndex| stacks[*stack].path.directory();
    let groups: Vec<&[StackIndex]> = candidates
        .chunk_by(|a, b| directory(a) == directory(b))
        .collect();
    let directories = groups.iter().filter_map(|group| group.first());
    let directories: Vec<ProjectPath> = directories.map(|stack| directory(stack).clone()).collect();
    let graph = graph::InputGraph::new(tree, &directories, terragrunt);
    if tree.checks {
        terraform::check_changed(tree, |directory| graph.has_read(directory));
    }
    let mut found = BTreeMap::new();
    for (group, cause) in groups.iter().zip(graph.causes(tree)) {
        if let Some(cause) = cause {
            found.extend(group.iter().map(|&stack| (stack, cause.clone())));
        }
    }
    let by_links = links::changed_stacks(tree, stacks, |stack| {
        !found.contains_key(&stack) && candidates.binary_search(&stack).is_ok()
    });
    found.extend(by_links);
    found
}

/// Adds what a stack uses, on the pool of threads that this is called on. The tree must be
/// recording.
pub(super) fn add_inputs(
    tree: &Tree,
    stacks: &Stacks,
    stack: StackIndex,
    terragrunt: bool,
    inputs: &mut Inputs,
) {
    let directory = stacks[stack].path.directory().clone();
    graph::InputGraph::new(tree, &[directory], terragrunt).add_inputs(tree, inputs);
    links::add_inputs(tree, stacks, stack, inputs);
}

/// Returns what reads files in some directories, or in modules that they use, whose paths cannot be determined.
pub(super) fn unknown_paths(
    tree: &Tree,
    directories: &[ProjectPath],
    terragrunt: bool,
) -> Vec<Use> {
    let graph = graph::InputGraph::new(tree, directories, terragrunt);
    let found = graph.nodes.iter().flat_map(|node| &node.unknown);
    let mut found: Vec<Use> = found.cloned().collect();
    // Stacks share what Terragrunt includes.
    found.sort_by(|a, b| {
        (&a.location.file, a.location.line).cmp(&(&b.location.file, b.location.line))
    });
    found.dedup();
    found
}

#[cfg(test)]
mod tests;
