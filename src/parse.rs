//! Text to [`syntax`](crate::syntax): the only user of the HCL parser.
//!
//! Each file is parsed once, in the task that read it, and what `orch` has no use for is dropped at
//! once: the content of top-level blocks such as `generate_hcl` is checked for syntax and forgotten.
//! The parser stops at the first syntax error of a file, so a file gives at most one.

use std::ops::Range;
use std::str::FromStr;

use bigdecimal::BigDecimal;
use hcl_edit::expr::{Expression, ObjectKey, TraversalOperator};
use hcl_edit::structure::{self, BlockLabel};
use hcl_edit::template::{Directive, Element, Strip, Template};

use crate::diagnostic::Diagnostic;
use crate::source::{FileId, Span};
use crate::syntax::{
    Attribute, Block, Body, Expr, ExprKind, ForExpr, Name, Step, StepKind, TemplatePart,
};

/// Top-level blocks whose content `orch` reads.
const USED: [&str; 5] = ["globals", "import", "orch", "stack", "terramate"];

/// Parses a configuration file.
///
/// # Errors
///
/// A diagnostic for the first syntax error.
pub fn parse(file: FileId, text: &str) -> Result<Body, Box<Diagnostic>> {
    let body = structure::Body::from_str(text)
        .map_err(|error| Box::new(syntax_error(file, text, &error)))?;
    let lower = Lower { file, text };
    let mut lowered = lower.body(&body, |block| USED.contains(&block.ident.as_str()));
    lowered.attributes.shrink_to_fit();
    lowered.blocks.shrink_to_fit();
    Ok(lowered)
}

fn syntax_error(file: FileId, text: &str, error: &hcl_edit::parser::Error) -> Diagnostic {
    // The parser may report a byte inside a character.
    let offset = text.floor_char_boundary(error.location().offset());
    let message = error.message();
    let here = span(file, &(offset..offset));
    let Some((at, what, help)) = unbalanced(text) else {
        let diagnostic = Diagnostic::error("syntax error").label(here, message);
        return if message.contains("nested levels") {
            diagnostic.help("split the expression: name its inner parts in `globals`")
        } else {
            diagnostic
        };
    };
    let diagnostic = Diagnostic::error("syntax error").label(span(file, &(at..at + 1)), what);
    if at == offset {
        diagnostic.help(help)
    } else {
        diagnostic.label(here, message).help(help)
    }
}

