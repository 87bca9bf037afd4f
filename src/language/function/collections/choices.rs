//! Functions that choose from collections or describe them.

use unicode_segmentation::UnicodeSegmentation;

use super::{items, sequence, wrong};
use crate::language::function::arguments::{Arguments, FunctionError};
use crate::language::value::{Type, Value, convert, unify};

#[expect(clippy::unnecessary_wraps, reason = "all functions have one type")]
pub(super) fn all_true(arguments: &Arguments) -> Result<Value, FunctionError> {
    let mut items = arguments.items(0).iter();
    let holds = items.all(|item| *item == Value::Bool(true));
    Ok(Value::Bool(holds))
}

#[expect(clippy::unnecessary_wraps, reason = "all functions have one type")]
pub(super) fn any_true(arguments: &Arguments) -> Result<Value, FunctionError> {
    let mut items = arguments.items(0).iter();
    let holds = items.any(|item| *item == Value::Bool(true));
    Ok(Value::Bool(holds))
}

/// The values get the type that all of them have in common, including those that are not returned.
pub(super) fn coalesce(arguments: &Arguments) -> Result<Value, FunctionError> {
    let values = arguments.values();
    let types: Vec<Type> = values.iter().map(Type::of).collect();
    let Some(common) = unify(&types) else {
        let text = "the arguments must have a common type".to_owned();
        return Err(FunctionError::Call(text));
    };
    for (index, value) in values.iter().enumerate() {
        let value = convert(value, &common).map_err(|_| wrong(index, value, common.name()))?;
        if value != Value::Null && value.as_str() != Some("") {
            return Ok(value);
        }
    }
    let text = "every argument is null or an empty string".to_owned();
    Err(FunctionError::Call(text))
}

pub(super) fn coalesce_list(arguments: &Arguments) -> Result<Value, FunctionError> {
    let mut first = None;
    for (index, value) in arguments.values().iter().enumerate() {
        if !sequence(index, value)?.is_empty() && first.is_none() {
            first = Some(value.clone());
        }
    }
    first.ok_or_else(|| FunctionError::Call("every list is empty".to_owned()))
}

pub(super) fn contains(arguments: &Arguments) -> Result<Value, FunctionError> {
    let items = items(0, arguments.value(0))?;
    Ok(Value::Bool(items.contains(arguments.value(1))))
}

pub(super) fn element(arguments: &Arguments) -> Result<Value, FunctionError> {
    let items = sequence(0, arguments.value(0))?;
    let index = arguments.integer(1)?;
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let index = index
        .checked_rem_euclid(length)
        .and_then(|it| usize::try_from(it).ok());
    let element = index.and_then(|it| items.get(it));
    element.cloned().ok_or_else(|| {
        let text = "this is empty, so it has no element to return".to_owned();
        FunctionError::Argument(0, text)
    })
}

pub(super) fn index(arguments: &Arguments) -> Result<Value, FunctionError> {
    let items = sequence(0, arguments.value(0))?;
    let wanted = arguments.value(1);
    let Some(index) = items.iter().position(|item| item == wanted) else {
        let text = format!("no element of the list equals {}", wanted.description());
        return Err(FunctionError::Argument(1, text));
    };
    Ok((index as u64).into())
}

pub(super) fn length(arguments: &Arguments) -> Result<Value, FunctionError> {
    let value = arguments.value(0);
    let length = match value {
        Value::String(text) => text.graphemes(true).count(),
        Value::Tuple(items) | Value::List(items) | Value::Set(items) => items.len(),
        Value::Object(entries) | Value::Map(entries) => entries.len(),
        _ => return Err(wrong(0, value, "a list, set, map, object or string")),
    };
    Ok((length as u64).into())
}

pub(super) fn one(arguments: &Arguments) -> Result<Value, FunctionError> {
    let list = arguments.value(0);
    match &**items(0, list)? {
        [] => Ok(Value::Null),
        [item] => Ok(item.clone()),
        _ => Err(wrong(0, list, "one with at most one element")),
    }
}
