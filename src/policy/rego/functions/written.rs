//! Values as OPA writes them into a text.

use std::fmt::Write;

use regorus::Value;

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
        Value::Array(items) => list(text, &mut items.iter(), ['[', ']'])?,
        Value::Set(items) if items.is_empty() => text.push_str("set()"),
        Value::Set(items) => list(text, &mut items.iter(), ['{', '}'])?,
        Value::Object(entries) => {
            let mut entries: Vec<(&Value, &Value)> = entries.iter().collect();
            entries.sort();
            text.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
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
