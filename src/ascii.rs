//! Bytes as ASCII text: in hexadecimal digits, or in the query of a URL.

/// Returns bytes in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| DIGITS[usize::from(digit)]).collect()
}

/// Parses two hexadecimal digits. Returns the byte and the rest of the text.
pub(crate) fn from_hex(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, rest) = text.split_at_checked(2)?;
    let digit = |at: usize| char::from(digits[at]).to_digit(16);
    let byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    Some((byte, rest))
}

/// Percent-encodes a text for the query of a URL. A space becomes `+`.
pub(crate) fn encode_query(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push('+'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Decodes percent-encoding and `+`. Returns `None` if a `%` is not followed by two hexadecimal digits.
pub(crate) fn decode_query(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match first {
            b'+' => (b' ', after),
            b'%' => from_hex(after)?,
            other => (other, after),
        };
        decoded.push(byte);
        rest = after;
    }
    Some(decoded)
}
