//! Conditions: the choice between two results, and its type.

use super::outcome::{EvalResult, fail};
use super::{EvalScope, Value};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{BinaryOperator, Expr, ExprKind, TemplatePart, UnaryOperator};
use crate::language::value::{Type, convert, unify};

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
                self.this_is(condition, &value),
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
        let Some(other_type) = type_as_written(other) else {
            return Ok(value);
        };
        if value == Value::Null || other_type == Type::Any {
            return Ok(value);
        }
        let converted = if let ExprKind::For(_) = other.kind {
            let is_alike = match other_type {
                Type::List(_) => value.items().is_some(),
                _ => value.entries().is_some(),
            };
            is_alike.then(|| value.clone())
        } else {
            let unified = unify(&[Type::of(&value), other_type.clone()]);
            unified.and_then(|unified| convert(&value, &unified).ok())
        };
        converted.ok_or_else(|| {
            Diagnostic::error(
                Code::WrongType,
                "the two results of a condition must have a common type",
            )
            .label(taken.span, format!("this is {}", value.type_name()))
            .label(other.span, format!("this is {}", other_type.name()))
            .into()
        })
    }
}

/// Returns the type of an expression, regardless of its names and calls, or `None` if it depends on them. Null may
/// have any type.
fn type_as_written(expr: &Expr) -> Option<Type> {
    match &expr.kind {
        ExprKind::Null => Some(Type::Any),
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
            [TemplatePart::Interpolation(inner)] => type_as_written(inner),
            _ => Some(Type::String),
        },
        ExprKind::String(_) => Some(Type::String),
        ExprKind::List(items) => {
            let types: Option<Vec<Type>> = items.iter().map(element_as_written).collect();
            types.map(Type::Tuple)
        }
        ExprKind::Object(entries) => {
            let typed = entries.iter().map(|(key, value)| match &key.kind {
                ExprKind::String(name) => Some(((&**name).into(), element_as_written(value)?)),
                _ => None,
            });
            typed.collect::<Option<_>>().map(Type::Object)
        }
        ExprKind::Conditional(parts) => {
            let [_, yes, no] = &**parts;
            unify(&[type_as_written(yes)?, type_as_written(no)?])
        }
        // The elements depend on names.
        ExprKind::For(for_expr) => Some(match for_expr.key {
            Some(_) => Type::Map(Box::new(Type::Any)),
            None => Type::List(Box::new(Type::Any)),
        }),
        ExprKind::Variable(_) | ExprKind::Traversal(..) | ExprKind::Call(_) => None,
    }
}

/// Returns the type of an element, which must be known completely.
fn element_as_written(expr: &Expr) -> Option<Type> {
    match expr.kind {
        ExprKind::For(_) => None,
        _ => type_as_written(expr),
    }
}
