//! Configuration as written: blocks, attributes and expressions, each with its place.
//!
//! The parser's tree keeps every comment and blank and is about thirty times the size of the text, so
//! [`crate::language::parse`] converts it to this smaller one as soon as a file is parsed. This module interprets
//! neither blocks nor expressions.

use bigdecimal::BigDecimal;

use crate::source::Span;

/// A name, label or keyword, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The text, unquoted.
    pub text: Box<str>,
    /// The place, quotes included.
    pub span: Span,
}

/// The content of a block, or of a whole file.
#[derive(Debug, Clone, Default)]
pub struct Body {
    /// `name = expression`, in the order written; the parser ensures that names are unique.
    pub attributes: Vec<Attribute>,
    pub blocks: Vec<Block>,
    /// Blocks whose content has not been parsed yet; see [`crate::language::parse::deferred`].
    pub deferred: Vec<DeferredBlock>,
}

/// A block whose content is known to be well-formed but has not been parsed.
#[derive(Debug, Clone)]
pub struct DeferredBlock {
    pub kind: Name,
    pub labels: Vec<Name>,
    pub content: Span,
}

/// `name = expression`.
#[derive(Debug, Clone)]
pub struct Attribute {
    pub name: Name,
    pub value: Expr,
}

/// `kind "label" { … }`.
#[derive(Debug, Clone)]
pub struct Block {
    pub kind: Name,
    pub labels: Vec<Name>,
    /// The whole block; without its end if the content was deferred.
    pub span: Span,
    /// The content; empty for top-level blocks that `orch` accepts but does not use.
    pub body: Body,
}

impl Body {
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty() && self.blocks.is_empty() && self.deferred.is_empty()
    }

    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes
            .iter()
            .find(|attribute| &*attribute.name.text == name)
    }

    pub fn blocks<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Block> {
        self.blocks
            .iter()
            .filter(move |block| &*block.kind.text == kind)
    }

    /// Visits every function call, at any depth.
    pub(crate) fn each_call<'a>(&'a self, visit: &mut dyn FnMut(&'a Name, &'a [Expr])) {
        for attribute in &self.attributes {
            attribute.value.each_call(visit);
        }
        for block in &self.blocks {
            block.body.each_call(visit);
        }
    }
}

#[derive(Debug, Clone)]
pub struct Expr {
    pub span: Span,
    pub kind: ExprKind,
}

impl Expr {
    /// Visits every function call in the expression, outer ones first.
    pub(crate) fn each_call<'a>(&'a self, visit: &mut dyn FnMut(&'a Name, &'a [Expr])) {
        self.each(&mut |expr| expr.visit_call(visit));
    }

    fn visit_call<'a>(&'a self, visit: &mut dyn FnMut(&'a Name, &'a [Expr])) {
        if let ExprKind::Call(call) = &self.kind {
            visit(&call.name, &call.arguments);
        }
    }

    /// Visits the expression and every expression in it, outer ones first.
    pub(crate) fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        let mut each = |exprs: &'a [Expr]| exprs.iter().for_each(|expr| expr.each(visit));
        match &self.kind {
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::Variable(_) => {}
            ExprKind::Template(parts) => {
                for part in parts {
                    part.each(visit);
                }
            }
            ExprKind::List(items) => each(items),
            ExprKind::Object(entries) => {
                for (key, value) in entries {
                    key.each(visit);
                    value.each(visit);
                }
            }
            ExprKind::Traversal(base, steps) => {
                base.each(visit);
                for step in steps {
                    if let TraversalStepKind::Index(index) = &step.kind {
                        index.each(visit);
                    }
                }
            }
            ExprKind::Unary(_, operand) => operand.each(visit),
            ExprKind::Binary(_, operands) => each(&**operands),
            ExprKind::Conditional(parts) => each(&**parts),
            ExprKind::For(for_expr) => {
                for_expr.collection.each(visit);
                for inner in [&for_expr.key, &for_expr.condition].into_iter().flatten() {
                    inner.each(visit);
                }
                for_expr.value.each(visit);
            }
            ExprKind::Call(call) => each(&call.arguments),
        }
    }
}

