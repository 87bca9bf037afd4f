//! Values as OPA writes them into a text.

use std::collections::BTreeMap;
use std::fmt::Write;

use regorus::Value;

use super::numbers;
use super::order::{entries, sorted};

/// Writes a value as Rego has it; `None` if it, or a part of it, is undefined.
pub(super) fn write_value(text: &mut String, value: &Value) -> Option<()> {
    let list = |text: &mut String, items: &mut dyn Iterator<Item = &Value>, ends: [char; 2]| {
        text.push(ends[0]);
        for (index, item) in items.enumerate() {
            text.push_str(if index > 0 { ", " } else { "" });
            write_value(text, item)?;
        }
        text.push(ends[1]);
        Some(())
    };
    match value {
        Value::String(inner) => text.push_str(&quoted(inner)),
        Value::Number(_) => text.push_str(&numbers::written(value)?),
        Value::Array(items) => list(text, &mut items.iter(), ['[', ']'])?,
        Value::Set(items) if items.is_empty() => text.push_str("set()"),
        Value::Set(items) => list(text, &mut sorted(items.iter()).into_iter(), ['{', '}'])?,
        Value::Object(inner) => {
            text.push('{');
            for (index, (key, value)) in entries(inner.iter()).into_iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_value(text, key)?;
                text.push_str(": ");
                write_value(text, value)?;
            }
            text.push('}');
        }
        Value::Undefined => return None,
        scalar => text.push_str(&serde_json::to_string(scalar).ok()?),
    }
    Some(())
}

/// The function `json.marshal`, which has the escapes of Go.
pub(super) fn json(arguments: &[Value]) -> Option<Value> {
    let mut text = String::new();
    write_json(&mut text, &arguments[0])?;
    Some(text.into())
}

fn write_json(text: &mut String, value: &Value) -> Option<()> {
    let list = |text: &mut String, items: Vec<&Value>| {
        text.push('[');
        for (index, item) in items.into_iter().enumerate() {
            text.push_str(if index > 0 { "," } else { "" });
            write_json(text, item)?;
        }
        text.push(']');
        Some(())
    };
    match value {
        Value::String(inner) => write_json_string(text, inner),
        Value::Number(_) => text.push_str(&numbers::written(value)?),
        Value::Array(items) => list(text, items.iter().collect())?,
        Value::Set(items) => list(text, sorted(items.iter()))?,
        Value::Object(inner) => {
            // Keys become texts, and so may become equal.
            let mut fields = BTreeMap::new();
            for (key, value) in entries(inner.iter()) {
                let key = match key {
                    Value::String(key) => key.to_string(),
                    other => json(std::slice::from_ref(other))?
                        .as_string()
                        .ok()?
                        .to_string(),
                };
                fields.insert(key, value);
            }
            text.push('{');
            for (index, (key, value)) in fields.into_iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                write_json_string(text, &key);
                text.push(':');
                write_json(text, value)?;
            }
            text.push('}');
        }
        Value::Undefined => return None,
        scalar => text.push_str(&serde_json::to_string(scalar).ok()?),
    }
    Some(())
}

fn write_json_string(text: &mut String, inner: &str) {
    text.push('"');
    for character in inner.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}

/// Returns a text in quotes, with the escapes of Go.
pub(super) fn quoted(inner: &str) -> String {
    let mut text = "\"".to_owned();
    for character in inner.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '\u{7}' => text.push_str("\\a"),
            '\u{8}' => text.push_str("\\b"),
            '\u{b}' => text.push_str("\\v"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            _ if character.is_ascii_control() => {
                _ = write!(text, "\\x{:02x}", u32::from(character));
            }
            _ if character.is_control() => _ = write!(text, "\\u{:04x}", u32::from(character)),
            _ => text.push(character),
        }
    }
    text.push('"');
    text
}
