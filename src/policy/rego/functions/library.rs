//! Functions of the library, but for what they do with some arguments.

use regorus::Value;
use regorus::unstable::{BUILTINS, Expr, Ref, Source, Span};

use super::numbers;

/// Calls a function of the library.
fn called(name: &str, arguments: &[Value]) -> Option<Value> {
    let (function, _) = BUILTINS.get(name)?;
    // Errors, which are dropped, say where it is called.
    let source = Source::from_contents(String::new(), " ".to_owned()).ok()?;
    let span = Span {
        source,
        line: 1,
        col: 1,
        start: 0,
        end: 0,
    };
    let parameter = |_| {
        Ref::new(Expr::Null {
            span: span.clone(),
            value: Value::Null,
            eidx: 0,
        })
    };
    let parameters: Vec<Ref<Expr>> = arguments.iter().map(parameter).collect();
    function(&span, &parameters, arguments, false).ok()
}

/// Returns whether a value is a text that a function accepts.
pub(super) fn is_valid(name: &str, arguments: &[Value]) -> Option<Value> {
    match &arguments[0] {
        Value::String(_) => called(name, arguments),
        _ => Some(false.into()),
    }
}

/// Calls a function that decodes a text. The library has no text of other bytes than those of UTF-8.
pub(super) fn decoded(name: &str, arguments: &[Value]) -> Option<Value> {
    let decoded = called(name, arguments)?;
    if decoded.as_string().is_ok_and(|it| it.contains('\u{fffd}')) {
        numbers::fail(format!("the result of `{name}` is no UTF-8"));
    }
    Some(decoded)
}

/// The function `base64url.decode`; padding may be left out.
pub(super) fn base64url_decode(arguments: &[Value]) -> Option<Value> {
    let mut text = arguments[0].as_string().ok()?.to_string();
    if !text.ends_with('=') {
        text += match text.len() % 4 {
            0 => "",
            2 => "==",
            3 => "=",
            _ => return None,
        };
    }
    decoded("base64url.decode", &[text.into()])
}

/// The function `base64.decode`; line breaks are skipped.
pub(super) fn base64_decode(arguments: &[Value]) -> Option<Value> {
    let text = arguments[0].as_string().ok()?.replace(['\r', '\n'], "");
    decoded("base64.decode", &[text.into()])
}

/// The function `format_int`, without a sign before zero.
pub(super) fn format_int(arguments: &[Value]) -> Option<Value> {
    let formatted = called("format_int", arguments)?;
    let is_zero = formatted == Value::from("-0");
    Some(if is_zero { "0".into() } else { formatted })
}

/// The function `to_number`; no blanks are skipped.
pub(super) fn to_number(arguments: &[Value]) -> Option<Value> {
    if let Value::String(text) = &arguments[0]
        && text.contains(char::is_whitespace)
    {
        return None;
    }
    let number = called("to_number", arguments)?;
    match &arguments[0] {
        Value::String(text) => numbers::value(text),
        _ => Some(number),
    }
}

/// The function `json.unmarshal`, whose numbers keep their texts.
pub(super) fn json_unmarshal(arguments: &[Value]) -> Option<Value> {
    let value = called("json.unmarshal", arguments)?;
    numbers::read_json(arguments[0].as_string().ok()?);
    Some(value)
}

/// The function `time.parse_rfc3339_ns`, for exactly that.
pub(super) fn parse_rfc3339(arguments: &[Value]) -> Option<Value> {
    let mut text = arguments[0].as_string().ok()?.to_string();
    if text.get(19..20) == Some(",") {
        text.replace_range(19..20, ".");
    }
    let is_digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let is_date = text.as_bytes().get(10) == Some(&b'T') && is_digit(18);
    let has_leap_second = text.get(17..19) == Some("60");
    let has_zone = text.ends_with('Z') || text.get(19..)?.contains(['+', '-']);
    if !is_date || has_leap_second || !has_zone {
        return None;
    }
    called("time.parse_rfc3339_ns", &[text.into()])
}

/// The function `strings.replace_n`: at each place, the first of the texts that begins there is replaced.
pub(super) fn replace_n(arguments: &[Value]) -> Option<Value> {
    let text = |value: &Value| Some(value.as_string().ok()?.to_string());
    let patterns = arguments[0].as_object().ok()?.iter();
    let patterns = patterns.map(|(old, new)| Some((text(old)?, text(new)?)));
    let patterns: Vec<(String, String)> = patterns.collect::<Option<_>>()?;
    if patterns.iter().any(|(old, _)| old.is_empty()) {
        return called("strings.replace_n", arguments);
    }
    let whole = text(&arguments[1])?;
    let (mut rest, mut out) = (&*whole, String::new());
    while let Some(character) = rest.chars().next() {
        let mut found = patterns.iter();
        if let Some((old, new)) = found.find(|(old, _)| rest.starts_with(&**old)) {
            out += new;
            rest = &rest[old.len()..];
        } else {
            out.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    Some(out.into())
}

/// The function `time.parse_duration_ns`, with days, weeks and years.
pub(super) fn parse_duration(arguments: &[Value]) -> Option<Value> {
    let text = arguments[0].as_string().ok()?;
    let mut rest: &str = text;
    let mut rewritten = String::new();
    if rest.contains(['d', 'w', 'y']) {
        let signs = rest.len() - rest.strip_prefix(['+', '-']).unwrap_or(rest).len();
        rewritten += &rest[..signs];
        rest = &rest[signs..];
        while !rest.is_empty() {
            let is_digit = |character: char| character.is_ascii_digit() || character == '.';
            let (digits, after) = rest.split_at(rest.find(|it| !is_digit(it))?);
            let end = after.find(is_digit).unwrap_or(after.len());
            let (unit, after) = after.split_at(end);
            let n_hours = match unit {
                "d" => 24.0,
                "w" => 7.0 * 24.0,
                "y" => 365.0 * 24.0,
                _ => 0.0,
            };
            if n_hours > 0.0 {
                rewritten += &format!("{}h", digits.parse::<f64>().ok()? * n_hours);
            } else {
                rewritten += &format!("{digits}{unit}");
            }
            rest = after;
        }
    } else {
        rewritten += rest;
    }
    called("time.parse_duration_ns", &[rewritten.into()])
}
