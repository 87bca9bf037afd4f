//! The types of values.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// Any type: that of `null`, and of the elements of an empty list.
    Any,
    Bool,
    Number,
    String,
    Tuple(Vec<Type>),
    List(Box<Type>),
    Set(Box<Type>),
    Object(BTreeMap<Arc<str>, Type>),
    Map(Box<Type>),
}

impl Type {
    /// Returns the name for a message: "a list", as [`super::Value::type_name`] has it.
    pub fn name(&self) -> &'static str {
        match self {
            Type::Any => "any value",
            Type::Bool => "a bool",
            Type::Number => "a number",
            Type::String => "a string",
            Type::Tuple(_) | Type::List(_) => "a list",
            Type::Set(_) => "a set",
            Type::Object(_) => "an object",
            Type::Map(_) => "a map",
        }
    }
}

/// Written as Terraform does: `list(string)`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Any => f.write_str("any"),
            Type::Bool => f.write_str("bool"),
            Type::Number => f.write_str("number"),
            Type::String => f.write_str("string"),
            Type::List(element) => write!(f, "list({element})"),
            Type::Set(element) => write!(f, "set({element})"),
            Type::Map(element) => write!(f, "map({element})"),
            Type::Tuple(types) => {
                let types: Vec<String> = types.iter().map(Type::to_string).collect();
                write!(f, "tuple([{}])", types.join(", "))
            }
            Type::Object(attributes) => {
                let attributes = attributes.iter();
                let written: Vec<String> = attributes
                    .map(|(name, own)| format!("{name} = {own}"))
                    .collect();
                write!(f, "object({{{}}})", written.join(", "))
            }
        }
    }
}
