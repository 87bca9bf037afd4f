//! Conversions between types, and what to do where an expression fails.

use super::arguments::{Arguments, FunctionError};
use super::{Body, Function, Kind, Parameter, Surroundings};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{Call, EvalResult, NoValue};
use crate::language::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    Function {
        name: "can",
        parameters: &[Parameter::nullable("expression", Kind::Any)],
        variadic: None,
        returns: Kind::Bool,
        description: "Returns whether an expression can be evaluated without an error.",
        example: ("can(tonumber(\"a\"))", "false"),
        body: Body::Lazy(can),
    },
    Function {
        name: "tostring",
        parameters: &[Parameter::nullable("value", Kind::String)],
        variadic: None,
        returns: Kind::String,
        description: "Converts a number or a bool to a string.",
        example: ("tostring(1.50)", "\"1.5\""),
        body: Body::Eager(as_converted),
    },
    Function {
        name: "try",
        parameters: &[],
        variadic: Some(Parameter::nullable("expressions", Kind::Any)),
        returns: Kind::Any,
        description: "Returns the first of some expressions that can be evaluated without an error.",
        example: ("try(tonumber(\"a\"), 1)", "1"),
        body: Body::Lazy(first_without_error),
    },
];

/// Returns the argument, which has been converted to the type of its parameter.
#[allow(clippy::unnecessary_wraps, reason = "all functions have one type")]
fn as_converted(arguments: &Arguments) -> Result<Value, FunctionError> {
    Ok(arguments.value(0).clone())
}

/// An expression that is not decided yet may still fail.
fn can(call: &Call, _surroundings: &Surroundings) -> EvalResult {
    match call.evaluate(&call.arguments[0]) {
        Ok(_) => Ok(Value::Bool(true)),
        Err(NoValue::Wrong(diagnostic)) if diagnostic.code != Code::Limit => Ok(Value::Bool(false)),
        Err(none) => Err(none),
    }
}

fn first_without_error(call: &Call, _surroundings: &Surroundings) -> EvalResult {
    let mut last = None;
    for argument in call.arguments {
        match call.evaluate(argument) {
            Err(NoValue::Wrong(diagnostic)) if diagnostic.code != Code::Limit => {
                last = Some(diagnostic);
            }
            decided => return decided,
        }
    }
    let Some(last) = last else {
        let message = format!("`{}` needs an expression to try", call.name.text);
        let diagnostic = Diagnostic::error(Code::WrongArguments, message);
        return Err(diagnostic.label(call.name.span, "no argument").into());
    };
    let note = format!(
        "no expression before it in `{}` can be evaluated either",
        call.name.text
    );
    Err(if call.arguments.len() > 1 {
        last.note(note).into()
    } else {
        NoValue::Wrong(last)
    })
}
