//! Functions that the interpreter lacks, or that give another answer there than in OPA.
//!
//! As in OPA, what fails in a function is undefined.

mod format;
mod globs;
mod library;
pub(super) mod numbers;
pub(super) mod operators;
mod order;
pub(super) mod regexes;
mod texts;
mod trees;
mod versions;
mod written;

use std::collections::BTreeSet;

use anyhow::Result;
use regorus::{Engine, Value};

use crate::ascii::hex;
use crate::policy::Dialect;

type Function = fn(&[Value]) -> Option<Value>;

/// Adds the functions of this version of the language.
pub(super) fn add(engine: &mut Engine, dialect: Dialect) -> Result<()> {
    let old = old().into_iter().filter(|_| dialect == Dialect::V0);
    for (name, n_arguments, function) in functions().into_iter().chain(old) {
        let call =
            move |arguments: Vec<Value>| Ok(function(&arguments).unwrap_or(Value::Undefined));
        engine.add_extension(name.to_owned(), n_arguments, Box::new(call))?;
    }
    Ok(())
}

/// Returns whether only Rego v0 has a function.
pub(super) fn is_old(name: &str) -> bool {
    old().iter().any(|(old, ..)| *old == name)
}

/// Returns the functions of every version, each with its name and the number of its arguments.
fn functions() -> Vec<(&'static str, u8, Function)> {
    vec![
        (operators::OPERATOR, 3, operators::operator),
        (operators::COLLECTION, 2, operators::collection),
        ("abs", 1, numbers::abs),
        ("array.flatten", 1, flatten),
        ("crypto.md5", 1, digest::<md5::Md5>),
        ("crypto.hmac.md5", 2, |it| hmac::<md5::Md5>(it, 64)),
        ("crypto.hmac.sha1", 2, |it| hmac::<sha1::Sha1>(it, 64)),
        ("crypto.hmac.sha256", 2, |it| hmac::<sha2::Sha256>(it, 64)),
        ("crypto.hmac.sha512", 2, |it| hmac::<sha2::Sha512>(it, 128)),
        ("crypto.sha1", 1, digest::<sha1::Sha1>),
        ("crypto.sha256", 1, digest::<sha2::Sha256>),
        ("base64.is_valid", 1, |it| {
            library::is_valid("base64.is_valid", it)
        }),
        ("base64.decode", 1, library::base64_decode),
        ("base64url.decode", 1, library::base64url_decode),
        ("ceil", 1, numbers::ceil),
        ("floor", 1, numbers::floor),
        ("format_int", 2, library::format_int),
        ("glob.match", 3, globs::is_match),
        ("glob.quote_meta", 1, globs::quote_meta),
        ("graph.reachable_paths", 2, trees::reachable_paths),
        ("hex.decode", 1, |it| library::decoded("hex.decode", it)),
        ("indexof", 2, texts::index_of),
        ("indexof_n", 2, texts::index_of_n),
        ("json.filter", 2, trees::filter),
        ("json.is_valid", 1, |it| {
            library::is_valid("json.is_valid", it)
        }),
        ("json.marshal", 1, written::json),
        ("json.remove", 2, trees::remove),
        ("json.unmarshal", 1, library::json_unmarshal),
        ("lower", 1, texts::lower),
        ("max", 1, order::max),
        ("min", 1, order::min),
        ("net.cidr_is_valid", 1, |it| {
            library::is_valid("net.cidr_is_valid", it)
        }),
        ("numbers.range", 2, |it| {
            range_step(&[it[0].clone(), it[1].clone(), 1_u64.into()])
        }),
        ("numbers.range_step", 3, range_step),
        ("product", 1, |it| numbers::product(&items(&it[0])?)),
        ("object.subset", 2, |it| {
            is_subset(&it[0], &it[1]).map(Value::from)
        }),
        (
            "regex.find_all_string_submatch_n",
            3,
            regexes::find_all_groups,
        ),
        ("regex.find_n", 3, regexes::find_n),
        ("regex.is_valid", 1, |it| Some(regexes::is_valid(it))),
        ("regex.match", 2, regexes::is_match),
        ("regex.replace", 3, regexes::replace),
        ("regex.split", 2, regexes::split),
        ("regex.template_match", 4, regexes::template_match),
        ("round", 1, numbers::round),
        ("semver.compare", 2, versions::compare),
        ("semver.is_valid", 1, |it| Some(versions::is_valid(it))),
        ("sort", 1, order::sort),
        ("sprintf", 2, format::sprintf),
        ("strings.count", 2, texts::count),
        ("strings.replace_n", 2, library::replace_n),
        ("sum", 1, |it| numbers::sum(&items(&it[0])?)),
        ("time.parse_duration_ns", 1, library::parse_duration),
        ("time.parse_rfc3339_ns", 1, library::parse_rfc3339),
        ("to_number", 1, library::to_number),
        ("substring", 3, texts::substring),
        ("upper", 1, texts::upper),
        ("urlquery.decode", 1, texts::url_decode),
        ("urlquery.decode_object", 1, texts::url_decode_object),
        ("urlquery.encode", 1, texts::url_encode),
        ("urlquery.encode_object", 1, texts::url_encode_object),
        ("yaml.is_valid", 1, |it| {
            library::is_valid("yaml.is_valid", it)
        }),
    ]
}

