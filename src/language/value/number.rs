//! Numbers as text.

use bigdecimal::BigDecimal;

/// Returns whether a number can be worked with: between 10^-1000 and 10^4000, with at most 4000 digits.
pub(crate) fn is_sane(number: &BigDecimal) -> bool {
    let exponent = number.fractional_digit_count();
    let digits = i64::try_from(number.digits()).unwrap_or(i64::MAX);
    digits <= 4_000 && (-1_000..=4_000).contains(&exponent)
}

/// Returns how much work it is to look at all digits of a number; see [`super::Value::weight`].
pub(crate) fn weight(number: &BigDecimal) -> u64 {
    let (digits, exponent) = number.as_bigint_and_scale();
    1 + digits.bits() / 64 + exponent.unsigned_abs() / 16
}

/// Writes a number as HCL does: no exponent, no trailing zeros.
pub(crate) fn text(number: &BigDecimal) -> String {
    number.normalized().to_plain_string()
}

/// Parses a decimal number; `None` if the text is not one, or the number is too large to work with.
pub(crate) fn parse(text: &str) -> Option<BigDecimal> {
    // The library's parser also accepts `1_000`; the bound keeps an exponent from becoming gigabytes
    // of digits.
    if text.len() > 4_000 || text.contains('_') {
        return None;
    }
    text.parse().ok().filter(is_sane)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_without_exponent_or_trailing_zeros() {
        let show = |number: &str| text(&parse(number).unwrap());
        assert_eq!(show("1.50"), "1.5");
        assert_eq!(show("1e3"), "1000");
        assert_eq!(show("-0.0"), "0");
        assert_eq!(show("18446744073709551616"), "18446744073709551616");
        assert_eq!(parse("1_0"), None);
        assert_eq!(parse("1e999999999"), None);
    }
}
