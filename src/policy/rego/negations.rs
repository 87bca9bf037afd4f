//! Makes negations undefined where OPA does.
//!
//! For a stack without `locked_by`, `not startswith(input.stack.locked_by, "ci")` is undefined in OPA: what a
//! function, an operator or an index is given is evaluated before the negation. To the interpreter the call is
//! false, and its negation true. So the text that it evaluates is `known := input.stack.locked_by;
//! not startswith(input.stack.locked_by, "ci")`. Both sides of `==` and `=` belong to the negation in OPA too.

use std::collections::HashSet;
use std::ops::Range;

use regorus::unstable::{BoolOp, Expr, Literal, LiteralStmt, Module, Query};

use super::edits::{Edit, Edited, Piece, place, range, with_quotes};
use super::heads::may_be_undefined;
use super::references::names;
use super::walk::{self, Walker, parts, wildcard};

/// Returns the text of a module in which negations require what has to be defined, or `None` if none does.
pub(super) fn edited(module: &Module, text: &str) -> Option<Edited> {
    let mut prefix = "known".to_owned();
    while text.contains(&prefix) {
        // Twice as many each time: the text may be made to have many.
        prefix.push_str(&"_".repeat(prefix.len()));
    }
    let mut negations = Negations {
        text,
        names: names(module),
        prefix: &prefix,
        n_known: 0,
        edits: Vec::new(),
    };
    negations.module(module);
    Edited::new(text, negations.edits)
}

struct Negations<'t> {
    text: &'t str,
    /// The names of rules and imports: all others are variables.
    names: HashSet<String>,
    prefix: &'t str,
    /// How many names have been given out.
    n_known: usize,
    edits: Vec<Edit>,
}

impl<'m> Walker<'m> for Negations<'_> {
    fn query(&mut self, query: &'m Query) {
        let before = self.edits.len();
        walk::query(self, query);
        let (Some(first), Some(last)) = (query.stmts.first(), query.stmts.last()) else {
            return;
        };
        // A body of one statement may have no braces.
        let start = range(&first.span).start;
        let is_own = |edit: &Edit| edit.replaced.start == start;
        let has_braces = start > range(&query.span).start;
        if !has_braces && self.edits[before..].iter().any(is_own) {
            let end = with_quotes(self.text, range(&last.span)).end;
            let brace = |at: usize, brace: &str| Edit::own(at..at, brace.to_owned());
            self.edits.insert(before, brace(start, "{ "));
            self.edits.push(brace(end, " }"));
        }
    }

    fn statement(&mut self, statement: &'m LiteralStmt) {
        walk::statement(self, statement);
        if let Literal::NotExpr { expr, .. } = &statement.literal {
            let mut operands = Vec::new();
            self.operands(expr, &mut operands);
            self.require(statement, &operands);
        }
    }
}

impl Negations<'_> {
    /// Finds what has to be defined before a negated expression is evaluated.
    fn operands(&self, expression: &Expr, found: &mut Vec<Range<usize>>) {
        match expression {
            Expr::BoolExpr {
                op: BoolOp::Eq,
                lhs,
                rhs,
                ..
            }
            | Expr::AssignExpr { lhs, rhs, .. } => {
                for side in [lhs, rhs] {
                    self.side(side, found);
                }
            }
            Expr::Var { .. } | Expr::RefDot { .. } | Expr::RefBrack { .. } => {
                self.side(expression, found);
            }
            _ => {
                for part in parts(expression) {
                    self.operand(part, found);
                }
            }
        }
    }

    /// Finds what has to be defined of what may be undefined itself.
    fn side(&self, expression: &Expr, found: &mut Vec<Range<usize>>) {
        match expression {
            Expr::RefDot { refr, .. } => self.side(refr, found),
            Expr::RefBrack { refr, index, .. } => {
                self.side(refr, found);
                self.operand(index, found);
            }
            Expr::Var { .. } => {}
            _ => self.operand(expression, found),
        }
    }

    fn operand(&self, expression: &Expr, found: &mut Vec<Range<usize>>) {
        let is_needed = match expression {
            Expr::Var { span, .. } => self.names.contains(span.text()),
            Expr::Array { .. } | Expr::Set { .. } | Expr::Object { .. } => {
                for part in parts(expression) {
                    self.operand(part, found);
                }
                false
            }
            _ => may_be_undefined(expression),
        };
        // OPA refuses a wildcard here; without one there is one value to require.
        if is_needed && wildcard(expression).is_none() {
            found.push(place(self.text, expression));
        }
    }

    fn require(&mut self, statement: &LiteralStmt, operands: &[Range<usize>]) {
        let start = range(&statement.span).start;
        let with = statement.with_mods.first().map(|first| {
            let last = statement.with_mods.last().unwrap_or(first);
            let end = place(self.text, &last.r#as).end;
            range(&first.span).start..end
        });
        let mut by = Vec::new();
        for operand in operands {
            self.n_known += 1;
            by.push(Piece::Own(format!("{}{} := ", self.prefix, self.n_known)));
            by.push(Piece::From(operand.clone()));
            if let Some(with) = &with {
                by.push(Piece::Own(" ".to_owned()));
                by.push(Piece::From(with.clone()));
            }
            by.push(Piece::Own("; ".to_owned()));
        }
        if !by.is_empty() {
            let replaced = start..start;
            self.edits.push(Edit { replaced, by });
        }
    }
}
