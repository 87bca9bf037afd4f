//! `+`, `==`, `!` and the rest, with the conversions that HCL applies to their operands.

use bigdecimal::{BigDecimal, Zero};

use super::problem::{EvalResult, fail};
use super::value::{Value, is_sane};
use crate::diagnostic::Code;
use crate::language::syntax::{BinaryOperator, UnaryOperator};
use crate::source::Span;

pub(super) fn unary(operator: UnaryOperator, operand: &Value, span: Span) -> EvalResult {
    Ok(match operator {
        UnaryOperator::Neg => Value::Number(-number(operand, span)?),
        UnaryOperator::Not => Value::Bool(!boolean(operand, span)?),
    })
}

/// Applies an operator that needs both of its operands.
pub(super) fn binary(
    operator: BinaryOperator,
    (left, left_span): (&Value, Span),
    (right, right_span): (&Value, Span),
) -> EvalResult {
    use BinaryOperator as Op;
    match operator {
        Op::Eq => return Ok(Value::Bool(left == right)),
        Op::NotEq => return Ok(Value::Bool(left != right)),
        _ => {}
    }
    let (left, right) = (number(left, left_span)?, number(right, right_span)?);
    if matches!(operator, Op::Div | Op::Mod) && right.is_zero() {
        return fail(
            Code::DivisionByZero,
            "division by zero",
            right_span,
            "this is zero",
        );
    }
    let result = match operator {
        Op::Less => return Ok(Value::Bool(left < right)),
        Op::LessEq => return Ok(Value::Bool(left <= right)),
        Op::Greater => return Ok(Value::Bool(left > right)),
        Op::GreaterEq => return Ok(Value::Bool(left >= right)),
        Op::Plus => left + right,
        Op::Minus => left - right,
        Op::Mul => left * right,
        Op::Div => left / right, // to a hundred digits; Terraform has some 150
        Op::Mod => left % right,
        Op::Eq | Op::NotEq | Op::And | Op::Or => {
            unreachable!("answered above, or before both sides were evaluated")
        }
    };
    if is_sane(&result) {
        Ok(Value::Number(result.normalized()))
    } else {
        fail(
            Code::Limit,
            "this number is too large to work with",
            right_span,
            "the result has thousands of digits",
        )
    }
}

fn number(value: &Value, span: Span) -> EvalResult<BigDecimal> {
    match value.to_number() {
        Some(number) if is_sane(&number) => Ok(number),
        Some(_) => fail(
            Code::Limit,
            "this number is too large to work with",
            span,
            "thousands of digits",
        ),
        None => fail(
            Code::WrongType,
            "this operator needs numbers",
            span,
            format!("this is {}", value.type_name()),
        ),
    }
}

/// Converts an operand to a bool.
pub(super) fn boolean(value: &Value, span: Span) -> EvalResult<bool> {
    match value.to_bool() {
        Some(value) => Ok(value),
        None => fail(
            Code::WrongType,
            "this operator needs bools",
            span,
            format!("this is {}", value.type_name()),
        ),
    }
}
