//! `+`, `==`, `!` and the rest, with the conversions that HCL applies to their operands.

use std::num::NonZeroU64;

use bigdecimal::{BigDecimal, Context, RoundingMode, Zero};

use super::EvalScope;
use super::outcome::{EvalResult, fail};
use crate::diagnostic::Code;
use crate::language::syntax::{BinaryOperator, Expr, UnaryOperator};
use crate::language::value::{Value, is_sane, weight};

pub(super) fn unary(
    scope: &EvalScope,
    operator: UnaryOperator,
    operand: &Expr,
    value: &Value,
) -> EvalResult {
    Ok(match operator {
        UnaryOperator::Neg => Value::Number(-number(scope, operand, value)?),
        UnaryOperator::Not => Value::Bool(!boolean(scope, operand, value)?),
    })
}

pub(super) fn binary(
    scope: &EvalScope,
    operator: BinaryOperator,
    (left, left_value): (&Expr, &Value),
    (right, right_value): (&Expr, &Value),
) -> EvalResult {
    use BinaryOperator as Op;
    if let Op::Eq | Op::NotEq = operator {
        scope.spend(left_value.weight().min(right_value.weight()), left.span)?;
        let is_equal = left_value == right_value;
        return Ok(Value::Bool(is_equal == (operator == Op::Eq)));
    }
    let left_number = number(scope, left, left_value)?;
    let right_number = number(scope, right, right_value)?;
    // Long numbers are multiplied, and their zeros found, digit by digit.
    let cost = weight(&left_number) * weight(&right_number) / 4;
    scope.spend(cost, left.span)?;
    if matches!(operator, Op::Div | Op::Mod) && right_number.is_zero() {
        let label = scope
            .this_is(right, right_value)
            .replace("a number", "zero");
        return fail(Code::DivisionByZero, "division by zero", right.span, label);
    }
    let result = match operator {
        Op::Less => return Ok(Value::Bool(left_number < right_number)),
        Op::LessEq => return Ok(Value::Bool(left_number <= right_number)),
        Op::Greater => return Ok(Value::Bool(left_number > right_number)),
        Op::GreaterEq => return Ok(Value::Bool(left_number >= right_number)),
        Op::Plus => left_number + right_number,
        Op::Minus => left_number - right_number,
        Op::Mul => left_number * right_number,
        Op::Div => quotient(&left_number, &right_number),
        Op::Mod => left_number % right_number,
        Op::Eq | Op::NotEq | Op::And | Op::Or => {
            unreachable!("answered above, or before both sides were evaluated")
        }
    };
    if is_sane(&result) {
        Ok(Value::Number(result.normalized()))
    } else {
        fail(
            Code::Limit,
            "this number is too large",
            right.span,
            "the result has thousands of digits",
        )
    }
}

/// Divides, to as many digits as Terraform's 512-bit numbers have.
fn quotient(left: &BigDecimal, right: &BigDecimal) -> BigDecimal {
    const DIGITS: NonZeroU64 = NonZeroU64::new(154).expect("not zero");
    let context = Context::new(DIGITS, RoundingMode::HalfEven);
    let exact = left / right; // to a hundred digits, so exact if there are no more
    if &(&exact * right) == left {
        return exact;
    }
    let inverse = right.inverse_with_context(&Context::new(
        NonZeroU64::new(200).expect("not zero"),
        RoundingMode::HalfEven,
    ));
    context.round_decimal(left * inverse)
}

fn number(scope: &EvalScope, expr: &Expr, value: &Value) -> EvalResult<BigDecimal> {
    match value.to_number() {
        Some(number) => Ok(number),
        None => fail(
            Code::WrongType,
            "this operator needs numbers",
            expr.span,
            scope.this_is(expr, value),
        ),
    }
}

pub(super) fn boolean(scope: &EvalScope, expr: &Expr, value: &Value) -> EvalResult<bool> {
    match value.to_bool() {
        Some(value) => Ok(value),
        None => fail(
            Code::WrongType,
            "this operator needs bools",
            expr.span,
            scope.this_is(expr, value),
        ),
    }
}
