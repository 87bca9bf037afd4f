//! Extends `create_before_destroy` along recorded dependencies.

use std::collections::BTreeMap;

use crate::path::StackPath;
use crate::plan::order::NamedConstraints;
use crate::project::stack::StackIndex;
use crate::project::{ForcedCreateBeforeDestroy, Project};
use crate::selection::create_before_destroy::reached;
use crate::selection::graph::Graph;
use crate::source::Span;
use crate::state::document::Document;

/// Extends `create_before_destroy` to stacks of this commit that recorded dependents with the rule
/// ran after. The rules declared in this commit are extended before.
pub fn extend_as_recorded(project: &mut Project, graph: &Graph, document: &Document) {
    let is_recorded = |key: &str| {
        let entry = document.stacks.get(key);
        let rule = entry.and_then(|entry| entry.lifecycle.create_before_destroy.as_ref());
        rule.is_some_and(|rule| rule.value && rule.from.is_none())
    };
    if !project.states_create_before_destroy()
        && !document.stacks.keys().any(|key| is_recorded(key))
    {
        return;
    }
    let record = NamedConstraints::new(project, graph, Some(document));
    let n_stacks = project.stacks.len();
    let mut sources: BTreeMap<usize, (StackPath, Option<Span>)> = BTreeMap::new();
    for (stack, of_stack) in project.stacks.iter() {
        let rule = project.rules_of(stack).create_before_destroy;
        if let Some(rule) = rule.filter(|rule| rule.value) {
            let from = rule.from.unwrap_or(&of_stack.path).clone();
            sources.insert(stack.get(), (from, rule.span));
        }
    }
    for (node, key) in record.removed_nodes() {
        let path = StackPath::parse(key).filter(|_| is_recorded(key));
        sources.extend(path.map(|path| (node, (path, None))));
    }
    let back = record.recorded.precedence().reversed();
    let nodes: Vec<usize> = sources.keys().copied().collect();
    for (node, source) in reached(&back, &nodes) {
        if node >= n_stacks {
            continue;
        }
        let (from, span) = sources[&source].clone();
        let extended = ForcedCreateBeforeDestroy { from, span };
        project
            .forced_create_before_destroy
            .entry(StackIndex::new(node))
            .or_insert(extended);
    }
}
