//! Conditions that do not hold, as they are shown and kept: never with a secret.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
use crate::project::lifecycle::ConditionKind;
use crate::source::{Sources, Span};

/// How many characters are kept of a part of a condition.
const MAX_WRITTEN: usize = 200;

/// A condition that does not hold, or that cannot be evaluated.
#[derive(Debug, Clone)]
pub struct FailedCheck {
    /// Which of the two it is.
    pub kind: ConditionKind,
    /// The keyword of its block.
    pub span: Span,
    /// What is said of it in a line: `precondition failed: …`.
    pub text: String,
    /// The same with the place, and the values of the names in it.
    pub diagnostic: Diagnostic,
}

/// The same as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCondition {
    /// `precondition` or `postcondition`.
    pub kind: String,
    /// The file that it is written in, relative to the project root.
    pub file: String,
    /// The line where it begins, from 1.
    pub line: usize,
    /// What is said of it.
    pub message: String,
    /// The values of the names in it, as they are shown.
    pub values: Vec<ShownValue>,
}

/// What is said about a part of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownValue {
    /// The part as written.
    pub expression: String,
    /// The line where it begins, from 1.
    pub line: usize,
    /// What it is: `this is "http://10.0.0.7"`.
    pub text: String,
}

impl FailedCheck {
    /// Returns it as data, given the files of the project.
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
