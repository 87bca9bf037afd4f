//! Conditions: which of two results is used, and its type.

use super::problem::{EvalResult, fail};
use super::{EvalScope, Value};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{BinaryOperator, Expr, ExprKind, TemplatePart, UnaryOperator};

impl EvalScope<'_> {
    /// Evaluates a condition of `? :`, `for` or `%{ if }`.
    pub(super) fn condition(&self, condition: &Expr) -> EvalResult<bool> {
        let value = self.evaluate(condition)?;
        match value.to_bool() {
            Some(holds) => Ok(holds),
            None => fail(
                Code::WrongType,
                "the condition is not a bool",
                condition.span,
                format!("this is {}", value.type_name()),
            ),
        }
    }

    /// Evaluates `condition ? yes : no`. The other result is not evaluated, so nothing in it can
    /// fail.
    ///
    /// In HCL both results have one type: a number or bool beside a string becomes a string. This
    /// holds here too where the text shows the type of the result not taken: `true ? 1 : "a"` is
    /// `"1"`, and `true ? 1 : [1]` is an error. Where the type depends on a name or a call, the result
    /// taken keeps its own.
    pub(super) fn conditional(&self, [condition, yes, no]: &[Expr; 3]) -> EvalResult {
        let (taken, other) = if self.condition(condition)? {
            (yes, no)
        } else {
            (no, yes)
        };
        let value = self.evaluate(taken)?;
        let Some(other_type) = Type::as_written(other) else {
            return Ok(value);
        };
        let Some(own_type) = Type::of(&value) else {
            return Ok(value);
        };
        match own_type.unify(other_type) {
            Some(Type::String) => Ok(value.to_text().map_or(Value::Null, Value::String)),
            Some(_) => Ok(value),
            None => Err(Box::new(
                Diagnostic::error(
                    Code::WrongType,
                    "the two results of a condition must have one type",
                )
                .label(taken.span, format!("this is {}", value.type_name()))
                .label(other.span, format!("this is {}", other_type.name())),
            )),
        }
    }
}

/// The type of a value that is not null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Bool,
    Number,
    String,
    List,
    Object,
}

impl Type {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Bool(_) => Some(Type::Bool),
            Value::Number(_) => Some(Type::Number),
            Value::String(_) => Some(Type::String),
            Value::List(_) => Some(Type::List),
            Value::Object(_) => Some(Type::Object),
        }
    }

    /// Returns the type that an expression has whatever its names and calls mean, or `None` if it
    /// depends on them or the expression is null.
    fn as_written(expr: &Expr) -> Option<Self> {
        match &expr.kind {
            ExprKind::Bool(_) | ExprKind::Unary(UnaryOperator::Not, _) => Some(Type::Bool),
            ExprKind::Number(_) | ExprKind::Unary(UnaryOperator::Neg, _) => Some(Type::Number),
            ExprKind::Binary(operator, _) => Some(match operator {
                BinaryOperator::Plus
                | BinaryOperator::Minus
                | BinaryOperator::Mul
                | BinaryOperator::Div
                | BinaryOperator::Mod => Type::Number,
                _ => Type::Bool,
            }),
            ExprKind::Template(parts) => match parts.as_slice() {
                [TemplatePart::Interpolation(inner)] => Type::as_written(inner),
                _ => Some(Type::String),
            },
            ExprKind::String(_) => Some(Type::String),
            ExprKind::List(_) => Some(Type::List),
            ExprKind::Object(_) => Some(Type::Object),
            ExprKind::For(for_expr) => Some(match for_expr.key {
                Some(_) => Type::Object,
                None => Type::List,
            }),
            ExprKind::Conditional(parts) => {
                let [_, yes, no] = &**parts;
                Type::as_written(yes)?.unify(Type::as_written(no)?)
            }
            ExprKind::Null
            | ExprKind::Variable(_)
            | ExprKind::Traversal(..)
            | ExprKind::Call(..) => None,
        }
    }

    /// Returns the type that two results of one condition have.
    fn unify(self, other: Self) -> Option<Self> {
        match (self, other) {
            _ if self == other => Some(self),
            (Type::String, Type::Bool | Type::Number)
            | (Type::Bool | Type::Number, Type::String) => Some(Type::String),
            _ => None,
        }
    }

    /// Returns the name for a message, as [`Value::type_name`] has it.
    fn name(self) -> &'static str {
        match self {
            Type::Bool => "a bool",
            Type::Number => "a number",
            Type::String => "a string",
            Type::List => "a list",
            Type::Object => "an object",
        }
    }
}
