//! Common checks of blocks: their allowed contents, and the values of their attributes.
//!
//! Problems are reported where they are found; an invalid part counts as absent.

use crate::diagnostic::{Code, Diagnostic, closest};
use crate::language::evaluate::{Namespaces, evaluate};
use crate::language::syntax::{Attribute, Block, Expr, ExprKind};
use crate::language::value::{Items, Value};
use crate::source::{Span, Spanned};

pub(crate) fn no_labels(block: &Block, problems: &mut Vec<Diagnostic>) {
    for label in &block.labels {
        let message = format!("a `{}` block has no labels", block.kind.text);
        problems.push(
            Diagnostic::error(Code::UnexpectedLabel, message)
                .label(label.span, "unexpected label")
                .help("remove the label"),
        );
    }
}

/// Returns the only label of a block, which is its name; `example` is such a name.
pub(super) fn name(
    block: &Block,
    example: &str,
    problems: &mut Vec<Diagnostic>,
) -> Option<Spanned<String>> {
    let kind = &block.kind.text;
    let [label] = block.labels.as_slice() else {
        let message = format!("a `{kind}` block has one label: its name");
        let span = block.labels.get(1).map_or(block.kind.span, |it| it.span);
        let diagnostic = Diagnostic::error(Code::UnexpectedLabel, message)
            .label(span, "in this block")
            .help(format!("write `{kind} \"{example}\" {{ … }}`"));
        problems.push(diagnostic);
        return None;
    };
    let (value, span) = (label.text.to_string(), label.span);
    if !is_name(&value) {
        let message = format!("`{value}` cannot be the name of a {kind}");
        let why = "a name has only ASCII letters, digits, `-` and `_`";
        problems.push(Diagnostic::error(Code::InvalidValue, message).label(span, why));
        return None;
    }
    Some(Spanned { value, span })
}

/// Returns whether a text has only ASCII letters, digits, `-` and `_`.
pub(super) fn is_name(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !text.is_empty() && text.chars().all(is_allowed)
}

/// Returns the problem of a block without a required attribute.
pub(super) fn needs(block: &Block, name: &str) -> Diagnostic {
    let message = format!("a `{}` block needs `{name}`", block.kind.text);
    Diagnostic::error(Code::MissingAttribute, message).label(block.kind.span, "in this block")
}

/// Reports nested blocks in a block that allows only attributes, with this label.
pub(super) fn no_blocks(block: &Block, label: &str, problems: &mut Vec<Diagnostic>) {
    let inner = block.body.blocks.iter();
    problems.extend(inner.map(|inner| misplaced_block(inner, block, label)));
}

pub(super) fn misplaced_block(inner: &Block, block: &Block, label: &str) -> Diagnostic {
    let (name, kind) = (&inner.kind.text, &block.kind.text);
    let message = format!("unknown block `{name}` in `{kind}`");
    Diagnostic::error(Code::UnknownBlock, message).label(inner.kind.span, label)
}

pub(crate) fn unknown_block(inner: &Block, block: &Block) -> Diagnostic {
    let label = format!("not a block of `{}`", block.kind.text);
    misplaced_block(inner, block, &label).label(block.kind.span, "in this block")
}

/// Reports an attribute, and suggests one that looks like it.
pub(super) fn unknown_attribute(
    attribute: &Attribute,
    block: &Block,
    known: &[&str],
) -> Diagnostic {
    let (name, kind) = (&attribute.name.text, &block.kind.text);
    let message = format!("unknown attribute `{name}` in `{kind}`");
    Diagnostic::error(Code::UnknownAttribute, message)
        .label(attribute.name.span, format!("not an attribute of `{kind}`"))
        .label(block.kind.span, "in this block")
        .did_you_mean(name, known.iter().copied())
}

/// Reports an attribute, and suggests one that looks like it, or lists all there are.
pub(super) fn unlisted_attribute(
    attribute: &Attribute,
    block: &Block,
    known: &[&str],
) -> Diagnostic {
    let diagnostic = unknown_attribute(attribute, block, known);
    match closest(&attribute.name.text, known.iter().copied()) {
        Some(_) => diagnostic,
        None => diagnostic.help(format!("attributes are: {}", known.join(", "))),
    }
}

pub(super) fn only_attributes(block: &Block, known: &[&str], problems: &mut Vec<Diagnostic>) {
    for attribute in &block.body.attributes {
        if !known.contains(&&*attribute.name.text) {
            problems.push(unknown_attribute(attribute, block, known));
        }
    }
}

/// Like [`only_attributes`], but lists the known attributes if none resembles the unknown one.
pub(super) fn only_listed(block: &Block, known: &[&str], problems: &mut Vec<Diagnostic>) {
    for attribute in &block.body.attributes {
        if !known.contains(&&*attribute.name.text) {
            problems.push(unlisted_attribute(attribute, block, known));
        }
    }
}

pub(super) fn expr(block: &Block, name: &str) -> Option<Expr> {
    let attribute = block.body.attribute(name)?;
    Some(attribute.value.clone())
}

/// Reports a second block where there can be one.
pub(super) fn twice(block: &Block, first: Span) -> Diagnostic {
    let message = format!("only one `{}` block is allowed here", block.kind.text);
    Diagnostic::error(Code::DuplicateBlock, message)
        .label(block.kind.span, "second block")
        .label(first, "first block")
        .help("merge the two blocks, or remove one")
}

pub(super) fn value(
    expr: &Expr,
    names: &dyn Namespaces,
    problems: &mut Vec<Diagnostic>,
) -> Option<Value> {
    let value = evaluate(expr, names);
    value.map_err(|problem| problems.push(*problem)).ok()
}

/// Returns the value of an attribute that must be a string; `expected` describes it.
pub(super) fn string(
    attribute: &Attribute,
    expected: &str,
    names: &dyn Namespaces,
    problems: &mut Vec<Diagnostic>,
) -> Option<Spanned<String>> {
    let span = attribute.value.span;
    match value(&attribute.value, names, problems)? {
        Value::String(text) => Some(Spanned {
            value: text.to_string(),
            span,
        }),
        other => {
            problems.push(wrong_type(attribute, span, expected, &other));
            None
        }
    }
}

/// Returns the elements of a list, each with its own place if the list is a literal.
pub(super) fn elements<'v>(
    list: &Expr,
    items: &'v Items,
) -> impl Iterator<Item = (Span, &'v Value)> {
    let written = match &list.kind {
        ExprKind::List(written) => written.as_slice(),
        _ => &[],
    };
    let place = |index: usize| written.get(index).map_or(list.span, |expr| expr.span);
    let items = items.iter().enumerate();
    items.map(move |(index, item)| (place(index), item))
}

pub(super) fn wrong_type(
    attribute: &Attribute,
    span: Span,
    expected: &str,
    found: &Value,
) -> Diagnostic {
    let message = format!("`{}` must be {expected}", attribute.name.text);
    let label = format!("this is {}", found.type_name());
    Diagnostic::error(Code::WrongType, message).label(span, label)
}
