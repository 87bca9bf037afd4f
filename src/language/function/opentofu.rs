//! Functions that Terramate has from `OpenTofu` and that Terraform lacks, and two that both have
//! removed.

use std::io::Read as _;
use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;

use super::arguments::{Arguments, FunctionError};
use super::{Function, FunctionContext};
use crate::ascii::decode_query;
use crate::language::evaluate::{Call, EvalResult};
use crate::language::value::Value;

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns the text that `base64gzip` compressed.
    base64gunzip(str: string) -> string = Eager(base64gunzip),
        r#"base64gunzip("H4sIAAAAAAACA8tIzcnJVwQAYMmGmgYAAAA=")"# => r#""hello!""#;
    /// Returns whether a network contains an address, or all addresses of another network.
    cidrcontains(containing_prefix: string, contained_ip_or_prefix: string) -> bool
        = Eager(cidrcontains),
        r#"cidrcontains("10.0.0.0/8", "10.1.0.0/16")"# => "true";
    /// Returns whether the value, or anything that the expression used before it, is sensitive.
    issensitive(value: nullable any) -> bool = Lazy(issensitive),
        r#"issensitive("a")"# => "false";
    /// Makes a list.
    list(..values: nullable any) -> list(any)
        = Refused("was removed from Terraform; write a list as `[a, b]`"),
        "list(1, 2)" => "";
    /// Makes a map.
    map(..values: nullable any) -> map(any)
        = Refused("was removed from Terraform; write an object as `{ a = b }`"),
        r#"map("a", 1)"# => "";
    /// Returns the text that `urlencode` encoded.
    urldecode(str: string) -> string = Eager(urldecode),
        r#"urldecode("a+b%2Fc")"# => r#""a b/c""#;
};

fn base64gunzip(arguments: &Arguments) -> Result<Value, FunctionError> {
    let wrong = |problem: &str| FunctionError::Argument(0, problem.to_owned());
    let compressed = BASE64_STANDARD
        .decode(arguments.text(0).as_bytes())
        .map_err(|_| wrong("this is not Base64"))?;
    let mut decoder = GzDecoder::new(&*compressed);
    let mut text = Vec::new();
    // A few bytes may expand to gigabytes, so the work is counted piece by piece.
    let mut piece = [0; 8192];
    loop {
        arguments.spend(piece.len() as u64 / 8)?;
        match decoder.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(piece.get(..count).unwrap_or_default()),
            Err(_) => {
                return Err(wrong("this is not gzip data in Base64"));
            }
        }
    }
    let text = String::from_utf8(text);
    Ok(Value::string(text.map_err(|_| {
        wrong("the decompressed text is not UTF-8")
    })?))
}

fn cidrcontains(arguments: &Arguments) -> Result<Value, FunctionError> {
    let (network, length) = prefix(arguments.text(0))
        .ok_or_else(|| arguments.unfit(0, "a network such as `10.0.0.0/8` is needed"))?;
    let inner = arguments.text(1);
    let (address, inner_length) = prefix(inner)
        .or_else(|| inner.parse().ok().map(|address| (address, bits(address).1)))
        .ok_or_else(|| arguments.unfit(1, "an address or a network is needed"))?;
    let ((outer, width), (inner, inner_width)) = (bits(network), bits(address));
    if width != inner_width {
        let problem = "one of the two is IPv4 and the other IPv6".to_owned();
        return Err(FunctionError::Argument(1, problem));
    }
    let differing = (outer ^ inner).checked_shr(width - length).unwrap_or(0);
    Ok(Value::Bool(inner_length >= length && differing == 0))
}

/// Parses a network as its address and the length of its prefix.
fn prefix(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = text.split_once('/')?;
    let address = address.parse().ok()?;
    let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let length = length.parse().ok().filter(|_| is_number)?;
    (length <= bits(address).1).then_some((address, length))
}

/// Returns the bits of an address, and how many there are.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u32::from(address).into(), 32),
        IpAddr::V6(address) => (address.into(), 128),
    }
}

/// Values do not carry where they come from, so what an expression has used counts for all that follows.
fn issensitive(call: &Call, _surroundings: &FunctionContext) -> EvalResult {
    call.values()?;
    Ok(Value::Bool(call.is_sensitive()))
}

fn urldecode(arguments: &Arguments) -> Result<Value, FunctionError> {
    let wrong = |problem: &str| FunctionError::Argument(0, problem.to_owned());
    let decoded = decode_query(arguments.text(0))
        .ok_or_else(|| wrong("a `%` in it is not followed by two hexadecimal digits"))?;
    let text = String::from_utf8(decoded).map_err(|_| wrong("the decoded text is not UTF-8"))?;
    Ok(Value::string(text))
}