/// Returns those that only Rego v0 has.
fn old() -> Vec<(&'static str, u8, Function)> {
    vec![
        ("all", 1, all),
        ("any", 1, any),
        ("cast_array", 1, cast_array),
        ("cast_boolean", 1, |it| {
            only(it, |it| matches!(it, Value::Bool(_)))
        }),
        ("cast_null", 1, |it| only(it, |it| *it == Value::Null)),
        ("cast_object", 1, |it| {
            only(it, |it| matches!(it, Value::Object(_)))
        }),
        ("cast_set", 1, cast_set),
        ("cast_string", 1, |it| {
            only(it, |it| matches!(it, Value::String(_)))
        }),
        ("re_match", 2, regexes::is_match),
        ("set_diff", 2, set_diff),
    ]
}

fn text(value: &Value) -> Option<&str> {
    value.as_string().ok().map(AsRef::as_ref)
}

fn items(value: &Value) -> Option<Vec<&Value>> {
    match value {
        Value::Array(items) => Some(items.iter().collect()),
        Value::Set(items) => Some(items.iter().collect()),
        _ => None,
    }
}

fn all(arguments: &[Value]) -> Option<Value> {
    let mut items = items(&arguments[0])?.into_iter();
    Some(items.all(|item| *item == Value::Bool(true)).into())
}

fn any(arguments: &[Value]) -> Option<Value> {
    let mut items = items(&arguments[0])?.into_iter();
    Some(items.any(|item| *item == Value::Bool(true)).into())
}

fn only(arguments: &[Value], is_right: fn(&Value) -> bool) -> Option<Value> {
    is_right(&arguments[0]).then(|| arguments[0].clone())
}

fn cast_array(arguments: &[Value]) -> Option<Value> {
    let items: Vec<Value> = items(&arguments[0])?.into_iter().cloned().collect();
    Some(items.into())
}

fn cast_set(arguments: &[Value]) -> Option<Value> {
    let items: BTreeSet<Value> = items(&arguments[0])?.into_iter().cloned().collect();
    Some(items.into())
}

/// Returns the items of an array, those of each array among them in its place.
fn flatten(arguments: &[Value]) -> Option<Value> {
    let mut flat = Vec::new();
    for item in arguments[0].as_array().ok()? {
        match item {
            Value::Array(inner) => flat.extend(inner.iter().cloned()),
            other => flat.push(other.clone()),
        }
    }
    Some(Value::from(flat))
}

/// Returns the digest of a text in hexadecimal digits.
fn digest<D: sha2::Digest>(arguments: &[Value]) -> Option<Value> {
    Some(hex(&D::digest(text(&arguments[0])?)).into())
}

/// Returns the digest of a text with a key, as RFC 2104 has it, for a digest of blocks of this many bytes.
fn hmac<D: sha2::Digest>(arguments: &[Value], n_block: usize) -> Option<Value> {
    let [text, key] = [&arguments[0], &arguments[1]].map(text);
    let (text, mut key) = (text?.as_bytes(), key?.as_bytes().to_vec());
    if key.len() > n_block {
        key = D::digest(&key).to_vec();
    }
    key.resize(n_block, 0);
    let padded = |pad: u8| key.iter().map(|byte| byte ^ pad).collect::<Vec<u8>>();
    let inner = D::digest([&padded(0x36), text].concat());
    let outer = D::digest([&padded(0x5c)[..], &inner].concat());
    Some(hex(&outer).into())
}

fn set_diff(arguments: &[Value]) -> Option<Value> {
    let (Value::Set(from), Value::Set(without)) = (&arguments[0], &arguments[1]) else {
        return None;
    };
    let left: BTreeSet<Value> = from
        .iter()
        .filter(|item| !without.contains(item))
        .cloned()
        .collect();
    Some(left.into())
}

fn range_step(arguments: &[Value]) -> Option<Value> {
    let number = |value: &Value| value.as_i64().ok();
    let (first, last) = (number(&arguments[0])?, number(&arguments[1])?);
    let step = number(&arguments[2]).filter(|step| *step > 0)?;
    let step = if first <= last { step } else { -step };
    let numbers = std::iter::successors(Some(first), |number| number.checked_add(step));
    let in_range = |number: &i64| {
        if step > 0 {
            *number <= last
        } else {
            *number >= last
        }
    };
    let numbers: Vec<Value> = numbers.take_while(in_range).map(Value::from).collect();
    Some(numbers.into())
}

/// Returns whether all of a value is in another one. The elements of a list must follow each other there.
fn is_subset(whole: &Value, part: &Value) -> Option<bool> {
    let is_in = |(key, value): (&Value, &Value), whole: &Value| {
        let found = &whole[key];
        *found == *value || is_subset(found, value).unwrap_or(false)
    };
    Some(match (whole, part) {
        (Value::Object(_), Value::Object(entries)) => {
            entries.iter().all(|entry| is_in(entry, whole))
        }
        (Value::Set(items), Value::Set(wanted)) => wanted.iter().all(|it| items.contains(it)),
        (Value::Array(items), Value::Set(wanted)) => wanted.iter().all(|it| items.contains(it)),
        (Value::Array(items), Value::Array(wanted)) => {
            let [items, wanted] = [items, wanted].map(|it| it.iter().collect::<Vec<_>>());
            wanted.is_empty() || items.windows(wanted.len()).any(|it| it == wanted)
        }
        _ => return None,
    })
}
