//! Lists of strings.

use crate::language::syntax::{Attribute, ExprKind};
use crate::language::value::Value;
use crate::source::Spanned;

/// Returns the elements of a list of strings, each with its own place where the list is written out.
pub(super) fn spanned_strings(attribute: &Attribute, value: &Value) -> Vec<Spanned<String>> {
    let Some(items) = value.sequence() else {
        return Vec::new();
    };
    let written = match &attribute.value.kind {
        ExprKind::List(written) => written.as_slice(),
        _ => &[],
    };
    let place = |index: usize| {
        written
            .get(index)
            .map_or(attribute.value.span, |expr| expr.span)
    };
    let items = items.iter().enumerate();
    items
        .filter_map(|(index, item)| match item {
            Value::String(text) => Some(Spanned {
                value: text.to_string(),
                span: place(index),
            }),
            _ => None,
        })
        .collect()
}

/// Returns whether a value is a list of strings that all fit.
pub(super) fn are_strings(value: &Value, fits: impl Fn(&str) -> bool) -> bool {
    let items = value.sequence();
    items.is_some_and(|items| items.iter().all(|item| item.as_str().is_some_and(&fits)))
}
