//! YAML that every reader understands alike: old ones take `on`, `12:30` and `1_000` for something else
//! than text, so all text is in quotes.

use yaml_serde::{Mapping, Value};

/// Returns the text of a document.
pub(super) fn document(content: &Mapping) -> String {
    let mut text = String::new();
    entries(&mut text, content, 0, "");
    text
}

/// Writes the entries of a mapping; `first` stands before the first one.
fn entries(text: &mut String, mapping: &Mapping, indent: usize, first: &str) {
    for (number, (key, value)) in mapping.iter().enumerate() {
        let before = if number == 0 { first } else { "" };
        *text += &format!("{:indent$}{before}", "", indent = indent - before.len());
        *text += &self::key(key);
        text.push(':');
        after_key(text, value, indent + 2);
    }
}

/// Writes a value after its key or `-`, and ends the line.
fn after_key(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Mapping(mapping) if !mapping.is_empty() => {
            text.push('\n');
            entries(text, mapping, indent, "");
        }
        Value::Sequence(items) if !items.is_empty() => {
            text.push('\n');
            for item in items {
                match item {
                    Value::Mapping(mapping) if !mapping.is_empty() => {
                        entries(text, mapping, indent + 2, "- ");
                    }
                    _ => {
                        *text += &format!("{:indent$}-", "");
                        after_key(text, item, indent + 2);
                    }
                }
            }
        }
        Value::Tagged(tagged) => {
            *text += &format!(" {}", tagged.tag);
            after_key(text, &tagged.value, indent);
        }
        other => *text += &format!(" {}\n", scalar(other)),
    }
}

/// Returns a key, without quotes if no reader could take it for something else.
fn key(key: &Value) -> String {
    match key.as_str() {
        Some(name) if is_plain(name) => name.to_owned(),
        _ => scalar(key),
    }
}

fn is_plain(name: &str) -> bool {
    const NO_TEXT: [&str; 10] = [
        "y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan",
    ];
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '.')
        && characters.clone().next().is_some()
        && characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !NO_TEXT.contains(&name.trim_start_matches('.').to_ascii_lowercase().as_str())
        && !name.eq_ignore_ascii_case(".inf")
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Sequence(_) => "[]".to_owned(),
        Value::Mapping(_) => "{}".to_owned(),
        Value::Tagged(tagged) => format!("{} {}", tagged.tag, scalar(&tagged.value)),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                quoted += &format!("\\u{:04x}", u32::from(c));
            }
            c if c.is_control() => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns whether all keys in a value are scalars: others cannot be written.
pub(super) fn has_scalar_keys(value: &Value) -> bool {
    match value {
        Value::Mapping(mapping) => mapping.iter().all(|(key, value)| {
            let is_scalar = !matches!(
                key,
                Value::Mapping(_) | Value::Sequence(_) | Value::Tagged(_)
            );
            is_scalar && has_scalar_keys(value)
        }),
        Value::Sequence(items) => items.iter().all(has_scalar_keys),
        Value::Tagged(tagged) => has_scalar_keys(&tagged.value),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_read_as_it_was_written() {
        let text = "
on: {push: ~}
script: ['a: b', \"12:30\", 'yes', \"x\\ty\\u2028\\u0085\\e\", '', '- a', 1, 1.5, true, ~]
nested: [[a, [b, {c: d, e: []}]], {}, []]
reference: !reference [.setup, script]
? 'a: b'
: |
  line
    another
1: one
.hidden: {.inf: 1, .nan: 2, n: 3}
";
        let Value::Mapping(content) = yaml_serde::from_str(text).unwrap() else {
            panic!("it is a mapping");
        };
        let written = document(&content);
        let read: Mapping = yaml_serde::from_str(&written).unwrap();
        assert_eq!(read, content, "{written}");
        insta::assert_snapshot!(written, @r#"
        "on":
          push: null
        script:
          - "a: b"
          - "12:30"
          - "yes"
          - "x\ty\u2028\u0085\u001b"
          - ""
          - "- a"
          - 1
          - 1.5
          - true
          - null
        nested:
          -
            - "a"
            -
              - "b"
              - "c": "d"
                "e": []
          - {}
          - []
        reference: !reference
          - ".setup"
          - "script"
        "a: b": "line\n  another\n"
        1: "one"
        .hidden:
          .inf: 1
          .nan: 2
          "n": 3
        "#);
    }
}
