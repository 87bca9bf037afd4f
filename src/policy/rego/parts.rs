//! What expressions are made of.

use regorus::unstable::Expr;

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
