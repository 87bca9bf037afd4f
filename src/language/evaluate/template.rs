//! Strings with interpolations and directives.

use super::EvalScope;
use super::problem::{EvalResult, fail};
use super::value::Value;
use crate::diagnostic::Code;
use crate::language::syntax::{Expr, TemplatePart};

impl EvalScope<'_> {
    /// Evaluates a template. A single interpolation keeps the type of its value.
    pub(super) fn template(&self, parts: &[TemplatePart]) -> EvalResult {
        if let [TemplatePart::Interpolation(expr)] = parts {
            return self.evaluate(expr);
        }
        let mut text = String::new();
        self.append(parts, &mut text)?;
        Ok(Value::string(text))
    }

    fn append(&self, parts: &[TemplatePart], text: &mut String) -> EvalResult<()> {
        for part in parts {
            match part {
                TemplatePart::Literal(literal) => text.push_str(literal),
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
                    self.append(taken, text)?;
                }
                TemplatePart::For {
                    key_variable,
                    value_variable,
                    collection,
                    body,
                } => {
                    let variables = (key_variable.as_deref(), &**value_variable);
                    self.each(variables, collection, |scope| scope.append(body, text))?;
                }
            }
        }
        Ok(())
    }

    fn interpolate(&self, expr: &Expr, text: &mut String) -> EvalResult<()> {
        let value = self.evaluate(expr)?;
        let Some(piece) = value.to_text() else {
            let label = format!(
                "this is {}; text, numbers and bools can be inserted",
                value.type_name()
            );
            return fail(
                Code::WrongType,
                "this cannot be inserted into text",
                expr.span,
                label,
            );
        };
        self.spend(piece.len() as u64, expr.span)?;
        text.push_str(&piece);
        Ok(())
    }
}
