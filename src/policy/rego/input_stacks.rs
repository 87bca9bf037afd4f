//! The stacks of the input, and an index of what policies look for in them.
//!
//! Most policies look for the stacks with a certain label among all of them. A policy that goes through ten thousand
//! stacks takes as long for one that has changed as for all. See [`lookups`](super::lookups).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use regorus::Value;

/// The function by which the text that is evaluated looks stacks up.
pub(super) const FUNCTION: &str = "orch.stacks_with";

/// The function that returns the numbers of such stacks in the list.
pub(super) const NUMBERS: &str = "orch.numbers_of_stacks_with";

/// Fields that change during a run, and which are not worth an index.
pub(super) const VOLATILE: [&str; 3] = ["state", "terraform_version", "tracked_commit"];

/// The list of stacks, shared by the policies of a worker.
#[derive(Clone)]
pub(in crate::policy) struct InputStacks(Arc<Mutex<Content>>);

struct Content {
    stacks: Value,
    indices: HashMap<Lookup, BTreeMap<Value, Vec<usize>>>,
}

/// What is compared with the value that is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Lookup {
    /// The field itself.
    Value { field: String },
    /// Each item of a field.
    Item { field: String },
    /// The parts of each item of a field, which is a text: without a prefix, split at a separator.
    Part {
        field: String,
        prefix: String,
        separator: String,
    },
}

impl Lookup {
    /// Reads `["item", "labels"]`.
    fn read(words: &Value) -> Option<Self> {
        let words = words.as_array().ok()?.iter();
        let words: Vec<&str> = words.map(text).collect::<Option<_>>()?;
        Some(match words[..] {
            ["value", field] => Lookup::Value {
                field: field.to_owned(),
            },
            ["item", field] => Lookup::Item {
                field: field.to_owned(),
            },
            ["part", field, prefix, separator] => Lookup::Part {
                field: field.to_owned(),
                prefix: prefix.to_owned(),
                separator: separator.to_owned(),
            },
            _ => return None,
        })
    }

    fn field(&self) -> &str {
        match self {
            Lookup::Value { field } | Lookup::Item { field } | Lookup::Part { field, .. } => field,
        }
    }

    /// Adds a stack at a position to an index.
    fn add(&self, stack: &Value, position: usize, index: &mut BTreeMap<Value, Vec<usize>>) {
        let value = &stack[self.field()];
        let mut add = |key: Value| {
            let positions = index.entry(key).or_default();
            if positions.last() != Some(&position) {
                positions.push(position);
            }
        };
        match self {
            Lookup::Value { .. } if *value == Value::Undefined => {}
            Lookup::Value { .. } => add(value.clone()),
            Lookup::Item { .. } => items(value).into_iter().cloned().for_each(add),
            Lookup::Part {
                prefix, separator, ..
            } => {
                for item in items(value).into_iter().filter_map(text) {
                    let rest = item.strip_prefix(prefix.as_str()).unwrap_or(item);
                    rest.split(separator.as_str())
                        .for_each(|part| add(part.into()));
                }
            }
        }
    }
}

impl InputStacks {
    pub(in crate::policy) fn new() -> Self {
        InputStacks(Arc::new(Mutex::new(Content::new(Value::new_array()))))
    }

    /// Puts a stack at a position; one at the end extends the list.
    pub(in crate::policy) fn put(&self, position: usize, stack: Value) -> Result<(), String> {
        let mut content = self.content();
        let Content { stacks, indices } = &mut *content;
        let list = stacks.as_array_mut().map_err(|error| error.to_string())?;
        let n_stacks = list.len();
        match list.get_mut(position) {
            Some(place) => {
                indices.retain(|lookup, _| place[lookup.field()] == stack[lookup.field()]);
                *place = stack;
            }
            None if position == n_stacks => {
                indices.clear();
                list.push(stack);
            }
            None => return Err(format!("there is no entry before number {position}")),
        }
        Ok(())
    }

    /// Returns the list, as a value of the input.
    pub(in crate::policy) fn value(&self) -> Value {
        self.content().stacks.clone()
    }

    /// Looks stacks up in this list until the returned one is put back.
    pub(in crate::policy) fn replace(&self, stacks: Value) -> Replaced {
        Replaced(std::mem::replace(
            &mut *self.content(),
            Content::new(stacks),
        ))
    }

    pub(in crate::policy) fn put_back(&self, Replaced(content): Replaced) {
        *self.content() = content;
    }

    /// Returns the stacks that may have what is looked for, in order.
    pub(super) fn with(&self, arguments: &[Value]) -> Option<Value> {
        self.found(arguments, |_, stack| stack.clone())
    }

    /// Returns the numbers of these stacks in the list.
    pub(super) fn numbers_with(&self, arguments: &[Value]) -> Option<Value> {
        let keys: Vec<Value> = match &self.content().stacks {
            Value::Array(_) => Vec::new(),
            Value::Set(items) => items.iter().cloned().collect(),
            Value::Object(fields) => fields.keys().cloned().collect(),
            _ => return None,
        };
        if keys.is_empty() {
            return self.found(arguments, |position, _| position.into());
        }
        Some(keys.into())
    }

    fn found(&self, arguments: &[Value], value: fn(usize, &Value) -> Value) -> Option<Value> {
        let (words, wanted) = (arguments.first()?, arguments.get(1)?);
        let lookup = Lookup::read(words)?;
        let mut content = self.content();
        let Content { stacks, indices } = &mut *content;
        let others: Vec<Value>;
        let stacks = match &*stacks {
            Value::Array(stacks) => stacks.as_slice(),
            other => {
                others = items(other).into_iter().cloned().collect();
                &others[..]
            }
        };
        let index = indices.entry(lookup).or_insert_with_key(|lookup| {
            let mut index = BTreeMap::new();
            for (position, stack) in stacks.iter().enumerate() {
                lookup.add(stack, position, &mut index);
            }
            index
        });
        let found = index.get(wanted).into_iter().flatten();
        let found: Vec<Value> = found
            .map(|&position| value(position, &stacks[position]))
            .collect();
        Some(found.into())
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        // A panic leaves no half-made change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A list that was replaced.
pub(in crate::policy) struct Replaced(Content);

impl Content {
    fn new(stacks: Value) -> Self {
        Content {
            stacks,
            indices: HashMap::new(),
        }
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Returns what `[_]` takes from a value.
fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Set(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}
