//! The text of a trigger file: one `trigger` block, read and written like Terramate's.

use std::fmt::Write;

use super::TriggerKind;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::NoNamespaces;
use crate::language::evaluate::evaluate;
use crate::language::parse::parse_whole;
use crate::language::syntax::{Attribute, Block, Body, ExprKind};
use crate::language::value::Value;
use crate::path::InstanceKey;
use crate::printable::needs_escape;
use crate::source::{FileId, Span};

const KINDS: [TriggerKind; 2] = [TriggerKind::Changed, TriggerKind::IgnoreChange];

const ATTRIBUTES: [&str; 5] = ["ctime", "reason", "type", "context", "key"];

/// The content of a trigger file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) kind: TriggerKind,
    pub(crate) reason: String,
    /// The key of the only marked instance; `None` for all stacks of the directory.
    pub(crate) key: Option<InstanceKey>,
}

/// Parses the text of a trigger file. The spans of diagnostics need not name the file yet.
pub(super) fn parse(text: &str) -> Result<Statement, Vec<Diagnostic>> {
    let file = FileId::UNPLACED;
    let body = parse_whole(file, text).map_err(|diagnostic| vec![*diagnostic])?;
    let mut problems = Vec::new();
    let Some(block) = only_block(&body, file, &mut problems) else {
        return Err(problems);
    };
    let statement = Statement {
        kind: kind(block, &mut problems),
        reason: reason(block, &mut problems),
        key: key(block, &mut problems),
    };
    check_rest(block, &mut problems);
    if problems.is_empty() {
        Ok(statement)
    } else {
        Err(problems)
    }
}

/// Returns the `trigger` block, and reports everything else in the file.
fn only_block<'b>(
    body: &'b Body,
    file: FileId,
    problems: &mut Vec<Diagnostic>,
) -> Option<&'b Block> {
    for attribute in &body.attributes {
        let name = &attribute.name.text;
        let diagnostic = Diagnostic::error(
            Code::Misplaced,
            format!("attribute `{name}` outside of any block"),
        )
        .label(attribute.name.span, "not in a `trigger` block");
        problems.push(diagnostic.help("move it into the block: `trigger { … }`"));
    }
    let mut first: Option<&Block> = None;
    for block in &body.blocks {
        let kind = &*block.kind.text;
        if kind != "trigger" {
            let diagnostic =
                Diagnostic::error(Code::UnknownBlock, format!("unknown block `{kind}`"));
            let diagnostic = diagnostic.label(block.kind.span, "not a block of a trigger file");
            problems.push(diagnostic.did_you_mean(kind, ["trigger"]));
        } else if let Some(first) = first {
            let diagnostic = Diagnostic::error(
                Code::DuplicateBlock,
                "a trigger file has one `trigger` block",
            )
            .label(block.kind.span, "another block")
            .label(first.kind.span, "first block");
            problems.push(diagnostic.help("give each a file of its own"));
        } else {
            first = Some(block);
        }
    }
    if first.is_none() && problems.is_empty() {
        let (start, end) = (0, 0);
        let diagnostic =
            Diagnostic::error(Code::MissingBlock, "a trigger file has a `trigger` block");
        let diagnostic = diagnostic.label(Span { file, start, end }, "there is none here");
        problems.push(diagnostic.help("delete the file, or write it with `orch trigger`"));
    }
    first
}

fn kind(block: &Block, problems: &mut Vec<Diagnostic>) -> TriggerKind {
    let word = keyword(block, "type", &KINDS.map(TriggerKind::keyword), problems);
    let is_meant = |kind: &TriggerKind| Some(kind.keyword()) == word;
    // Terramate's first triggers had no type.
    KINDS.into_iter().find(is_meant).unwrap_or(KINDS[0])
}

fn reason(block: &Block, problems: &mut Vec<Diagnostic>) -> String {
    match value(block, "reason", "`reason = \"…\"`", problems) {
        Some((Value::String(reason), _)) => return reason.to_string(),
        Some((other, span)) => problems.push(wrong_type("reason", "a string", &other, span)),
        None => {}
    }
    String::new()
}

fn key(block: &Block, problems: &mut Vec<Diagnostic>) -> Option<InstanceKey> {
    block.body.attribute("key")?;
    match value(block, "key", "`key = \"…\"`", problems)? {
        (Value::String(key), span) => match InstanceKey::new(&key) {
            Ok(key) => return Some(key),
            Err(bad) => {
                let message = format!("`{key}` cannot be the key of an instance");
                let diagnostic = Diagnostic::error(Code::InvalidValue, message);
                problems.push(diagnostic.label(span, bad.to_string()));
            }
        },
        (other, span) => problems.push(wrong_type("key", "a string", &other, span)),
    }
    None
}

