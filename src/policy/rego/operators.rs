//! Makes operators and loops do what they do in OPA with values of any type.
//!
//! - The interpreter fails for `a - b`, `a | b` and `a & b` with something other than numbers or sets, and for remainders
//!   of fractions; it sorts sets before objects. So the text that it evaluates is `orch.operator("-", a, b)`.
//! - It fails for `some x in a` and `every x in a` if `a` is no collection. So the text is
//!   `some x in orch.collection(a, true)`; `true` says that only the items matter, so that they may get another order.

use regorus::unstable::{ArithOp, BinOp, BoolOp, Expr, Literal, LiteralStmt, Module, Span};

use super::edits::{Edit, Edited, place, range, with_quotes};
use super::functions::operators::{COLLECTION, OPERATOR};
use super::walk::{self, Walker, is_scalar};

/// Returns the text of a module without such operators and loops, or `None` if it has none.
pub(super) fn edited(module: &Module, text: &str) -> Option<Edited> {
    let mut operators = Operators {
        text,
        edits: Vec::new(),
    };
    operators.module(module);
    Edited::new(text, operators.edits)
}

struct Operators<'t> {
    text: &'t str,
    edits: Vec<Edit>,
}

impl<'m> Walker<'m> for Operators<'_> {
    fn statement(&mut self, statement: &'m LiteralStmt) {
        let (collection, has_items) = match &statement.literal {
            Literal::SomeIn {
                key, collection, ..
            } => (collection, key.is_none()),
            Literal::Every { domain, .. } => (domain, false),
            _ => return walk::statement(self, statement),
        };
        // To the parser, an object begins with its last key.
        if let Expr::Object { .. } = root(collection) {
            return walk::statement(self, statement);
        }
        let place = place(self.text, collection);
        self.edit(place.start, 0, format!("{COLLECTION}("));
        walk::statement(self, statement);
        self.edit(place.end, 0, format!(", {has_items})"));
    }

    fn expression(&mut self, expression: &'m Expr) {
        match expression {
            Expr::ArithExpr {
                span, op, lhs, rhs, ..
            } => {
                self.operator(arithmetic(op), span, lhs, rhs);
            }
            Expr::BinExpr {
                span, op, lhs, rhs, ..
            } => {
                let operator = match op {
                    BinOp::Union => "|",
                    BinOp::Intersection => "&",
                };
                self.operator(operator, span, lhs, rhs);
            }
            Expr::BoolExpr {
                span, op, lhs, rhs, ..
            } => match comparison(op) {
                // A literal of another type has its place before all sets and objects.
                Some(operator) if !is_scalar(lhs) && !is_scalar(rhs) => {
                    self.operator(operator, span, lhs, rhs);
                }
                _ => walk::expression(self, expression),
            },
            Expr::UnaryExpr { span, expr, .. } if !matches!(**expr, Expr::Number { .. }) => {
                let whole = with_quotes(self.text, range(span));
                self.edit(whole.start, 1, format!("{OPERATOR}(\"-\", 0, "));
                self.expression(expr);
                self.edit(whole.end, 0, ")".to_owned());
            }
            _ => walk::expression(self, expression),
        }
    }
}

impl Operators<'_> {
    fn operator<'m>(&mut self, operator: &str, span: &Span, left: &'m Expr, right: &'m Expr) {
        let whole = with_quotes(self.text, range(span));
        // Parentheses around an operand are no part of it.
        let between = place(self.text, left).end..range(right.span()).start;
        let at = position(&self.text[between.clone()], operator);
        if let Some(at) = at {
            self.edit(whole.start, 0, format!("{OPERATOR}(\"{operator}\", "));
            self.edit(between.start + at, operator.len(), ", ".to_owned());
        }
        self.expression(left);
        self.expression(right);
        if at.is_some() {
            self.edit(whole.end, 0, ")".to_owned());
        }
    }

    fn edit(&mut self, at: usize, length: usize, by: String) {
        self.edits.push(Edit::own(at..at + length, by));
    }
}

fn arithmetic(operator: &ArithOp) -> &'static str {
    match operator {
        ArithOp::Add => "+",
        ArithOp::Sub => "-",
        ArithOp::Mul => "*",
        ArithOp::Div => "/",
        ArithOp::Mod => "%",
    }
}

/// Returns a comparison that depends on the order of types.
fn comparison(operator: &BoolOp) -> Option<&'static str> {
    match operator {
        BoolOp::Lt => Some("<"),
        BoolOp::Le => Some("<="),
        BoolOp::Gt => Some(">"),
        BoolOp::Ge => Some(">="),
        BoolOp::Eq | BoolOp::Ne => None,
    }
}

fn root(mut expression: &Expr) -> &Expr {
    while let Expr::RefDot { refr, .. } | Expr::RefBrack { refr, .. } = expression {
        expression = refr;
    }
    expression
}

/// Returns where an operator is in a text, outside of comments.
fn position(text: &str, operator: &str) -> Option<usize> {
    let mut is_comment = false;
    let mut characters = text.char_indices();
    let found = characters.find(|(at, character)| {
        is_comment = *character != '\n' && (is_comment || *character == '#');
        !is_comment && text[*at..].starts_with(operator)
    });
    found.map(|(at, _)| at)
}