#[derive(Debug, Clone)]
pub enum ExprKind {
    Null,
    /// `true`, `false`
    Bool(bool),
    /// `12`, `0.5`, exact
    Number(Box<BigDecimal>),
    /// A string without interpolation.
    String(Box<str>),
    Template(Vec<TemplatePart>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `{ a = b }`
    Object(Vec<(Expr, Expr)>),
    /// A bare word: the name of a namespace or of a `for` variable.
    Variable(Box<str>),
    /// `base.name[index]`
    Traversal(Box<Expr>, Vec<TraversalStep>),
    /// `-x`, `!x`
    Unary(UnaryOperator, Box<Expr>),
    /// `x + y`
    Binary(BinaryOperator, Box<[Expr; 2]>),
    /// `condition ? yes : no`
    Conditional(Box<[Expr; 3]>),
    /// `[for …]`, `{for …}`
    For(Box<ForExpr>),
    /// `name(…)`
    Call(Box<CallExpr>),
}

/// `name(argument, …)`
#[derive(Debug, Clone)]
pub struct CallExpr {
    /// The name; namespaces are part of it: `a::b`.
    pub name: Name,
    pub arguments: Vec<Expr>,
    /// Whether the last argument is a list of further arguments: `name(list...)`.
    pub expands: bool,
}

pub use hcl_edit::expr::{BinaryOperator, UnaryOperator};

/// Returns whether a text can be written as a name, without quotes.
pub fn is_identifier(text: &str) -> bool {
    hcl_edit::Ident::try_new(text).is_ok()
}

#[derive(Debug, Clone)]
pub struct TraversalStep {
    pub span: Span,
    pub kind: TraversalStepKind,
}

#[derive(Debug, Clone)]
pub enum TraversalStepKind {
    /// `.name`, and the old form of an index: `.0`
    Attribute(Box<str>),
    /// `[expression]`
    Index(Expr),
    /// `.*`: applies to the attribute steps that follow it
    AttributeSplat,
    /// `[*]`: applies to all steps that follow it
    FullSplat,
}

/// `for key, value in collection : key_result => value_result… if condition`
#[derive(Debug, Clone)]
pub struct ForExpr {
    pub key_variable: Option<Box<str>>,
    pub value_variable: Box<str>,
    pub collection: Expr,
    /// For an object: the key of each entry.
    pub key: Option<Expr>,
    pub value: Expr,
    /// Whether values of equal keys are grouped into lists (`...`).
    pub grouping: bool,
    pub condition: Option<Expr>,
}

#[derive(Debug, Clone)]
pub enum TemplatePart {
    Literal(Box<str>),
    /// `${expression}`
    Interpolation(Expr),
    /// `%{ if condition }…%{ else }…%{ endif }`
    If {
        condition: Expr,
        then: Vec<TemplatePart>,
        otherwise: Vec<TemplatePart>,
    },
    /// `%{ for key, value in collection }…%{ endfor }`
    For {
        key_variable: Option<Box<str>>,
        value_variable: Box<str>,
        collection: Expr,
        body: Vec<TemplatePart>,
    },
}

impl TemplatePart {
    pub(crate) fn each_call<'a>(&'a self, visit: &mut dyn FnMut(&'a Name, &'a [Expr])) {
        self.each(&mut |expr| expr.visit_call(visit));
    }

    fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        let (expr, inner): (_, [&[TemplatePart]; 2]) = match self {
            TemplatePart::Literal(_) => return,
            TemplatePart::Interpolation(expr) => (expr, [&[], &[]]),
            TemplatePart::If {
                condition,
                then,
                otherwise,
            } => (condition, [then, otherwise]),
            TemplatePart::For {
                collection, body, ..
            } => (collection, [body, &[]]),
        };
        expr.each(visit);
        for part in inner.into_iter().flatten() {
            part.each(visit);
        }
    }
}