/// Finds the bracket or quote that is never closed, or that closes nothing, which the parser reports
/// far from its place. Strings, comments and heredocs are skipped roughly; a wrong guess only
/// affects a hint.
fn unbalanced(text: &str) -> Option<(usize, &'static str, String)> {
    let bytes = text.as_bytes();
    let mut open: Vec<(usize, u8)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let line = || {
            bytes[at..]
                .iter()
                .position(|&byte| byte == b'\n')
                .map_or(bytes.len(), |end| at + end)
        };
        match bytes[at] {
            b'#' => at = line(),
            b'/' if bytes.get(at + 1) == Some(&b'/') => at = line(),
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let Some(length) = text[at + 2..].find("*/") else {
                    return Some((
                        at,
                        "this comment is not closed",
                        "close the comment with `*/`".into(),
                    ));
                };
                at += length + 3;
            }
            b'<' if bytes[at..].starts_with(b"<<") => return None, // heredoc: not worth guessing
            b'"' => {
                let start = at;
                let end = line();
                at += 1;
                while at < end && bytes[at] != b'"' {
                    if bytes[at..].starts_with(b"${") || bytes[at..].starts_with(b"%{") {
                        return None;
                    }
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                if at >= end {
                    return Some((
                        start,
                        "this string is not closed",
                        "close the string with `\"` on the same line".into(),
                    ));
                }
            }
            byte @ (b'{' | b'[' | b'(') => open.push((at, byte)),
            byte @ (b'}' | b']' | b')') => {
                let opening = match byte {
                    b'}' => b'{',
                    b']' => b'[',
                    _ => b'(',
                };
                match open.pop() {
                    Some((_, found)) if found == opening => {}
                    Some((start, _)) => {
                        return Some((
                            start,
                            "opened here",
                            "close it before closing what is around it".into(),
                        ));
                    }
                    None => {
                        let help = format!("nothing is open here: remove this `{}`", byte as char);
                        return Some((at, "closes nothing", help));
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    open.pop().map(|(start, byte)| {
        let closing = match byte {
            b'{' => '}',
            b'[' => ']',
            _ => ')',
        };
        (
            start,
            "never closed",
            format!("add the missing `{closing}`"),
        )
    })
}

fn span(file: FileId, range: &Range<usize>) -> Span {
    let offset = |at: usize| u32::try_from(at).expect("files are far below 4 GB");
    Span {
        file,
        start: offset(range.start),
        end: offset(range.end),
    }
}

struct Lower<'a> {
    file: FileId,
    text: &'a str,
}

impl Lower<'_> {
    fn span(&self, node: &impl hcl_edit::Span) -> Span {
        // Everything that was parsed has a span.
        span(self.file, &node.span().unwrap_or_default())
    }

    fn name(&self, text: &str, node: &impl hcl_edit::Span) -> Name {
        Name {
            text: text.into(),
            span: self.span(node),
        }
    }

    fn body(&self, body: &structure::Body, keep: fn(&structure::Block) -> bool) -> Body {
        let mut lowered = Body::default();
        for structure in body {
            match structure {
                structure::Structure::Attribute(attribute) => lowered.attributes.push(Attribute {
                    name: self.name(attribute.key.as_str(), &attribute.key),
                    value: self.expr(&attribute.value),
                }),
                structure::Structure::Block(block) => lowered.blocks.push(Block {
                    kind: self.name(block.ident.as_str(), &block.ident),
                    labels: block.labels.iter().map(|label| self.label(label)).collect(),
                    body: if keep(block) {
                        self.body(&block.body, |_| true)
                    } else {
                        Body::default()
                    },
                }),
            }
        }
        lowered
    }

    fn label(&self, label: &BlockLabel) -> Name {
        self.name(label.as_str(), label)
    }

    fn exprs<'a>(&self, exprs: impl IntoIterator<Item = &'a Expression>) -> Vec<Expr> {
        exprs.into_iter().map(|expr| self.expr(expr)).collect()
    }

    fn expr(&self, expr: &Expression) -> Expr {
        let span = self.span(expr);
        let kind = match expr {
            Expression::Null(_) => ExprKind::Null,
            Expression::Bool(value) => ExprKind::Bool(*value.value()),
            Expression::Number(number) => {
                ExprKind::Number(Box::new(self.number(span, *number.value())))
            }
            Expression::String(text) => ExprKind::String(text.as_str().into()),
            Expression::Array(array) => ExprKind::List(self.exprs(array)),
            Expression::Object(object) => {
                let entry = |(key, value): (&ObjectKey, &hcl_edit::expr::ObjectValue)| {
                    (self.object_key(key), self.expr(value.expr()))
                };
                ExprKind::Object(object.iter().map(entry).collect())
            }
            Expression::StringTemplate(template) => {
                ExprKind::Template(self.elements(template.iter(), Edges::QUOTED))
            }
            Expression::HeredocTemplate(heredoc) => self.heredoc(&heredoc.template),
            Expression::Parenthesis(inner) => {
                return Expr {
                    span,
                    ..self.expr(inner.inner())
                };
            }
            Expression::Variable(name) => ExprKind::Variable(name.as_str().into()),
            Expression::Conditional(conditional) => ExprKind::Conditional(Box::new([
                self.expr(&conditional.cond_expr),
                self.expr(&conditional.true_expr),
                self.expr(&conditional.false_expr),
            ])),
            Expression::FuncCall(call) => {
                let mut names: Vec<&str> = call
                    .name
                    .namespace
                    .iter()
                    .map(|name| name.as_str())
                    .collect();
                names.push(call.name.name.as_str());
                let name = self.name(&names.join("::"), &call.name.name);
                ExprKind::Call(name, self.exprs(call.args.iter()))
            }
            Expression::Traversal(traversal) => {
                let steps = traversal.operators.iter().map(|operator| Step {
                    span: self.span(operator),
                    kind: match operator.value() {
                        TraversalOperator::AttrSplat(_) => StepKind::AttributeSplat,
                        TraversalOperator::FullSplat(_) => StepKind::FullSplat,
                        TraversalOperator::GetAttr(name) => {
                            StepKind::Attribute(name.as_str().into())
                        }
                        TraversalOperator::Index(index) => StepKind::Index(self.expr(index)),
                        TraversalOperator::LegacyIndex(index) => StepKind::Index(Expr {
                            span: self.span(operator),
                            kind: ExprKind::Number(Box::new((*index.value()).into())),
                        }),
                    },
                });
                ExprKind::Traversal(Box::new(self.expr(&traversal.expr)), steps.collect())
            }
            Expression::UnaryOp(operation) => ExprKind::Unary(
                *operation.operator.value(),
                Box::new(self.expr(&operation.expr)),
            ),
            Expression::BinaryOp(operation) => ExprKind::Binary(
                *operation.operator.value(),
                Box::new([
                    self.expr(&operation.lhs_expr),
                    self.expr(&operation.rhs_expr),
                ]),
            ),
            Expression::ForExpr(for_expr) => ExprKind::For(Box::new(ForExpr {
                key_variable: for_expr
                    .intro
                    .key_var
                    .as_ref()
                    .map(|name| name.as_str().into()),
                value_variable: for_expr.intro.value_var.as_str().into(),
                collection: self.expr(&for_expr.intro.collection_expr),
                key: for_expr.key_expr.as_ref().map(|key| self.expr(key)),
                value: self.expr(&for_expr.value_expr),
                grouping: for_expr.grouping,
                condition: for_expr
                    .cond
                    .as_ref()
                    .map(|condition| self.expr(&condition.expr)),
            })),
        };
        Expr { span, kind }
    }

    /// Reads the number from the text: the parser has rounded fractions to 64 bits.
    fn number(&self, span: Span, rounded: hcl_edit::Number) -> BigDecimal {
        BigDecimal::from_str(&self.text[span.range()])
            .or_else(|_| BigDecimal::from_str(&rounded.to_string()))
            .unwrap_or_default()
    }

    fn object_key(&self, key: &ObjectKey) -> Expr {
        match key {
            // A bare word is the key itself; in parentheses it is a variable.
            ObjectKey::Ident(name) | ObjectKey::Expression(Expression::Variable(name)) => Expr {
                span: self.span(name),
                kind: ExprKind::String(name.as_str().into()),
            },
            ObjectKey::Expression(expr) => self.expr(expr),
        }
    }

    fn heredoc(&self, template: &Template) -> ExprKind {
        let mut parts = self.elements(template.iter(), Edges::HEREDOC);
        match parts.as_mut_slice() {
            [] => ExprKind::String("".into()),
            [TemplatePart::Literal(text)] => ExprKind::String(std::mem::take(text)),
            _ => ExprKind::Template(parts),
        }
    }

    fn elements<'a>(
        &self,
        elements: impl Iterator<Item = &'a Element>,
        edges: Edges,
    ) -> Vec<TemplatePart> {
        let elements: Vec<&Element> = elements.collect();
        let mut parts = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            parts.push(match element {
                Element::Literal(text) => {
                    let mut text = text.as_str();
                    let before = index
                        .checked_sub(1)
                        .map_or(edges.trim_start, |before| strips_after(elements[before]));
                    let after = elements
                        .get(index + 1)
                        .map_or(edges.trim_end, |after| strips_before(after));
                    if before {
                        text = trim_start(text, edges.by_line);
                    }
                    if after {
                        text = trim_end(text, edges.by_line);
                    }
                    TemplatePart::Literal(text.into())
                }
                Element::Interpolation(interpolation) => {
                    TemplatePart::Interpolation(self.expr(&interpolation.expr))
                }
                Element::Directive(directive) => self.directive(directive, edges.by_line),
            });
        }
        parts
    }

    fn directive(&self, directive: &Directive, by_line: bool) -> TemplatePart {
        let inner = |template: &Template, start: Strip, end: Strip| {
            let edges = Edges {
                trim_start: start.strip_end(),
                trim_end: end.strip_start(),
                by_line,
            };
            self.elements(template.iter(), edges)
        };
        match directive {
            Directive::If(directive) => {
                let end = directive.endif_expr.strip;
                let otherwise = directive.else_expr.as_ref();
                let then_end = otherwise.map_or(end, |otherwise| otherwise.strip);
                TemplatePart::If {
                    condition: self.expr(&directive.if_expr.cond_expr),
                    then: inner(
                        &directive.if_expr.template,
                        directive.if_expr.strip,
                        then_end,
                    ),
                    otherwise: otherwise
                        .map(|otherwise| inner(&otherwise.template, otherwise.strip, end))
                        .unwrap_or_default(),
                }
            }
            Directive::For(directive) => TemplatePart::For {
                key_variable: directive
                    .for_expr
                    .key_var
                    .as_ref()
                    .map(|name| name.as_str().into()),
                value_variable: directive.for_expr.value_var.as_str().into(),
                collection: self.expr(&directive.for_expr.collection_expr),
                body: inner(
                    &directive.for_expr.template,
                    directive.for_expr.strip,
                    directive.endfor_expr.strip,
                ),
            },
        }
    }
}

