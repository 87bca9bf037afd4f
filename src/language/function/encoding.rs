//! Functions that encode and decode text; those of formats such as JSON are in modules of their own.

use std::io::Write as _;

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};

use super::arguments::{Arguments, FunctionError};
use super::{Function, base64, charset, csv, json, yaml};
use crate::ascii::encode_query;
use crate::language::value::{Value, normal};

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns the text that a Base64 string encodes.
    base64decode(str: string) -> string = Eager(decode_base64),
        r#"base64decode("SGVsbG8=")"# => r#""Hello""#;
    /// Returns a string as Base64.
    base64encode(str: string) -> string = Eager(|arguments| {
        Ok(Value::string(STANDARD.encode(arguments.text(0).as_bytes())))
    }),
        r#"base64encode("Hello")"# => r#""SGVsbG8=""#;
    /// Returns a string, compressed with gzip, as Base64.
    base64gzip(str: string) -> string = Eager(compress),
        r#"base64gzip("a") == base64gzip("a")"# => "true";
    /// Returns the rows of CSV text as a list of objects. The first line names the attributes.
    csvdecode(str: string) -> any = Eager(csv::decode),
        r#"csvdecode("a,b\n1,2")"# => r#"[{"a":"1","b":"2"}]"#;
    /// Returns the value that JSON text represents.
    jsondecode(str: string) -> any = Eager(json::decode),
        r#"jsondecode("{\"a\": [1, true]}")"# => r#"{"a":[1,true]}"#;
    /// Returns a value as JSON on one line.
    jsonencode(val: nullable any) -> string = Eager(json::encode),
        "jsonencode({ a = 1 })" => r#""{\"a\":1}""#;
    /// Returns the text that a Base64 string encodes. The text is in an encoding such as
    /// `UTF-16LE`.
    textdecodebase64(source: string, encoding: string) -> string = Eager(decode_text),
        r#"textdecodebase64("SABpAA==", "UTF-16LE")"# => r#""Hi""#;
    /// Returns a string in an encoding such as `UTF-16LE`, as Base64.
    textencodebase64(string: string, encoding: string) -> string = Eager(encode_text),
        r#"textencodebase64("Hi", "UTF-16LE")"# => r#""SABpAA==""#;
    /// Returns a string, escaped for use in the query of a URL.
    urlencode(str: string) -> string
        = Eager(|arguments| Ok(Value::string(encode_query(arguments.text(0))))),
        r#"urlencode("Hello World!")"# => r#""Hello+World%21""#;
    /// Returns the value that YAML text represents. The text must be a single document.
    yamldecode(src: string) -> any = Eager(yaml::decode),
        r#"yamldecode("a: [1, yes]")"# => r#"{"a":[1,true]}"#;
    /// Returns a value as YAML.
    yamlencode(value: nullable any) -> string = Eager(yaml::encode),
        r#"yamlencode({ a = [1, "b"] })"# => r#""\"a\":\n- 1\n- \"b\"\n""#;
};

fn bytes(arguments: &Arguments) -> Result<Vec<u8>, FunctionError> {
    base64::bytes(arguments.text(0)).ok_or_else(|| {
        let found = arguments.value(0).description();
        FunctionError::Argument(0, format!("this is {found}, which is not Base64"))
    })
}

fn decode_base64(arguments: &Arguments) -> Result<Value, FunctionError> {
    let text = String::from_utf8(bytes(arguments)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let problem = format!("the decoded text is not UTF-8: byte {} is wrong", at + 1);
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
        arguments.unfit(
            1,
            "an encoding such as `UTF-8`, `UTF-16LE` or `ISO-8859-1` is needed",
        )
    })
}

fn decode_text(arguments: &Arguments) -> Result<Value, FunctionError> {
    let charset = find_charset(arguments)?;
    let text = charset::decode(&bytes(arguments)?, charset).ok_or_else(|| {
        let problem = format!("the decoded text is not valid in `{}`", arguments.text(1));
        FunctionError::Argument(0, problem)
    })?;
    Ok(Value::String(normal(&text.into())))
}

fn encode_text(arguments: &Arguments) -> Result<Value, FunctionError> {
    let charset = find_charset(arguments)?;
    let bytes = charset::encode(arguments.text(0), charset).ok_or_else(|| {
        let problem = format!("this has characters that `{}` lacks", arguments.text(1));
        FunctionError::Argument(0, problem)
    })?;
    Ok(Value::string(STANDARD.encode(bytes)))
}
