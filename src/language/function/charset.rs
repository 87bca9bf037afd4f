//! Character sets by the names that IANA gives them.

use encoding_rs::{DecoderResult, EncoderResult, Encoding};

#[derive(Clone, Copy)]
pub(super) enum Charset {
    Ascii,
    /// The library lacks it: browsers treat its name as that of windows-1252.
    Latin1,
    /// With a byte order mark, and the high byte first.
    Utf16,
    Utf16Le,
    Utf16Be,
    Other(&'static Encoding),
}

pub(super) fn find(name: &str) -> Option<Charset> {
    Some(match name.to_ascii_lowercase().as_str() {
        "us-ascii" | "ascii" | "us" | "ansi_x3.4-1968" | "iso646-us" | "cp367" | "ibm367" => {
            Charset::Ascii
        }
        "iso-8859-1" | "iso_8859-1" | "iso_8859-1:1987" | "latin1" | "l1" | "cp819" | "ibm819" => {
            Charset::Latin1
        }
        "utf-16" => Charset::Utf16,
        "utf-16le" => Charset::Utf16Le,
        "utf-16be" => Charset::Utf16Be,
        // Those that browsers treat as another character set, or do not know.
        "iso-8859-9" | "latin5" | "iso-8859-11" | "tis-620" | "gb2312" | "x-user-defined" => {
            return None;
        }
        name => {
            let encoding = Encoding::for_label_no_replacement(name.as_bytes())?;
            // Labels may have spaces around them; names may not.
            if name.trim() != name {
                return None;
            }
            Charset::Other(encoding)
        }
    })
}

/// Decodes text; `None` if any part of it is invalid.
pub(super) fn decode(bytes: &[u8], charset: Charset) -> Option<String> {
    match charset {
        Charset::Ascii => {
            let text = bytes.is_ascii().then(|| bytes.to_vec())?;
            String::from_utf8(text).ok()
        }
        Charset::Latin1 => Some(bytes.iter().copied().map(char::from).collect()),
        Charset::Utf16 => match bytes {
            [0xff, 0xfe, rest @ ..] => decode_utf16(rest, u16::from_le_bytes),
            [0xfe, 0xff, rest @ ..] => decode_utf16(rest, u16::from_be_bytes),
            _ => decode_utf16(bytes, u16::from_be_bytes),
        },
        Charset::Utf16Le => decode_utf16(bytes, u16::from_le_bytes),
        Charset::Utf16Be => decode_utf16(bytes, u16::from_be_bytes),
        Charset::Other(encoding) => {
            let mut decoder = encoding.new_decoder_without_bom_handling();
            let length = decoder.max_utf8_buffer_length_without_replacement(bytes.len())?;
            let mut text = String::with_capacity(length);
            let (result, _) = decoder.decode_to_string_without_replacement(bytes, &mut text, true);
            matches!(result, DecoderResult::InputEmpty).then_some(text)
        }
    }
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().copied().map(unit).collect();
    rest.is_empty().then(|| String::from_utf16(&units).ok())?
}

/// Encodes text; `None` if the character set lacks one of its characters.
pub(super) fn encode(text: &str, charset: Charset) -> Option<Vec<u8>> {
    match charset {
        Charset::Ascii => text.is_ascii().then(|| text.as_bytes().to_vec()),
        Charset::Latin1 => text.chars().map(|c| u8::try_from(c).ok()).collect(),
        Charset::Utf16 if text.is_empty() => Some(Vec::new()),
        Charset::Utf16 => {
            let mut bytes = vec![0xfe, 0xff];
            bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
            Some(bytes)
        }
        Charset::Utf16Le => Some(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        Charset::Utf16Be => Some(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        Charset::Other(encoding) => {
            let mut encoder = encoding.new_encoder();
            let length = encoder.max_buffer_length_from_utf8_without_replacement(text.len())?;
            let mut bytes = Vec::with_capacity(length);
            let (result, _) =
                encoder.encode_from_utf8_to_vec_without_replacement(text, &mut bytes, true);
            matches!(result, EncoderResult::InputEmpty).then_some(bytes)
        }
    }
}
