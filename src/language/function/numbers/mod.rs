//! Functions for numbers.
//!
//! `log` and `pow` compute with 64-bit floating point numbers, as Terraform does; the rest is exact.

mod float;

use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive};

use super::Function;
use super::arguments::{Arguments, FunctionError};
use crate::language::value::{Value, is_sane};

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns the absolute value of a number.
    abs(num: number) -> number = Eager(|arguments| Ok(Value::Number(arguments.number(0).abs()))),
        "abs(-12.4)" => "12.4";
    /// Returns the smallest whole number that is not less than a number.
    ceil(num: number) -> number = Eager(|arguments| Ok(rounded(arguments, RoundingMode::Ceiling))),
        "ceil(5.1)" => "6";
    /// Returns the largest whole number that is not greater than a number.
    floor(num: number) -> number = Eager(|arguments| Ok(rounded(arguments, RoundingMode::Floor))),
        "floor(4.9)" => "4";
    /// Returns the logarithm of a number to a base.
    log(num: number, base: number) -> number = Eager(log),
        "log(16, 2)" => "4";
    /// Returns the largest of the given numbers.
    max(..numbers: number) -> number = Eager(max),
        "max(5, 12, 9)" => "12";
    /// Returns the smallest of the given numbers.
    min(..numbers: number) -> number = Eager(min),
        "min(5, 12, 9)" => "5";
    /// Returns the whole number that a string represents in a base from 2 to 62.
    parseint(number: any, base: number) -> number = Eager(parse_integer),
        r#"parseint("FF", 16)"# => "255";
    /// Returns a number raised to a power.
    pow(num: number, power: number) -> number = Eager(power),
        "pow(3, 2)" => "9";
    /// Returns -1, 0 or 1 for a whole number that is negative, zero or positive.
    signum(num: number) -> number = Eager(|arguments| Ok(whole(arguments.integer(0)?.signum()))),
        "signum(-13)" => "-1";
};

fn whole(number: i64) -> Value {
    Value::Number(number.into())
}

fn rounded(arguments: &Arguments, mode: RoundingMode) -> Value {
    Value::Number(arguments.number(0).with_scale_round(0, mode))
}

fn max(arguments: &Arguments) -> Result<Value, FunctionError> {
    let numbers = (0..arguments.len()).map(|index| arguments.number(index));
    number_or_none(numbers.max())
}

fn min(arguments: &Arguments) -> Result<Value, FunctionError> {
    let numbers = (0..arguments.len()).map(|index| arguments.number(index));
    number_or_none(numbers.min())
}

fn number_or_none(number: Option<&BigDecimal>) -> Result<Value, FunctionError> {
    match number {
        Some(number) => Ok(Value::Number(number.clone())),
        None => Err(FunctionError::Call(
            "at least one number is needed".to_owned(),
        )),
    }
}

/// Returns an argument as the nearest floating point number.
fn float_argument(arguments: &Arguments, index: usize) -> Result<f64, FunctionError> {
    let number = arguments.number(index).to_f64();
    number.filter(|it| it.is_finite()).ok_or_else(|| {
        FunctionError::Argument(
            index,
            "this number is too large; less than 1.8e308 is needed".to_owned(),
        )
    })
}

fn log(arguments: &Arguments) -> Result<Value, FunctionError> {
    let number = float_argument(arguments, 0)?;
    let base = float_argument(arguments, 1)?;
    for (index, number) in [(0, number), (1, base)] {
        // The logarithm to base 0 is 0, in Terraform.
        if number < 0.0 || (number == 0.0 && index == 0) {
            let problem = "a number greater than zero is needed";
            return Err(FunctionError::Argument(index, problem.to_owned()));
        }
    }
    let result = number.ln() / base.ln();
    float::to_decimal(result)
        .map(Value::Number)
        .ok_or_else(|| FunctionError::Argument(1, "this base has no logarithm".to_owned()))
}

fn power(arguments: &Arguments) -> Result<Value, FunctionError> {
    let result = float::power(float_argument(arguments, 0)?, float_argument(arguments, 1)?);
    let number = float::to_decimal(result);
    number.map(Value::Number).ok_or_else(|| {
        FunctionError::Call(if result.is_nan() {
            "a negative number can only be raised to a whole power".to_owned()
        } else {
            "the power is too large or too small".to_owned()
        })
    })
}

/// Digits above 9 are letters: of either case up to base 36; in higher bases, lower case comes first.
fn digit(byte: u8, base: u32) -> Option<u32> {
    let value = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'z' => byte - b'a' + 10,
        b'A'..=b'Z' if base <= 36 => byte - b'A' + 10,
        b'A'..=b'Z' => byte - b'A' + 36,
        _ => return None,
    };
    Some(u32::from(value)).filter(|value| *value < base)
}

fn parse_integer(arguments: &Arguments) -> Result<Value, FunctionError> {
    /// More binary digits than the largest supported number has.
    const LONGEST: usize = 16_000;
    let Value::String(text) = arguments.value(0) else {
        return Err(arguments.unfit(0, "a string is needed"));
    };
    let base = u32::try_from(arguments.integer(1)?).ok();
    let Some(base) = base.filter(|base| (2..=62).contains(base)) else {
        let problem = "a base from 2 to 62 is needed".to_owned();
        return Err(FunctionError::Argument(1, problem));
    };
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.len() > LONGEST {
        let problem = "this number is too large".to_owned();
        return Err(FunctionError::Argument(0, problem));
    }
    // The number grows with each digit.
    let length = digits.len() as u64;
    arguments.spend(length * length / 1_000)?;
    let number = digits.bytes().try_fold(BigInt::ZERO, |number, byte| {
        Some(number * base + digit(byte, base)?)
    });
    match number.filter(|_| !digits.is_empty()) {
        None => {
            let needed = format!("a whole number in base {base} is needed");
            Err(arguments.unfit(0, &needed))
        }
        Some(number) => {
            let number = BigDecimal::from(if is_negative { -number } else { number });
            if is_sane(&number) {
                Ok(Value::Number(number))
            } else {
                let problem = "this number is too large".to_owned();
                Err(FunctionError::Argument(0, problem))
            }
        }
    }
}
