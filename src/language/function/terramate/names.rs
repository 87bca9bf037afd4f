//! Names made from other names: `slug`, `unslug`, `joinlist`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::language::function::arguments::{Arguments, FunctionError};
use crate::language::value::{Value, normal};

pub(super) fn joinlist(arguments: &Arguments) -> Result<Value, FunctionError> {
    let separator = arguments.text(0);
    // The separator may be much longer than what it separates.
    let joints: u64 = arguments.items(1).iter().map(Value::weight).sum();
    arguments.spend(joints.saturating_mul(separator.len() as u64 / 8 + 1))?;
    let joined: Vec<Value> = arguments
        .items(1)
        .iter()
        .enumerate()
        .map(|(index, list)| {
            let wrong = |problem| FunctionError::Argument(1, format!("its `[{index}]` {problem}"));
            let items = list
                .items()
                .ok_or_else(|| wrong(format!("is {}; a list is needed", list.description())))?;
            let texts = items.iter().map(|item| {
                item.as_str().ok_or_else(|| {
                    let found = item.description();
                    wrong(format!("has {found} in it; strings are needed"))
                })
            });
            let texts: Vec<&str> = texts.collect::<Result<_, _>>()?;
            Ok(Value::string(texts.join(separator)))
        })
        .collect::<Result<_, FunctionError>>()?;
    Ok(Value::list(joined))
}

pub(super) fn slug(arguments: &Arguments) -> Result<Value, FunctionError> {
    each_text(arguments, |text| Ok(slug_of(text).into()))
}

pub(super) fn unslug(arguments: &Arguments) -> Result<Value, FunctionError> {
    let mut meant: BTreeMap<String, Vec<&Arc<str>>> = BTreeMap::new();
    for entry in arguments.items(1).iter() {
        let Value::String(text) = entry else {
            let problem = format!("it has {} in it; strings are needed", entry.description());
            return Err(FunctionError::Argument(1, problem));
        };
        meant.entry(compared(text)).or_default().push(text);
    }
    each_text(arguments, |text| {
        match meant.get(&compared(text)).map(Vec::as_slice) {
            None | Some([]) => Ok(text.clone()),
            Some([only]) => Ok((*only).clone()),
            Some([first, second, ..]) => {
                let slug = Value::String(text.clone()).description();
                let (first, second) = ((*first).clone(), (*second).clone());
                Err(FunctionError::Argument(
                    1,
                    format!(
                        "{slug} may be {} or {}",
                        Value::String(first).description(),
                        Value::String(second).description()
                    ),
                ))
            }
        }
    })
}

/// Applies a function to the first argument, which is a string or a list of strings.
fn each_text(
    arguments: &Arguments,
    convert: impl Fn(&Arc<str>) -> Result<Arc<str>, FunctionError>,
) -> Result<Value, FunctionError> {
    let needed = "a string or a list of strings is needed";
    match arguments.value(0) {
        Value::Null => Ok(Value::Null),
        Value::String(text) => Ok(Value::String(convert(text)?)),
        Value::Tuple(items) | Value::List(items) => {
            let converted = items.iter().enumerate().map(|(index, item)| match item {
                Value::String(text) => Ok(Value::String(convert(&normal(text))?)),
                other => {
                    let found = other.description();
                    let problem = format!("its `[{index}]` is {found}; {needed}");
                    Err(FunctionError::Argument(0, problem))
                }
            });
            Ok(Value::list(converted.collect::<Result<Vec<_>, _>>()?))
        }
        _ => Err(arguments.unfit(0, needed)),
    }
}

fn slug_of(text: &str) -> String {
    let lower = text.chars().map(|c| c.to_lowercase().next().unwrap_or(c));
    let kept = lower.map(|c| match c {
        'a'..='z' | '0'..='9' | '_' => c,
        _ => '-',
    });
    kept.collect()
}

/// Returns the form in which slugs are compared: runs of `-` count as one, and those at the end do not
/// count.
fn compared(text: &str) -> String {
    let mut compared = String::with_capacity(text.len());
    for c in slug_of(text).chars() {
        if c != '-' || !compared.ends_with('-') {
            compared.push(c);
        }
    }
    compared.truncate(compared.trim_end_matches('-').len());
    compared
}