/// Checks the attributes that `orch` does not use.
fn check_rest(block: &Block, problems: &mut Vec<Diagnostic>) {
    for label in &block.labels {
        let diagnostic =
            Diagnostic::error(Code::UnexpectedLabel, "a `trigger` block has no labels");
        let diagnostic = diagnostic.label(label.span, "unexpected label");
        problems.push(diagnostic.help("remove the label"));
    }
    for inner in &block.body.blocks {
        let message = format!("unknown block `{}` in `trigger`", inner.kind.text);
        let diagnostic = Diagnostic::error(Code::UnknownBlock, message)
            .label(inner.kind.span, "a `trigger` block has no nested blocks")
            .label(block.kind.span, "in this block");
        problems.push(diagnostic.help(format!("attributes are: {}", ATTRIBUTES.join(", "))));
    }
    for attribute in &block.body.attributes {
        let name = &*attribute.name.text;
        if !ATTRIBUTES.contains(&name) {
            let diagnostic = Diagnostic::error(
                Code::UnknownAttribute,
                format!("unknown attribute `{name}` in `trigger`"),
            )
            .label(attribute.name.span, "not an attribute of `trigger`")
            .label(block.kind.span, "in this block");
            problems.push(diagnostic.did_you_mean(name, ATTRIBUTES));
        }
    }
    match value(
        block,
        "ctime",
        "when, in seconds: `ctime = 1700000000`",
        problems,
    ) {
        None | Some((Value::Number(_), _)) => {}
        Some((other, span)) => problems.push(wrong_type("ctime", "a number", &other, span)),
    }
    keyword(block, "context", &["stack"], problems);
}

/// Evaluates a required attribute.
fn value(
    block: &Block,
    name: &str,
    example: &str,
    problems: &mut Vec<Diagnostic>,
) -> Option<(Value, Span)> {
    let Some(attribute) = block.body.attribute(name) else {
        let diagnostic = Diagnostic::error(
            Code::MissingAttribute,
            format!("a `trigger` block needs `{name}`"),
        )
        .label(block.kind.span, "missing in this block");
        problems.push(diagnostic.help(format!("write {example}")));
        return None;
    };
    match evaluate(&attribute.value, &NoNamespaces("a `trigger` block")) {
        Ok(value) => Some((value, attribute.value.span)),
        Err(diagnostic) => {
            problems.push(*diagnostic);
            None
        }
    }
}

fn wrong_type(name: &str, wanted: &str, found: &Value, span: Span) -> Diagnostic {
    let diagnostic = Diagnostic::error(Code::WrongType, format!("`{name}` must be {wanted}"));
    diagnostic.label(span, format!("this is {}", found.type_name()))
}

/// Returns an attribute that must be one of a few keywords, if it is set.
fn keyword<'w>(
    block: &Block,
    name: &str,
    words: &[&'w str],
    problems: &mut Vec<Diagnostic>,
) -> Option<&'w str> {
    let Attribute { value, .. } = block.body.attribute(name)?;
    let find = |text: &str| words.iter().copied().find(|word| *word == text);
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    let wanted = format!("`{name}` must be {}", quoted.join(" or "));
    let diagnostic = Diagnostic::error(Code::InvalidValue, wanted);
    problems.push(match &value.kind {
        ExprKind::Variable(word) => match find(word) {
            // Parentheses turn it into an expression.
            Some(word) if value.span.range().len() > word.len() => diagnostic
                .label(value.span, "this is not a bare word")
                .help(format!("write it without parentheses: `{name} = {word}`")),
            Some(word) => return Some(word),
            None => diagnostic
                .label(value.span, format!("this is `{word}`"))
                .did_you_mean(word, words.iter().copied()),
        },
        ExprKind::String(text) if find(text).is_some() => diagnostic
            .label(value.span, "this is a string")
            .help(format!("write it without quotes: `{name} = {text}`")),
        _ => diagnostic.label(value.span, "this is not one of them"),
    });
    None
}

pub(super) fn write(statement: &Statement, seconds: u64) -> String {
    let kind = statement.kind.keyword();
    let reason = quoted(&statement.reason);
    let key = statement.key.as_ref();
    let key = key
        .map(|key| format!("  key     = {}\n", quoted(key.as_str())))
        .unwrap_or_default();
    format!(
        "trigger {{\n  ctime   = {seconds}\n  reason  = {reason}\n  type    = {kind}\n  context = stack\n{key}}}\n"
    )
}

/// Writes a string literal for exactly this text.
fn quoted(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    written.push('"');
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' => written += "\\n",
            '\r' => written += "\\r",
            '\t' => written += "\\t",
            '"' => written += "\\\"",
            '\\' => written += "\\\\",
            // Doubled, it does not start a template.
            '$' | '%' if characters.peek() == Some(&'{') => {
                written.extend([character, character]);
            }
            other if needs_escape(other) => _ = write!(written, "\\u{:04x}", u32::from(other)),
            other => written.push(other),
        }
    }
    written.push('"');
    written
}

#[cfg(test)]
mod tests;
