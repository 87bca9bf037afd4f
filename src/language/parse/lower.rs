//! Converts the parser's tree to [`syntax`](crate::language::syntax).

use std::ops::Range;
use std::str::FromStr;

use bigdecimal::BigDecimal;
use hcl_edit::expr::{Expression, ObjectKey, TraversalOperator};
use hcl_edit::structure::{self, BlockLabel};
use hcl_edit::template::{Directive, Element, HeredocTemplate, Strip, Template};
use hcl_edit::{Decorated, Ident};

use super::heredoc::dedent;
use crate::language::syntax::{
    Attribute, Block, Body, CallExpr, Expr, ExprKind, ForExpr, Name, TemplatePart, TraversalStep,
    TraversalStepKind,
};
use crate::source::{FileId, Span};

pub(super) struct Lower<'a> {
    file: FileId,
    text: &'a str,
    /// Where the text begins in the file; negative if something stands before the text of the file.
    origin: isize,
}

impl<'a> Lower<'a> {
    pub(super) fn new(file: FileId, text: &'a str) -> Self {
        Lower::from(file, text, 0)
    }

    /// Makes one for a text that is part of its file and begins at a place.
    pub(super) fn from(file: FileId, text: &'a str, place: usize) -> Self {
        let origin = isize::try_from(place).expect("files are far below 4 GB");
        Lower { file, text, origin }
    }

    /// Makes one for a text with something put before the text of the file.
    pub(super) fn after(file: FileId, text: &'a str, before: &str) -> Self {
        let length = isize::try_from(before.len()).expect("it is short");
        Lower {
            file,
            text,
            origin: -length,
        }
    }

    fn span(&self, node: &impl hcl_edit::Span) -> Span {
        // Everything that was parsed has a span.
        let range = node.span().unwrap_or_default();
        let start = range.start.saturating_add_signed(self.origin);
        span(
            self.file,
            &(start..range.end.saturating_add_signed(self.origin)),
        )
    }

    fn name(&self, text: &str, node: &impl hcl_edit::Span) -> Name {
        Name {
            text: text.into(),
            span: self.span(node),
        }
    }

