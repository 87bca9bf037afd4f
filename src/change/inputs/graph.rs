//! The graph of stacks and modules, and how changes propagate through it.
//!
//! A node is a directory, and an edge leads to a module that it uses. The graph is read level by level from
//! the candidates on, each level in parallel. Modules that a change touches are not followed further unless
//! inputs are recorded, since what they use makes no difference.

use std::collections::HashMap;

use rayon::prelude::*;

use super::chain::MAX_CHAIN;
use super::collected::CollectedInputs;
use super::definitions::arguments;
use super::node::InputNode;
use super::stack_reads::StackReads;
use super::terraform;
use super::terragrunt;
use super::tree::{Tree, place_read};
use super::walk::NodeWalk;
use crate::change::cause::{ChangeCause, InputLocation, Use};
use crate::path::ProjectPath;

/// How a change reaches a node.
#[derive(Clone, Copy)]
enum ChangePath {
    /// Through an input of its own.
    Own,
    Edge(usize),
}

/// The directories that the candidates use, and the changes that reach them.
pub(in crate::change) struct InputGraph<'a> {
    /// The candidates first, in order.
    pub(in crate::change) nodes: Vec<InputNode<'a>>,
    n_candidates: usize,
    /// The index by directory.
    by_path: HashMap<ProjectPath, usize>,
    /// The nodes of the Terragrunt files of candidates, by the candidate's node. They are separate: a stack
    /// that uses another one as a module does not depend on its Terragrunt files.
    pub(in crate::change) units: HashMap<usize, usize>,
    /// The users of each node.
    users: Vec<Vec<usize>>,
    ways: Vec<Option<ChangePath>>,
    /// Whether each node, or a module behind it, reads files whose places differ for each stack.
    leads: Vec<bool>,
}

impl<'a> InputGraph<'a> {
    /// Reads the candidates' uses, and propagates changes through them.
    pub(in crate::change) fn new(
        tree: &Tree<'a>,
        candidates: &[ProjectPath],
        terragrunt: bool,
    ) -> Self {
        let mut graph = InputGraph::read(tree, candidates, terragrunt);
        graph.propagate();
        graph.leads =
            graph.leads_to(|node| !node.root_reads.is_empty() || !node.variable_reads.is_empty());
        graph.check_sources(tree);
        graph
    }

    pub(super) fn has_read(&self, directory: &ProjectPath) -> bool {
        self.by_path.contains_key(directory)
    }

    /// Returns for each candidate the shortest chain to a change, if one reaches it.
    pub(super) fn causes(&self, tree: &Tree<'a>) -> Vec<Option<ChangeCause>> {
        let cause = |index: usize| {
            let unit = self.units.get(&index).copied();
            std::iter::once(index)
                .chain(unit)
                .find_map(|node| self.cause(node))
                .or_else(|| self.stack_read(index, tree))
        };
        (0..self.n_candidates).into_par_iter().map(cause).collect()
    }

