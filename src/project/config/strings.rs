//! Lists of strings.

use crate::language::syntax::Attribute;
use crate::language::value::Value;
use crate::project::blocks::elements;
use crate::source::Spanned;

/// Returns the elements of a list of strings, each with its own place if the list is a literal.
pub(super) fn spanned_strings(attribute: &Attribute, value: &Value) -> Vec<Spanned<String>> {
    let Some(items) = value.sequence() else {
        return Vec::new();
    };
    let strings = elements(&attribute.value, items).filter_map(|(span, item)| {
        let value = item.as_str()?.to_owned();
        Some(Spanned { value, span })
    });
    strings.collect()
}

pub(super) fn are_strings(value: &Value, fits: impl Fn(&str) -> bool) -> bool {
    let items = value.sequence();
    items.is_some_and(|items| items.iter().all(|item| item.as_str().is_some_and(&fits)))
}
