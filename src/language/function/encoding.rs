//! Functions that encode and decode text; those of formats such as JSON are in modules of their own.

use std::io::Write as _;

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};

use super::arguments::{Arguments, FunctionError};
use super::{Body, Function, Kind, Parameter, base64, charset, csv, json, yaml};
use crate::language::value::{Value, normal};

const STR: Parameter = Parameter::new("str", Kind::String);
const STRING: Parameter = Parameter::new("string", Kind::String);
const ENCODING: Parameter = Parameter::new("encoding", Kind::String);

pub(super) static FUNCTIONS: &[Function] = &[
    Function {
        name: "base64decode",
        parameters: &[STR],
        variadic: None,
        returns: Kind::String,
        description: "Returns the text that a Base64 string encodes.",
        example: ("base64decode(\"SGVsbG8=\")", "\"Hello\""),
        body: Body::Eager(decode_base64),
    },
    Function {
        name: "base64encode",
        parameters: &[STR],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string as Base64.",
        example: ("base64encode(\"Hello\")", "\"SGVsbG8=\""),
        body: Body::Eager(|arguments| {
            Ok(Value::string(STANDARD.encode(arguments.text(0).as_bytes())))
        }),
    },
    Function {
        name: "base64gzip",
        parameters: &[STR],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string, compressed with gzip, as Base64.",
        example: ("base64gzip(\"a\") == base64gzip(\"a\")", "true"),
        body: Body::Eager(compress),
    },
    csv::CSVDECODE,
    json::JSONDECODE,
    json::JSONENCODE,
    Function {
        name: "textdecodebase64",
        parameters: &[Parameter::new("source", Kind::String), ENCODING],
        variadic: None,
        returns: Kind::String,
        description: "Returns the text that a Base64 string encodes. The text is in an encoding \
                      such as `UTF-16LE`.",
        example: ("textdecodebase64(\"SABpAA==\", \"UTF-16LE\")", "\"Hi\""),
        body: Body::Eager(decode_text),
    },
    Function {
        name: "textencodebase64",
        parameters: &[STRING, ENCODING],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string in an encoding such as `UTF-16LE`, as Base64.",
        example: ("textencodebase64(\"Hi\", \"UTF-16LE\")", "\"SABpAA==\""),
        body: Body::Eager(encode_text),
    },
    Function {
        name: "urlencode",
        parameters: &[STR],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string, escaped for use in the query of a URL.",
        example: ("urlencode(\"Hello World!\")", "\"Hello+World%21\""),
        body: Body::Eager(|arguments| Ok(Value::string(url_encoded(arguments.text(0))))),
    },
    yaml::YAMLDECODE,
    yaml::YAMLENCODE,
];

fn bytes(arguments: &Arguments) -> Result<Vec<u8>, FunctionError> {
    base64::bytes(arguments.text(0)).ok_or_else(|| {
        let found = arguments.value(0).description();
        FunctionError::Argument(0, format!("this is {found}, which is not Base64"))
    })
}

fn decode_base64(arguments: &Arguments) -> Result<Value, FunctionError> {
    let text = String::from_utf8(bytes(arguments)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let problem = format!(
            "what this stands for is not UTF-8: byte {} is wrong",
            at + 1
        );
        FunctionError::Argument(0, problem)
    })?;
    Ok(Value::String(normal(&text.into())))
}

fn compress(arguments: &Arguments) -> Result<Value, FunctionError> {
    // Compressing takes some time for each byte, and memory at once.
    arguments.spend(1_000 + arguments.text(0).len() as u64 / 2)?;
    // The header must be the same on all machines: 255 means an unknown system.
    let builder = GzBuilder::new().mtime(0).operating_system(255);
    let mut encoder = builder.write(Vec::new(), Compression::default());
    let compressed = encoder
        .write_all(arguments.text(0).as_bytes())
        .and_then(|()| encoder.finish());
    match compressed {
        Ok(bytes) => Ok(Value::string(STANDARD.encode(bytes))),
        Err(error) => Err(FunctionError::Call(format!("compression fails: {error}"))),
    }
}

fn find_charset(arguments: &Arguments) -> Result<charset::Charset, FunctionError> {
    charset::find(arguments.text(1)).ok_or_else(|| {
        let problem = format!(
            "this is {}; an encoding such as `UTF-8`, `UTF-16LE` or `ISO-8859-1` is needed",
            arguments.value(1).description()
        );
        FunctionError::Argument(1, problem)
    })
}

fn decode_text(arguments: &Arguments) -> Result<Value, FunctionError> {
    let charset = find_charset(arguments)?;
    let text = charset::decode(&bytes(arguments)?, charset);
    let text = text.ok_or_else(|| {
        let problem = format!(
            "what this stands for is not text in `{}`",
            arguments.text(1)
        );
        FunctionError::Argument(0, problem)
    })?;
    Ok(Value::String(normal(&text.into())))
}

fn encode_text(arguments: &Arguments) -> Result<Value, FunctionError> {
    let charset = find_charset(arguments)?;
    let bytes = charset::encode(arguments.text(0), charset);
    let bytes = bytes.ok_or_else(|| {
        let problem = format!("this has characters that `{}` lacks", arguments.text(1));
        FunctionError::Argument(0, problem)
    })?;
    Ok(Value::string(STANDARD.encode(bytes)))
}

fn url_encoded(text: &str) -> String {
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
