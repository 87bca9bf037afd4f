//! `hclencode` and `hcldecode`.

use crate::language::evaluate::{Call, EvalResult, EvalValue, NamePath, Namespaces, NoValue};
use crate::language::function::arguments::{Arguments, FunctionError, TextOrigin};
use crate::language::parse::parse_whole;
use crate::language::syntax::is_identifier;
use crate::language::value::{Value, to_hcl_file};
use crate::source::FileId;

pub(super) fn encode(arguments: &Arguments) -> Result<Value, FunctionError> {
    let value = arguments.value(0);
    let Some(entries) = value.entries() else {
        return Err(arguments.unfit(0, "an object is needed"));
    };
    // Each element has a line of its own, indented by two columns for each level.
    let indent = 1 + u64::from(value.depth()) / 4;
    arguments.spend(value.weight().saturating_mul(indent))?;
    arguments.spend(padding(value) / 8)?;
    for name in entries.keys() {
        if !is_identifier(name) {
            let name = Value::String(name.clone()).description();
            let problem = format!("its key is {name}, which cannot be the name of an attribute");
            return Err(FunctionError::Argument(0, problem));
        }
    }
    let entries = entries.iter().map(|(name, value)| (&**name, value));
    Ok(Value::string(to_hcl_file(entries)))
}

/// Returns how much space may be needed to align the values of objects.
fn padding(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Tuple(items) | Value::List(items) | Value::Set(items) => {
            let inner = items.iter().map(padding);
            inner.fold(0, u64::saturating_add)
        }
        Value::Object(entries) | Value::Map(entries) => {
            let width = entries.keys().map(|name| name.len() as u64).max();
            let own = width.unwrap_or(0).saturating_mul(entries.len() as u64);
            let inner = entries.values().map(padding);
            inner.fold(own, u64::saturating_add)
        }
    }
}

pub(super) fn decode(arguments: &Arguments) -> Result<Value, FunctionError> {
    let text = arguments.text(0);
    // The parser's tree is large for its text.
    arguments.spend(2 * text.len() as u64)?;
    let wrong = |none| arguments.wrong_text(none, text, "the text", TextOrigin::Argument);
    let body = parse_whole(FileId::UNPLACED, text).map_err(|it| wrong(NoValue::Wrong(it)))?;
    if let Some(block) = body.blocks.first() {
        let kind = &block.kind.text;
        let problem = format!("it has the block `{kind}`; only attributes are decoded");
        return Err(FunctionError::Argument(0, problem));
    }
    let decoded: Vec<(&str, Value)> = body
        .attributes
        .iter()
        .map(|attribute| {
            let value = arguments.call().evaluate_with(&attribute.value, &Nothing);
            Ok((&*attribute.name.text, value.map_err(wrong)?))
        })
        .collect::<Result<_, FunctionError>>()?;
    Ok(Value::object(decoded))
}

/// Neither names nor functions.
struct Nothing;

impl Namespaces for Nothing {
    fn get(&self, _path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        Ok(None)
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn call(&self, _call: &Call<'_>) -> EvalResult<Option<Value>> {
        Ok(None)
    }
}
