//! `tree`: the paths from the roots of a tree to its nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::language::function::arguments::{Arguments, FunctionError};
use crate::language::value::Value;

/// The parent of each node; none for a root.
type Parents = BTreeMap<Arc<str>, Option<Arc<str>>>;

pub(super) fn tree(arguments: &Arguments) -> Result<Value, FunctionError> {
    let mut parents = Parents::new();
    for (index, edge) in arguments.items(0).iter().enumerate() {
        let (parent, child) = pair(edge)
            .map_err(|problem| FunctionError::Argument(0, format!("its `[{index}]` {problem}")))?;
        if let Some(before) = parents.insert(child.clone(), parent.clone()) {
            let show = |parent: Option<Arc<str>>| match parent {
                Some(parent) => Value::String(parent).description(),
                None => "none".to_owned(),
            };
            let child = Value::String(child).description();
            let (one, other) = (show(before), show(parent));
            let problem = format!("{child} has two parents: {one} and {other}");
            return Err(FunctionError::Argument(0, problem));
        }
    }
    // A long chain has a path of each length, so the result is much larger than the tree.
    arguments.spend(weights(&parents)?.values().sum())?;
    let mut ways: Vec<Vec<&Arc<str>>> = Vec::with_capacity(parents.len());
    for node in parents.keys() {
        let above = |node: &&Arc<str>| parents.get(*node).and_then(Option::as_ref);
        let mut way: Vec<&Arc<str>> = std::iter::successors(Some(node), above).collect();
        way.reverse();
        ways.push(way);
    }
    ways.sort_unstable();
    let ways = ways.into_iter().map(|way| {
        let names = way.into_iter().cloned().map(Value::String);
        Value::list(names)
    });
    Ok(Value::list(ways))
}

/// Returns the parent and the child of an edge.
fn pair(edge: &Value) -> Result<(Option<Arc<str>>, Arc<str>), String> {
    let Some([parent, child]) = edge.items().map(|items| &**items) else {
        return Err(format!(
            "is {}; a pair of parent and child is needed",
            edge.description()
        ));
    };
    let child = match child {
        Value::String(name) if !name.is_empty() => name.clone(),
        other => {
            return Err(format!(
                "has {} as the child; a name is needed",
                other.description()
            ));
        }
    };
    let parent = match parent {
        Value::Null => None,
        Value::String(name) if !name.is_empty() => Some(name.clone()),
        other => {
            let found = other.description();
            return Err(format!(
                "has {found} as the parent; a name or null is needed"
            ));
        }
    };
    Ok((parent, child))
}

/// Returns the weight of the path to each node, and checks that each node has a root.
fn weights(parents: &Parents) -> Result<BTreeMap<&Arc<str>, u64>, FunctionError> {
    let mut weights: BTreeMap<&Arc<str>, u64> = BTreeMap::new();
    for start in parents.keys() {
        // Up to a node whose weight is known, then down again.
        let mut way = vec![start];
        let mut weight = 0;
        while let Some(&node) = way.last() {
            if let Some(known) = weights.get(node) {
                weight = *known;
                way.pop();
                break;
            }
            match parents.get(node) {
                Some(None) => break,
                Some(Some(parent)) => way.push(parent),
                None => {
                    let child = way.len().checked_sub(2).and_then(|at| way.get(at));
                    return Err(unknown_parent(node, child.copied().unwrap_or(node)));
                }
            }
            // The path may have one more entry than there are nodes: a parent that is not a node.
            if way.len() > parents.len() + 1 {
                let node = Value::String(node.clone()).description();
                let problem = format!("{node} is part of a cycle, or below one");
                return Err(FunctionError::Argument(0, problem));
            }
        }
        for node in way.into_iter().rev() {
            weight += 1 + node.len() as u64 / 8;
            weights.insert(node, weight);
        }
    }
    Ok(weights)
}

fn unknown_parent(parent: &Arc<str>, child: &Arc<str>) -> FunctionError {
    let parent = Value::String(parent.clone()).description();
    let child = Value::String(child.clone()).description();
    let problem = format!(
        "{parent}, the parent of {child}, is not a node itself; a root is given as a pair with the parent null"
    );
    FunctionError::Argument(0, problem)
}
