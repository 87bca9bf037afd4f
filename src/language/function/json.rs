//! JSON. Numbers are exact, and nesting is bounded.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::arguments::{Arguments, FunctionError};
use crate::language::value::{Value, normal, parse_number, to_json};

pub(super) fn encode(arguments: &Arguments) -> Result<Value, FunctionError> {
    spend_digits(arguments, arguments.value(0))?;
    Ok(Value::string(to_json(arguments.value(0))))
}

/// Counts the digits of the numbers in a value, which its weight leaves out. `1e4000` has many.
pub(super) fn spend_digits(arguments: &Arguments, value: &Value) -> Result<(), FunctionError> {
    if let Value::Number(number) = value {
        let (_, scale) = number.as_bigint_and_exponent();
        return arguments.spend((number.digits() + scale.unsigned_abs()) / 8);
    }
    if let Some(items) = value.items() {
        return items
            .iter()
            .try_for_each(|item| spend_digits(arguments, item));
    }
    let entries = value
        .entries()
        .into_iter()
        .flat_map(|entries| entries.values());
    let mut entries = entries;
    entries.try_for_each(|value| spend_digits(arguments, value))
}

pub(super) fn decode(arguments: &Arguments) -> Result<Value, FunctionError> {
    let text = arguments.text(0);
    // Elements take much more memory than their text.
    let begins_element = |byte: &u8| matches!(byte, b',' | b':' | b'[' | b'{');
    arguments.spend(4 * text.bytes().filter(begins_element).count() as u64)?;
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
    };
    parser.document().map_err(|problem| {
        let before = text.get(..parser.at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        let problem = format!("this is not JSON: at line {line}, column {column}, {problem}");
        FunctionError::Argument(0, problem)
    })
}

/// Reads JSON text with exact numbers; `None` if it is none, or nested too deeply.
pub(crate) fn from_json(text: &str) -> Option<Value> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
    };
    parser.document().ok()
}

const MAX_DEPTH: usize = 100;

/// Reads JSON as RFC 8259 defines it. The available libraries read numbers as floating point.
struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

type Parsed<T> = Result<T, String>;

impl Parser<'_> {
    fn document(&mut self) -> Parsed<Value> {
        let value = self.value()?;
        self.skip_space();
        if self.at < self.text.len() {
            return Err("text follows the value".to_owned());
        }
        Ok(value)
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Consumes a character if it is next.
    fn take(&mut self, wanted: u8) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.at += 1;
        }
        is_next
    }

    fn expect(&mut self, wanted: u8) -> Parsed<()> {
        if self.take(wanted) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{}`", char::from(wanted))))
    }

    /// Says what is next, and what should be there.
    fn unexpected(&self, wanted: &str) -> String {
        match self.rest().chars().next() {
            None => format!("the text ends where {wanted} is needed"),
            Some(c) => format!("there is {c:?} where {wanted} is needed"),
        }
    }

    fn value(&mut self) -> Parsed<Value> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                let words = [
                    ("null", Value::Null),
                    ("true", Value::Bool(true)),
                    ("false", Value::Bool(false)),
                ];
                for (word, value) in words {
                    if self.rest().starts_with(word) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                Err(self.unexpected("a value"))
            }
        }
    }

    fn nested(&mut self, parse: fn(&mut Self) -> Parsed<Value>) -> Parsed<Value> {
        if self.depth == MAX_DEPTH {
            return Err(format!(
                "values are nested more than {MAX_DEPTH} levels deep"
            ));
        }
        self.depth += 1;
        self.at += 1;
        let value = parse(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Parsed<Value> {
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Value::tuple(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::tuple(items));
            }
            if !self.take(b',') {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
    }

    /// Reads an object. Of several entries with one key, the last one counts.
    fn object(&mut self) -> Parsed<Value> {
        let mut entries: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Value::Object(entries.into()));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a key in double quotes"));
            }
            let key = self.string()?;
            self.skip_space();
            self.expect(b':')?;
            let value = self.value()?;
            entries.insert(key, value);
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Object(entries.into()));
            }
            if !self.take(b',') {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }

    fn number(&mut self) -> Parsed<Value> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        let number = parse_number(text);
        number
            .map(Value::Number)
            .ok_or_else(|| "a number with too many digits ends".to_owned())
    }

    fn digits(&mut self) -> Parsed<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.unexpected("a digit"));
        }
        Ok(())
    }

    fn string(&mut self) -> Parsed<Arc<str>> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let special = |c: char| c == '"' || c == '\\' || u32::from(c) < 0x20;
            let end = rest.find(special).unwrap_or(rest.len());
            text.push_str(rest.get(..end).unwrap_or_default());
            self.at += end;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(normal(&text.into()));
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err("there is a control character in a string".to_owned()),
                None => return Err("the text ends within a string".to_owned()),
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        self.at += 1;
        let c = match self.peek() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.unit()?;
                // Half of a surrogate pair becomes a replacement character, as in Go.
                if (0xd800..0xdc00).contains(&high) && self.rest().starts_with("\\u") {
                    let before = self.at;
                    self.at += 1;
                    let low = self.unit()?;
                    if (0xdc00..0xe000).contains(&low) {
                        let c = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                        return Ok(char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    self.at = before;
                }
                return Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            _ => return Err(self.unexpected("an escape such as `\\n`")),
        };
        self.at += 1;
        Ok(c)
    }

    /// Reads `u` and the four hexadecimal digits that follow it.
    fn unit(&mut self) -> Parsed<u32> {
        self.at += 1;
        let digits = self.rest().get(..4).unwrap_or_default();
        let is_hexadecimal = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_hexdigit());
        let unit = u32::from_str_radix(digits, 16).ok();
        match unit.filter(|_| is_hexadecimal) {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => Err("four hexadecimal digits are needed after `\\u`".to_owned()),
        }
    }
}
