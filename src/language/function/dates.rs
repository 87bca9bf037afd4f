//! Functions for dates and times, which are text in the format of RFC 3339.

mod format;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

use super::Function;
use super::arguments::{Arguments, FunctionError};
use crate::language::value::Value;

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns a time in another format. Letters such as `YYYY` stand for parts of the time; text
    /// in single quotes is literal.
    formatdate(format: string, time: string) -> string = Eager(format::format_date),
        r#"formatdate("DD MMM YYYY hh:mm", "2018-01-02T23:12:01Z")"# => r#""02 Jan 2018 23:12""#;
    /// Returns the time of a Terraform plan.
    plantimestamp() -> string = Refused("is the time of a plan, which only Terraform can evaluate"),
        "plantimestamp()" => "";
    /// Returns a time plus a duration such as `1h30m`, which may be negative.
    timeadd(timestamp: string, duration: string) -> string = Eager(add),
        r#"timeadd("2017-11-22T00:00:00Z", "10m")"# => r#""2017-11-22T00:10:00Z""#;
    /// Returns -1 if the first time is before the second, 1 if it is after it, and 0 if both are
    /// the same instant.
    timecmp(timestamp_a: string, timestamp_b: string) -> number = Eager(compare),
        r#"timecmp("2017-11-22T00:00:00Z", "2017-11-22T01:00:00Z")"# => "-1";
    /// Returns the current time in UTC, which differs each time.
    timestamp() -> string = Eager(now),
        r#"timecmp(timestamp(), "2020-01-01T00:00:00Z")"# => "1";
};

struct Moment {
    local: DateTime,
    /// The seconds by which local time is ahead of UTC.
    offset: i32,
}

impl Moment {
    /// Returns the offset from UTC: `+01:00`.
    fn offset(&self, separator: &str) -> String {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.unsigned_abs() / 60;
        format!("{sign}{:02}{separator}{:02}", minutes / 60, minutes % 60)
    }
}

/// Writes it in the format of RFC 3339, without fractions of a second.
impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let year = self.local.year();
        if year < 0 {
            f.write_str("-")?;
        }
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            year.unsigned_abs(),
            self.local.month(),
            self.local.day(),
            self.local.hour(),
            self.local.minute(),
            self.local.second()
        )?;
        match self.offset {
            0 => f.write_str("Z"),
            _ => f.write_str(&self.offset(":")),
        }
    }
}

fn moment(arguments: &Arguments, index: usize) -> Result<Moment, FunctionError> {
    parse_time(arguments.text(index))
        .ok_or_else(|| arguments.unfit(index, "a time such as `2018-01-02T23:12:01Z` is needed"))
}

/// Parses `2018-01-02T23:12:01.5+01:00`, where each part must have its exact position.
fn parse_time(text: &str) -> Option<Moment> {
    let (date, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix('T')?;
    let (time, rest) = rest.split_at_checked(8)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let mut rest = rest;
    let mut nanosecond = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction.find(|c: char| !c.is_ascii_digit())?;
        let (digits, zone) = fraction.split_at(end);
        if digits.is_empty() {
            return None;
        }
        // What is below a nanosecond does not count.
        let digits = digits.get(..9).unwrap_or(digits);
        nanosecond = format!("{digits:0<9}").parse().ok()?;
        rest = zone;
    }
    let offset = match rest.split_at_checked(1)? {
        ("Z", "") => 0,
        (sign @ ("+" | "-"), zone) => {
            let [hours, minutes] = numbers(zone, ':', [2, 2])?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = i32::from(hours) * 3_600 + i32::from(minutes) * 60;
            if sign == "-" { -seconds } else { seconds }
        }
        _ => return None,
    };
    let part = |number: i16| i8::try_from(number).ok();
    let date = Date::new(year, part(month)?, part(day)?).ok()?;
    let time = Time::new(part(hour)?, part(minute)?, part(second)?, nanosecond).ok()?;
    Some(Moment {
        local: date.to_datetime(time),
        offset,
    })
}

/// Parses numbers, each with the given number of digits.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[i16; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits)?;
        if !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

fn add(arguments: &Arguments) -> Result<Value, FunctionError> {
    let Moment { local, offset } = moment(arguments, 0)?;
    let Some(duration) = parse_duration(arguments.text(1)) else {
        let needed = "a duration such as `1h30m`, `-45s` or `500ms` is needed";
        return Err(arguments.unfit(1, needed));
    };
    match local.checked_add(duration) {
        Ok(local) => Ok(Value::string(Moment { local, offset }.to_string())),
        Err(_) => Err(FunctionError::Call(
            "the result is not between the years -9999 and 9999".to_owned(),
        )),
    }
}

/// Parses a duration as Go does, which counts in nanoseconds and has no unit above hours.
fn parse_duration(text: &str) -> Option<SignedDuration> {
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let whole = leading_digits(&mut rest);
        let fraction = match rest.strip_prefix('.') {
            Some(after) => {
                rest = after;
                leading_digits(&mut rest)
            }
            None => "",
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = rest.find(|c: char| c == '.' || c.is_ascii_digit());
        let (unit, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: i64 = if whole.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        total = total.checked_add(i128::from(whole) * unit)?;
        // More digits than these are below a nanosecond.
        let fraction = fraction.get(..18).unwrap_or(fraction);
        if !fraction.is_empty() {
            let digits = u32::try_from(fraction.len()).ok()?;
            let part: i64 = fraction.parse().ok()?;
            total = total.checked_add(i128::from(part) * unit / 10_i128.pow(digits))?;
        }
        if total > i128::from(i64::MAX) {
            return None;
        }
    }
    let nanoseconds = i64::try_from(total).ok()?;
    Some(SignedDuration::from_nanos(if is_negative {
        -nanoseconds
    } else {
        nanoseconds
    }))
}

/// Splits the digits off the start of a text.
fn leading_digits<'t>(text: &mut &'t str) -> &'t str {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    *text = rest;
    digits
}

fn compare(arguments: &Arguments) -> Result<Value, FunctionError> {
    let instant = |index| {
        let Moment { local, offset } = moment(arguments, index)?;
        let seconds = SignedDuration::from_secs(i64::from(offset));
        let since = local.duration_since(DateTime::constant(0, 1, 1, 0, 0, 0, 0));
        Ok::<_, FunctionError>(since - seconds)
    };
    let order = instant(0)?.cmp(&instant(1)?);
    Ok(Value::Number((order as i8).into()))
}

fn now(arguments: &Arguments) -> Result<Value, FunctionError> {
    let now = if arguments.is_fixed()? {
        Timestamp::UNIX_EPOCH
    } else {
        Timestamp::now()
    };
    let local = Offset::UTC.to_datetime(now);
    Ok(Value::string(Moment { local, offset: 0 }.to_string()))
}
