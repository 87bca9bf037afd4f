//! Formats numbers for verbs.

use bigdecimal::num_bigint::{BigInt, Sign};
use bigdecimal::{BigDecimal, RoundingMode, Signed, Zero};

use super::verb::FormatVerb;

/// Writes a whole number for `%b`, `%d`, `%o`, `%x` and `%X`.
pub(super) fn integer(verb: &FormatVerb, number: &BigInt) -> String {
    let (base, prefix) = match verb.letter {
        'b' => (2, "0b"),
        'o' => (8, "0"),
        'x' => (16, "0x"),
        'X' => (16, "0X"),
        _ => (10, ""),
    };
    let mut digits = number.magnitude().to_str_radix(base);
    if verb.letter == 'X' {
        digits.make_ascii_uppercase();
    }
    if verb.precision == Some(0) && number.is_zero() {
        return String::new();
    }
    let least = verb.precision.unwrap_or(0);
    let digits = "0".repeat(least.saturating_sub(digits.len())) + &digits;
    let prefix = if verb.has('#') { prefix } else { "" };
    let start = format!("{}{prefix}", sign(verb, number.sign() == Sign::Minus));
    let missing = verb
        .width
        .unwrap_or(0)
        .saturating_sub(start.len() + digits.len());
    if verb.has('-') {
        format!("{start}{digits}{}", " ".repeat(missing))
    } else if verb.has('0') && verb.precision.is_none() {
        format!("{start}{}{digits}", "0".repeat(missing))
    } else {
        format!("{}{start}{digits}", " ".repeat(missing))
    }
}

/// Writes a number for `%e`, `%E`, `%f`, `%g` and `%G`.
pub(super) fn float(verb: &FormatVerb, number: &BigDecimal) -> String {
    let magnitude = number.abs();
    let mut digits = match verb.letter {
        'f' => fixed(&magnitude, verb.precision.unwrap_or(6)),
        'e' | 'E' => scientific(&magnitude, verb.precision.unwrap_or(6)),
        _ => general(&magnitude, verb.precision),
    };
    if verb.letter.is_ascii_uppercase() {
        digits.make_ascii_uppercase();
    }
    let sign = sign(verb, number.is_negative());
    let missing = verb
        .width
        .unwrap_or(0)
        .saturating_sub(sign.len() + digits.len());
    if verb.has('0') {
        format!("{sign}{}{digits}", "0".repeat(missing))
    } else if verb.has('-') {
        format!("{sign}{digits}{}", " ".repeat(missing))
    } else {
        format!("{}{sign}{digits}", " ".repeat(missing))
    }
}

fn sign(verb: &FormatVerb, is_negative: bool) -> &'static str {
    match (is_negative, verb.has('+'), verb.has(' ')) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (.., true) => " ",
        _ => "",
    }
}

/// Writes a number as `%g` does: with an exponent if it is far from 1, without trailing zeros, and with
/// all its digits if no precision is given.
pub(super) fn general(number: &BigDecimal, precision: Option<usize>) -> String {
    if number.is_zero() {
        return "0".to_owned();
    }
    let rounded = match precision {
        Some(precision) => {
            let digits = i64::try_from(precision.max(1)).unwrap_or(i64::MAX / 2);
            round(number, digits.saturating_sub(exponent(number) + 1))
        }
        None => number.clone(),
    };
    let rounded = rounded.normalized();
    let count = rounded.digits();
    let exponent = exponent(&rounded);
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let limit = match precision {
        None => 6,
        Some(precision) => {
            let precision = i64::try_from(precision.max(1)).unwrap_or(i64::MAX);
            // A precision beyond the number of digits has no further effect.
            if precision > count && count > exponent {
                count
            } else {
                precision
            }
        }
    };
    if exponent < -4 || exponent >= limit {
        let after_point = usize::try_from(count - 1).unwrap_or(0);
        let sign = if number.is_negative() { "-" } else { "" };
        format!("{sign}{}", scientific(&rounded.abs(), after_point))
    } else {
        rounded.to_plain_string()
    }
}

/// Writes a number that is not negative with the given number of digits after the point.
fn fixed(number: &BigDecimal, precision: usize) -> String {
    // Zeros are cheaper to write than to compute.
    let (computed, zeros) = computed(precision);
    let digits = round(number, computed)
        .with_scale(computed)
        .to_plain_string();
    digits + &"0".repeat(zeros)
}

/// Writes a number that is not negative as a digit, the given number of digits after the point, and an
/// exponent.
fn scientific(number: &BigDecimal, precision: usize) -> String {
    let (computed, zeros) = computed(precision);
    let rounded = if number.is_zero() {
        number.clone()
    } else {
        round(number, computed - exponent(number))
    };
    let exponent = if rounded.is_zero() {
        0
    } else {
        exponent(&rounded)
    };
    let (mantissa, _) = rounded.normalized().into_bigint_and_scale();
    let mantissa = mantissa.to_string();
    let (first, rest) = mantissa.split_at(1);
    let missing = usize::try_from(computed)
        .unwrap_or(0)
        .saturating_sub(rest.len())
        + zeros;
    let point = if precision == 0 { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!(
        "{first}{point}{rest}{}e{sign}{:02}",
        "0".repeat(missing),
        exponent.abs()
    )
}

/// Splits a number of digits after the point into those that may differ from zero, and zeros.
fn computed(precision: usize) -> (i64, usize) {
    const MOST: usize = 9_000;
    let computed = precision.min(MOST);
    (i64::try_from(computed).unwrap_or(0), precision - computed)
}

/// Returns the power of ten of the first digit.
fn exponent(number: &BigDecimal) -> i64 {
    let digits = i64::try_from(number.digits()).unwrap_or(i64::MAX);
    digits - 1 - number.fractional_digit_count()
}

/// Rounds to a number of digits after the point. Terraform's numbers are binary, with 512 digits: what
/// looks like the middle between two is above or below it there, unless it is an exact binary fraction.
fn round(number: &BigDecimal, scale: i64) -> BigDecimal {
    if number.fractional_digit_count() <= scale {
        return number.clone();
    }
    let below = number.with_scale_round(scale, RoundingMode::HalfDown);
    let above = number.with_scale_round(scale, RoundingMode::HalfUp);
    if below == above {
        return below;
    }
    match binary_error(number) {
        Sign::Minus => below,
        Sign::NoSign => number.with_scale_round(scale, RoundingMode::HalfEven),
        Sign::Plus => above,
    }
}

/// Returns whether the nearest binary number of 512 digits is below or above a positive number.
fn binary_error(number: &BigDecimal) -> Sign {
    const DIGITS: u64 = 512;
    let (numerator, scale) = number.abs().into_bigint_and_scale();
    let Ok(scale @ 1..=10_000) = u32::try_from(scale) else {
        return Sign::NoSign;
    };
    let denominator = BigInt::from(10).pow(scale);
    // Shifted so that the quotient has the digits, and perhaps one more, which is cut off.
    let mut shift = (DIGITS + denominator.bits()).saturating_sub(numerator.bits());
    if (&numerator << shift) / &denominator >= BigInt::from(1) << DIGITS {
        shift = shift.saturating_sub(1);
    }
    let exact = numerator << shift;
    let twice = (&exact * 2_u32 + &denominator) / (&denominator * 2_u32);
    (twice * denominator - exact).sign()
}
