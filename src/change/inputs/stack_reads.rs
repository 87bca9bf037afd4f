//! The reads whose places differ for each stack: those relative to it, and those at paths with variables.

use super::constants::{Constants, path_of};
use super::node::{InputNode, VariableRead};
use super::terraform::{ReadTexts, root_read, variable_read};
use super::tree::Tree;
use super::variables::StackVariables;
use super::walk::NodeWalk;
use crate::change::cause::Use;
use crate::change::inputs::extract::PathBase;
use crate::path::ProjectPath;

/// The reads of a stack, and of the modules that it uses, whose places depend on the stack.
#[derive(Default)]
pub(super) struct StackReads<'g> {
    /// The walks from the stack and from its Terragrunt files.
    walks: Vec<(usize, NodeWalk)>,
    pub(super) found: Vec<StackRead<'g>>,
    /// Reads at paths that cannot be determined.
    pub(super) unknown: Vec<&'g Use>,
}

pub(super) struct StackRead<'g> {
    pub(super) step: &'g Use,
    pub(super) path: ProjectPath,
    pub(super) pattern: Option<Box<str>>,
    /// Whether the path depends on variables.
    pub(super) by_variable: bool,
    /// The start of the walk that has reached it, and the node.
    pub(super) reached: (usize, usize),
}

impl<'g> StackReads<'g> {
    /// Finds the reads of a stack and its Terragrunt files. `leads` shows for each node whether it leads to such reads.
    pub(super) fn find<'a>(
        tree: &'g Tree<'a>,
        nodes: &'g [InputNode<'a>],
        leads: &[bool],
        (stack, unit): (usize, Option<usize>),
    ) -> Self {
        let mut reads = StackReads::default();
        for start in std::iter::once(stack).chain(unit) {
            if !leads[start] {
                continue;
            }
            let mut walk = NodeWalk::new(start);
            let mut reached = Vec::new();
            while let Some(node) = walk.next(nodes, |target| leads[target]) {
                reached.push(node);
            }
            // Terragrunt runs a module in a copy of its directory, so nothing there is relative to the stack.
            let is_copied = start != stack;
            let variables = StackVariables::new(tree, nodes, start, unit.is_some(), &reached);
            for node in reached {
                let at = (start, node);
                if !is_copied {
                    reads.add_root_reads(tree, nodes, (stack, at));
                }
                for read in &nodes[node].variable_reads {
                    reads.add_variable_reads(tree, nodes, (stack, at), read, &variables, is_copied);
                }
            }
            reads.walks.push((start, walk));
        }
        reads
    }

    /// Returns the chain from the stack to the module of a read.
    pub(super) fn way<'n>(&self, nodes: &'n [InputNode], read: &StackRead) -> Vec<&'n Use> {
        let (start, node) = read.reached;
        let walk = self.walks.iter().find(|(from, _)| *from == start);
        walk.map_or_else(Vec::new, |(_, walk)| walk.way(nodes, node))
    }

    fn add_root_reads(
        &mut self,
        tree: &Tree,
        nodes: &'g [InputNode],
        (stack, reached): (usize, (usize, usize)),
    ) {
        for read in &nodes[reached.1].root_reads {
            let path = root_read(tree, &nodes[stack].path, read);
            self.found.extend(path.map(|path| StackRead {
                step: &read.step,
                path,
                pattern: read.pattern.clone(),
                by_variable: false,
                reached,
            }));
        }
    }

    fn add_variable_reads(
        &mut self,
        tree: &Tree,
        nodes: &'g [InputNode],
        (stack, reached): (usize, (usize, usize)),
        read: &'g VariableRead,
        variables: &StackVariables,
        is_copied: bool,
    ) {
        let (_, node) = reached;
        let values = |name: &str| variables.values(node, name);
        let constants = Constants::new(nodes[node].definitions(tree), &values);
        let mut found =
            constants.for_each_combination(|| ReadTexts::possible(&read.read, &constants));
        found.sort_unstable();
        found.dedup();
        if found.first().is_some_and(Option::is_none) {
            self.unknown.push(&read.step);
        }
        for found in found.into_iter().flatten() {
            let Some((base, path)) = path_of(found.path) else {
                continue;
            };
            if is_copied && base == PathBase::Root {
                continue;
            }
            let (module, stack) = (&nodes[node].path, &nodes[stack].path);
            let path = variable_read(tree, module, stack, read, (base, &path));
            // What is in these directories counts anyway, or belongs to nested stacks.
            let is_covered = |path: &ProjectPath| {
                found.is_vague && [module, stack].iter().any(|it| path.is_at_or_below(it))
            };
            let path = path.filter(|path| !is_covered(path));
            self.found.extend(path.map(|path| StackRead {
                step: &read.step,
                path,
                pattern: found.pattern,
                by_variable: true,
                reached,
            }));
        }
    }
}
