//! The canonical text of a file, independent of its layout: comments, white space, and the form of strings and
//! numbers make no difference.
//!
//! The text is for digests. This module doesn't interpret blocks: the caller leaves out irrelevant parts.

use std::fmt::Write as _;

use super::syntax::{Block, Body, Expr, ExprKind, TemplatePart, TraversalStep, TraversalStepKind};

/// An attribute or a block of a body, for the question whether it matters.
#[derive(Debug, Clone, Copy)]
pub enum BodyItem<'a> {
    Attribute(&'a str),
    Block(&'a str),
}

/// Returns the canonical text of a body. `matters` selects items, given the kinds of the blocks around them, the
/// outermost first; a block for which `may_vanish` holds is left out if it would be empty.
pub fn canonical(
    body: &Body,
    matters: &dyn Fn(&[&str], BodyItem<'_>) -> bool,
    may_vanish: &dyn Fn(&[&str], &str) -> bool,
) -> String {
    let mut text = String::new();
    let mut writer = Writer {
        matters,
        may_vanish,
        around: Vec::new(),
    };
    writer.body(body, &mut text);
    text
}

struct Writer<'a> {
    matters: &'a dyn Fn(&[&str], BodyItem<'_>) -> bool,
    may_vanish: &'a dyn Fn(&[&str], &str) -> bool,
    around: Vec<&'a str>,
}

impl<'a> Writer<'a> {
    fn body(&mut self, body: &'a Body, text: &mut String) {
        for attribute in &body.attributes {
            let name = &*attribute.name.text;
            if (self.matters)(&self.around, BodyItem::Attribute(name)) {
                text.push_str(name);
                text.push('=');
                expr(&attribute.value, text);
                text.push('\n');
            }
        }
        for block in &body.blocks {
            self.block(block, text);
        }
    }

    fn block(&mut self, block: &'a Block, text: &mut String) {
        let kind = &*block.kind.text;
        if !(self.matters)(&self.around, BodyItem::Block(kind)) {
            return;
        }
        let start = text.len();
        text.push_str(kind);
        for label in &block.labels {
            quoted(&label.text, text);
        }
        text.push_str("{\n");
        let inside = text.len();
        self.around.push(kind);
        self.body(&block.body, text);
        self.around.pop();
        if text.len() == inside && (self.may_vanish)(&self.around, kind) {
            text.truncate(start);
            return;
        }
        text.push_str("}\n");
    }
}

/// Quotes a text, so that its content cannot be confused with the text around it.
fn quoted(content: &str, text: &mut String) {
    _ = write!(text, "{content:?}");
}

fn name(name: Option<&str>, text: &mut String) {
    text.push_str(name.unwrap_or("_"));
    text.push(' ');
}

/// Writes expressions in brackets after a word, so that nesting is never in doubt.
fn list<'e>(word: &str, items: impl IntoIterator<Item = &'e Expr>, text: &mut String) {
    text.push('(');
    text.push_str(word);
    for item in items {
        text.push(' ');
        expr(item, text);
    }
    text.push(')');
}

fn expr(written: &Expr, text: &mut String) {
    match &written.kind {
        ExprKind::Null => text.push_str("null"),
        ExprKind::Bool(value) => _ = write!(text, "{value}"),
        ExprKind::Number(number) => _ = write!(text, "{}", number.normalized()),
        ExprKind::String(content) => quoted(content, text),
        ExprKind::Template(parts) => template(parts, text),
        ExprKind::List(items) => list("list", items, text),
        ExprKind::Object(entries) => {
            let entries = entries.iter().flat_map(|(key, value)| [key, value]);
            list("object", entries, text);
        }
        ExprKind::Variable(word) => text.push_str(word),
        ExprKind::Traversal(base, steps) => {
            text.push_str("(of ");
            expr(base, text);
            for step in steps {
                traversal_step(step, text);
            }
            text.push(')');
        }
        ExprKind::Unary(operator, operand) => list(operator.as_str(), [&**operand], text),
        ExprKind::Binary(operator, operands) => list(operator.as_str(), &**operands, text),
        ExprKind::Conditional(parts) => list("if", &**parts, text),
        ExprKind::For(it) => {
            text.push_str("(for ");
            name(it.key_variable.as_deref(), text);
            name(Some(&it.value_variable), text);
            let grouping = if it.grouping { "group" } else { "each" };
            list(grouping, [&it.collection, &it.value], text);
            list("key", &it.key, text);
            list("where", &it.condition, text);
            text.push(')');
        }
        ExprKind::Call(call) => {
            let word = if call.expands { "expand " } else { "call " };
            let word = format!("{word}{}", call.name.text);
            list(&word, &call.arguments, text);
        }
    }
}

