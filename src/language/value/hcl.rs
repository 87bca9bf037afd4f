//! Values as HCL: objects with one entry per line; lists on one line for people, and with one element
//! per line in files.

use super::{Value, number_text};
use crate::language::syntax::is_identifier;
use crate::printable::needs_escape;

const INDENT: &str = "  ";

/// Writes a value as an HCL expression. Nothing in it can deceive a terminal.
pub fn to_hcl(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, Lists::OnOneLine, &mut text);
    text
}

/// Writes entries as the attributes of a file, formatted as `terraform fmt` does it. All names must be
/// identifiers.
pub fn to_hcl_file<'v>(entries: impl IntoIterator<Item = (&'v str, &'v Value)>) -> String {
    let mut text = String::new();
    let entries = entries.into_iter().map(|(name, value)| {
        let mut written = String::new();
        write(value, 0, Lists::OnLines, &mut written);
        (key_text(name), written)
    });
    write_entries(entries, "", &mut text);
    text
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lists {
    OnOneLine,
    /// With a line for each element.
    OnLines,
}

/// Writes a name as the key of an object: quoted unless it is an identifier.
pub fn key_text(name: &str) -> String {
    if is_identifier(name) {
        return name.to_owned();
    }
    let mut text = String::new();
    write_string(name, &mut text);
    text
}

fn write(value: &Value, depth: usize, lists: Lists, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::String(string) => write_string(string, text),
        Value::Tuple(items) | Value::List(items) | Value::Set(items) if lists == Lists::OnLines => {
            text.push_str("[\n");
            for item in items.iter() {
                text.push_str(&INDENT.repeat(depth + 1));
                write(item, depth + 1, lists, text);
                text.push_str(",\n");
            }
            text.push_str(&INDENT.repeat(depth));
            text.push(']');
        }
        Value::Tuple(items) | Value::List(items) | Value::Set(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                write(item, depth, lists, text);
            }
            text.push(']');
        }
        Value::Object(entries) | Value::Map(entries) if entries.is_empty() => text.push_str("{}"),
        Value::Object(entries) | Value::Map(entries) => {
            text.push_str("{\n");
            let entries = entries.iter().enumerate().map(|(index, (name, value))| {
                let mut written = String::new();
                write(value, depth + 1, lists, &mut written);
                // `{ for` would begin a `for` expression.
                if index == 0 && &**name == "for" {
                    return ("\"for\"".to_owned(), written);
                }
                (key_text(name), written)
            });
            write_entries(entries, &INDENT.repeat(depth + 1), text);
            text.push_str(&INDENT.repeat(depth));
            text.push('}');
        }
    }
}

/// Writes entries one after the other. Where neighbours have a line each, the signs between names and
/// values are aligned.
fn write_entries(entries: impl Iterator<Item = (String, String)>, indent: &str, text: &mut String) {
    let entries: Vec<(String, String)> = entries.collect();
    let is_line = |(_, value): &(String, String)| !value.contains('\n');
    let mut rest = entries.as_slice();
    while let Some(first) = rest.first() {
        let count = if is_line(first) {
            rest.iter().take_while(|entry| is_line(entry)).count()
        } else {
            1
        };
        let (aligned, others) = rest.split_at(count);
        let widths = aligned.iter().map(|(name, _)| name.chars().count());
        let width = widths.max().unwrap_or_default();
        for (name, value) in aligned {
            let gap = " ".repeat(width - name.chars().count());
            text.push_str(&format!("{indent}{name}{gap} = {value}\n"));
        }
        rest = others;
    }
}

/// Writes the attributes of a body, each line of them indented.
pub fn attributes<'v>(
    attributes: impl IntoIterator<Item = (&'v str, &'v Value)>,
    indent: &str,
) -> String {
    let mut text = String::new();
    let entries = attributes.into_iter().map(|(name, value)| {
        let written = to_hcl(value).replace('\n', &format!("\n{indent}"));
        (key_text(name), written)
    });
    write_entries(entries, indent, &mut text);
    text
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    let mut characters = string.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '$' | '%' if characters.peek() == Some(&'{') => text.extend([c, c]),
            c if needs_escape(c) => match u32::from(c) {
                code @ ..=0xffff => text.push_str(&format!("\\u{code:04x}")),
                code => text.push_str(&format!("\\U{code:08x}")),
            },
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_a_line_for_each_entry() {
        let inner = Value::object([("k", Value::from(1))]);
        let value = Value::object([
            ("a", Value::from(1)),
            (
                "b c",
                Value::tuple([Value::from(1), Value::object::<&str>([])]),
            ),
            ("list", Value::tuple([inner.clone()])),
            ("long_name", Value::Null),
            ("o", inner),
        ]);
        insta::assert_snapshot!(to_hcl(&value), @r#"
        {
          a     = 1
          "b c" = [1, {}]
          list = [{
            k = 1
          }]
          long_name = null
          o = {
            k = 1
          }
        }
        "#);
    }

    #[test]
    fn quoted_text_keeps_its_meaning() {
        for (text, written) in [
            ("a\"b\\c", r#""a\"b\\c""#),
            ("${x} %{y} $x 5%", r#""$${x} %%{y} $x 5%""#),
            ("a\nb\tc\r", r#""a\nb\tc\r""#),
            ("\u{1b}[31m\u{202e}é", r#""\u001b[31m\u202eé""#),
        ] {
            assert_eq!(to_hcl(&Value::string(text)), written);
        }
    }
}
