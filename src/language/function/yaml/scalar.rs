//! The meaning of YAML scalars in Terraform: the words of YAML 1.1, the numbers of YAML 1.2.

use jiff::civil::{Date, Time};

use crate::language::value::{Value, parse_number};

/// Returns the value of text without quotes; `None` if it is a number that is too large or not finite.
pub(super) fn resolve(text: &str) -> Option<Value> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => return None,
        _ => {
            if let Some((digits, radix)) = radix_digits(text) {
                let number = u128::from_str_radix(digits, radix).ok()?;
                return Some(Value::Number(number.into()));
            }
            if let Some(decimal) = decimal(text) {
                return parse_number(&decimal).map(Value::Number);
            }
            Value::string(timestamp(text).unwrap_or_else(|| text.to_owned()))
        }
    })
}

/// Returns the digits of `0x1F` or `0o17`, and their base.
fn radix_digits(text: &str) -> Option<(&str, u32)> {
    let (digits, radix) = match text.split_at_checked(2)? {
        ("0x", digits) => (digits, 16),
        ("0o", digits) => (digits, 8),
        _ => return None,
    };
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    is_number.then_some((digits, radix))
}

/// Returns the text of a decimal number in the form that every parser takes: `+.5` is `0.5`.
fn decimal(text: &str) -> Option<String> {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !is_digits(digits) {
                return None;
            }
            (mantissa, exponent)
        }
        None => (unsigned, "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    Some(format!("{sign}0{whole}.{fraction}0e{exponent}"))
}

/// Writes a date or a time in the format of RFC 3339.
fn timestamp(text: &str) -> Option<String> {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (text.get(..at)?, text.get(at..)?),
        None => (text, ""),
    };
    let [year, month, day] = numbers(date, '-')?;
    if date.find('-') != Some(4) {
        return None;
    }
    let date = Date::new(year, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    let Some(separator) = time.chars().next() else {
        return Some(format!("{date}T00:00:00Z"));
    };
    let time = time.get(1..)?;
    // Only times after a `T` have a zone.
    let (time, zone) = match (separator, time.find(['Z', '+', '-'])) {
        (' ', None) => (time, "Z"),
        ('T' | 't', Some(at)) => (time.get(..at)?, time.get(at..)?),
        _ => return None,
    };
    if zone != "Z" {
        let [hours, minutes] = numbers(zone.get(1..)?, ':')?;
        if zone.len() != 6 || hours > 23 || minutes > 59 {
            return None;
        }
    }
    let zone = match zone {
        "+00:00" | "-00:00" => "Z",
        zone => zone,
    };
    // Fractions of a second are dropped.
    let time = match time.split_once('.') {
        Some((time, fraction)) => {
            let is_number = fraction.bytes().all(|byte| byte.is_ascii_digit());
            (is_number && !fraction.is_empty()).then_some(time)?
        }
        None => time,
    };
    let [hour, minute, second] = numbers(time, ':')?;
    let part = |number: i16| i8::try_from(number).ok();
    let time = Time::new(part(hour)?, part(minute)?, part(second)?, 0).ok()?;
    Some(format!("{date}T{time}{zone}"))
}

/// Parses a year or numbers of one or two digits.
fn numbers<const N: usize>(text: &str, separator: char) -> Option<[i16; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for number in &mut numbers {
        let part = parts.next()?;
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        if part.len() > 4 || !is_number {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}
