//! Formats times.

use super::{Arguments, FunctionError, Moment};
use crate::language::value::Value;

pub(super) fn format_date(arguments: &Arguments) -> Result<Value, FunctionError> {
    let moment = super::moment(arguments, 1)?;
    let mut rest = &**arguments.text(0);
    let mut text = String::new();
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('\'') {
            rest = unquote(quoted, &mut text).ok_or_else(|| {
                let problem = "a single quote in this is not closed; write two for a quote itself";
                FunctionError::Argument(0, problem.to_owned())
            })?;
            continue;
        }
        let end = rest.find(|c| c != first).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        if !first.is_ascii_alphabetic() {
            text.push_str(run);
            continue;
        }
        let part = part(&moment, run).ok_or_else(|| {
            let problem = format!(
                "`{}` in this is not a part of a time; put literal text in single quotes",
                run.get(..16).unwrap_or(run)
            );
            FunctionError::Argument(0, problem)
        })?;
        text.push_str(&part);
    }
    Ok(Value::string(text))
}

/// Reads the text after a single quote up to the next one. Two of them represent one.
fn unquote<'t>(rest: &'t str, text: &mut String) -> Option<&'t str> {
    if let Some(rest) = rest.strip_prefix('\'') {
        text.push('\'');
        return Some(rest);
    }
    let mut rest = rest;
    loop {
        let (literal, after) = rest.split_once('\'')?;
        text.push_str(literal);
        match after.strip_prefix('\'') {
            Some(after) => {
                text.push('\'');
                rest = after;
            }
            None => return Some(after),
        }
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// Returns the part of a time that letters stand for.
fn part(moment: &Moment, letters: &str) -> Option<String> {
    let local = &moment.local;
    let year = local.year();
    let named = |names: &[&'static str], index: i8| -> Option<&'static str> {
        names.get(usize::try_from(index).ok()?).copied()
    };
    let month = || named(&MONTHS, local.month() - 1);
    let weekday = || named(&WEEKDAYS, local.weekday().to_sunday_zero_offset());
    let two = |number: i8| format!("{number:02}");
    let half = match local.hour() % 12 {
        0 => 12,
        hour => hour,
    };
    let is_morning = local.hour() < 12;
    Some(match letters {
        "YYYY" => format!("{year:04}"),
        "YY" => format!("{:02}", year % 100),
        "MMMM" => month()?.to_owned(),
        "MMM" => month()?.get(..3)?.to_owned(),
        "MM" => two(local.month()),
        "M" => local.month().to_string(),
        "DD" => two(local.day()),
        "D" => local.day().to_string(),
        "EEEE" => weekday()?.to_owned(),
        "EEE" => weekday()?.get(..3)?.to_owned(),
        "hh" => two(local.hour()),
        "h" => local.hour().to_string(),
        "HH" => two(half),
        "H" => half.to_string(),
        "AA" => if is_morning { "AM" } else { "PM" }.to_owned(),
        "aa" => if is_morning { "am" } else { "pm" }.to_owned(),
        "mm" => two(local.minute()),
        "m" => local.minute().to_string(),
        "ss" => two(local.second()),
        "s" => local.second().to_string(),
        "ZZZ" if moment.offset == 0 => "UTC".to_owned(),
        "Z" if moment.offset == 0 => "Z".to_owned(),
        "ZZZZ" | "ZZZ" => moment.offset(""),
        "ZZZZZ" | "Z" => moment.offset(":"),
        _ => return None,
    })
}
