//! `tomlencode` and `tomldecode`.

use bigdecimal::ToPrimitive;
use toml::{Table, Value as Toml};

use crate::language::function::arguments::{Arguments, FunctionError, line_of};
use crate::language::value::{Value, parse_number};

pub(super) fn encode(arguments: &Arguments) -> Result<Value, FunctionError> {
    let value = arguments.value(0);
    let Some(entries) = value.entries() else {
        return Err(arguments.unfit(0, "an object is needed"));
    };
    // The heading of each table repeats the names of those around it.
    let repeated = 1 + u64::from(value.depth());
    arguments.spend(value.weight().saturating_mul(repeated))?;
    let wrong = |problem: String| FunctionError::Argument(0, problem);
    let table = table(entries.iter().map(|(key, value)| (&**key, value))).map_err(wrong)?;
    let written = toml::to_string(&table)
        .map_err(|error| wrong(format!("this cannot be written: {error}")))?;
    Ok(Value::string(written))
}

fn table<'v>(entries: impl Iterator<Item = (&'v str, &'v Value)>) -> Result<Table, String> {
    let entries = entries.filter(|(_, value)| **value != Value::Null);
    let written = entries.map(|(key, value)| {
        let below = |problem| format!("its `{key}`: {problem}");
        Ok((key.to_owned(), to_toml(value).map_err(below)?))
    });
    written.collect()
}

fn to_toml(value: &Value) -> Result<Toml, String> {
    Ok(match value {
        Value::Null => return Err("TOML has no null that could be in a list".to_owned()),
        Value::Bool(value) => Toml::Boolean(*value),
        Value::String(text) => Toml::String(text.to_string()),
        Value::Number(number) => {
            let whole = number.is_integer().then(|| number.to_i64()).flatten();
            let float = || number.to_f64().filter(|float| float.is_finite());
            match (whole, number.is_integer()) {
                (Some(whole), _) => Toml::Integer(whole),
                (None, false) => Toml::Float(float().ok_or_else(|| too_large(value))?),
                (None, true) => return Err(too_large(value)),
            }
        }
        Value::Tuple(items) | Value::List(items) | Value::Set(items) => {
            Toml::Array(items.iter().map(to_toml).collect::<Result<_, _>>()?)
        }
        Value::Object(entries) | Value::Map(entries) => {
            Toml::Table(table(entries.iter().map(|(key, value)| (&**key, value)))?)
        }
    })
}

fn too_large(value: &Value) -> String {
    format!("{} is too large for TOML", value.description())
}

pub(super) fn decode(arguments: &Arguments) -> Result<Value, FunctionError> {
    let text = arguments.text(0);
    // The parser's tree is large for its text.
    arguments.spend(2 * text.len() as u64)?;
    let wrong = |problem: String| FunctionError::Argument(0, problem);
    let table: Table = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = line_of(text, start);
        let what = error.message().replace('\n', "; ");
        wrong(format!("line {line} of the text: {what}"))
    })?;
    from_toml(Toml::Table(table)).map_err(wrong)
}

fn from_toml(toml: Toml) -> Result<Value, String> {
    Ok(match toml {
        Toml::String(text) => Value::string(text),
        Toml::Integer(number) => Value::Number(number.into()),
        Toml::Float(number) => {
            let exact = parse_number(&number.to_string());
            Value::Number(
                exact.ok_or_else(|| format!("`{number}` is not a number that has a value here"))?,
            )
        }
        Toml::Boolean(value) => Value::Bool(value),
        Toml::Datetime(time) => Value::string(time.to_string()),
        Toml::Array(items) => {
            let items: Vec<Value> = items.into_iter().map(from_toml).collect::<Result<_, _>>()?;
            Value::tuple(items)
        }
        Toml::Table(table) => {
            let entries = table
                .into_iter()
                .map(|(key, toml)| Ok((key, from_toml(toml)?)));
            Value::object(entries.collect::<Result<Vec<_>, String>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_value() {
        let number = |text: &str| Value::Number(parse_number(text).unwrap());
        assert_eq!(to_toml(&number("3")), Ok(Toml::Integer(3)));
        assert_eq!(to_toml(&number("0.1")), Ok(Toml::Float(0.1)));
        assert!(to_toml(&number("9223372036854775808")).is_err());
        assert_eq!(from_toml(Toml::Float(0.1)), Ok(number("0.1")));
        assert!(from_toml(Toml::Float(f64::NAN)).is_err());
    }
}
