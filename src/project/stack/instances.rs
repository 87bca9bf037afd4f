//! `for_each`: the instances that a `stack` block declares.

use std::collections::HashMap;

use super::names::BlockNames;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::evaluate;
use crate::language::syntax::{Attribute, ExprKind};
use crate::language::value::Value;
use crate::path::InstanceKey;
use crate::project::blocks::{elements, value};
use crate::source::Span;

pub(super) struct Instance {
    pub(super) key: InstanceKey,
    /// The value of `each`: an object of `key` and `value`.
    pub(super) each: Value,
}

/// Evaluates `for_each`: an object, or a list of strings. Returns an instance for each key, or `None` if
/// anything is wrong; errors go to `problems`.
pub(super) fn instances(
    attribute: &Attribute,
    names: &BlockNames,
    problems: &mut Vec<Diagnostic>,
) -> Option<Vec<Instance>> {
    let before = problems.len();
    let value = value(&attribute.value, names, problems)?;
    let mut keys = Keys::default();
    let whole = &attribute.value;
    match (&value, &whole.kind) {
        // The value no longer shows whether a computed key occurs twice.
        (Value::Object(entries), ExprKind::Object(written)) => {
            for (key, _) in written {
                let Some(text) = evaluate(key, names).ok().and_then(|key| key.to_text()) else {
                    continue;
                };
                keys.add(&text, &entries[&text], key.span, problems);
            }
        }
        (Value::Object(entries) | Value::Map(entries), _) => {
            for (key, value) in entries.iter() {
                keys.add(key, value, whole.span, problems);
            }
        }
        (Value::Tuple(items) | Value::List(items) | Value::Set(items), _) => {
            for (span, item) in elements(whole, items) {
                match item {
                    Value::String(key) => keys.add(key, item, span, problems),
                    other => problems.push(wrong_type(span, other)),
                }
            }
        }
        (other, _) => problems.push(wrong_type(whole.span, other)),
    }
    (problems.len() == before).then_some(keys.instances)
}

#[derive(Default)]
struct Keys {
    instances: Vec<Instance>,
    places: HashMap<InstanceKey, Span>,
}

impl Keys {
    fn add(&mut self, key: &str, value: &Value, span: Span, problems: &mut Vec<Diagnostic>) {
        let valid = match InstanceKey::new(key) {
            Ok(valid) => valid,
            Err(bad) => {
                let message = format!("`{key}` cannot be the key of an instance");
                let diagnostic = Diagnostic::error(Code::InvalidValue, message);
                problems.push(diagnostic.label(span, bad.to_string()));
                return;
            }
        };
        if let Some(&first) = self.places.get(&valid) {
            let message = format!("`{key}` occurs twice in `for_each`");
            let diagnostic = Diagnostic::error(Code::DuplicateEntry, message);
            let diagnostic = if first == span {
                diagnostic.label(span, "two of its elements are the same")
            } else {
                diagnostic.again(span, first)
            };
            problems.push(diagnostic.help("each key makes one stack: remove one of them"));
            return;
        }
        self.places.insert(valid.clone(), span);
        let each = [("key", Value::string(key)), ("value", value.clone())];
        self.instances.push(Instance {
            key: valid,
            each: Value::object(each),
        });
    }
}

fn wrong_type(span: Span, found: &Value) -> Diagnostic {
    let message = "`for_each` must be an object or a list of strings";
    Diagnostic::error(Code::WrongType, message)
        .label(span, format!("this is {}", found.type_name()))
        .help("write `for_each = [\"dev\", \"prod\"]`, or `{ dev = …, prod = … }` to use `each.value`")
}
