//! Converts YAML to values.
//!
//! A library reads the text; this module decides the values of scalars and the cost limit of aliases.

use std::collections::BTreeMap;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};

use super::scalar::resolve;
use super::{Arguments, FunctionError};
use crate::language::function::base64;
use crate::language::value::{Value, normal};

const MAX_DEPTH: u16 = 100;

/// The prefix of the tags that are written `!!str`.
const CORE: &str = "tag:yaml.org,2002:";

pub(in crate::language::function) fn decode(arguments: &Arguments) -> Result<Value, FunctionError> {
    let text = arguments.text(0);
    check_characters(text)?;
    let last_line = text.rsplit(['\n', '\r']).next().unwrap_or_default();
    let mut decoder = Decoder {
        parser: Parser::new_from_str(text),
        arguments,
        open_end: (!last_line.trim().is_empty()).then(|| text.chars().count()),
        anchors: BTreeMap::new(),
        depth: 0,
    };
    decoder.document()
}

/// Refuses characters that YAML does not allow anywhere.
fn check_characters(text: &str) -> Decoded<()> {
    let is_wrong = |c: char| match c {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        c => c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'),
    };
    let Some(at) = text.find(is_wrong) else {
        return Ok(());
    };
    let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
    let problem = format!("this is not YAML: there is a control character in line {line}");
    Err(FunctionError::Argument(0, problem))
}

struct Decoder<'a> {
    parser: Parser<'a, StrInput<'a>>,
    arguments: &'a Arguments<'a>,
    /// The number of characters in the text, if its last line has no line end.
    open_end: Option<usize>,
    /// The values that have an anchor, by the number that the library gives it.
    anchors: BTreeMap<usize, Value>,
    depth: u16,
}

type Decoded<T = Value> = Result<T, FunctionError>;

/// Returns an error at a place in the text.
fn wrong<T>(at: Marker, problem: &str) -> Decoded<T> {
    Err(FunctionError::Argument(
        0,
        format!(
            "this YAML cannot be used: at line {}, column {}, {problem}",
            at.line(),
            at.col() + 1
        ),
    ))
}

impl<'a> Decoder<'a> {
    fn next(&mut self) -> Decoded<(Event<'a>, Span)> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => wrong(
                *error.marker(),
                &format!("the syntax is wrong: {}", error.info()),
            ),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn document(&mut self) -> Decoded {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::Nothing, _) => {}
                (Event::DocumentStart(_), _) => break,
                _ => {
                    let problem = "this has no document, only white space or comments";
                    return Err(FunctionError::Argument(0, problem.to_owned()));
                }
            }
        }
        let value = self.value()?;
        loop {
            match self.next()? {
                (Event::DocumentEnd | Event::Nothing, _) => {}
                (Event::StreamEnd, _) => return Ok(value),
                (_, span) => {
                    return wrong(span.start, "a second document begins; only one can be read");
                }
            }
        }
    }

    fn value(&mut self) -> Decoded {
        let (event, span) = self.next()?;
        self.value_of(event, span)
    }

    fn value_of(&mut self, event: Event<'a>, span: Span) -> Decoded {
        let at = span.start;
        let (value, anchor) = match event {
            Event::Alias(anchor) => {
                let Some(value) = self.anchors.get(&anchor) else {
                    return wrong(
                        at,
                        "an alias refers to a value that contains it, or to a key",
                    );
                };
                // A few aliases of aliases can represent a huge number of values.
                self.arguments.spend(value.weight())?;
                return Ok(value.clone());
            }
            Event::Scalar(text, style, anchor, tag) => {
                // The library adds a line end to the last line of a block if the text has none.
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let is_open = self.open_end.is_some_and(|end| span.end.index() >= end);
                let text = match text.strip_suffix('\n') {
                    Some(open) if is_block && is_open => open.into(),
                    _ => text,
                };
                (scalar(&text, style, tag.as_deref(), at)?, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                check_tag(tag.as_deref(), "seq", at)?;
                (self.nested(at, Self::sequence)?, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                check_tag(tag.as_deref(), "map", at)?;
                (self.nested(at, Self::mapping)?, anchor)
            }
            _ => return wrong(at, "a value is missing"),
        };
        // Aliases can nest values deeper than the text does.
        if value.depth() > MAX_DEPTH {
            return too_deep(at);
        }
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn nested(&mut self, at: Marker, read: fn(&mut Self) -> Decoded) -> Decoded {
        if self.depth == MAX_DEPTH {
            return too_deep(at);
        }
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn sequence(&mut self) -> Decoded {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::tuple(items)),
                (event, span) => items.push(self.value_of(event, span)?),
            }
        }
    }

    /// Reads a map. Of several entries with one key, the last one counts.
    fn mapping(&mut self) -> Decoded {
        let mut entries: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        loop {
            let (event, span) = self.next()?;
            let at = span.start;
            let key = match event {
                Event::MappingEnd => return Ok(Value::Object(entries.into())),
                Event::Scalar(text, _, _, None) if text == "<<" => {
                    let merged = self.value()?;
                    let Some(merged) = merged.entries() else {
                        return wrong(at, "`<<` needs a map or an alias of one");
                    };
                    self.arguments.spend(merged.len() as u64)?;
                    let merged = merged.iter();
                    entries.extend(merged.map(|(key, value)| (key.clone(), value.clone())));
                    continue;
                }
                Event::Scalar(text, style, _, tag) => scalar(&text, style, tag.as_deref(), at)?,
                Event::Alias(_) => self.value_of(event, span)?,
                _ => return wrong(at, "a list or map is a key; a string is needed"),
            };
            let Some(key) = key.to_text() else {
                let problem = format!("the key is {}; a string is needed", key.description());
                return wrong(at, &problem);
            };
            let value = self.value()?;
            entries.insert(key, value);
        }
    }
}

