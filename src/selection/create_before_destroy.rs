//! The reach of `create_before_destroy`: the dependencies of a stack that is created before it is destroyed
//! must be created first too. Otherwise each of the two would have to go first.
//!
//! This module does not know the state; callers pass what they need of it.

use std::collections::VecDeque;

use crate::diagnostic::{Code, Diagnostic};
use crate::project::stack::StackIndex;
use crate::project::{ForcedCreateBeforeDestroy, Project};
use crate::selection::graph::{Graph, Precedence};

/// Extends the rule to the dependencies of every stack that has it, and reports each stack whose own block
/// contradicts that.
pub fn extend(project: &mut Project, graph: &Graph, problems: &mut Vec<Diagnostic>) {
    if !project.states_create_before_destroy() {
        return;
    }
    let sources: Vec<usize> = project
        .stacks
        .iter()
        .filter(|(stack, _)| declares_rule(project, *stack))
        .map(|(stack, _)| stack.get())
        .collect();
    let back = Precedence::new(graph).reversed();
    for (node, source) in reached(&back, &sources) {
        if node >= project.stacks.len() {
            continue;
        }
        let (stack, source) = (StackIndex::new(node), StackIndex::new(source));
        let span = project
            .rules_of(source)
            .create_before_destroy
            .and_then(|rule| rule.span);
        let from = project.stacks[source].path.clone();
        let own = project.stacks[stack].lifecycle.as_deref();
        let own = own.and_then(|own| own.create_before_destroy.as_ref());
        if let (Some(own), Some(span)) = (own.filter(|own| !own.value), span) {
            let path = &project.stacks[stack].path;
            let message = format!(
                "`create_before_destroy` cannot be `false` in `{path}`: `{from}`, which runs after it, has `true`"
            );
            problems.push(
                Diagnostic::error(Code::Conflict, message)
                    .label(own.span, "`false` here")
                    .label(span, "`true` here")
                    .help("remove one of the two"),
            );
        }
        project
            .forced_create_before_destroy
            .insert(stack, ForcedCreateBeforeDestroy { from, span });
    }
}

fn declares_rule(project: &Project, stack: StackIndex) -> bool {
    let rule = project.rules_of(stack).create_before_destroy;
    rule.is_some_and(|rule| rule.value && rule.from.is_none())
}

/// Returns the nodes reachable from some nodes, without these, each with the nearest of them; of several, the
/// first.
pub fn reached(way: &Precedence, from: &[usize]) -> Vec<(usize, usize)> {
    let mut nearest: Vec<Option<usize>> = vec![None; way.n_nodes()];
    let mut open: VecDeque<usize> = from.iter().copied().collect();
    for &node in from {
        nearest[node] = Some(node);
    }
    let mut found = Vec::new();
    while let Some(node) = open.pop_front() {
        let source = nearest[node].expect("what is open was reached");
        for next in way.successors(node) {
            let next = next.node as usize;
            if nearest[next].is_none() {
                nearest[next] = Some(source);
                found.push((next, source));
                open.push_back(next);
            }
        }
    }
    found
}
