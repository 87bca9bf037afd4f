//! The values of a condition's names, for messages.

use super::names::CheckNames;
use crate::language::evaluate::{Budget, EvalValue, evaluate_within};
use crate::language::syntax::{Expr, ExprKind};
use crate::source::Span;

const MAX_TEXT: usize = 200;

const MAX_NAMES: usize = 5;

/// Returns the names in a condition with their values. Variables of a `for` are left out.
pub(super) fn values(condition: &Expr, names: &CheckNames<'_>) -> Vec<(Span, String)> {
    let mut found: Vec<(Span, String)> = Vec::new();
    let mut covered: Option<Span> = None;
    condition.each(&mut |expr| {
        let is_name = match &expr.kind {
            ExprKind::Variable(_) => true,
            ExprKind::Traversal(base, _) => matches!(base.kind, ExprKind::Variable(_)),
            _ => false,
        };
        let is_inside = covered
            .is_some_and(|outer| outer.start <= expr.span.start && expr.span.end <= outer.end);
        if !is_name || is_inside || found.len() == MAX_NAMES {
            return;
        }
        if let Ok(answer) = evaluate_within(expr, names, &Budget::default()) {
            covered = Some(expr.span);
            found.push((expr.span, format!("this is {}", in_words(&answer))));
        }
    });
    found
}

/// Describes a value: texts and numbers in full, collections by kind and size.
fn in_words(answer: &EvalValue) -> String {
    if answer.is_sensitive {
        return "(sensitive)".to_owned();
    }
    let value = &answer.value;
    if let Some(text) = value.as_str() {
        return match text.char_indices().nth(MAX_TEXT) {
            Some((end, _)) => format!("{:?}…", &text[..end]),
            None => format!("{text:?}"),
        };
    }
    if let Some(text) = value.to_text() {
        return text.to_string();
    }
    let size = match (value.items(), value.entries()) {
        (Some(items), _) => items.len(),
        (_, Some(entries)) => entries.len(),
        _ => return value.type_name().to_owned(),
    };
    format!("{} of {size}", value.type_name())
}
