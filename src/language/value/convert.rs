//! Conversions between types, as Terraform has them.

use super::types::Type;
use super::unify::unify;
use super::{Value, number_text};

#[derive(Debug, Clone, PartialEq)]
pub struct ConversionError {
    /// The path from the value to the part of it that is wrong: `[0].name`; empty for the value itself.
    pub path: String,
    pub wanted: Type,
    pub found: Value,
}

impl Type {
    pub fn of(value: &Value) -> Self {
        fn element<'v>(values: impl Iterator<Item = &'v Value>) -> Type {
            // Null has the type of the other elements.
            let values = values.filter(|value| **value != Value::Null);
            let types: Vec<Type> = values.map(Type::of).collect();
            unify(&types).unwrap_or(Type::Any)
        }
        match value {
            Value::Null => Type::Any,
            Value::Bool(_) => Type::Bool,
            Value::Number(_) => Type::Number,
            Value::String(_) => Type::String,
            Value::Tuple(items) => Type::Tuple(items.iter().map(Type::of).collect()),
            Value::List(items) => Type::List(Box::new(element(items.iter()))),
            Value::Set(items) => Type::Set(Box::new(element(items.iter()))),
            Value::Object(entries) => {
                let attributes = entries.iter();
                let typed = attributes.map(|(name, value)| (name.clone(), Type::of(value)));
                Type::Object(typed.collect())
            }
            Value::Map(entries) => Type::Map(Box::new(element(entries.values()))),
        }
    }
}

/// Converts a value, as Terraform does where a type is expected. `null` is a value of every type.
pub fn convert(value: &Value, wanted: &Type) -> Result<Value, ConversionError> {
    let wrong = || ConversionError {
        path: String::new(),
        wanted: wanted.clone(),
        found: value.clone(),
    };
    Ok(match (value, wanted) {
        (Value::Null, _) => Value::Null,
        (_, Type::Any) => value.clone(),
        (_, Type::Bool) => Value::Bool(value.to_bool().ok_or_else(wrong)?),
        (_, Type::Number) => Value::Number(value.to_number().ok_or_else(wrong)?),
        (Value::Number(number), Type::String) => Value::string(number_text(number)),
        (_, Type::String) => Value::String(value.to_text().ok_or_else(wrong)?),
        (_, Type::List(element)) => {
            let items = value.items().ok_or_else(wrong)?;
            Value::list(elements(items, element)?)
        }
        (_, Type::Set(element)) => {
            let items = value.items().ok_or_else(wrong)?;
            Value::set(elements(items, element)?)
        }
        (_, Type::Tuple(types)) => {
            let items = value
                .sequence()
                .filter(|items| items.len() == types.len())
                .ok_or_else(wrong)?
                .iter()
                .zip(types)
                .enumerate();
            let converted = items.map(|(index, (item, wanted))| {
                convert(item, wanted).map_err(|error| error.below(&format!("[{index}]")))
            });
            Value::Tuple(converted.collect::<Result<_, _>>()?)
        }
        (_, Type::Map(element)) => {
            let entries = value.entries().ok_or_else(wrong)?;
            let values: Vec<Value> = entries.values().cloned().collect();
            let element = element_type(&values, element).ok_or_else(wrong)?;
            let converted = entries.iter().map(|(key, value)| {
                let value = convert(value, &element);
                Ok((
                    key.clone(),
                    value.map_err(|error| error.below(&format!(".{key}")))?,
                ))
            });
            Value::Map(converted.collect::<Result<_, _>>()?)
        }
        (_, Type::Object(attributes)) => {
            let entries = value.entries().ok_or_else(wrong)?;
            let converted = attributes.iter().map(|(name, wanted)| {
                let value = entries.get(name).ok_or_else(wrong)?;
                let value = convert(value, wanted);
                Ok((
                    name.clone(),
                    value.map_err(|error| error.below(&format!(".{name}")))?,
                ))
            });
            Value::Object(converted.collect::<Result<_, _>>()?)
        }
    })
}

fn elements(items: &[Value], wanted: &Type) -> Result<Vec<Value>, ConversionError> {
    let element = element_type(items, wanted).ok_or_else(|| ConversionError {
        path: String::new(),
        wanted: Type::List(Box::new(wanted.clone())),
        found: Value::tuple(items.iter().cloned()),
    })?;
    let items = items.iter().enumerate();
    items
        .map(|(index, item)| {
            convert(item, &element).map_err(|error| error.below(&format!("[{index}]")))
        })
        .collect()
}

/// Returns the type that elements get: the wanted one or, if that may be any, the one they have in
/// common.
fn element_type(items: &[Value], wanted: &Type) -> Option<Type> {
    if *wanted != Type::Any {
        return Some(wanted.clone());
    }
    let types: Vec<Type> = items.iter().map(Type::of).collect();
    let all_null = || types.iter().all(|it| *it == Type::Any);
    unify(&types).filter(|common| *common != Type::Any || all_null())
}

impl ConversionError {
    fn below(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }
}
