//! The result of an evaluation: a value or a diagnostic.

use super::value::Value;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;

/// A value, or what is wrong with the expression.
pub type EvalResult<T = Value> = std::result::Result<T, Box<Diagnostic>>;

/// Fails with an error in an expression.
pub(super) fn fail<T>(
    code: Code,
    message: impl Into<String>,
    span: Span,
    label: impl Into<String>,
) -> EvalResult<T> {
    Err(Box::new(
        Diagnostic::error(code, message).label(span, label),
    ))
}
