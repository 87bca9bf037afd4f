//! Functions for maps and objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{element_type, entries, sequence};
use crate::language::function::arguments::{Arguments, FunctionError};
use crate::language::value::{ObjectEntries, Type, Value, convert};

pub(super) fn keys(arguments: &Arguments) -> Result<Value, FunctionError> {
    let map = arguments.value(0);
    let keys = entries(0, map)?.keys().cloned().map(Value::String);
    Ok(match map {
        Value::Object(_) => Value::tuple(keys),
        _ => Value::list(keys),
    })
}

pub(super) fn values(arguments: &Arguments) -> Result<Value, FunctionError> {
    let map = arguments.value(0);
    let values = entries(0, map)?.values().cloned();
    Ok(match map {
        Value::Object(_) => Value::tuple(values),
        _ => Value::list(values),
    })
}

/// The default is converted to the type of the map's values; that must be possible even if it is not
/// used.
pub(super) fn lookup(arguments: &Arguments) -> Result<Value, FunctionError> {
    if arguments.len() > 3 {
        let text = "two or three arguments are needed".to_owned();
        return Err(FunctionError::Argument(3, text));
    }
    let map = arguments.value(0);
    let entries = entries(0, map)?;
    let key = arguments.text(1);
    let default = match (map, arguments.values().get(2)) {
        (Value::Map(_), Some(default)) => {
            let element = element_type(entries.values());
            let converted = convert(default, &element).map_err(|_| {
                let text = format!(
                    "this is {}; the values of the map have another type: {element}",
                    default.description()
                );
                FunctionError::Argument(2, text)
            });
            Some(converted?)
        }
        (_, default) => default.cloned(),
    };
    let value = entries.get(key).cloned().or(default);
    value.ok_or_else(|| {
        let text = "the map has no such key, and no default is given".to_owned();
        FunctionError::Argument(1, text)
    })
}

/// Maps of one type give a map, anything else an object.
pub(super) fn merge(arguments: &Arguments) -> Result<Value, FunctionError> {
    let mut merged: BTreeMap<Arc<str>, Value> = BTreeMap::new();
    let mut types = Vec::new();
    for (index, value) in arguments.values().iter().enumerate() {
        if *value == Value::Null {
            continue;
        }
        let entries = entries(index, value)?;
        arguments.spend(entries.len() as u64)?;
        merged.extend(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        if let Value::Map(_) = value {
            types.push(Type::of(value));
        }
    }
    let is_map = types.len() == arguments.len() && types.windows(2).all(|it| it[0] == it[1]);
    Ok(if is_map && !types.is_empty() {
        Value::Map(merged.into())
    } else {
        Value::Object(merged.into())
    })
}

pub(super) fn transpose(arguments: &Arguments) -> Result<Value, FunctionError> {
    let mut transposed: BTreeMap<Arc<str>, Vec<Value>> = BTreeMap::new();
    for (key, list) in arguments.entries(0).iter() {
        let Some(items) = list.items() else {
            let text = format!("its `.{key}` is null; a list is needed");
            return Err(FunctionError::Argument(0, text));
        };
        arguments.spend(items.len() as u64 * (1 + key.len() as u64 / 8))?;
        for (at, item) in items.iter().enumerate() {
            let Value::String(text) = item else {
                let text = format!("its `.{key}[{at}]` is null; a string is needed");
                return Err(FunctionError::Argument(0, text));
            };
            let keys = transposed.entry(text.clone()).or_default();
            keys.push(Value::String(key.clone()));
        }
    }
    let entries = transposed.into_iter();
    Ok(Value::map(
        entries.map(|(text, keys)| (text, Value::list(keys))),
    ))
}

pub(super) fn zip(arguments: &Arguments) -> Result<Value, FunctionError> {
    let keys = arguments.items(0);
    let list = arguments.value(1);
    let values = sequence(1, list)?;
    if keys.len() != values.len() {
        return Err(FunctionError::Argument(
            1,
            format!(
                "as many values as keys are needed: there are {} values for {} keys",
                values.len(),
                keys.len()
            ),
        ));
    }
    let mut entries: BTreeMap<Arc<str>, Value> = BTreeMap::new();
    for (at, (key, value)) in keys.iter().zip(values.iter()).enumerate() {
        let Value::String(key) = key else {
            let text = format!("its `[{at}]` is null; a string is needed");
            return Err(FunctionError::Argument(0, text));
        };
        entries.insert(key.clone(), value.clone());
    }
    let entries = ObjectEntries::from(entries);
    Ok(match list {
        Value::Tuple(_) => Value::Object(entries),
        _ => Value::Map(entries),
    })
}
