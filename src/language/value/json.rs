//! Values as JSON, byte for byte as Terraform writes it.

use super::{Value, number_text};

/// Writes a value as JSON on one line, keys in byte order, with the escapes that Go uses.
pub fn to_json(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::String(string) => write_string(string, text),
        Value::Tuple(items) | Value::List(items) | Value::Set(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(entries) | Value::Map(entries) => {
            text.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_string(key, text);
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
    }
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            // This makes the text safe in a web page and in a script.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => escape(c, text),
            c if u32::from(c) < 0x20 => escape(c, text),
            c => text.push(c),
        }
    }
    text.push('"');
}

fn escape(c: char, text: &mut String) {
    text.push_str(&format!("\\u{:04x}", u32::from(c)));
}
