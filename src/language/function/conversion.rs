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
        name: "tobool",
        parameters: &[Parameter::nullable("v", Kind::Bool)],
        variadic: None,
        returns: Kind::Bool,
        description: "Returns a bool, or a string such as `\"true\"`, as a bool.",
        example: ("tobool(\"true\")", "true"),
        body: Body::Eager(as_converted),
    },
    Function {
        name: "tolist",
        parameters: &[Parameter::nullable("v", Kind::List(&Kind::Any))],
        variadic: None,
        returns: Kind::List(&Kind::Any),
        description: "Returns a set or a tuple as a list. Its elements are converted to one type.",
        example: ("tolist([\"a\", 1])", "[\"a\",\"1\"]"),
        body: Body::Eager(as_converted),
    },
    Function {
        name: "tomap",
        parameters: &[Parameter::nullable("v", Kind::Map(&Kind::Any))],
        variadic: None,
        returns: Kind::Map(&Kind::Any),
        description: "Returns an object as a map. Its values are converted to one type.",
        example: ("tomap({ a = 1, b = \"x\" })", "{\"a\":\"1\",\"b\":\"x\"}"),
        body: Body::Eager(as_converted),
    },
    Function {
        name: "tonumber",
        parameters: &[Parameter::nullable("v", Kind::Number)],
        variadic: None,
        returns: Kind::Number,
        description: "Returns a number, or a string such as `\"1.5\"`, as a number.",
        example: ("tonumber(\"1.50\")", "1.5"),
        body: Body::Eager(as_converted),
    },
    Function {
        name: "toset",
        parameters: &[Parameter::nullable("v", Kind::Set(&Kind::Any))],
        variadic: None,
        returns: Kind::Set(&Kind::Any),
        description: "Returns a list as a set: without duplicates and in ascending order. Its elements \
                      are converted to one type.",
        example: ("toset([\"b\", \"a\", \"b\"])", "[\"a\",\"b\"]"),
        body: Body::Eager(as_converted),
    },
    Function {
        name: "tostring",
        parameters: &[Parameter::nullable("v", Kind::String)],
        variadic: None,
        returns: Kind::String,
        description: "Returns a number or a bool as a string.",
        example: ("tostring(1.50)", "\"1.5\""),
        body: Body::Eager(as_converted),
    },
    Function {
        name: "try",
        parameters: &[],
        variadic: Some(Parameter::nullable("expressions", Kind::Any)),
        returns: Kind::Any,
        description: "Returns the first of the given expressions that can be evaluated without an error.",
        example: ("try(tonumber(\"a\"), 1)", "1"),
        body: Body::Lazy(first_without_error),
    },
];

/// Returns the argument, which has been converted to the type of its parameter.
#[expect(clippy::unnecessary_wraps, reason = "all functions have one type")]
fn as_converted(arguments: &Arguments) -> Result<Value, FunctionError> {
    Ok(arguments.value(0).clone())
}

/// An expression that is not decided yet may still fail.
fn can(call: &Call, _surroundings: &Surroundings) -> EvalResult {
    match call.evaluate(&call.arguments[0]) {
        Ok(_) => Ok(Value::Bool(true)),
        Err(NoValue::Wrong(diagnostic)) if is_answer(&diagnostic) => Ok(Value::Bool(false)),
        Err(none) => Err(none),
    }
}

/// Returns whether a failure may decide the result. It may not if it depends on how much has been
/// evaluated before, or on where in a cycle evaluation began. Nor may it if there is a file or a
/// variable whose value cannot be read.
fn is_answer(diagnostic: &Diagnostic) -> bool {
    !matches!(
        diagnostic.code,
        Code::Limit | Code::CircularValue | Code::Unreadable | Code::Encoding
    )
}

fn first_without_error(call: &Call, _surroundings: &Surroundings) -> EvalResult {
    let mut last = None;
    for argument in call.arguments {
        match call.evaluate(argument) {
            Err(NoValue::Wrong(diagnostic)) if is_answer(&diagnostic) => {
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
