//! The values of expressions.
//!
//! Values follow the type system of Terraform: a tuple differs from a list, whose elements have one type, and an
//! object from a map.

mod collection;
mod convert;
mod hcl;
mod json;
mod number;
mod order;
mod types;
mod unify;

use std::sync::Arc;

use bigdecimal::BigDecimal;
use unicode_normalization::{UnicodeNormalization, is_nfc};

pub use self::collection::{Items, MAX_DEPTH, MAX_WEIGHT, ObjectEntries};
pub use self::convert::{ConversionError, convert};
pub use self::hcl::{attributes as hcl_attributes, key_text, to_hcl, to_hcl_file};
pub use self::json::to_json;
pub(crate) use self::number::{is_sane, parse as parse_number, text as number_text, weight};
pub(crate) use self::order::ByOrder;
pub use self::types::Type;
pub use self::unify::unify;

/// A value. It is cheap to clone: whole namespaces are passed around as values.
#[derive(Debug, Clone)]
pub enum Value {
    Null,
    /// `true` or `false`
    Bool(bool),
    Number(BigDecimal),
    /// Text, as it was written or read: file names on disk need not be in a Unicode normal form.
    String(Arc<str>),
    /// Elements that may have different types: `[1, "a"]`.
    Tuple(Items),
    /// Elements of one type.
    List(Items),
    /// Different elements of one type, in the order in which Terraform iterates over them.
    Set(Items),
    /// Attributes that may have different types: `{ a = 1, b = "x" }`.
    Object(ObjectEntries),
    /// Entries whose values have one type.
    Map(ObjectEntries),
}

impl Value {
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Value::String(text.into())
    }

    /// Makes a string in Unicode's normal form C: text that was cut or joined need not be in it.
    pub(crate) fn normal(text: &str) -> Self {
        Value::String(normal(&text.into()))
    }

    pub fn tuple(items: impl IntoIterator<Item = Value>) -> Self {
        Value::Tuple(items.into_iter().collect())
    }

    /// Makes a list. The elements must have one type.
    pub fn list(items: impl IntoIterator<Item = Value>) -> Self {
        Value::List(items.into_iter().collect())
    }

    /// Makes a set from elements in any order, without duplicates. The elements must have one type.
    pub fn set(items: impl IntoIterator<Item = Value>) -> Self {
        Value::Set(order::in_set(items).into_iter().collect())
    }

    pub fn object<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        Value::Object(entries.into_iter().collect())
    }

    /// Makes a map. The values must have one type.
    pub fn map<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        Value::Map(entries.into_iter().collect())
    }

    /// Returns the elements of a tuple, list or set.
    pub fn items(&self) -> Option<&Items> {
        match self {
            Value::Tuple(items) | Value::List(items) | Value::Set(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the elements of a tuple or list: what can be written as a list.
    pub fn sequence(&self) -> Option<&Items> {
        match self {
            Value::Tuple(items) | Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn entries(&self) -> Option<&ObjectEntries> {
        match self {
            Value::Object(entries) | Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the name of the type for a message: "a string", "null", ….
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a bool",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Tuple(_) | Value::List(_) => "a list",
            Value::Set(_) => "a set",
            Value::Object(_) => "an object",
            Value::Map(_) => "a map",
        }
    }

    /// Returns the type and as much of the value as fits in a message: "the string `"eu"`", "a list of
    /// 3 elements".
    pub fn description(&self) -> String {
        let count = |count: usize, what: &str| match count {
            0 => "nothing in it".to_owned(),
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        match self {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => format!("the bool `{value}`"),
            Value::Number(number) => format!("the number `{}`", shortened(&number_text(number))),
            Value::String(text) => format!("the string `{:?}`", shortened(text)),
            Value::Tuple(items) | Value::List(items) | Value::Set(items) => {
                format!(
                    "{} with {}",
                    self.type_name(),
                    count(items.len(), "element")
                )
            }
            Value::Object(entries) => {
                let names: Vec<String> =
                    entries.keys().take(4).map(|name| shortened(name)).collect();
                let more = if entries.len() > names.len() {
                    ", …"
                } else {
                    ""
                };
                match names.as_slice() {
                    [] => "an empty object".to_owned(),
                    _ => format!("an object with `{}`{more}", names.join("`, `")),
                }
            }
            Value::Map(entries) => format!(
                "a map with {}",
                count(entries.len(), "entry").replace("entrys", "entries")
            ),
        }
    }

    /// Converts to text as HCL does inside a template: strings, numbers and bools only.
    pub fn to_text(&self) -> Option<Arc<str>> {
        match self {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number_text(number).into()),
            Value::Bool(value) => Some(if *value { "true" } else { "false" }.into()),
            _ => None,
        }
    }

    /// Converts to a number as HCL operators do: numbers, and strings that contain one.
    pub fn to_number(&self) -> Option<BigDecimal> {
        match self {
            Value::Number(number) => Some(number.clone()),
            Value::String(text) => parse_number(text),
            _ => None,
        }
    }

    /// Converts to a bool as HCL operators do: bools, `"true"` and `"false"`, `"1"` and `"0"`.
    pub fn to_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            Value::String(text) => match &**text {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns how much work it is to look at the whole value, and how much memory it takes: about a unit
    /// for each element and for every eight bytes of text, and a few more for an entry of an object.
    pub fn weight(&self) -> u64 {
        match self {
            Value::Null | Value::Bool(_) => 1,
            Value::Number(number) => number::weight(number),
            Value::String(text) => 1 + text.len() as u64 / 8,
            Value::Tuple(items) | Value::List(items) | Value::Set(items) => items.weight(),
            Value::Object(entries) | Value::Map(entries) => entries.weight(),
        }
    }

    /// Returns how deeply collections are nested in the value; 0 if it is not a collection.
    pub fn depth(&self) -> u16 {
        match self {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
            Value::Tuple(items) | Value::List(items) | Value::Set(items) => items.depth(),
            Value::Object(entries) | Value::Map(entries) => entries.depth(),
        }
    }
}

/// Equality as `==` has it: without conversions, so a tuple never equals a list. Text is compared in
/// Unicode's normal form C.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Number(left), Value::Number(right)) => left == right,
            (Value::String(left), Value::String(right)) => is_same_text(left, right),
            (Value::Tuple(left), Value::Tuple(right))
            | (Value::List(left), Value::List(right))
            | (Value::Set(left), Value::Set(right)) => left == right,
            (Value::Object(left), Value::Object(right)) | (Value::Map(left), Value::Map(right)) => {
                left == right
            }
            _ => false,
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Number(number.into())
    }
}

fn is_same_text(left: &str, right: &str) -> bool {
    left == right || (!left.is_ascii() && !right.is_ascii() && left.nfc().eq(right.nfc()))
}

/// Returns text in Unicode's normal form C, which is what Terraform's functions see.
pub(crate) fn normal(text: &Arc<str>) -> Arc<str> {
    if is_nfc(text) {
        text.clone()
    } else {
        text.nfc().collect::<String>().into()
    }
}

/// Returns the start of a text that is too long for a message.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 48;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let start: String = text.chars().take(LONGEST - 1).collect();
    start + "…"
}
