//! Makes arithmetic undefined where OPA does: with something other than numbers, and for remainders of fractions.
//!
//! The interpreter fails there. So the text that it evaluates is `orch.arithmetic("-", a, b)` instead of `a - b`.

use regorus::Value;
use regorus::unstable::{ArithOp, Expr, Literal, Module, Query, Rule, RuleHead};

use super::edits::{Edit, Edited, Piece, range, with_quotes};
use super::heads::indices;
use super::parts::parts;

/// The function in place of the operators.
pub(super) const FUNCTION: &str = "orch.arithmetic";

/// Returns the text of a module without arithmetic operators, or `None` if it has none.
pub(super) fn edited(module: &Module, text: &str) -> Option<Edited> {
    let mut operators = Operators {
        text,
        edits: Vec::new(),
    };
    for rule in &module.policy {
        match &**rule {
            Rule::Default { value, .. } => operators.expression(value),
            Rule::Spec { head, bodies, .. } => {
                let (refr, key, assign) = match head {
                    RuleHead::Set { refr, key, .. } => (refr, key.as_ref(), None),
                    RuleHead::Compr { refr, assign, .. } | RuleHead::Func { refr, assign, .. } => {
                        (refr, None, assign.as_ref())
                    }
                };
                for index in indices(refr) {
                    operators.expression(index);
                }
                if let Some(key) = key {
                    operators.expression(key);
                }
                let assigned = bodies.iter().filter_map(|body| body.assign.as_ref());
                for assign in assigned.chain(assign) {
                    operators.expression(&assign.value);
                }
                for body in bodies {
                    operators.query(&body.query);
                }
            }
        }
    }
    Edited::new(text, operators.edits)
}

struct Operators<'t> {
    text: &'t str,
    edits: Vec<Edit>,
}

impl Operators<'_> {
    fn query(&mut self, query: &Query) {
        for statement in &query.stmts {
            for with in &statement.with_mods {
                self.expression(&with.r#as);
            }
            match &statement.literal {
                Literal::SomeVars { .. } => {}
                Literal::SomeIn { collection, .. } => self.expression(collection),
                Literal::Expr { expr, .. } | Literal::NotExpr { expr, .. } => self.expression(expr),
                Literal::Every { domain, query, .. } => {
                    self.expression(domain);
                    self.query(query);
                }
            }
        }
    }

    fn expression(&mut self, expression: &Expr) {
        match expression {
            Expr::ArithExpr {
                span, op, lhs, rhs, ..
            } => {
                let operator = operator(op);
                let whole = with_quotes(self.text, range(span));
                // Parentheses around an operand are no part of it.
                let between = range(lhs.span()).end..range(rhs.span()).start;
                let Some(at) = position(&self.text[between.clone()], operator) else {
                    return;
                };
                let at = between.start + at;
                self.edit(whole.start, 0, format!("{FUNCTION}(\"{operator}\", "));
                self.edit(at, 1, ", ".to_owned());
                for operand in [lhs, rhs] {
                    self.expression(operand);
                }
                self.edit(whole.end, 0, ")".to_owned());
                return;
            }
            Expr::UnaryExpr { span, expr, .. } if !matches!(**expr, Expr::Number { .. }) => {
                let whole = with_quotes(self.text, range(span));
                self.edit(whole.start, 1, format!("{FUNCTION}(\"-\", 0, "));
                self.expression(expr);
                self.edit(whole.end, 0, ")".to_owned());
                return;
            }
            Expr::ArrayCompr { query, .. }
            | Expr::SetCompr { query, .. }
            | Expr::ObjectCompr { query, .. } => self.query(query),
            _ => {}
        }
        for part in parts(expression) {
            self.expression(part);
        }
    }

    fn edit(&mut self, at: usize, length: usize, by: String) {
        let by = vec![Piece::Own(by)];
        let replaced = at..at + length;
        self.edits.push(Edit { replaced, by });
    }
}

fn operator(operator: &ArithOp) -> char {
    match operator {
        ArithOp::Add => '+',
        ArithOp::Sub => '-',
        ArithOp::Mul => '*',
        ArithOp::Div => '/',
        ArithOp::Mod => '%',
    }
}

/// Returns where an operator is in a text, outside of comments.
fn position(text: &str, operator: char) -> Option<usize> {
    let mut is_comment = false;
    text.char_indices().find_map(|(at, character)| {
        is_comment = character != '\n' && (is_comment || character == '#');
        (!is_comment && character == operator).then_some(at)
    })
}

/// Returns the value of an operation; `None` if it is undefined.
pub(super) fn arithmetic(arguments: &[Value]) -> Option<Value> {
    let (Value::String(operator), left, right) = (&arguments[0], &arguments[1], &arguments[2])
    else {
        return None;
    };
    let (left, right) = match (left, right) {
        (Value::Number(left), Value::Number(right)) => (left, right),
        (Value::Set(left), Value::Set(right)) if **operator == *"-" => {
            let kept = left.iter().filter(|item| !right.contains(item));
            return Some(Value::from(
                kept.cloned().collect::<std::collections::BTreeSet<_>>(),
            ));
        }
        _ => return None,
    };
    let is_zero = || arguments[2] == Value::from(0_u64);
    let result = match &**operator {
        "+" => left.add(right),
        "-" => left.sub(right),
        "*" => left.mul(right),
        "/" if !is_zero() => left.clone().divide(right),
        "%" if !is_zero() && left.is_integer() && right.is_integer() => left.clone().modulo(right),
        _ => return None,
    };
    result.ok().map(Value::Number)
}
