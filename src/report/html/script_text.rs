//! Text inside a script element: JSON in which nothing can end the element or begin another one.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Which bytes are not written as they are. The first byte of U+2028 and U+2029 is among them.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = true;
        byte += 1;
    }
    let mut others: &[u8] = b"\"\\<>&\x7f\xe2";
    while let [first, rest @ ..] = others {
        special[*first as usize] = true;
        others = rest;
    }
    special
};

/// Writes text as part of a JSON string.
pub(super) fn write_text(out: &mut (impl Write + ?Sized), text: &str) -> io::Result<()> {
    let bytes = text.as_bytes();
    let (mut written, mut at) = (0, 0);
    while let Some(found) = bytes[at..]
        .iter()
        .position(|&byte| SPECIAL[usize::from(byte)])
    {
        at += found;
        let (escape, length): (&[u8], usize) = match bytes[at] {
            b'\n' => (b"\\n", 1),
            b'"' => (b"\\\"", 1),
            b'\\' => (b"\\\\", 1),
            b'\x1b' => (b"\\u001b", 1),
            0xe2 => match &bytes[at..at + 3] {
                b"\xe2\x80\xa8" => (b"\\u2028", 3),
                b"\xe2\x80\xa9" => (b"\\u2029", 3),
                _ => {
                    at += 3;
                    continue;
                }
            },
            byte => {
                out.write_all(&bytes[written..at])?;
                write!(out, "\\u{byte:04x}")?;
                at += 1;
                written = at;
                continue;
            }
        };
        out.write_all(&bytes[written..at])?;
        out.write_all(escape)?;
        at += length;
        written = at;
    }
    out.write_all(&bytes[written..])
}

/// Writes bytes as part of a JSON string, with U+FFFD in place of what is not UTF-8. Returns the
/// number of bytes at the end that are not written, since more of them may follow.
pub(super) fn write_bytes(out: &mut impl Write, mut bytes: &[u8]) -> io::Result<usize> {
    loop {
        let error = match str::from_utf8(bytes) {
            Ok(text) => {
                write_text(out, text)?;
                return Ok(0);
            }
            Err(error) => error,
        };
        let (valid, rest) = bytes.split_at(error.valid_up_to());
        write_text(out, str::from_utf8(valid).unwrap_or_default())?;
        let Some(length) = error.error_len() else {
            return Ok(rest.len());
        };
        write_replacement(out)?;
        bytes = &rest[length..];
    }
}

/// Writes the replacement for bytes that are not UTF-8.
pub(super) fn write_replacement(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"\\ufffd")
}

pub(super) fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = Serializer::with_formatter(out, InScript);
    Ok(value.serialize(&mut serializer)?)
}

struct InScript;

impl Formatter for InScript {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        write_text(writer, fragment)
    }
}

/// Writes text as the content of an element or a quoted attribute.
pub(super) fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}
