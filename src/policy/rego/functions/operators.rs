//! What stands in place of operators and collections in the text that is evaluated.

use std::cmp::Ordering;

use regorus::Value;

use super::numbers::computed;
use super::order::{compare, sort};

/// The function in place of the operators.
pub(in crate::policy::rego) const OPERATOR: &str = "orch.operator";

/// The function around what is gone through.
pub(in crate::policy::rego) const COLLECTION: &str = "orch.collection";

/// Returns the value of an operation; `None` if it is undefined.
pub(super) fn operator(arguments: &[Value]) -> Option<Value> {
    let (Value::String(operator), left, right) = (&arguments[0], &arguments[1], &arguments[2])
    else {
        return None;
    };
    match &**operator {
        "<" => return Some(compare(left, right).is_lt().into()),
        "<=" => return Some(compare(left, right).is_le().into()),
        ">" => return Some((compare(left, right) == Ordering::Greater).into()),
        ">=" => return Some(compare(left, right).is_ge().into()),
        _ => {}
    }
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => computed(operator, left, right),
        (Value::Set(left), Value::Set(right)) => Some(match &**operator {
            "-" => left.difference(right).into_value(),
            "|" => left.union(right).into_value(),
            "&" => left.intersection(right).into_value(),
            _ => return None,
        }),
        _ => None,
    }
}

/// Returns a collection to go through; `None` for another value, through which nothing goes.
///
/// If only its items matter, a set becomes a list in the order of OPA.
pub(super) fn collection(arguments: &[Value]) -> Option<Value> {
    match &arguments[0] {
        Value::Set(items)
            if arguments[1] == Value::Bool(true) && items.last().is_some_and(is_composite) =>
        {
            sort(arguments)
        }
        collection if is_composite(collection) => Some(collection.clone()),
        _ => None,
    }
}

fn is_composite(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Set(_) | Value::Object(_))
}
