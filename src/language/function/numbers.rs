//! Functions of numbers.

use bigdecimal::RoundingMode;

use super::arguments::{Arguments, FunctionError};
use super::{Body, Function, Kind, Parameter};
use crate::language::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    Function {
        name: "abs",
        parameters: &[Parameter::new("number", Kind::Number)],
        variadic: None,
        returns: Kind::Number,
        description: "Returns the distance of a number from zero.",
        example: ("abs(-12.4)", "12.4"),
        body: Body::Eager(|arguments| Ok(Value::Number(arguments.number(0).abs()))),
    },
    Function {
        name: "ceil",
        parameters: &[Parameter::new("number", Kind::Number)],
        variadic: None,
        returns: Kind::Number,
        description: "Returns the smallest whole number that is not below a number.",
        example: ("ceil(5.1)", "6"),
        body: Body::Eager(|arguments| Ok(rounded(arguments, RoundingMode::Ceiling))),
    },
    Function {
        name: "max",
        parameters: &[],
        variadic: Some(Parameter::new("numbers", Kind::Number)),
        returns: Kind::Number,
        description: "Returns the greatest of some numbers.",
        example: ("max(5, 12, 9)", "12"),
        body: Body::Eager(max),
    },
];

fn rounded(arguments: &Arguments, mode: RoundingMode) -> Value {
    Value::Number(arguments.number(0).with_scale_round(0, mode))
}

fn max(arguments: &Arguments) -> Result<Value, FunctionError> {
    let numbers = (0..arguments.len()).map(|index| arguments.number(index));
    match numbers.max() {
        Some(greatest) => Ok(Value::Number(greatest.clone())),
        None => Err(FunctionError::Call(
            "at least one number is needed".to_owned(),
        )),
    }
}
