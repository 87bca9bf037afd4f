//! Powers of floating point numbers, and their digits, as in Terraform.
//!
//! The system's `pow` is more exact; Terraform's results differ from it in the last digit, and a result must
//! not depend on which program computes it.

use bigdecimal::BigDecimal;

use crate::language::value::is_sane;

/// Returns the number with the fewest digits that identifies a floating point number.
pub(super) fn to_decimal(number: f64) -> Option<BigDecimal> {
    if !number.is_finite() {
        return None;
    }
    // Below a power of two, floating point numbers are twice as close as above. Terraform treats them as
    // if they were as close as above, and so may use fewer digits.
    let is_power_of_two = number.is_normal() && number.to_bits().trailing_zeros() >= 52;
    let exact = BigDecimal::try_from(number).ok()?;
    let tolerance = BigDecimal::try_from(number.abs() * f64::EPSILON / 2.0).ok()?;
    let short = (0..17)
        .filter(|_| is_power_of_two)
        .filter_map(|digits| format!("{number:.digits$e}").parse::<BigDecimal>().ok())
        .find(|short| (short - &exact).abs() <= tolerance);
    let decimal = short.or_else(|| format!("{number:e}").parse().ok());
    decimal.filter(is_sane)
}

/// Raises a number to a power: the whole part of the power by squaring, with mantissa and exponent apart.
#[expect(clippy::float_cmp, reason = "only these very numbers are special")]
pub(super) fn power(number: f64, power: f64) -> f64 {
    /// Beyond this, no exponent comes back into range.
    const LARGEST_EXPONENT: i64 = 1 << 12;
    if power == 0.0 || number == 1.0 {
        return 1.0;
    }
    if power == 0.5 {
        return number.sqrt();
    }
    if power == -0.5 {
        return 1.0 / number.sqrt();
    }
    if number == 0.0 {
        return if power < 0.0 { f64::INFINITY } else { 0.0 };
    }
    let mut fraction = power.abs().fract();
    let mut whole = power.abs().trunc();
    if fraction != 0.0 && number < 0.0 {
        return f64::NAN;
    }
    if whole >= 9e18 {
        let vanishes = (number.abs() < 1.0) == (power > 0.0);
        return match number.abs() {
            1.0 => 1.0,
            _ if vanishes => 0.0,
            _ => f64::INFINITY,
        };
    }
    let (mut mantissa, mut exponent) = (1.0, 0_i64);
    if fraction != 0.0 {
        if fraction > 0.5 {
            fraction -= 1.0;
            whole += 1.0;
        }
        mantissa = (fraction * number.ln()).exp();
    }
    let (mut square, mut square_exponent) = split(number);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole, positive and small enough"
    )]
    let mut left = whole as u64;
    while left != 0 {
        if square_exponent.abs() > LARGEST_EXPONENT {
            exponent += square_exponent;
            break;
        }
        if left & 1 == 1 {
            mantissa *= square;
            exponent += square_exponent;
        }
        square *= square;
        square_exponent *= 2;
        if square < 0.5 {
            square += square;
            square_exponent -= 1;
        }
        left >>= 1;
    }
    if power < 0.0 {
        mantissa = 1.0 / mantissa;
        exponent = -exponent;
    }
    scaled(mantissa, exponent)
}

/// Returns a mantissa from 0.5 to 1, and the exponent of 2 to go with it.
fn split(number: f64) -> (f64, i64) {
    const MANTISSA: u64 = (1 << 52) - 1;
    if !number.is_normal() {
        if number == 0.0 {
            return (0.0, 0);
        }
        let (mantissa, exponent) = split(number * 2_f64.powi(64));
        return (mantissa, exponent - 64);
    }
    let bits = number.to_bits();
    let exponent = i64::try_from((bits >> 52) & 0x7ff).unwrap_or(0) - 1022;
    let sign = bits & (1 << 63);
    let mantissa = f64::from_bits(sign | (1022 << 52) | (bits & MANTISSA));
    (mantissa, exponent)
}

/// Returns a mantissa times a power of two.
fn scaled(mantissa: f64, exponent: i64) -> f64 {
    let mut number = mantissa;
    let mut left = exponent.clamp(-5_000, 5_000);
    while left != 0 {
        let step = left.clamp(-1_000, 1_000);
        number *= 2_f64.powi(i32::try_from(step).unwrap_or(0));
        left -= step;
    }
    number
}
