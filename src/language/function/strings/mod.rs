//! String functions. What a reader sees as one character counts as one.

mod case;

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use super::arguments::{Arguments, FunctionError};
use super::{Function, patterns};
use crate::language::value::Value;

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns a string without the line breaks at its end.
    chomp(str: string) -> string = Eager(|arguments| {
        Ok(Value::normal(
            arguments.text(0).trim_end_matches(['\r', '\n']),
        ))
    }),
        r#"chomp("hello\n")"# => r#""hello""#;
    /// Returns whether a string ends with another.
    endswith(str: string, suffix: string) -> bool = Eager(|arguments| {
        Ok(Value::Bool(
            arguments.text(0).ends_with(&**arguments.text(1)),
        ))
    }),
        r#"endswith("hello", "lo")"# => "true";
    /// Returns a string with spaces at the start of every line but the first.
    indent(spaces: number, str: string) -> string = Eager(indent),
        r#"indent(2, "a\nb")"# => r#""a\n  b""#;
    /// Returns the elements of one or more lists as one string, with a separator between them.
    join(separator: string, ..lists: list(string)) -> string = Eager(join),
        r#"join(", ", ["a", "b"])"# => r#""a, b""#;
    /// Returns a string in lower case.
    lower(str: string) -> string
        = Eager(|arguments| Ok(Value::normal(&case::lower(arguments.text(0))))),
        r#"lower("Hello")"# => r#""hello""#;
    /// Returns a string with all occurrences of another replaced. If the second argument is between
    /// slashes, it is a regular expression, and `$1` or `${name}` in the third stands for what a
    /// group matches.
    replace(str: string, substr: string, replace: string) -> string = Eager(replace),
        r#"replace("a+b", "+", "-")"# => r#""a-b""#;
    /// Returns the parts of a string between the occurrences of a separator.
    split(separator: string, str: string) -> list(string) = Eager(split),
        r#"split(",", "a,b")"# => r#"["a","b"]"#;
    /// Returns whether a string begins with another.
    startswith(str: string, prefix: string) -> bool = Eager(|arguments| {
        Ok(Value::Bool(
            arguments.text(0).starts_with(&**arguments.text(1)),
        ))
    }),
        r#"startswith("hello", "he")"# => "true";
    /// Returns whether a string contains another.
    strcontains(str: string, substr: string) -> bool = Eager(|arguments| {
        Ok(Value::Bool(
            arguments.text(0).contains(&**arguments.text(1)),
        ))
    }),
        r#"strcontains("hello", "ell")"# => "true";
    /// Returns the characters of a string in reverse order.
    strrev(str: string) -> string = Eager(|arguments| {
        Ok(Value::normal(
            &arguments.text(0).graphemes(true).rev().collect::<String>(),
        ))
    }),
        r#"strrev("hello")"# => r#""olleh""#;
    /// Returns part of a string: the given number of characters, starting at an offset. A negative
    /// offset counts from the end, and a negative length means the rest of the string.
    substr(str: string, offset: number, length: number) -> string = Eager(substring),
        r#"substr("hello world", 1, 4)"# => r#""ello""#;
    /// Returns a string with the first letter of each word in upper case.
    title(str: string) -> string
        = Eager(|arguments| Ok(Value::normal(&case::title(arguments.text(0))))),
        r#"title("hello world")"# => r#""Hello World""#;
    /// Returns a string without the leading and trailing characters that occur in another string.
    trim(str: string, cutset: string) -> string = Eager(|arguments| {
        let cut: BTreeSet<char> = arguments.text(1).chars().collect();
        Ok(Value::normal(
            arguments.text(0).trim_matches(|c| cut.contains(&c)),
        ))
    }),
        r#"trim("?!hello?!", "!?")"# => r#""hello""#;
    /// Returns a string without a prefix, if it begins with it.
    trimprefix(str: string, prefix: string) -> string = Eager(|arguments| {
        let whole = arguments.text(0);
        Ok(Value::normal(
            whole.strip_prefix(&**arguments.text(1)).unwrap_or(whole),
        ))
    }),
        r#"trimprefix("helloworld", "hello")"# => r#""world""#;
    /// Returns a string without leading and trailing white space.
    trimspace(str: string) -> string
        = Eager(|arguments| Ok(Value::normal(arguments.text(0).trim()))),
        r#"trimspace("  hello\n")"# => r#""hello""#;
    /// Returns a string without a suffix, if it ends with it.
    trimsuffix(str: string, suffix: string) -> string = Eager(|arguments| {
        let whole = arguments.text(0);
        Ok(Value::normal(
            whole.strip_suffix(&**arguments.text(1)).unwrap_or(whole),
        ))
    }),
        r#"trimsuffix("helloworld", "world")"# => r#""hello""#;
    /// Returns a string in upper case.
    upper(str: string) -> string
        = Eager(|arguments| Ok(Value::normal(&case::upper(arguments.text(0))))),
        r#"upper("Hello")"# => r#""HELLO""#;
};

