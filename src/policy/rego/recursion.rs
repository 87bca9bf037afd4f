//! Recursive rules: those that need themselves, directly or through others.

use std::collections::BTreeMap;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::references::{RuleDefinition, RuleTarget};
use crate::policy::Problem;

/// Checks that no rule needs itself.
///
/// The place of such a rule, and which others it needs itself through.
pub(super) fn check(definitions: &[RuleDefinition]) -> Result<(), Problem> {
    let mut graph: DiGraph<&[String], ()> = DiGraph::new();
    let mut nodes: BTreeMap<&[String], NodeIndex> = BTreeMap::new();
    for definition in definitions {
        nodes
            .entry(&definition.path)
            .or_insert_with_key(|path| graph.add_node(*path));
    }
    // Every path that a rule is at, above or below, so that looking one up takes one step.
    let mut below: BTreeMap<&[String], Vec<NodeIndex>> = BTreeMap::new();
    for (path, node) in &nodes {
        for length in 0..=path.len() {
            below.entry(&path[..length]).or_default().push(*node);
        }
    }
    for definition in definitions {
        let from = nodes[&definition.path[..]];
        for reference in &definition.references {
            let RuleTarget::Data(path) = &reference.target else {
                continue;
            };
            let within = below.get(&path[..]).into_iter().flatten();
            let above = (0..path.len()).filter_map(|length| nodes.get(&path[..length]));
            for to in within.chain(above) {
                graph.update_edge(from, *to, ());
            }
        }
    }
    let circles = kosaraju_scc(&graph)
        .into_iter()
        .filter(|circle| circle.len() > 1 || graph.find_edge(circle[0], circle[0]).is_some());
    let circles: Vec<Vec<&[String]>> = circles
        .map(|circle| circle.into_iter().map(|node| graph[node]).collect())
        .collect();
    let first = definitions.iter().find_map(|definition| {
        let is_in = |circle: &&Vec<&[String]>| circle.contains(&&definition.path[..]);
        Some((definition, circles.iter().find(is_in)?))
    });
    let Some((definition, circle)) = first else {
        return Ok(());
    };
    let name = |path: &[String]| path.last().cloned().unwrap_or_default();
    let mut others: Vec<String> = circle
        .iter()
        .filter(|path| **path != definition.path)
        .map(|path| format!("`{}`", name(path)))
        .collect();
    others.sort();
    let through = match &others[..] {
        [] => String::new(),
        others => format!(" through {}", others.join(", ")),
    };
    let message = format!("`{}` is recursive{through}", name(&definition.path));
    Err(Problem::at(definition.place, message))
}
