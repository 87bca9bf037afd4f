//! The host environment, in which `orch` was started.

use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;

/// Returns the value of a host variable. Invalid UTF-8 in it is replaced: such a variable is set.
pub fn host_variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Returns the host environment. Expressions cannot use variables whose names are not UTF-8; invalid UTF-8 in a value
/// is replaced.
pub fn host_environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| {
        let value = value.to_string_lossy().into_owned();
        Some((name.into_string().ok()?, value))
    })
}

/// Returns the error of an expression that reads a variable of the host, if that is not UTF-8.
pub(crate) fn unless_text(variable: &str, value: &str, span: Span) -> Option<Diagnostic> {
    value.contains(char::REPLACEMENT_CHARACTER).then(|| {
        Diagnostic::error(
            Code::Encoding,
            format!("the variable `{variable}` of the environment is not UTF-8"),
        )
        .label(span, "no text can be read from it")
        .help(format!(
            "set `{variable}` to UTF-8 text before running orch"
        ))
    })
}
