//! What an expression evaluates to.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigdecimal::BigDecimal;

/// A value of HCL. Cheap to clone: whole namespaces are handed around as values.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An exact decimal number.
    Number(BigDecimal),
    /// Text.
    String(Arc<str>),
    /// A list, set or tuple.
    List(Arc<[Value]>),
    /// A map or object; keys in byte order, as HCL iterates them.
    Object(Arc<BTreeMap<Arc<str>, Value>>),
}

impl Value {
    /// Makes a string.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Value::String(text.into())
    }

    /// Makes a list.
    pub fn list(items: impl IntoIterator<Item = Value>) -> Self {
        Value::List(items.into_iter().collect())
    }

    /// Makes an object.
    pub fn object<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        Value::Object(Arc::new(
            entries
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        ))
    }

    /// Returns the name of the type for a message: "a string", "null", ….
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a bool",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }

    /// Converts to text as HCL does inside a template: strings, numbers and bools only.
    pub fn to_text(&self) -> Option<Arc<str>> {
        match self {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number_text(number).into()),
            Value::Bool(value) => Some(if *value { "true" } else { "false" }.into()),
            Value::Null | Value::List(_) | Value::Object(_) => None,
        }
    }

    /// Converts to a number as HCL operators do: numbers, and strings that spell one.
    pub fn to_number(&self) -> Option<BigDecimal> {
        match self {
            Value::Number(number) => Some(number.clone()),
            // The length bound keeps a hostile exponent from becoming gigabytes of digits.
            Value::String(text) if text.len() <= 64 => text.parse().ok().filter(is_sane),
            _ => None,
        }
    }

    /// Converts to a bool as HCL operators do: bools, `"true"` and `"false"`.
    pub fn to_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// Returns whether a number can be worked with: between 10^-1000 and 10^1000.
pub(super) fn is_sane(number: &BigDecimal) -> bool {
    let exponent = number.fractional_digit_count();
    let digits = i64::try_from(number.digits()).unwrap_or(i64::MAX);
    digits <= 4_000 && (-1_000..=4_000).contains(&exponent)
}

/// Writes a number as HCL does: no exponent, no trailing zeros.
fn number_text(number: &BigDecimal) -> String {
    number.normalized().to_plain_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_without_exponent_or_trailing_zeros() {
        let show = |text: &str| {
            Value::Number(text.parse().unwrap())
                .to_text()
                .unwrap()
                .to_string()
        };
        assert_eq!(show("1.50"), "1.5");
        assert_eq!(show("1e3"), "1000");
        assert_eq!(show("-0.0"), "0");
        assert_eq!(show("18446744073709551616"), "18446744073709551616");
    }
}
