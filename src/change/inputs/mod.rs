//! Finds stacks with changed inputs, with the chain from the stack to the change, and lists all inputs of one
//! stack.
//!
//! Inputs are the modules that a stack's Terraform files name, the files that they read, the targets of
//! symbolic links, and what Terragrunt reads. All of it guesses at another tool's behaviour, so a file that
//! cannot be understood causes a warning, never an error.
//!
//! Each file is read once. Changes propagate once through the graph of modules, from the touched directories
//! back to the stacks; only paths that differ for each stack are resolved per stack.
//!
//! This module does not know how files changed, or which stacks other rules have found.

mod called;
mod chain;
mod collected;
mod constants;
mod data;
mod definitions;
mod extract;
mod follow;
mod graph;
mod json;
mod json_body;
mod linked_changes;
mod links;
mod node;
mod problems;
mod settings;
mod stack_reads;
mod terraform;
mod terragrunt;
mod text;
mod tree;
mod variables;
mod walk;

use std::collections::BTreeMap;

pub(super) use self::called::{called_modules, calls, units};
pub(super) use self::collected::CollectedInputs;
pub(super) use self::data::data;
pub(super) use self::follow::links_in;
pub(super) use self::graph::{InputGraph, each_stack_read};
pub(super) use self::linked_changes::{ChangedInput, moved};
pub(super) use self::links::owners;
pub(super) use self::node::InputNode;
pub(super) use self::problems::InputProblems;
pub(super) use self::tree::{Tree, place_read};
use crate::change::cause::{ChangeCause, Use};
use crate::change::error::ChangeError;
use crate::change::files::ChangedFiles;
use crate::path::ProjectPath;
use crate::project::discover::Listing;
use crate::project::stack::{StackIndex, Stacks};
use crate::project::{self, Problems, Project};

/// Walks the inputs as they are now, on the thread pool. Adds warnings to `problems`. Fails if a file
/// cannot be read, or no thread can be started.
pub(super) fn walk_present<T: Send>(
    project: &Project,
    listing: &Listing,
    problems: &mut Problems,
    walk: impl FnOnce(Tree<'_>) -> T + Send,
) -> Result<T, ChangeError> {
    let (nothing, found_problems) = (ChangedFiles::default(), InputProblems::default());
    let tree = Tree::new(&project.root, listing, &nothing, &found_problems).of(project);
    let found = project::pool()?.install(|| walk(tree));
    found_problems.add_to(problems)?;
    Ok(found)
}

/// Finds the candidates with a changed input, each with the shortest chain to it, on the current thread pool.
/// The candidates must be in path order. Instances of one directory share these inputs, so they are searched
/// once.
///
/// Changed Terraform files are checked even if no candidate needs them: their author wants to know.
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
    let directories: Vec<ProjectPath> = groups
        .iter()
        .filter_map(|group| group.first())
        .map(|stack| directory(stack).clone())
        .collect();
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

/// Adds what a stack uses, on the current thread pool. The tree must be recording.
pub(super) fn add_inputs(
    tree: &Tree,
    stacks: &Stacks,
    stack: StackIndex,
    terragrunt: bool,
    inputs: &mut CollectedInputs,
) {
    let directory = stacks[stack].path.directory().clone();
    graph::InputGraph::new(tree, &[directory], terragrunt).add_inputs(tree, inputs);
    links::add_inputs(tree, stacks, stack, inputs);
}

/// Returns the reads, in some directories and the modules that they use, whose paths cannot be determined.
pub(super) fn unknown_paths(
    tree: &Tree,
    directories: &[ProjectPath],
    terragrunt: bool,
) -> Vec<Use> {
    let graph = graph::InputGraph::new(tree, directories, terragrunt);
    let by_variables = graph.unknown_reads(tree);
    let nodes = graph.nodes.iter().flat_map(|node| &node.unknown);
    let mut found: Vec<Use> = nodes.cloned().chain(by_variables).collect();
    // Stacks share the files that Terragrunt includes.
    found.sort_by(|a, b| {
        (&a.location.file, a.location.line).cmp(&(&b.location.file, b.location.line))
    });
    found.dedup();
    found
}

#[cfg(test)]
mod tests;
