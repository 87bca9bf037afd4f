//! `format` and `formatlist`, with Terraform's verbs.

mod number;
mod verb;

use unicode_segmentation::UnicodeSegmentation;

use self::verb::FormatVerb;
use super::Function;
use super::arguments::{Arguments, FunctionError};
use crate::language::value::{Value, to_json};

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns a string with verbs such as `%s`, `%d` and `%05.1f` replaced by the other arguments.
    format(format: string, ..args: nullable any) -> string = Eager(format_one),
        r#"format("%s-%03d", "web", 7)"# => r#""web-007""#;
    /// Returns a list of strings in the form that `format` returns: one from the first elements of
    /// the given lists, one from the second elements, and so on. Other arguments are the same for
    /// all.
    formatlist(format: string, ..args: nullable any) -> list(string) = Eager(format_each),
        r#"formatlist("%s-%d", ["a", "b"], 1)"# => r#"["a-1","b-1"]"#;
};

fn format_one(arguments: &Arguments) -> Result<Value, FunctionError> {
    let values: Vec<&Value> = arguments.values().iter().skip(1).collect();
    Ok(Value::normal(&formatted(arguments, &values)?))
}

fn format_each(arguments: &Arguments) -> Result<Value, FunctionError> {
    let values = &arguments.values()[1..];
    let mut count = None;
    for (index, items) in (1..).zip(values.iter().map(Value::items)) {
        let Some(items) = items else {
            continue;
        };
        let count = *count.get_or_insert(items.len());
        if items.len() != count {
            let problem = format!(
                "this has {} elements and a list before it {count}; lists of the same length are needed",
                items.len()
            );
            return Err(FunctionError::Argument(index, problem));
        }
    }
    let results: Result<Vec<Value>, FunctionError> = (0..count.unwrap_or(1))
        .map(|position| {
            let row: Vec<&Value> = values
                .iter()
                .map(|value| match value.items() {
                    Some(items) => &items[position],
                    None => value,
                })
                .collect();
            arguments.spend(row.len() as u64)?;
            Ok(Value::normal(&formatted(arguments, &row)?))
        })
        .collect();
    Ok(Value::list(results?))
}

/// Replaces the verbs of the first argument by values.
fn formatted(arguments: &Arguments, values: &[&Value]) -> Result<String, FunctionError> {
    let mut rest: &str = arguments.text(0);
    let mut result = String::new();
    arguments.spend(rest.len() as u64 / 8)?;
    let (mut next, mut used) = (1, 0);
    while let Some((before, after)) = rest.split_once('%') {
        result.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            result.push('%');
            rest = after;
            continue;
        }
        let wrong = |problem| FunctionError::Argument(0, problem);
        let (verb, after) = FormatVerb::parse(after).map_err(wrong)?;
        rest = after;
        let number = verb.argument.unwrap_or(next);
        next = number + 1;
        used = used.max(number);
        let Some(value) = values.get(number - 1) else {
            let problem = format!(
                "`{}` needs a value number {number}, and there {}",
                verb.written,
                match values.len() {
                    0 => "is none".to_owned(),
                    1 => "is one".to_owned(),
                    count => format!("are {count}"),
                }
            );
            return Err(wrong(problem));
        };
        let size = verb
            .width
            .unwrap_or(0)
            .saturating_add(verb.precision.unwrap_or(0));
        arguments.spend((size as u64).saturating_add(value.weight()))?;
        let written = write(&verb, value).map_err(|needed| {
            let problem = format!(
                "this is {}; `{}` needs {needed}",
                value.description(),
                verb.written
            );
            FunctionError::Argument(number, problem)
        })?;
        result.push_str(&written);
    }
    result.push_str(rest);
    if used < values.len() {
        let problem = match used {
            0 => "the format has no verb for this".to_owned(),
            _ => format!("the format has no verb for this; it uses only {used}"),
        };
        return Err(FunctionError::Argument(used + 1, problem));
    }
    Ok(result)
}

/// Writes a value, or says what the verb needs instead.
fn write(verb: &FormatVerb, value: &Value) -> Result<String, &'static str> {
    if verb.letter != 'v' && *value == Value::Null {
        return Err("a value that is not null");
    }
    match verb.letter {
        'v' => Ok(padded(
            verb,
            match value {
                Value::String(text) if !verb.has('#') => text.to_string(),
                Value::Number(number) if !verb.has('#') => number::general(number, None),
                value => to_json(value),
            },
        )),
        't' => match value.to_bool() {
            Some(value) => Ok(value.to_string()),
            None => Err("a bool"),
        },
        's' | 'q' => {
            let whole = value.to_text().ok_or("a string")?;
            let text = match verb.precision {
                None | Some(0) => whole.to_string(),
                Some(precision) => whole.graphemes(true).take(precision).collect(),
            };
            let text = if verb.letter == 'q' {
                to_json(&Value::string(text))
            } else {
                text
            };
            Ok(padded(verb, text))
        }
        letter => {
            let number = value.to_number().ok_or("a number")?;
            if !"bdoxX".contains(letter) {
                return Ok(number::float(verb, &number));
            }
            let (whole, scale) = number.normalized().into_bigint_and_scale();
            if scale > 0 {
                return Err("a whole number");
            }
            let zeros = u32::try_from(-scale).unwrap_or(u32::MAX).min(10_000);
            let ten = bigdecimal::num_bigint::BigInt::from(10);
            Ok(number::integer(verb, &(whole * ten.pow(zeros))))
        }
    }
}

/// Pads text to the width, counted in characters as a reader sees them.
fn padded(verb: &FormatVerb, text: String) -> String {
    let Some(width) = verb.width else {
        return text;
    };
    let missing = width.saturating_sub(text.graphemes(true).count());
    let padding = if verb.has('0') { "0" } else { " " }.repeat(missing);
    if verb.has('-') {
        text + &padding
    } else {
        padding + &text
    }
}