/// What `~` marks around a template do to the text at its two ends.
#[derive(Clone, Copy)]
struct Edges {
    trim_start: bool,
    trim_end: bool,
    /// In a heredoc `~` reaches to the end of the line only, in a quoted string over all white space.
    by_line: bool,
}

impl Edges {
    const QUOTED: Edges = Edges {
        trim_start: false,
        trim_end: false,
        by_line: false,
    };
    const HEREDOC: Edges = Edges {
        by_line: true,
        ..Edges::QUOTED
    };
}

/// Whether the text after this element loses its leading white space.
fn strips_after(element: &Element) -> bool {
    match element {
        Element::Literal(_) => false,
        Element::Interpolation(interpolation) => interpolation.strip.strip_end(),
        Element::Directive(directive) => match &**directive {
            Directive::If(directive) => directive.endif_expr.strip.strip_end(),
            Directive::For(directive) => directive.endfor_expr.strip.strip_end(),
        },
    }
}

/// Whether the text before this element loses its trailing white space.
fn strips_before(element: &Element) -> bool {
    match element {
        Element::Literal(_) => false,
        Element::Interpolation(interpolation) => interpolation.strip.strip_start(),
        Element::Directive(directive) => match &**directive {
            Directive::If(directive) => directive.if_expr.strip.strip_start(),
            Directive::For(directive) => directive.for_expr.strip.strip_start(),
        },
    }
}

