//! What stands in place of operators and collections in the text that is evaluated.

use std::cmp::Ordering;

use regorus::Value;

use super::order::{compare, sort};

/// The function in place of the operators.
pub(in crate::policy::rego) const OPERATOR: &str = "orch.operator";

/// The function around what is gone through.
pub(in crate::policy::rego) const COLLECTION: &str = "orch.collection";

/// Returns the value of an operation; `None` if it is undefined.
pub(super) fn operator(arguments: &[Value]) -> Option<Value> {
    let (Value::String(operator), left, right) = (&arguments[0], &arguments[1], &arguments[2])
    else {
        return None;
    };
    match &**operator {
        "<" => return Some(compare(left, right).is_lt().into()),
        "<=" => return Some(compare(left, right).is_le().into()),
        ">" => return Some((compare(left, right) == Ordering::Greater).into()),
        ">=" => return Some(compare(left, right).is_ge().into()),
        _ => {}
    }
    let (left, right) = match (left, right) {
        (Value::Number(left), Value::Number(right)) => (left, right),
        (Value::Set(left), Value::Set(right)) => {
            return Some(match &**operator {
                "-" => left.difference(right).into_value(),
                "|" => left.union(right).into_value(),
                "&" => left.intersection(right).into_value(),
                _ => return None,
            });
        }
        _ => return None,
    };
    let is_zero = || arguments[2] == Value::from(0_u64);
    if !(left.is_integer() && right.is_integer())
        && let Some(result) = decimal(operator, &arguments[1], &arguments[2])
    {
        return Some(result);
    }
    let result = match &**operator {
        "+" => left.add(right),
        "-" => left.sub(right),
        "*" => left.mul(right),
        "/" if !is_zero() => left.clone().divide(right),
        "%" if !is_zero() && left.is_integer() && right.is_integer() => left.clone().modulo(right),
        _ => return None,
    };
    result.ok().map(Value::Number)
}

/// The function `sum`.
pub(super) fn sum(arguments: &[Value]) -> Option<Value> {
    folded("+", 0, &arguments[0])
}

/// The function `product`.
pub(super) fn product(arguments: &[Value]) -> Option<Value> {
    folded("*", 1, &arguments[0])
}

fn folded(name: &str, first: i64, values: &Value) -> Option<Value> {
    let mut values = super::items(values)?.into_iter();
    values.try_fold(first.into(), |so_far: Value, value| {
        operator(&[name.into(), so_far, value.clone()])
    })
}

/// Returns a collection to go through; `None` for another value, through which nothing goes.
///
/// If only its items matter, a set becomes a list in the order of OPA.
pub(super) fn collection(arguments: &[Value]) -> Option<Value> {
    match &arguments[0] {
        Value::Set(items)
            if arguments[1] == Value::Bool(true) && items.last().is_some_and(is_composite) =>
        {
            sort(arguments)
        }
        collection if is_composite(collection) => Some(collection.clone()),
        _ => None,
    }
}

fn is_composite(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Set(_) | Value::Object(_))
}

/// Returns the result for decimal fractions with few digits: it is rounded once, and the fractions are not. So 0.1 and
/// 0.2 are 0.3, as for OPA, which has more digits.
fn decimal(operator: &str, left: &Value, right: &Value) -> Option<Value> {
    let ((left, left_power), (right, right_power)) = (digits(left)?, digits(right)?);
    let scaled = |number: i128, power: i32| {
        let power = u32::try_from(power).ok()?;
        number.checked_mul(10_i128.checked_pow(power)?)
    };
    let (number, power) = match operator {
        "+" | "-" => {
            let power = left_power.min(right_power);
            let left = scaled(left, left_power - power)?;
            let right = scaled(right, right_power - power)?;
            let right = if operator == "-" { -right } else { right };
            (left.checked_add(right)?, power)
        }
        "*" => (left * right, left_power + right_power),
        "/" => {
            let (more, power) = (20, left_power - right_power);
            (scaled(left, more)?.checked_div(right)?, power - more)
        }
        _ => return None,
    };
    let result: f64 = format!("{number}e{power}").parse().ok()?;
    Some(result.into())
}

/// How many digits a fraction may have.
const MAX_DIGITS: usize = 15;

/// Returns the digits of a number, and the power of ten that they are multiplied with.
fn digits(value: &Value) -> Option<(i128, i32)> {
    let text = format!("{:e}", value.as_f64().ok()?);
    let (digits, power) = text.split_once('e')?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}");
    if digits.len() > MAX_DIGITS {
        return None;
    }
    let power: i32 = power.parse().ok()?;
    let power = power - i32::try_from(fraction.len()).ok()?;
    Some((digits.parse().ok()?, power))
}

/// The function `ceil`. OPA takes what is between -1 and 0 for positive.
pub(super) fn ceil(arguments: &[Value]) -> Option<Value> {
    rounded(
        &arguments[0],
        |whole| {
            if whole < 0.0 { whole } else { whole + 1.0 }
        },
    )
}

/// The function `floor`. OPA takes what is between -1 and 0 for positive.
pub(super) fn floor(arguments: &[Value]) -> Option<Value> {
    rounded(&arguments[0], |whole| {
        if whole < 0.0 {
            whole - 1.0
        } else {
            whole.abs()
        }
    })
}

/// Rounds a fraction, given its whole part.
fn rounded(value: &Value, round: fn(f64) -> f64) -> Option<Value> {
    let Value::Number(number) = value else {
        return None;
    };
    if number.is_integer() {
        return Some(value.clone());
    }
    Some(round(number.as_f64()?.trunc()).into())
}
