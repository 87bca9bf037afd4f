//! What modules, rules, queries and expressions are made of.

use regorus::unstable::{
    AssignOp, Expr, Literal, LiteralStmt, Module, Query, Rule, RuleHead, Span,
};

/// Goes through a module. What a method does not do itself, it leaves to the function of the same name.
pub(super) trait Walker<'m> {
    fn module(&mut self, module: &'m Module) {
        for rule in &module.policy {
            self.rule(rule);
        }
    }

    fn rule(&mut self, it: &'m Rule) {
        rule(self, it);
    }

    fn query(&mut self, it: &'m Query) {
        query(self, it);
    }

    fn statement(&mut self, it: &'m LiteralStmt) {
        statement(self, it);
    }

    fn expression(&mut self, it: &'m Expr) {
        expression(self, it);
    }
}

pub(super) fn rule<'m>(walker: &mut (impl Walker<'m> + ?Sized), rule: &'m Rule) {
    match rule {
        Rule::Default { value, .. } => walker.expression(value),
        Rule::Spec { head, bodies, .. } => {
            for body in bodies {
                walker.query(&body.query);
                if let Some(assign) = &body.assign {
                    walker.expression(&assign.value);
                }
            }
            for value in head_values(head) {
                walker.expression(value);
            }
        }
    }
}

pub(super) fn query<'m>(walker: &mut (impl Walker<'m> + ?Sized), query: &'m Query) {
    for statement in &query.stmts {
        walker.statement(statement);
    }
}

pub(super) fn statement<'m>(walker: &mut (impl Walker<'m> + ?Sized), statement: &'m LiteralStmt) {
    for with in &statement.with_mods {
        walker.expression(&with.r#as);
    }
    match &statement.literal {
        Literal::SomeVars { .. } => {}
        Literal::SomeIn { collection, .. } => walker.expression(collection),
        Literal::Expr { expr, .. } | Literal::NotExpr { expr, .. } => walker.expression(expr),
        Literal::Every { domain, query, .. } => {
            walker.expression(domain);
            walker.query(query);
        }
    }
}

pub(super) fn expression<'m>(walker: &mut (impl Walker<'m> + ?Sized), expression: &'m Expr) {
    if let Some(query) = comprehended(expression) {
        walker.query(query);
    }
    for part in parts(expression) {
        walker.expression(part);
    }
}

/// Returns the sides of `a := b`.
pub(super) fn assignment(literal: &Literal) -> Option<(&Expr, &Expr)> {
    let Literal::Expr { expr, .. } = literal else {
        return None;
    };
    match &**expr {
        Expr::AssignExpr {
            op: AssignOp::ColEq,
            lhs,
            rhs,
            ..
        } => Some((lhs, rhs)),
        _ => None,
    }
}

/// Returns the name of a function.
pub(super) fn function_name(function: &Expr) -> String {
    match function {
        Expr::Var { span, .. } => span.text().to_owned(),
        Expr::RefDot { refr, field, .. } => {
            format!("{}.{}", function_name(refr), field.0.text())
        }
        _ => String::new(),
    }
}

/// Returns where `_` is in an expression, outside of comprehensions.
pub(super) fn wildcard(expression: &Expr) -> Option<&Span> {
    match expression {
        Expr::Var { span, .. } => (span.text() == "_").then_some(span),
        Expr::ArrayCompr { .. } | Expr::SetCompr { .. } | Expr::ObjectCompr { .. } => None,
        _ => parts(expression).into_iter().find_map(wildcard),
    }
}

/// Returns what a head takes its value from: what is in the brackets of its name, its key, its value.
pub(super) fn head_values(head: &RuleHead) -> Vec<&Expr> {
    let (name, value) = match head {
        RuleHead::Set { refr, key, .. } => (refr, key.as_ref()),
        RuleHead::Compr { refr, assign, .. } | RuleHead::Func { refr, assign, .. } => {
            (refr, assign.as_ref().map(|assign| &assign.value))
        }
    };
    let mut values = indices(name);
    values.extend(value.map(|value| &**value));
    values
}

/// Returns what stands in the brackets of a reference: `a` and `b` of `x[a].y[b]`.
pub(super) fn indices(mut expression: &Expr) -> Vec<&Expr> {
    let mut indices = Vec::new();
    while let Expr::RefDot { refr, .. } | Expr::RefBrack { refr, .. } = expression {
        if let Expr::RefBrack { index, .. } = expression {
            indices.push(&**index);
        }
        expression = refr;
    }
    indices.reverse();
    indices
}

/// Returns the text of a string literal, without the quotes.
pub(super) fn quoted(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::String { value, .. } | Expr::RawString { value, .. } => {
            value.as_string().ok().map(|text| &**text)
        }
        _ => None,
    }
}

/// Returns whether an expression is a single value as it is written.
pub(super) fn is_scalar(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::String { .. }
            | Expr::RawString { .. }
            | Expr::Number { .. }
            | Expr::Bool { .. }
            | Expr::Null { .. }
    )
}

/// Returns the body of a comprehension.
pub(super) fn comprehended(expression: &Expr) -> Option<&Query> {
    match expression {
        Expr::ArrayCompr { query, .. }
        | Expr::SetCompr { query, .. }
        | Expr::ObjectCompr { query, .. } => Some(query),
        _ => None,
    }
}

/// Returns the expressions that an expression is made of, without the bodies of comprehensions.
pub(super) fn parts(expression: &Expr) -> Vec<&Expr> {
    match expression {
        Expr::String { .. }
        | Expr::RawString { .. }
        | Expr::Number { .. }
        | Expr::Bool { .. }
        | Expr::Null { .. }
        | Expr::Var { .. } => Vec::new(),
        Expr::Array { items, .. } | Expr::Set { items, .. } => {
            items.iter().map(|item| &**item).collect()
        }
        Expr::Object { fields, .. } => {
            let fields = fields.iter();
            fields
                .flat_map(|(_, key, value)| [&**key, &**value])
                .collect()
        }
        Expr::ArrayCompr { term, .. } | Expr::SetCompr { term, .. } => vec![term],
        Expr::ObjectCompr { key, value, .. } => vec![key, value],
        Expr::Call { params, .. } => params.iter().map(|it| &**it).collect(),
        Expr::UnaryExpr { expr, .. } => vec![expr],
        Expr::RefDot { refr, .. } => vec![refr],
        Expr::RefBrack { refr, index, .. } => vec![refr, index],
        Expr::BinExpr { lhs, rhs, .. }
        | Expr::BoolExpr { lhs, rhs, .. }
        | Expr::ArithExpr { lhs, rhs, .. }
        | Expr::AssignExpr { lhs, rhs, .. } => vec![lhs, rhs],
        Expr::Membership {
            key,
            value,
            collection,
            ..
        } => {
            let key = key.as_ref().map(|key| &**key);
            key.into_iter().chain([&**value, &**collection]).collect()
        }
    }
}
