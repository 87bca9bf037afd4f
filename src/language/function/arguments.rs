//! The arguments of a call, converted to the types of the parameters, and their errors.

use std::sync::Arc;

use bigdecimal::{BigDecimal, ToPrimitive};

use super::{FileError, FileReader, Function, FunctionContext, Impure, Parameter, undecided};
use crate::diagnostic::{Code, Diagnostic, Label};
use crate::language::evaluate::{Call, EvalResult, NoValue, Unknown};
use crate::language::value::{ConversionError, Items, ObjectEntries, Value, convert, normal};
use crate::source::Span;

pub(super) struct Arguments<'a> {
    function: &'static Function,
    call: &'a Call<'a>,
    surroundings: &'a FunctionContext<'a>,
    values: Vec<Value>,
    spans: Vec<Span>,
}

/// The origin of the text that a function evaluates, which decides whether it may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextOrigin {
    /// It is the value of an argument, which may be secret.
    Argument,
    File,
}

pub(super) enum FunctionError {
    /// The argument at this position is wrong. The text follows "this is …;" or stands alone.
    Argument(usize, String),
    /// The arguments do not fit together, or refer to something missing.
    Call(String),
    NoValue(NoValue),
}

impl From<NoValue> for FunctionError {
    fn from(none: NoValue) -> Self {
        FunctionError::NoValue(none)
    }
}

impl<'a> Arguments<'a> {
    /// Converts the arguments to the types of the parameters; there are as many as the function takes.
    pub(super) fn new(
        function: &'static Function,
        call: &'a Call<'a>,
        surroundings: &'a FunctionContext<'a>,
        values: Vec<(Value, Span)>,
    ) -> EvalResult<Self> {
        let (values, spans) = values.into_iter().unzip();
        let mut arguments = Arguments {
            function,
            call,
            surroundings,
            values,
            spans,
        };
        for index in 0..arguments.values.len() {
            let value = &arguments.values[index];
            call.spend(value.weight())?;
            let converted = convert_argument(arguments.parameter(index), value);
            match converted {
                Ok(converted) => arguments.values[index] = converted,
                Err(problem) => {
                    let error = FunctionError::Argument(index, problem);
                    return Err(arguments.no_value(error));
                }
            }
        }
        Ok(arguments)
    }

    fn parameter(&self, index: usize) -> Parameter {
        let variadic = self.function.variadic;
        let parameter = self.function.parameters.get(index).copied().or(variadic);
        parameter.expect("the number of arguments has been checked")
    }

