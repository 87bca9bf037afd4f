//! Conversions between types, and fallbacks for failing expressions.

use super::arguments::{Arguments, FunctionError};
use super::{Function, FunctionContext};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{Call, EvalResult, NoValue};
use crate::language::value::Value;

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns whether an expression can be evaluated without an error.
    can(expression: nullable any) -> bool = Lazy(can),
        r#"can(tonumber("a"))"# => "false";
    /// Returns a bool, or a string such as `"true"`, as a bool.
    tobool(v: nullable bool) -> bool = Eager(as_converted),
        r#"tobool("true")"# => "true";
    /// Returns a set or a tuple as a list. Its elements are converted to one type.
    tolist(v: nullable list(any)) -> list(any) = Eager(as_converted),
        r#"tolist(["a", 1])"# => r#"["a","1"]"#;
    /// Returns an object as a map. Its values are converted to one type.
    tomap(v: nullable map(any)) -> map(any) = Eager(as_converted),
        r#"tomap({ a = 1, b = "x" })"# => r#"{"a":"1","b":"x"}"#;
    /// Returns a number, or a string such as `"1.5"`, as a number.
    tonumber(v: nullable number) -> number = Eager(as_converted),
        r#"tonumber("1.50")"# => "1.5";
    /// Returns a list as a set: without duplicates and in ascending order. Its elements are
    /// converted to one type.
    toset(v: nullable set(any)) -> set(any) = Eager(as_converted),
        r#"toset(["b", "a", "b"])"# => r#"["a","b"]"#;
    /// Returns a number or a bool as a string.
    tostring(v: nullable string) -> string = Eager(as_converted),
        "tostring(1.50)" => r#""1.5""#;
    /// Returns the first of the given expressions that can be evaluated without an error.
    try(..expressions: nullable any) -> any = Lazy(first_without_error),
        r#"try(tonumber("a"), 1)"# => "1";
};

/// Returns the argument, which has been converted to the type of its parameter.
#[expect(clippy::unnecessary_wraps, reason = "all functions have one type")]
fn as_converted(arguments: &Arguments) -> Result<Value, FunctionError> {
    Ok(arguments.value(0).clone())
}

/// An expression that is not decided yet may still fail.
fn can(call: &Call, _surroundings: &FunctionContext) -> EvalResult {
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

fn first_without_error(call: &Call, _surroundings: &FunctionContext) -> EvalResult {
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