fn traversal_step(step: &TraversalStep, text: &mut String) {
    match &step.kind {
        TraversalStepKind::Attribute(name) => {
            text.push('.');
            text.push_str(name);
        }
        TraversalStepKind::Index(index) => list("at", [index], text),
        TraversalStepKind::AttributeSplat => text.push_str(".*"),
        TraversalStepKind::FullSplat => text.push_str("[*]"),
    }
}

fn template(parts: &[TemplatePart], text: &mut String) {
    text.push_str("(text");
    for part in parts {
        text.push(' ');
        match part {
            TemplatePart::Literal(content) => quoted(content, text),
            TemplatePart::Interpolation(inner) => list("value", [inner], text),
            TemplatePart::If {
                condition,
                then,
                otherwise,
            } => {
                list("if", [condition], text);
                template(then, text);
                template(otherwise, text);
            }
            TemplatePart::For {
                key_variable,
                value_variable,
                collection,
                body,
            } => {
                text.push_str("for ");
                name(key_variable.as_deref(), text);
                name(Some(value_variable), text);
                list("in", [collection], text);
                template(body, text);
            }
        }
    }
    text.push(')');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::parse::parse_whole;
    use crate::source::FileId;

    fn canonical_of(text: &str) -> String {
        let body = parse_whole(FileId::UNPLACED, text).unwrap();
        let matters = |_: &[&str], item: BodyItem<'_>| !matches!(item, BodyItem::Attribute("x"));
        canonical(&body, &matters, &|around, _| around.is_empty())
    }

    #[test]
    fn layout_makes_no_difference() {
        let table = [
            ("a = 1", "# why\na   =   1 // here\n/* and */"),
            ("a = [1, 2]", "a = [\n  1,\n  # two\n  2,\n]"),
            ("a = \"é\"", "a = \"\\u00e9\""),
            ("a = 1.0", "a = 1"),
            ("b \"l\" {\n  c = d.e[0]\n}", "b \"l\" { c = d.e[0] }"),
            ("a = 1\nb {\n  x = 1\n}", "x = 2\na = 1"),
            ("", "# nothing\n"),
        ];
        for (one, other) in table {
            assert_eq!(canonical_of(one), canonical_of(other), "{one}\n{other}");
        }
    }

    #[test]
    fn whatever_is_said_differently_differs() {
        let texts = [
            "",
            "a = null",
            "a = true",
            "a = \"true\"",
            "a = 1",
            "a = -1",
            "a = \"${b}\"",
            "a = \"${b} \"",
            "a = \"%{ if b }c%{ endif }\"",
            "a = \"%{ if b }%{ else }c%{ endif }\"",
            "a = \"%{ for b in c }d%{ endfor }\"",
            "a = \"%{ for b, c in c }d%{ endfor }\"",
            "a = b",
            "a = \"b\"",
            "a = [b]",
            "a = { b = c }",
            "a = { (b) = c }",
            "a = { b = c, d = e }",
            "a = b.c",
            "a = b[c]",
            "a = b[\"c\"]",
            "a = b.*.c",
            "a = b[*].c",
            "a = b.c.d",
            "a = b + c",
            "a = b - c",
            "a = (b + c) * d",
            "a = b + c * d",
            "a = !b",
            "a = b ? c : d",
            "a = [for b in c : d]",
            "a = [for b in c : d if e]",
            "a = [for b, c in c : d]",
            "a = {for b in c : d => e}",
            "a = {for b in c : d => e...}",
            "a = b(c)",
            "a = b(c...)",
            "a = b(c, d)",
            "b {\n  a = 1\n}",
            "b {\n}\nc {\n  a = 1\n}",
            "b \"c\" {\n  a = 1\n}",
            "b \"c\" \"d\" {\n  a = 1\n}",
            "b \"c d\" {\n  a = 1\n}",
            "b {\n  c {\n  }\n}",
        ];
        for (at, one) in texts.iter().enumerate() {
            for other in &texts[at + 1..] {
                assert_ne!(canonical_of(one), canonical_of(other), "{one}\n{other}");
            }
        }
    }
}
