//! Resolves the path of a stack in an expression.

use super::{StackIndex, Stacks};
use crate::diagnostic::{Code, Diagnostic};
use crate::path::ProjectPath;
use crate::source::Span;

impl Stacks {
    /// Returns the stack that an expression names, relative to a directory.
    pub fn one_written(
        &self,
        directory: &ProjectPath,
        written: &str,
        span: Span,
    ) -> Result<StackIndex, Diagnostic> {
        let Ok(named) = self.written(directory, written) else {
            return Err(Diagnostic::outside_project(written, span)
                .help("name a stack of the project; a leading `/` is the project root"));
        };
        if let Some(stack) = named.only() {
            return Ok(stack);
        }
        let wrong = |message: String, label: &str| {
            Diagnostic::error(Code::UnknownReference, message).label(span, label)
        };
        Err(match named.first() {
            None => {
                let known = self.iter().map(|(_, stack)| stack.path.as_str());
                let message = format!("`{written}` is not a stack");
                wrong(message, "no stack has this path").did_you_mean(written, known)
            }
            Some(first) => {
                let key = self[first].path.key();
                let key = key.map(ToString::to_string).unwrap_or_default();
                let message = format!("`{written}` matches several instances");
                let help = format!("name one of them: `stacks[\"{written}[\\\"{key}\\\"]\"]`");
                wrong(message, "this needs one of them").help(help)
            }
        })
    }
}