    /// Lowers a body; of blocks that `keep` rejects, only the head.
    pub(super) fn body(&self, body: &structure::Body, keep: fn(&structure::Block) -> bool) -> Body {
        // Most bodies are small, and a vector that grows begins with more.
        let n_attributes = body.attributes().count();
        let mut lowered = Body {
            attributes: Vec::with_capacity(n_attributes),
            blocks: Vec::with_capacity(body.len() - n_attributes),
            deferred: Vec::new(),
        };
        for structure in body {
            match structure {
                structure::Structure::Attribute(attribute) => lowered.attributes.push(Attribute {
                    name: self.name(attribute.key.as_str(), &attribute.key),
                    value: self.expr(&attribute.value),
                }),
                structure::Structure::Block(block) => lowered.blocks.push(Block {
                    kind: self.name(block.ident.as_str(), &block.ident),
                    labels: block.labels.iter().map(|label| self.label(label)).collect(),
                    span: self.span(block),
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

    /// Lowers the text between the quotes of a string.
    pub(super) fn template(&self, template: &Template) -> Vec<TemplatePart> {
        self.elements(template.iter(), Edges::QUOTED)
    }

    /// Lowers the text of a file that is a template as a whole.
    pub(super) fn text(&self, template: &Template) -> Expr {
        Expr {
            span: span(self.file, &(0..self.text.len())),
            kind: text_of(self.elements(template.iter(), Edges::HEREDOC)),
        }
    }

    fn label(&self, label: &BlockLabel) -> Name {
        self.name(label.as_str(), label)
    }

    fn exprs<'e>(&self, exprs: impl IntoIterator<Item = &'e Expression>) -> Vec<Expr> {
        exprs.into_iter().map(|expr| self.expr(expr)).collect()
    }

    pub(super) fn expr(&self, expr: &Expression) -> Expr {
        let span = self.span(expr);
        let kind = match expr {
            Expression::Null(_) => ExprKind::Null,
            Expression::Bool(value) => ExprKind::Bool(*value.value()),
            Expression::Number(_) => ExprKind::Number(Box::new(self.number(expr))),
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
            Expression::HeredocTemplate(heredoc) => self.heredoc(heredoc),
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
                ExprKind::Call(Box::new(CallExpr {
                    name,
                    arguments: self.exprs(call.args.iter()),
                    expands: call.args.expand_final(),
                }))
            }
            Expression::Traversal(traversal) => {
                let steps = traversal.operators.iter().map(|operator| TraversalStep {
                    span: match operator.value() {
                        TraversalOperator::GetAttr(name) => self.span(name),
                        _ => self.span(operator),
                    },
                    kind: match operator.value() {
                        TraversalOperator::AttrSplat(_) => TraversalStepKind::AttributeSplat,
                        TraversalOperator::FullSplat(_) => TraversalStepKind::FullSplat,
                        TraversalOperator::GetAttr(name) => {
                            TraversalStepKind::Attribute(name.as_str().into())
                        }
                        TraversalOperator::Index(index) => {
                            TraversalStepKind::Index(self.expr(index))
                        }
                        TraversalOperator::LegacyIndex(index) => {
                            TraversalStepKind::Attribute(index.to_string().into())
                        }
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

    /// Reads the number from the text: the parser has rounded fractions to 64 bits. A number
    /// with an absurd exponent becomes one that evaluation refuses.
    fn number(&self, node: &impl hcl_edit::Span) -> BigDecimal {
        let text = &self.text[node.span().unwrap_or_default()];
        // There may be blanks or a comment after the sign.
        let number = match text.strip_prefix('-') {
            Some(rest) => {
                let blank = |c: char| c.is_whitespace() || c == '/';
                let digits = rest.rfind(blank).map_or(rest, |at| &rest[at..]);
                BigDecimal::from_str(digits.trim_start_matches(blank)).map(|it| -it)
            }
            None => BigDecimal::from_str(text),
        };
        number.unwrap_or_else(|_| BigDecimal::new(1.into(), i64::MAX))
    }

    fn object_key(&self, key: &ObjectKey) -> Expr {
        match key {
            // A bare word is the key itself; in parentheses it is a variable.
            ObjectKey::Ident(name) | ObjectKey::Expression(Expression::Variable(name)) => Expr {
                span: self.span(name),
                kind: ExprKind::String(self.word(name).into()),
            },
            ObjectKey::Expression(expr @ Expression::Null(_)) => Expr {
                span: self.span(expr),
                kind: ExprKind::String("null".into()),
            },
            ObjectKey::Expression(expr) => self.expr(expr),
        }
    }

    /// Returns a bare word as written: the parser may have been given another one.
    fn word<'t>(&'t self, word: &'t Decorated<Ident>) -> &'t str {
        let range = hcl_edit::Span::span(word);
        let written = range.and_then(|range| self.text.get(range));
        written.unwrap_or(word.as_str())
    }

    fn heredoc(&self, heredoc: &HeredocTemplate) -> ExprKind {
        let range = hcl_edit::Span::span(&heredoc.template);
        let start = range.unwrap_or_default().start;
        let is_indented = self.text[..start]
            .trim_end()
            .rsplit("<<")
            .next()
            .is_some_and(|opening| opening.starts_with('-'));
        let edges = Edges {
            of: if is_indented {
                Kind::Indented
            } else {
                Kind::Heredoc
            },
            ..Edges::QUOTED
        };
        let mut parts = self.elements(heredoc.template.iter(), edges);
        if is_indented {
            dedent(&mut parts);
        }
        text_of(parts)
    }

    /// Returns the text of a part of a heredoc before the parser removed indentation.
    fn raw(&self, literal: &impl hcl_edit::Span) -> String {
        let text = &self.text[literal.span().unwrap_or_default()];
        text.replace("$${", "${").replace("%%{", "%{")
    }

    fn elements<'e>(
        &self,
        elements: impl Iterator<Item = &'e Element>,
        edges: Edges,
    ) -> Vec<TemplatePart> {
        let elements: Vec<&Element> = elements.collect();
        let mut parts = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            parts.push(match element {
                Element::Literal(literal) => {
                    let raw = (edges.of == Kind::Indented).then(|| self.raw(literal));
                    let mut text = raw.as_deref().unwrap_or(literal.as_str());
                    let before = index
                        .checked_sub(1)
                        .map_or(edges.trim_start, |before| strips_after(elements[before]));
                    let after = elements
                        .get(index + 1)
                        .map_or(edges.trim_end, |after| strips_before(after));
                    if before {
                        text = trim_start(text, edges.by_line());
                    }
                    if after {
                        text = trim_end(text, edges.by_line());
                    }
                    TemplatePart::Literal(text.into())
                }
                Element::Interpolation(interpolation) => {
                    TemplatePart::Interpolation(self.expr(&interpolation.expr))
                }
                Element::Directive(directive) => self.directive(directive, edges),
            });
        }
        parts
    }

    fn directive(&self, directive: &Directive, around: Edges) -> TemplatePart {
        let inner = |template: &Template, start: Strip, end: Strip| {
            let edges = Edges {
                trim_start: start.strip_end(),
                trim_end: end.strip_start(),
                ..around
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

/// How `~` marks around a template strip the text at its two ends.
#[derive(Clone, Copy)]
struct Edges {
    trim_start: bool,
    trim_end: bool,
    of: Kind,
}

/// What kind of text a template is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `"…"`; `~` strips all white space.
    Quoted,
    /// `<<EOT`; `~` strips up to the end of the line.
    Heredoc,
    /// `<<-EOT`; text is taken as it is in the file, with its indentation.
    Indented,
}

impl Edges {
    const QUOTED: Edges = Edges {
        trim_start: false,
        trim_end: false,
        of: Kind::Quoted,
    };
    const HEREDOC: Edges = Edges {
        of: Kind::Heredoc,
        ..Edges::QUOTED
    };

    fn by_line(self) -> bool {
        self.of != Kind::Quoted
    }
}

/// Returns the simplest kind of expression for the parts of a text that spans several lines.
fn text_of(mut parts: Vec<TemplatePart>) -> ExprKind {
    match parts.as_mut_slice() {
        [] => ExprKind::String("".into()),
        [TemplatePart::Literal(text)] => ExprKind::String(std::mem::take(text)),
        _ => ExprKind::Template(parts),
    }
}

/// Returns whether the text after this element loses its leading white space.
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

/// Returns whether the text before this element loses its trailing white space.
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

pub(super) fn span(file: FileId, range: &Range<usize>) -> Span {
    let offset = |at: usize| u32::try_from(at).expect("files are far below 4 GB");
    Span {
        file,
        start: offset(range.start),
        end: offset(range.end),
    }
}