    fn read(tree: &Tree<'a>, candidates: &[ProjectPath], terragrunt: bool) -> Self {
        let mut by_path: HashMap<ProjectPath, usize> = HashMap::with_capacity(candidates.len());
        by_path.extend(candidates.iter().cloned().zip(0..));
        let units = if terragrunt {
            let units = terragrunt::Units::new(tree);
            let read = |(index, path)| Some((index, terragrunt::node(&units, path)?));
            let read = candidates.par_iter().enumerate().filter_map(read);
            read.collect()
        } else {
            Vec::new()
        };
        let mut graph = InputGraph {
            nodes: Vec::with_capacity(candidates.len()),
            n_candidates: candidates.len(),
            by_path: HashMap::new(),
            units: HashMap::with_capacity(units.len()),
            users: Vec::new(),
            ways: Vec::new(),
            leads: Vec::new(),
        };
        let read_all = |level: &[ProjectPath]| -> Vec<InputNode<'a>> {
            let read = |buffer: &mut Vec<u8>, path| terraform::node(tree, path, buffer);
            level.par_iter().map_init(Vec::new, read).collect()
        };
        let mut level_nodes = read_all(candidates);
        for (candidate, unit) in units {
            graph.units.insert(candidate, level_nodes.len());
            level_nodes.push(unit);
        }
        while !level_nodes.is_empty() {
            let next_index = graph.nodes.len() + level_nodes.len();
            let mut next: Vec<ProjectPath> = Vec::new();
            for edge in level_nodes.iter_mut().flat_map(|node| &mut node.edges) {
                let known = by_path.get(&edge.directory);
                edge.target = known.copied().unwrap_or_else(|| {
                    let target = next_index + next.len();
                    by_path.insert(edge.directory.clone(), target);
                    next.push(edge.directory.clone());
                    target
                });
            }
            graph.nodes.append(&mut level_nodes);
            level_nodes = read_all(&next);
        }
        graph.by_path = by_path;
        graph.users.resize_with(graph.nodes.len(), Vec::new);
        for (user, node) in graph.nodes.iter().enumerate() {
            for edge in &node.edges {
                graph.users[edge.target].push(user);
            }
        }
        graph
    }

    /// Propagates changes to nodes, nearest first. Of several chains of equal length, the one written first
    /// counts.
    fn propagate(&mut self) {
        let own = |node: &InputNode| node.touch.as_ref().map(|_| ChangePath::Own);
        self.ways = self.nodes.iter().map(own).collect();
        let mut reached: Vec<usize> = (0..self.nodes.len())
            .filter(|&node| self.ways[node].is_some())
            .collect();
        while !reached.is_empty() {
            let users = reached.iter().flat_map(|&node| &self.users[node]).copied();
            let mut next: Vec<usize> = users.filter(|&user| self.ways[user].is_none()).collect();
            next.sort_unstable();
            next.dedup();
            let ways: Vec<Option<ChangePath>> = next
                .iter()
                .map(|&user| {
                    let mut edges = self.nodes[user].edges.iter();
                    let edge = edges.position(|edge| self.ways[edge.target].is_some());
                    edge.map(ChangePath::Edge)
                })
                .collect();
            for (&user, way) in next.iter().zip(ways) {
                self.ways[user] = way;
            }
            reached = next;
        }
    }

    /// Returns the change that reaches a node, and the chain to it.
    fn cause(&self, mut node: usize) -> Option<ChangeCause> {
        let mut chain = Vec::new();
        loop {
            let here = &self.nodes[node];
            match self.ways[node]? {
                ChangePath::Own => {
                    let (steps, file) = here.touch.as_ref()?;
                    chain.extend_from_slice(steps);
                    let file = (*file).clone();
                    return Some(ChangeCause { file, chain });
                }
                ChangePath::Edge(edge) => {
                    let edge = &here.edges[edge];
                    if chain.len() < MAX_CHAIN {
                        chain.extend_from_slice(&edge.steps);
                    }
                    node = edge.target;
                }
            }
        }
    }

    /// Returns for each node whether it, or a module behind it, satisfies a predicate.
    pub(in crate::change) fn leads_to(&self, has: impl Fn(&InputNode) -> bool) -> Vec<bool> {
        let mut leads: Vec<bool> = self.nodes.iter().map(has).collect();
        let mut open: Vec<usize> = (0..leads.len()).filter(|&node| leads[node]).collect();
        while let Some(node) = open.pop() {
            for &user in &self.users[node] {
                if !leads[user] {
                    leads[user] = true;
                    open.push(user);
                }
            }
        }
        leads
    }

    /// Warns of modules whose sources depend on variables that a caller may set: only settings of a root module
    /// are known when sources are followed.
    fn check_sources(&self, tree: &Tree<'a>) {
        for (target, node) in self.nodes.iter().enumerate() {
            for source in &node.variable_sources {
                let mut edges = self.users[target].iter().flat_map(|&user| {
                    let user = &self.nodes[user];
                    user.edges.iter().map(move |edge| (user, edge))
                });
                let is_set = edges.any(|(user, edge)| {
                    let sets = |module: &str, variable: &str| {
                        !arguments(user.definitions(tree), module, variable).is_empty()
                    };
                    edge.target == target
                        && edge
                            .call
                            .as_ref()
                            .is_none_or(|module| source.variables.iter().any(|it| sets(module, it)))
                });
                if is_set {
                    terraform::warn_of_source(tree, source);
                }
            }
        }
    }

    /// Returns the reads of a candidate whose places differ for each stack.
    fn stack_reads<'g>(&'g self, tree: &'g Tree<'a>, candidate: usize) -> StackReads<'g> {
        let unit = self.units.get(&candidate).copied();
        StackReads::find(tree, &self.nodes, &self.leads, (candidate, unit))
    }

    /// Returns the change of a file that a stack, or a module that it uses, reads at a place that depends on the stack.
    fn stack_read(&self, candidate: usize, tree: &Tree<'a>) -> Option<ChangeCause> {
        let reads = self.stack_reads(tree, candidate);
        reads.found.iter().find_map(|read| {
            let touch = tree.touch_read(&read.path, read.pattern.as_deref())?;
            let steps = reads.way(&self.nodes, read).into_iter();
            let mut chain: Vec<Use> = steps.chain([read.step]).cloned().collect();
            chain.extend(touch.links);
            let file = touch.file.clone();
            Some(ChangeCause { file, chain })
        })
    }

    /// Returns the reads of candidates at paths that depend on variables and cannot be determined.
    pub(super) fn unknown_reads(&self, tree: &Tree<'a>) -> Vec<Use> {
        let candidates = (0..self.n_candidates).into_par_iter();
        let unknown = candidates.flat_map_iter(|candidate| {
            let unknown = self.stack_reads(tree, candidate).unknown;
            unknown.into_iter().cloned()
        });
        unknown.collect()
    }

    /// Adds all recorded inputs of the only candidate and of the modules that it uses.
    pub(super) fn add_inputs(&self, tree: &Tree<'a>, inputs: &mut CollectedInputs) {
        let candidate = 0;
        let reads = self.stack_reads(tree, candidate);
        let mut others = reads.found.iter().peekable();
        let unit = self.units.get(&candidate).copied();
        for start in std::iter::once(candidate).chain(unit) {
            let mut walk = NodeWalk::new(start);
            while let Some(index) = walk.next(&self.nodes, |_| true) {
                let way = walk.way(&self.nodes, index);
                for found in self.nodes[index].recorded() {
                    inputs.add(
                        found.location.clone(),
                        &way,
                        &found.steps,
                        found.touch.clone(),
                    );
                }
                // The reads are in the order of the walks.
                while let Some(read) = others.next_if(|read| read.reached == (start, index)) {
                    let pattern = read.pattern.as_deref();
                    let touch = tree.touch_read(&read.path, pattern);
                    if let Some(location) = place_read(read.path.clone(), pattern) {
                        inputs.add(location, &way, std::slice::from_ref(read.step), touch);
                    }
                }
            }
        }
    }
}

/// Visits the places that a candidate and its modules read, as far as they depend on the stack. Returns whether one
/// of them depends on variables.
pub(in crate::change) fn each_stack_read<'a>(
    tree: &Tree<'a>,
    graph: &InputGraph<'a>,
    candidate: usize,
    mut visit: impl FnMut(InputLocation, &Use),
) -> bool {
    let mut by_variables = false;
    for read in graph.stack_reads(tree, candidate).found {
        by_variables |= read.by_variable;
        if let Some(place) = place_read(read.path, read.pattern.as_deref()) {
            visit(place, read.step);
        }
    }
    by_variables
}
