//! Values as YAML, byte for byte as Terraform writes it: the style of libyaml, with all text in quotes.

use super::{Arguments, FunctionError};
use crate::language::function::json::spend_digits;
use crate::language::value::{Value, number_text};

/// Where lines of text in quotes are broken at the next space.
const WIDTH: usize = 80;

/// The longest key that is written without `?`.
const LONGEST_KEY: usize = 128;

pub(in crate::language::function) fn encode(arguments: &Arguments) -> Result<Value, FunctionError> {
    let value = arguments.value(0);
    spend_digits(arguments, value)?;
    let mut writer = Writer {
        text: String::new(),
        column: 0,
        arguments,
    };
    writer.value(value, 0, NodePosition::Root)?;
    if writer.column > 0 {
        writer.put('\n');
    }
    // Without it, a scalar that stands alone could continue.
    if matches!(value, Value::Null | Value::Bool(_) | Value::Number(_)) {
        writer.text.push_str("...\n");
    }
    Ok(Value::string(writer.text))
}

#[derive(Clone, Copy, PartialEq)]
enum NodePosition {
    Root,
    /// After `key:`.
    Entry,
    /// After `-`, or after `:` in a line of its own.
    Item,
}

struct Writer<'a> {
    text: String,
    column: usize,
    arguments: &'a Arguments<'a>,
}

impl Writer<'_> {
    fn put(&mut self, c: char) {
        self.text.push(c);
        self.column = match c {
            '\n' | '\u{2028}' | '\u{2029}' => 0,
            _ => self.column + 1,
        };
    }

    fn put_all(&mut self, text: &str) {
        text.chars().for_each(|c| self.put(c));
    }

    /// Begins a line, unless this is one. Nesting makes the text much longer than the value.
    fn begin_line(&mut self, indent: usize) -> Result<(), FunctionError> {
        self.arguments.spend(1 + indent as u64 / 8)?;
        if self.column > 0 {
            self.put('\n');
        }
        for _ in 0..indent {
            self.put(' ');
        }
        Ok(())
    }

    /// Writes a value in a collection whose lines have this indentation.
    fn value(
        &mut self,
        value: &Value,
        indent: usize,
        place: NodePosition,
    ) -> Result<(), FunctionError> {
        let is_first_inline = place == NodePosition::Item;
        if place == NodePosition::Entry && is_scalar(value) {
            self.put(' ');
        }
        if let Some(items) = value.items().filter(|items| !items.is_empty()) {
            let indent = match place {
                // A list is not indented below its key.
                NodePosition::Root | NodePosition::Entry => indent,
                NodePosition::Item => indent + 2,
            };
            for (index, item) in items.iter().enumerate() {
                if index > 0 || !is_first_inline {
                    self.begin_line(indent)?;
                }
                self.put_all("- ");
                self.value(item, indent, NodePosition::Item)?;
            }
            return Ok(());
        }
        if let Some(entries) = value.entries().filter(|entries| !entries.is_empty()) {
            let indent = match place {
                NodePosition::Root => indent,
                NodePosition::Entry | NodePosition::Item => indent + 2,
            };
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 || !is_first_inline {
                    self.begin_line(indent)?;
                }
                if key.len() <= LONGEST_KEY && !key.contains(is_break) {
                    self.quoted(key, None)?;
                    self.put(':');
                    self.value(value, indent, NodePosition::Entry)?;
                } else {
                    self.put_all("? ");
                    self.string(key, indent + 2)?;
                    self.begin_line(indent)?;
                    self.put_all(": ");
                    self.value(value, indent, NodePosition::Item)?;
                }
            }
            return Ok(());
        }
        match value {
            Value::Null => self.put_all("null"),
            Value::Bool(value) => self.put_all(if *value { "true" } else { "false" }),
            Value::Number(number) => self.put_all(&number_text(number)),
            Value::String(text) => self.string(text, indent + 2)?,
            Value::Tuple(_) | Value::List(_) | Value::Set(_) => self.put_all("[]"),
            Value::Object(_) | Value::Map(_) => self.put_all("{}"),
        }
        Ok(())
    }

    fn string(&mut self, text: &str, indent: usize) -> Result<(), FunctionError> {
        if text.contains('\n') && is_block(text) {
            self.block(text, indent)
        } else {
            self.quoted(text, Some(indent))
        }
    }

    fn block(&mut self, text: &str, indent: usize) -> Result<(), FunctionError> {
        self.put('|');
        if text.starts_with([' ', '\n', '\u{2028}', '\u{2029}']) {
            self.put('2');
        }
        let mut last = text.chars().rev();
        match (last.next().is_some_and(is_break), last.next()) {
            (false, _) => self.put('-'),
            (true, None) => self.put('+'),
            (true, Some(before)) if is_break(before) => self.put('+'),
            (true, Some(_)) => {}
        }
        self.put('\n');
        let mut at_start = true;
        for c in text.chars() {
            if at_start && !is_break(c) {
                self.begin_line(indent)?;
            }
            at_start = is_break(c);
            self.put(c);
        }
        Ok(())
    }

    /// Writes text in double quotes. With an indentation, long lines are broken.
    fn quoted(&mut self, text: &str, indent: Option<usize>) -> Result<(), FunctionError> {
        self.put('"');
        let mut after_space = false;
        let mut characters = text.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            let is_space = c == ' ';
            if !is_printable(c) || is_break(c) || c == '"' || c == '\\' {
                self.put_all(&escape(c));
            } else if is_space
                && !after_space
                && at > 0
                && self.column > WIDTH
                && let Some(indent) = indent
                && let Some((_, next)) = characters.peek()
            {
                self.begin_line(indent)?;
                if *next == ' ' {
                    self.put('\\');
                }
            } else {
                self.put(c);
            }
            after_space = is_space;
        }
        self.put('"');
        Ok(())
    }
}

/// Returns whether a value is written on the line of its key.
fn is_scalar(value: &Value) -> bool {
    let is_list = value.items().is_some_and(|items| !items.is_empty());
    let is_map = value.entries().is_some_and(|entries| !entries.is_empty());
    !is_list && !is_map
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns whether a character needs no escape. Those beyond 16 bits get one.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}') && c != '\u{feff}'
}

/// Returns whether text can be written line by line.
fn is_block(text: &str) -> bool {
    let mut after_space = false;
    for c in text.chars() {
        if !is_printable(c) || (after_space && is_break(c)) {
            return false;
        }
        after_space = c == ' ';
    }
    !after_space
}

fn escape(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' | '\\' => c,
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        c => {
            let code = u32::from(c);
            return match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}
