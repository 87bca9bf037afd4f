//! The JSON syntax of Terraform and Terragrunt, converted to the tree of their native syntax.
//!
//! A key with the name of a listed kind holds blocks; every other key is an attribute. The place of a block is
//! that of its innermost key, and everything in a string lies within its line.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json;
use super::text::span;
use crate::diagnostic::Diagnostic;
use crate::language::parse::parse_expression;
use crate::language::syntax::{Attribute, Block, Body, Expr, ExprKind, Name};
use crate::source::{FileId, Span};

pub(super) struct BlockKind {
    pub(super) name: &'static str,
    /// The number of labels; a block may have fewer.
    pub(super) n_labels: usize,
    pub(super) inner: &'static [BlockKind],
}

impl BlockKind {
    pub(super) const fn new(name: &'static str, n_labels: usize) -> Self {
        BlockKind {
            name,
            n_labels,
            inner: &[],
        }
    }
}

/// An object: key and value, in the order written; keys may repeat.
struct Entries<'t>(Vec<(&'t RawValue, &'t RawValue)>);

impl<'t> Deserialize<'t> for Entries<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'t> Visitor<'t> for EntriesVisitor {
    type Value = Entries<'t>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Entries<'t>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

/// Converts a file with attributes at its top. Fails at the first syntax error.
pub(super) fn whole(text: &str, kinds: &[BlockKind]) -> Result<Body, Box<Diagnostic>> {
    JsonText::file(text, kinds, |_| true)
}

/// Converts the blocks of some kinds in a file. Fails at the first syntax error.
pub(super) fn only_blocks(text: &str, kinds: &[BlockKind]) -> Result<Body, Box<Diagnostic>> {
    JsonText::file(text, kinds, |key| kinds.iter().any(|kind| kind.name == key))
}

#[derive(Clone, Copy)]
struct JsonText<'t>(&'t str);

impl<'t> JsonText<'t> {
    fn file(
        text: &'t str,
        kinds: &[BlockKind],
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Body, Box<Diagnostic>> {
        // This also limits the depth.
        json::parse(text)?;
        let text = JsonText(text);
        let mut body = Body::default();
        let whole: &RawValue = serde_json::from_str(text.0).unwrap_or(RawValue::NULL);
        for object in one_or_many(whole) {
            for (key, value) in entries(object) {
                let key = text.name(key);
                if is_wanted(&key.text) {
                    text.add(key, value, kinds, &mut body);
                }
            }
        }
        Ok(body)
    }

    fn body(self, object: &RawValue, kinds: &[BlockKind]) -> Body {
        let mut body = Body::default();
        for (key, value) in entries(object) {
            self.add(self.name(key), value, kinds, &mut body);
        }
        body
    }

    fn add(self, key: Name, value: &RawValue, kinds: &[BlockKind], body: &mut Body) {
        match kinds.iter().find(|kind| *kind.name == *key.text) {
            Some(kind) => self.blocks(kind, &key, &[], value, &mut body.blocks),
            None => body.attributes.push(Attribute {
                name: key,
                value: self.expr(value),
            }),
        }
    }

    fn blocks(
        self,
        kind: &BlockKind,
        keyword: &Name,
        labels: &[Name],
        value: &RawValue,
        blocks: &mut Vec<Block>,
    ) {
        for object in one_or_many(value) {
            let inner = entries(object);
            // Without a label, its own attributes follow.
            let is_labelled = |(_, value): &(_, &RawValue)| value.get().starts_with(['{', '[']);
            if labels.len() < kind.n_labels && inner.iter().all(is_labelled) {
                for (label, value) in inner {
                    let labels = [labels, &[self.name(label)]].concat();
                    self.blocks(kind, keyword, &labels, value, blocks);
                }
                continue;
            }
            let place = labels.last().map_or(keyword.span, |label| label.span);
            blocks.push(Block {
                kind: Name {
                    text: keyword.text.clone(),
                    span: place,
                },
                labels: labels.to_vec(),
                span: self.span(object),
                body: self.body(object, kind.inner),
            });
        }
    }

    fn expr(self, value: &RawValue) -> Expr {
        let kind = match value.get().as_bytes().first() {
            Some(b'[') => {
                let items = one_or_many(value).into_iter();
                ExprKind::List(items.map(|item| self.expr(item)).collect())
            }
            Some(b'{') => {
                let entries = entries(value).into_iter();
                let entries = entries.map(|(key, value)| (self.expr(key), self.expr(value)));
                ExprKind::Object(entries.collect())
            }
            Some(b'"') => json::template(&string(value), self.start(value) + 1)
                .map_or(ExprKind::Null, |expr| expr.kind),
            _ => parse_expression(FileId::UNPLACED, value.get())
                .map_or(ExprKind::Null, |expr| expr.kind),
        };
        let span = self.span(value);
        Expr { span, kind }
    }

    fn name(self, key: &RawValue) -> Name {
        Name {
            text: string(key).into(),
            span: self.span(key),
        }
    }

    fn span(self, part: &RawValue) -> Span {
        let start = self.start(part);
        span(start, start + part.get().len())
    }

    /// Returns where a part of the text begins in it.
    fn start(self, part: &RawValue) -> usize {
        part.get().as_ptr().addr() - self.0.as_ptr().addr()
    }
}

fn string(text: &RawValue) -> String {
    serde_json::from_str(text.get()).unwrap_or_default()
}

/// Returns the entries of an object; none of another value.
fn entries(value: &RawValue) -> Vec<(&RawValue, &RawValue)> {
    serde_json::from_str(value.get()).map_or_else(|_| Vec::new(), |Entries(entries)| entries)
}

/// Returns the items of an array, or the value itself.
fn one_or_many(value: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(value.get()).unwrap_or_else(|_| vec![value])
}