fn too_deep<T>(at: Marker) -> Decoded<T> {
    let problem = format!("values are nested more than {MAX_DEPTH} levels deep");
    wrong(at, &problem)
}

/// Returns the name of a tag that YAML itself defines.
fn core_name(tag: &Tag, at: Marker) -> Decoded<String> {
    let tag = format!("{}{}", tag.handle, tag.suffix);
    match tag.strip_prefix(CORE) {
        Some(name) => Ok(name.to_owned()),
        None => wrong(at, &format!("the tag `{tag}` is unknown")),
    }
}

fn check_tag(tag: Option<&Tag>, wanted: &str, at: Marker) -> Decoded<()> {
    match tag.map(|tag| core_name(tag, at)).transpose()? {
        Some(found) if found != wanted => {
            let problem = format!("the tag is `!!{found}`, but the value is `!!{wanted}`");
            wrong(at, &problem)
        }
        _ => Ok(()),
    }
}

/// Returns the value of a scalar.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Marker) -> Decoded {
    let tag = tag.map(|tag| core_name(tag, at)).transpose()?;
    let string = || Value::String(normal(&text.into()));
    let resolved = || match resolve(text) {
        Some(Value::String(text)) => Ok(Value::String(normal(&text))),
        Some(value) => Ok(value),
        None => wrong(at, "there is a number that is too large or not finite"),
    };
    let is_quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
    match tag.as_deref() {
        Some("str") => Ok(string()),
        Some("binary") if base64::bytes(text).is_some() => Ok(string()),
        Some("binary") => wrong(at, "the value with the tag `!!binary` is not Base64"),
        None | Some("null" | "bool" | "int" | "float" | "timestamp") if is_quoted => Ok(string()),
        // Terraform reads an empty block of text as null.
        None if style != ScalarStyle::Plain && !text.is_empty() => Ok(string()),
        None => resolved(),
        Some("null") => match resolved()? {
            Value::String(_) => Ok(Value::Null),
            value => Ok(value),
        },
        Some("timestamp") if resolved()? != string() => resolved(),
        Some(name @ ("bool" | "int" | "float" | "timestamp")) => match resolved()? {
            value @ (Value::Null | Value::Bool(_) | Value::Number(_)) => Ok(value),
            _ => wrong(
                at,
                &format!("{} has the tag `!!{name}`", string().description()),
            ),
        },
        Some(name) => wrong(at, &format!("the tag `!!{name}` is unknown for text")),
    }
}
