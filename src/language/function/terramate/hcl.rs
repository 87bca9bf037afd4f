//! `hclencode` and `hcldecode`.

use hcl::expr::{Expression, Object, ObjectKey, Variable};
use hcl::structure::{Attribute, Body};
use hcl::{Identifier, format};

use crate::language::evaluate::{Answer, Call, EvalResult, NamePath, Namespaces, NoValue};
use crate::language::function::arguments::{Arguments, FunctionError, TextOrigin, line_of};
use crate::language::parse::parse_whole;
use crate::language::value::{Value, number_text};
use crate::source::FileId;

pub(super) fn encode(arguments: &Arguments) -> Result<Value, FunctionError> {
    let value = arguments.value(0);
    let Some(entries) = value.entries() else {
        let problem = format!("this is {}; an object is needed", value.description());
        return Err(FunctionError::Argument(0, problem));
    };
    // Each element has a line of its own, indented by two columns for each level.
    let indent = 1 + u64::from(value.depth()) / 4;
    arguments.spend(value.weight().saturating_mul(indent))?;
    let attributes = entries.iter().map(|(name, value)| {
        let key = Identifier::new(&**name).map_err(|_| {
            let name = Value::String(name.clone()).description();
            let problem = format!("its key is {name}, which cannot be the name of an attribute");
            FunctionError::Argument(0, problem)
        })?;
        Ok(Attribute::new(key, expression(value)))
    });
    let body: Body = attributes.collect::<Result<_, FunctionError>>()?;
    let written = format::to_string(&body)
        .map_err(|error| FunctionError::Argument(0, format!("this cannot be written: {error}")))?;
    Ok(Value::string(written))
}

fn expression(value: &Value) -> Expression {
    match value {
        Value::Null => Expression::Null,
        Value::Bool(value) => Expression::Bool(*value),
        // The numbers of the library are not exact, and a name is written as it is.
        Value::Number(number) => Variable::unchecked(number_text(number)).into(),
        Value::String(text) => Expression::String(text.to_string()),
        Value::Tuple(items) | Value::List(items) | Value::Set(items) => {
            Expression::Array(items.iter().map(expression).collect())
        }
        Value::Object(entries) | Value::Map(entries) => {
            let entries = entries.iter();
            let written = entries.map(|(key, value)| (object_key(key), expression(value)));
            Expression::Object(written.collect::<Object<_, _>>())
        }
    }
}

fn object_key(key: &str) -> ObjectKey {
    match Identifier::new(key) {
        Ok(name) => ObjectKey::Identifier(name),
        Err(_) => ObjectKey::Expression(Expression::String(key.to_owned())),
    }
}

pub(super) fn decode(arguments: &Arguments) -> Result<Value, FunctionError> {
    let text = arguments.text(0);
    // The parser's tree is large for its text.
    arguments.spend(2 * text.len() as u64)?;
    let wrong = |none: NoValue| {
        let start = match &none {
            NoValue::Wrong(problem) => problem.labels.first().map(|label| label.span.start),
            NoValue::Undecided(_) => None,
        };
        let line = line_of(text, start.unwrap_or(0) as usize);
        let place = format!("line {line} of the text");
        arguments.at_argument(0, none, &place, TextOrigin::Argument)
    };
    let body = parse_whole(FileId::UNPLACED, text).map_err(|it| wrong(NoValue::Wrong(it)))?;
    if let Some(block) = body.blocks.first() {
        let kind = &block.kind.text;
        let problem = format!("it has the block `{kind}`; only attributes are decoded");
        return Err(FunctionError::Argument(0, problem));
    }
    let decoded = body.attributes.iter().map(|attribute| {
        let value = arguments.call().evaluate_with(&attribute.value, &Nothing);
        Ok((&*attribute.name.text, value.map_err(wrong)?))
    });
    let decoded: Vec<(&str, Value)> = decoded.collect::<Result<_, FunctionError>>()?;
    Ok(Value::object(decoded))
}

/// Neither names nor functions.
struct Nothing;

impl Namespaces for Nothing {
    fn get(&self, _path: &NamePath<'_>) -> EvalResult<Option<Answer>> {
        Ok(None)
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn call(&self, _call: &Call<'_>) -> EvalResult<Option<Value>> {
        Ok(None)
    }
}