/// Returns how many units of work a number of bytes of text counts as.
fn cost(bytes: usize) -> u64 {
    bytes as u64 / 8 + 1
}

fn indent(arguments: &Arguments) -> Result<Value, FunctionError> {
    let spaces = arguments.integer(0)?;
    let Ok(spaces) = usize::try_from(spaces) else {
        let problem = format!("this is {spaces}; it must not be negative");
        return Err(FunctionError::Argument(0, problem));
    };
    let lines = arguments.text(1);
    let breaks = lines.matches('\n').count();
    if breaks == 0 {
        return Ok(Value::normal(lines));
    }
    arguments.spend(cost(breaks.saturating_mul(spaces)))?;
    let indented = format!("\n{}", " ".repeat(spaces));
    Ok(Value::normal(&lines.replace('\n', &indented)))
}

fn join(arguments: &Arguments) -> Result<Value, FunctionError> {
    if arguments.len() < 2 {
        return Err(FunctionError::Call(
            "at least one list is needed".to_owned(),
        ));
    }
    let separator = arguments.text(0);
    let mut elements = Vec::new();
    let mut length = 0;
    for list in 1..arguments.len() {
        for (index, element) in arguments.items(list).iter().enumerate() {
            let Value::String(element) = element else {
                let problem = format!("its `[{index}]` is {}", element.type_name());
                return Err(FunctionError::Argument(list, problem));
            };
            length += element.len() + separator.len();
            elements.push(&**element);
        }
    }
    arguments.spend(cost(length))?;
    Ok(Value::normal(&elements.join(separator)))
}

fn replace(arguments: &Arguments) -> Result<Value, FunctionError> {
    let (whole, searched, replacement) = (arguments.text(0), arguments.text(1), arguments.text(2));
    if searched.len() > 1
        && let Some(pattern) = searched
            .strip_prefix('/')
            .and_then(|it| it.strip_suffix('/'))
    {
        return patterns::replace(arguments, pattern);
    }
    let occurrences = whole.matches(&**searched).count();
    arguments.spend(cost(occurrences.saturating_mul(replacement.len())))?;
    Ok(Value::normal(&whole.replace(&**searched, replacement)))
}

fn split(arguments: &Arguments) -> Result<Value, FunctionError> {
    let (separator, whole) = (arguments.text(0), arguments.text(1));
    if separator.is_empty() {
        arguments.spend(whole.len() as u64)?;
        let mut buffer = [0; 4];
        let characters = whole
            .chars()
            .map(|c| Value::normal(c.encode_utf8(&mut buffer)));
        return Ok(Value::list(characters));
    }
    arguments.spend(whole.matches(&**separator).count() as u64)?;
    Ok(Value::list(whole.split(&**separator).map(Value::normal)))
}

fn substring(arguments: &Arguments) -> Result<Value, FunctionError> {
    let whole = arguments.text(0);
    let mut offset = arguments.integer(1)?;
    let length = arguments.integer(2)?;
    if offset < 0 {
        let count = i64::try_from(whole.graphemes(true).count()).unwrap_or(i64::MAX);
        offset = offset.saturating_add(count).max(0);
    }
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let rest = whole.graphemes(true).skip(offset);
    let part: String = match usize::try_from(length) {
        Ok(length) => rest.take(length).collect(),
        Err(_) => rest.collect(),
    };
    Ok(Value::normal(&part))
}
