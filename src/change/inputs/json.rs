//! The modules and files that one Terraform JSON file names.
//!
//! A key may occur several times in an object, and Terraform sees every occurrence.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::extract::{NamedInput, call, module, read};
use super::text::span;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::parse::parse_template;
use crate::language::syntax::{Expr, ExprKind, Name};
use crate::source::FileId;

/// A value, reduced to what can name a dependency.
pub(super) enum Json {
    String(Box<str>),
    Array(Vec<Json>),
    /// In the order written; keys may repeat.
    Object(Vec<(Box<str>, Json)>),
    Other,
}

impl Json {
    fn entries(&self) -> &[(Box<str>, Json)] {
        match self {
            Json::Object(entries) => entries,
            _ => &[],
        }
    }

    fn get<'j>(&'j self, key: &'static str) -> impl Iterator<Item = &'j Json> {
        let entries = self.entries().iter();
        entries.filter_map(move |(name, value)| (&**name == key).then_some(value))
    }

    /// Returns the items of an array, or the value itself.
    fn one_or_many(&self) -> &[Json] {
        match self {
            Json::Array(items) => items,
            single => std::slice::from_ref(single),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::String(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element()? {
            array.push(item);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut object = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            object.push(entry);
        }
        Ok(Json::Object(object))
    }
}

/// Parses a file. Fails at the first syntax error, or if it is nested too deeply.
pub(super) fn parse(text: &str) -> Result<Json, Box<Diagnostic>> {
    serde_json::from_str(text).map_err(|error| {
        let line = error.line().saturating_sub(1);
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let at = start + error.column().saturating_sub(1);
        let at = text.floor_char_boundary(at);
        let message = error.to_string();
        // The label shows the place, so the message omits it.
        let message = message.split(" at line ").next().unwrap_or_default();
        Box::new(Diagnostic::error(Code::Syntax, "syntax error").label(span(at, at), message))
    })
}

/// Returns the dependencies of a file; with `calls`, also modules outside of the project. Fails at
/// the first syntax error.
pub(super) fn json(text: &str, calls: bool) -> Result<Vec<NamedInput>, Box<Diagnostic>> {
    let json = parse(text)?;
    let mut named = Vec::new();
    let bodies = json.one_or_many().iter();
    let modules = bodies.flat_map(|body| body.get("module").flat_map(Json::one_or_many));
    for (name, blocks) in modules.flat_map(Json::entries) {
        let blocks = blocks.one_or_many().iter();
        let sources = blocks.flat_map(|block| block.get("source").map(move |it| (block, it)));
        for (block, source) in sources {
            let Json::String(written) = source else {
                continue;
            };
            let Some(source) = template(written, 0) else {
                continue;
            };
            let elsewhere = || {
                let version = block.get("version").find_map(|version| match version {
                    Json::String(written) => template(written, 0),
                    _ => None,
                });
                call(name, &source, version.as_ref())
            };
            let what = module(name, &source).or_else(|| calls.then(elsewhere));
            named.extend(what.map(|what| NamedInput { span: None, what }));
        }
    }
    reads(&json, &mut named);
    Ok(named)
}

fn reads(json: &Json, named: &mut Vec<NamedInput>) {
    match json {
        Json::String(text) if is_template(text) && text.contains("file") => {
            let mut add = |name: &Name, arguments: &[Expr]| {
                let what = read(name, arguments);
                named.extend(what.map(|what| NamedInput { span: None, what }));
            };
            for part in parse_template(FileId::UNPLACED, text, 0).iter().flatten() {
                part.each_call(&mut |name, arguments| add(name, arguments));
            }
        }
        Json::Array(items) => items.iter().for_each(|item| reads(item, named)),
        Json::Object(entries) => entries.iter().for_each(|(_, value)| reads(value, named)),
        Json::String(_) | Json::Other => {}
    }
}

/// Parses a text as a template, which begins at a place in the file.
pub(super) fn template(text: &str, place: usize) -> Option<Expr> {
    let kind = if is_template(text) {
        ExprKind::Template(parse_template(FileId::UNPLACED, text, place)?)
    } else {
        ExprKind::String(text.into())
    };
    let span = span(place, place);
    Some(Expr { span, kind })
}

fn is_template(text: &str) -> bool {
    text.contains("${") || text.contains("%{")
}

#[cfg(test)]
mod tests {
    use super::super::extract::show;
    use super::*;

    #[test]
    fn json_has_modules_and_templates() {
        let text = r#"{
            "module": [{"a": {"source": "./a"}}, {"b": [{"source": "../b"}, {"source": "x"}]}],
            "module": {"c": {"source": "./c"}, "c": {"source": "./d"}},
            "locals": {"x": "${jsondecode(file(\"${path.module}/x.json\"))}", "y": "file(\"y\")"}
        }"#;
        let expected = [
            "module ./a",
            "module ../b",
            "module ./c",
            "module ./d",
            "file Module ./x.json",
        ];
        assert_eq!(show(json(text, false).unwrap()), expected);
        assert!(json("{\n \"a\": }", false).is_err());
        assert_eq!(show(json(text, true).unwrap())[2], "b x Any");
    }
}
