//! Failed conditions for messages and storage. They never contain a secret.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
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
