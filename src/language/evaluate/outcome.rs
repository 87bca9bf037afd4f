//! The outcome of an evaluation: a value, or the reason why there is none.

use crate::diagnostic::{Code, Diagnostic};
use crate::language::value::Value;
use crate::source::Span;

pub type EvalResult<T = Value> = std::result::Result<T, NoValue>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoValue {
    Wrong(Box<Diagnostic>),
    Undecided(Box<Unknown>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The name, as far as it is not known: `stacks["/network"].outputs`.
    pub name: String,
    /// When it will be known, to follow "is": "known once `/network` has run".
    pub when: String,
    pub span: Span,
    /// Whether it is found out because it is needed here. Until then nothing is evaluated that may turn out
    /// not to be needed.
    pub is_on_demand: bool,
}

impl NoValue {
    /// Returns the diagnostic for a place where every name must be known.
    pub fn into_diagnostic(self) -> Diagnostic {
        match self {
            NoValue::Wrong(diagnostic) => *diagnostic,
            NoValue::Undecided(undecided) => {
                let Unknown {
                    name, when, span, ..
                } = *undecided;
                let message = format!("`{name}` has no value yet");
                Diagnostic::error(Code::UnavailableName, message).label(span, format!("is {when}"))
            }
        }
    }
}

impl From<Diagnostic> for NoValue {
    fn from(diagnostic: Diagnostic) -> Self {
        NoValue::Wrong(Box::new(diagnostic))
    }
}

/// The value of a name or an expression, and whether it may be shown.
#[derive(Debug, Clone)]
pub struct EvalValue {
    pub value: Value,
    /// Whether anything that it was computed from is secret, so that it must not appear in a message.
    pub is_sensitive: bool,
}

impl From<Value> for EvalValue {
    fn from(value: Value) -> Self {
        EvalValue {
            value,
            is_sensitive: false,
        }
    }
}

/// Collects results. An error takes precedence over something undecided: it remains an error in any
/// case.
pub(super) fn all<T, C: FromIterator<T>>(
    results: impl IntoIterator<Item = EvalResult<T>>,
) -> EvalResult<C> {
    let mut undecided = None;
    let mut values = Vec::new();
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(NoValue::Undecided(first)) => _ = undecided.get_or_insert(first),
            Err(wrong) => return Err(wrong),
        }
    }
    match undecided {
        None => Ok(values.into_iter().collect()),
        Some(undecided) => Err(NoValue::Undecided(undecided)),
    }
}

pub(super) fn both<A, B>(left: EvalResult<A>, right: EvalResult<B>) -> EvalResult<(A, B)> {
    match (left, right) {
        (Ok(left), Ok(right)) => Ok((left, right)),
        (Err(wrong @ NoValue::Wrong(_)), _) | (_, Err(wrong @ NoValue::Wrong(_))) => Err(wrong),
        (Err(undecided), _) | (_, Err(undecided)) => Err(undecided),
    }
}

pub(super) fn fail<T>(
    code: Code,
    message: impl Into<String>,
    span: Span,
    label: impl Into<String>,
) -> EvalResult<T> {
    Err(Diagnostic::error(code, message).label(span, label).into())
}