    pub(super) fn call(&self) -> &Call<'a> {
        self.call
    }

    pub(super) fn surroundings(&self) -> &FunctionContext<'a> {
        self.surroundings
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    pub(super) fn value(&self, index: usize) -> &Value {
        &self.values[index]
    }

    pub(super) fn text(&self, index: usize) -> &Arc<str> {
        match &self.values[index] {
            Value::String(text) => text,
            other => unreachable!("{} where the parameter is a string", other.type_name()),
        }
    }

    /// Returns the error of an argument that is none of what is needed.
    pub(super) fn unfit(&self, index: usize, needed: &str) -> FunctionError {
        let found = self.values[index].description();
        FunctionError::Argument(index, format!("this is {found}; {needed}"))
    }

    pub(super) fn number(&self, index: usize) -> &BigDecimal {
        match &self.values[index] {
            Value::Number(number) => number,
            other => unreachable!("{} where the parameter is a number", other.type_name()),
        }
    }

    /// Returns an argument whose parameter is a number, which must be whole and fit into 64 bits.
    pub(super) fn integer(&self, index: usize) -> Result<i64, FunctionError> {
        let number = self.number(index);
        let whole = number.is_integer().then(|| number.to_i64()).flatten();
        whole.ok_or_else(|| FunctionError::Argument(index, "a whole number is needed".to_owned()))
    }

    pub(super) fn items(&self, index: usize) -> &Items {
        let value = &self.values[index];
        value.items().unwrap_or_else(|| {
            unreachable!("{} where the parameter is a list or set", value.type_name())
        })
    }

    pub(super) fn entries(&self, index: usize) -> &ObjectEntries {
        let value = &self.values[index];
        value
            .entries()
            .unwrap_or_else(|| unreachable!("{} where the parameter is a map", value.type_name()))
    }

    /// Counts work done or about to be done, in elements or in eight bytes of text.
    pub(super) fn spend(&self, cost: u64) -> Result<(), FunctionError> {
        Ok(self.call.spend(cost)?)
    }

    pub(super) fn files(&self) -> Result<&dyn FileReader, FunctionError> {
        self.surroundings.files.ok_or_else(|| {
            FunctionError::Call(format!(
                "no files can be read in {}",
                self.surroundings.place
            ))
        })
    }

    /// Returns whether results must be the same each time, in a place where they may differ at all.
    pub(super) fn is_fixed(&self) -> Result<bool, FunctionError> {
        match self.surroundings.changing {
            Impure::Allowed => Ok(false),
            Impure::Fixed => Ok(true),
            Impure::Refused => Err(FunctionError::Call(format!(
                "its result differs from call to call, and values in {} may depend only on files",
                self.surroundings.place
            ))),
        }
    }

    /// Converts an error about a file to one about the argument that names the file.
    pub(super) fn file_error(&self, index: usize, error: FileError) -> FunctionError {
        match error {
            FileError::Wrong(problem) => FunctionError::Argument(index, problem),
            FileError::Unreadable(problem) => {
                let mut none = self.no_value(FunctionError::Argument(index, problem));
                if let NoValue::Wrong(diagnostic) = &mut none {
                    diagnostic.code = Code::Unreadable;
                }
                none.into()
            }
            FileError::Undecided { name, when } => undecided(self.call, name, when).into(),
        }
    }

    /// Returns why a text that the first argument contains or names has no value, reported at the argument:
    /// the text itself is not a configuration file that a diagnostic could point at.
    pub(super) fn wrong_text(
        &self,
        none: NoValue,
        text: &str,
        name: &str,
        origin: TextOrigin,
    ) -> FunctionError {
        let span = self.spans[0];
        let is_limit = matches!(&none, NoValue::Wrong(problem) if problem.code == Code::Limit);
        if origin == TextOrigin::Argument && self.call.is_sensitive() && !is_limit {
            return FunctionError::Argument(0, "its text is not valid".to_owned());
        }
        FunctionError::NoValue(match none {
            NoValue::Wrong(mut diagnostic) => {
                // Further labels would point into the text, whose lines cannot be shown.
                let label = diagnostic.labels.drain(..).next();
                let start = label.as_ref().map_or(0, |label| label.span.start);
                let line = line_of(text, start as usize);
                let text = match label.map(|label| label.text) {
                    Some(what) if !what.is_empty() => format!("line {line} of {name}: {what}"),
                    _ => format!("line {line} of {name}"),
                };
                diagnostic.labels.push(Label { span, text });
                NoValue::Wrong(diagnostic)
            }
            NoValue::Undecided(undecided) => {
                NoValue::Undecided(Box::new(Unknown { span, ..*undecided }))
            }
        })
    }

    /// Turns an error into a diagnostic at the right place.
    pub(super) fn no_value(&self, error: FunctionError) -> NoValue {
        let name = &self.call.name.text;
        let is_sensitive = self.call.is_sensitive();
        let secret =
            || "the reason is not shown, since it may contain a sensitive value".to_owned();
        let diagnostic = match error {
            FunctionError::NoValue(none) => return none,
            FunctionError::Argument(index, problem) => {
                let parameter = self.parameter(index).name;
                let message = format!("`{name}` cannot use its argument `{parameter}`");
                let problem = if is_sensitive { secret() } else { problem };
                Diagnostic::error(Code::WrongArguments, message).label(self.spans[index], problem)
            }
            FunctionError::Call(problem) => {
                let problem = if is_sensitive { secret() } else { problem };
                Diagnostic::error(Code::WrongArguments, format!("`{name}` failed"))
                    .label(self.call.name.span, problem)
            }
        };
        diagnostic.into()
    }
}

/// Returns the line of a text that contains a byte, counted from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    memchr::memchr_iter(b'\n', before).count() + 1
}

/// Converts an argument to the type of its parameter, and text to Unicode's normal form C.
fn convert_argument(parameter: Parameter, value: &Value) -> Result<Value, String> {
    if *value == Value::Null && !parameter.nullable {
        return Err("this is null".to_owned());
    }
    match convert(value, &parameter.kind.to_type()) {
        Ok(Value::String(text)) => Ok(Value::String(normal(&text))),
        Ok(value) => Ok(value),
        Err(ConversionError {
            path,
            wanted,
            found,
        }) => {
            let part = if path.is_empty() {
                "this".to_owned()
            } else {
                format!("its `{path}`")
            };
            Err(format!(
                "{part} is {}; {} is needed",
                found.description(),
                wanted.name()
            ))
        }
    }
}
