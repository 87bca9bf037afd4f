//! The calls of modules outside of the project, by stacks and by the local modules that they use.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::graph::InputGraph;
use super::node::InputNode;
use super::terragrunt;
use super::text::LineStarts;
use super::tree::Tree;
use super::walk::NodeWalk;
use crate::change::call::{FoundCall, ModuleCall};
use crate::change::cause::Location;
use crate::change::code_use::{CodeUse, UsedPlace};
use crate::change::unit::{TerragruntUnit, UnitDependency, UnitTarget};
use crate::path::ProjectPath;
use crate::project::stack::{StackIndex, Stacks};

/// Returns the calls of the wanted stacks, on the current thread pool; see [`crate::change::calls_of`]. The
/// tree must collect calls.
pub(in crate::change) fn calls(
    tree: &Tree,
    stacks: &Stacks,
    terragrunt: bool,
    is_wanted: impl Fn(&ModuleCall) -> bool + Sync,
) -> BTreeMap<StackIndex, Vec<FoundCall>> {
    // Instances of one directory make the same calls.
    let directories = stacks.directories();
    let graph = InputGraph::new(tree, &directories, terragrunt);
    let leads = graph.leads_to(|node| node.calls.iter().any(&is_wanted));
    let found = |(index, directory): (usize, &ProjectPath)| {
        let starts = [Some(index), graph.units.get(&index).copied()]
            .into_iter()
            .flatten()
            .filter(|&start| leads[start]);
        let calls: Vec<FoundCall> = starts
            .flat_map(|start| calls_from(&graph.nodes, start, &leads, &is_wanted))
            .collect();
        (!calls.is_empty()).then(|| (directory.clone(), calls))
    };
    let found: Vec<(ProjectPath, Vec<FoundCall>)> = directories
        .par_iter()
        .enumerate()
        .filter_map(found)
        .collect();
    let mut calls = BTreeMap::new();
    for (directory, found) in found {
        let instances = stacks.at(directory.as_str());
        calls.extend(instances.map(|stack| (stack, found.clone())));
    }
    calls
}

fn calls_from(
    nodes: &[InputNode],
    start: usize,
    leads: &[bool],
    is_wanted: impl Fn(&ModuleCall) -> bool,
) -> Vec<FoundCall> {
    let mut calls = Vec::new();
    let mut walk = NodeWalk::new(start);
    while let Some(node) = walk.next(nodes, |target| leads[target]) {
        for call in nodes[node].calls.iter().filter(|call| is_wanted(call)) {
            calls.push(FoundCall {
                call: call.clone(),
                chain: walk.way(nodes, node).into_iter().cloned().collect(),
            });
        }
    }
    calls
}

/// Returns the directories that others call as modules, each with the place of a call, on the current thread pool.
pub(in crate::change) fn called_modules(
    tree: &Tree,
    directories: &[ProjectPath],
) -> BTreeMap<ProjectPath, Location> {
    let graph = InputGraph::new(tree, directories, false);
    let mut called = BTreeMap::new();
    for node in &graph.nodes {
        for edge in &node.edges {
            if let Some(step) = edge.steps.first()
                && edge.directory != node.path
            {
                let place = called.entry(edge.directory.clone());
                place.or_insert_with(|| step.location.clone());
            }
        }
    }
    called
}

/// Returns the Terragrunt units among some directories, on the current thread pool. The tree must look for data.
pub(in crate::change) fn units(tree: &Tree, directories: &[ProjectPath]) -> Vec<TerragruntUnit> {
    let units = terragrunt::Units::new(tree);
    let read = |directory: &ProjectPath| {
        let node = terragrunt::node(&units, directory)?;
        Some(TerragruntUnit {
            directory: directory.clone(),
            has_source: node.has_source,
            exclude: node.exclude,
            dependencies: node.data.into_iter().map(dependency).collect(),
        })
    };
    directories.par_iter().filter_map(read).collect()
}

fn dependency(found: CodeUse) -> UnitDependency {
    let target = match found.place {
        Some(UsedPlace::Directories(places)) if places.is_empty() => UnitTarget::Outside,
        Some(UsedPlace::Directories(places)) => UnitTarget::Inside(places),
        Some(UsedPlace::Backend(_)) | None => UnitTarget::Unknown,
    };
    let line = LineStarts::new(&found.text).at(found.span);
    UnitDependency {
        target,
        location: Location {
            file: found.file,
            line: Some(line),
        },
    }
}
