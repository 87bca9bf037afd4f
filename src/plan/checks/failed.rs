//! Failed conditions for messages and storage. They never contain a secret.

use serde::{Deserialize, Serialize};

use super::names::CheckNames;
use crate::diagnostic::Diagnostic;
use crate::language::evaluate::{Budget, EvalValue, evaluate_within};
use crate::language::syntax::{Expr, ExprKind};
use crate::project::lifecycle::ConditionKind;
use crate::source::{Sources, Span};

const MAX_WRITTEN: usize = 200;

/// A condition that does not hold or cannot be evaluated.
#[derive(Debug, Clone)]
pub struct FailedCheck {
    pub kind: ConditionKind,
    /// The keyword of its block.
    pub span: Span,
    /// The message in one line: `precondition failed: …`.
    pub text: String,
    /// The message with its position and the values of its names.
    pub diagnostic: Diagnostic,
}

/// A [`FailedCheck`] as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCondition {
    /// `precondition` or `postcondition`.
    pub kind: String,
    /// Relative to the project root.
    pub file: String,
    /// From 1.
    pub line: usize,
    pub message: String,
    pub values: Vec<ShownValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownValue {
    pub expression: String,
    /// From 1.
    pub line: usize,
    pub text: String,
}

impl FailedCheck {
    /// Converts it to data, given the project's files.
    pub fn data(&self, sources: &Sources) -> FailedCondition {
        let (file, line) = sources.file_and_line(self.span);
        let written = |span: Span| {
            let text = sources.file(span.file).text.get(span.range());
            text.unwrap_or_default().chars().take(MAX_WRITTEN).collect()
        };
        let values = self.diagnostic.labels.iter().map(|label| ShownValue {
            expression: written(label.span),
            line: sources.file_and_line(label.span).1,
            text: label.text.clone(),
        });
        FailedCondition {
            kind: self.kind.word().to_owned(),
            file: file.to_owned(),
            line,
            message: self.diagnostic.message.clone(),
            values: values.collect(),
        }
    }
}

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
