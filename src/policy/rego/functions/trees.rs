//! Functions that follow paths in values, and in graphs.

use std::collections::{BTreeMap, BTreeSet};

use regorus::Value;

/// Paths by their first keys. At the end of a path there is nothing.
#[derive(Default)]
struct Paths(BTreeMap<Value, Option<Paths>>);

impl Paths {
    /// Reads a list or a set of paths: lists of keys, or texts with `/` between the keys.
    fn read(value: &Value) -> Option<Self> {
        let mut paths = Paths::default();
        for path in super::items(value)? {
            let keys: Vec<Value> = match path {
                Value::String(text) if text.is_empty() => continue,
                Value::String(text) => {
                    let keys = text.trim_start_matches('/').split('/');
                    keys.map(|key| key.replace("~1", "/").replace("~0", "~").into())
                        .collect()
                }
                Value::Array(keys) => keys.iter().cloned().collect(),
                _ => return None,
            };
            paths.add(&keys);
        }
        Some(paths)
    }

    fn add(&mut self, keys: &[Value]) {
        match keys {
            [] => {}
            [last] => {
                self.0.insert(last.clone(), None);
            }
            [first, rest @ ..] => {
                let below = self.0.entry(first.clone());
                if let Some(below) = below.or_insert_with(|| Some(Paths::default())) {
                    below.add(rest);
                }
            }
        }
    }

    /// Returns a value without what is at the paths.
    fn removed(&self, value: &Value) -> Value {
        self.changed(value, |below, value| match below {
            None => Some(value.clone()),
            Some(None) => None,
            Some(Some(below)) => Some(below.removed(value)),
        })
    }

    /// Returns only what is at the paths.
    fn filtered(&self, value: &Value) -> Value {
        self.changed(value, |below, value| match below {
            None => None,
            Some(None) => Some(value.clone()),
            Some(Some(below)) => Some(below.filtered(value)),
        })
    }

    /// Changes each part of a value, given the paths below it. The keys of a list are texts.
    fn changed(
        &self,
        value: &Value,
        change: impl Fn(Option<&Option<Paths>>, &Value) -> Option<Value>,
    ) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields.iter();
                let fields = fields.filter_map(|(key, value)| {
                    Some((key.clone(), change(self.0.get(key), value)?))
                });
                Value::from(fields.collect::<BTreeMap<_, _>>())
            }
            Value::Set(items) => {
                let items = items.iter();
                let items = items.filter_map(|item| change(self.0.get(item), item));
                Value::from(items.collect::<BTreeSet<_>>())
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.filter_map(|(position, item)| {
                    change(self.0.get(&position.to_string().into()), item)
                });
                Value::from(items.collect::<Vec<_>>())
            }
            other => other.clone(),
        }
    }
}

pub(super) fn remove(arguments: &[Value]) -> Option<Value> {
    arguments[0].as_object().ok()?;
    Some(Paths::read(&arguments[1])?.removed(&arguments[0]))
}

pub(super) fn filter(arguments: &[Value]) -> Option<Value> {
    arguments[0].as_object().ok()?;
    Some(Paths::read(&arguments[1])?.filtered(&arguments[0]))
}

/// The function `graph.reachable_paths`: those that end in a node without edges, outside of the graph, or in a circle.
pub(super) fn reachable_paths(arguments: &[Value]) -> Option<Value> {
    arguments[0].as_object().ok()?;
    let mut found = BTreeSet::new();
    for node in super::items(&arguments[1])? {
        if arguments[0][node] != Value::Undefined {
            follow(&arguments[0], &mut vec![node.clone()], &mut found);
        }
    }
    Some(Value::from(found))
}

/// Follows the edges of the last node of a path.
fn follow(graph: &Value, path: &mut Vec<Value>, found: &mut BTreeSet<Value>) {
    let node = path.last().cloned().unwrap_or(Value::Undefined);
    let neighbours = super::items(&graph[&node]).unwrap_or_default();
    if neighbours.is_empty() {
        found.insert(Value::from(path.clone()));
    }
    for neighbour in neighbours {
        // OPA goes from the first node to itself, once.
        let is_known = path.len() > 1 && path.contains(neighbour);
        if is_known || graph[neighbour] == Value::Undefined {
            found.insert(Value::from(path.clone()));
        } else {
            path.push(neighbour.clone());
            follow(graph, path, found);
            path.pop();
        }
    }
}