fn trim_start(text: &str, by_line: bool) -> &str {
    let (line, rest) = match text.find('\n') {
        Some(newline) if by_line => text.split_at(newline + 1),
        _ => (text, ""),
    };
    let trimmed = line.trim_start();
    &text[text.len() - rest.len() - trimmed.len()..]
}

fn trim_end(text: &str, by_line: bool) -> &str {
    if !by_line {
        return text.trim_end();
    }
    // The last line, with its own line feed if the text ends with one.
    let body = text.strip_suffix('\n').unwrap_or(text);
    let line = body.rfind('\n').map_or(0, |newline| newline + 1);
    &text[..line + text[line..].trim_end().len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Style, render};
    use crate::path::ProjectPath;
    use crate::source::{SourceFile, Sources};

    fn problem(text: &str) -> String {
        let mut sources = Sources::default();
        let path = ProjectPath::root().join("stack.tm");
        let file = sources.add(SourceFile {
            path,
            text: text.to_owned(),
        });
        match parse(file, text) {
            Ok(_) => "fine".to_owned(),
            Err(diagnostic) => render(&diagnostic, &sources, Style::Plain),
        }
    }

    #[test]
    fn an_unclosed_block_is_reported_where_it_was_opened() {
        insta::assert_snapshot!(problem("globals {}\nstack {\n  tags = [\"a\"]\n"), @r#"
        error: syntax error
         --> stack.tm:2:7
          |
        2 | stack {
          |       ^ never closed
        3 |   tags = ["a"]
          |               - invalid block body; expected `}`, newline or identifier
          |
          = help: add the missing `}`
        "#);
    }

    #[test]
    fn an_unclosed_string_is_pointed_at() {
        insta::assert_snapshot!(problem("stack {\n  name = \"app\n}\n"), @r#"
        error: syntax error
         --> stack.tm:2:10
          |
        2 |   name = "app
          |   -      ^ this string is not closed
          |   |
          |   invalid block body; expected `}`, newline or identifier
          |
          = help: close the string with `"` on the same line
        "#);
    }

    #[test]
    fn an_attribute_twice_is_an_error() {
        insta::assert_snapshot!(problem("stack {\n  name = \"a\"\n  name = \"b\"\n}\n"), @r#"
        error: syntax error
         --> stack.tm:3:3
          |
        3 |   name = "b"
          |   ^ invalid attribute; expected unique attribute key; found redefined attribute
        "#);
    }

    #[test]
    fn depth_is_limited() {
        let nested = |depth| format!("a = {}1{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(problem(&nested(63)), "fine");
        assert!(problem(&nested(65)).contains("at most 64 nested levels"));
        assert!(problem(&nested(100_000)).contains("at most 64 nested levels"));
    }

    #[test]
    fn an_error_inside_a_character_does_not_panic() {
        assert!(problem("e \"e:\"eƚ").contains("syntax error"));
    }
}
