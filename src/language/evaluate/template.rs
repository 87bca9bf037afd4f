//! Strings with interpolations and directives.

use super::outcome::{EvalResult, fail};
use super::{EvalScope, too_large};
use crate::diagnostic::Code;
use crate::language::syntax::{Expr, TemplatePart};
use crate::language::value::{MAX_WEIGHT, Value};
use crate::source::Span;

impl EvalScope<'_> {
    /// Evaluates a template. A single interpolation keeps the type of its value.
    pub(super) fn template(&self, parts: &[TemplatePart], span: Span) -> EvalResult {
        if let [TemplatePart::Interpolation(expr)] = parts {
            return self.evaluate(expr);
        }
        let mut text = String::new();
        self.append(parts, &mut text, span)?;
        Ok(Value::string(text))
    }

    fn append(&self, parts: &[TemplatePart], text: &mut String, span: Span) -> EvalResult<()> {
        for part in parts {
            match part {
                TemplatePart::Literal(literal) => self.insert(literal, text, span)?,
                TemplatePart::Interpolation(expr) => self.interpolate(expr, text)?,
                TemplatePart::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    let taken = if self.condition(condition)? {
                        then
                    } else {
                        otherwise
                    };
                    self.append(taken, text, span)?;
                }
                TemplatePart::For {
                    key_variable,
                    value_variable,
                    collection,
                    body,
                } => {
                    let variables = (key_variable.as_deref(), &**value_variable);
                    self.each(variables, collection, |scope| {
                        scope.append(body, text, span)
                    })?;
                }
            }
        }
        Ok(())
    }

    fn interpolate(&self, expr: &Expr, text: &mut String) -> EvalResult<()> {
        let value = self.evaluate(expr)?;
        let Some(piece) = value.to_text() else {
            let label = format!(
                "{}; text, numbers and bools can be inserted",
                self.this_is(expr, &value)
            );
            return fail(
                Code::WrongType,
                "this cannot be inserted into text",
                expr.span,
                label,
            );
        };
        self.insert(&piece, text, expr.span)
    }

    fn insert(&self, piece: &str, text: &mut String, span: Span) -> EvalResult<()> {
        self.spend(piece.len() as u64 / 8, span)?;
        text.push_str(piece);
        if text.len() as u64 / 8 > MAX_WEIGHT {
            return too_large(span);
        }
        Ok(())
    }
}
