//! YAML, as Terraform writes and reads it.

mod decode;
mod encode;
mod scalar;

use super::arguments::{Arguments, FunctionError};
use super::{Body, Function, Kind, Parameter};

pub(super) const YAMLDECODE: Function = Function {
    name: "yamldecode",
    parameters: &[Parameter::new("src", Kind::String)],
    variadic: None,
    returns: Kind::Any,
    description: "Returns the value that YAML text represents. The text must be a single document.",
    example: ("yamldecode(\"a: [1, yes]\")", "{\"a\":[1,true]}"),
    body: Body::Eager(decode::decode),
};

pub(super) const YAMLENCODE: Function = Function {
    name: "yamlencode",
    parameters: &[Parameter::nullable("value", Kind::Any)],
    variadic: None,
    returns: Kind::String,
    description: "Returns a value as YAML.",
    example: (
        "yamlencode({ a = [1, \"b\"] })",
        "\"\\\"a\\\":\\n- 1\\n- \\\"b\\\"\\n\"",
    ),
    body: Body::Eager(encode::encode),
};
