//! The stacks that a condition names. This module doesn't know which stacks there are.

use super::Condition;
use crate::language::syntax::{Expr, ExprKind, TraversalStepKind};
use crate::source::Span;

pub const STACKS: &str = "stacks";

/// The namespace of the condition's own stack.
pub const SELF: &str = "self";

#[derive(Debug, Default)]
pub struct Mentions<'p> {
    /// Those that it names literally, with the places of the names.
    pub stacks: Vec<(&'p str, Span)>,
    /// A place where it names its own stack.
    pub itself: Option<Span>,
    /// Whether it may use the outputs of its own stack.
    pub uses_own_outputs: bool,
    /// Whether it computes the paths of stacks.
    pub computes: bool,
}

impl<'p> Mentions<'p> {
    pub fn of(condition: &'p Condition) -> Self {
        let mut named = Mentions::default();
        let mut variables: Vec<&str> = Vec::new();
        for expr in [&condition.condition, &condition.error_message] {
            expr.each(&mut |expr| {
                if let ExprKind::For(inner) = &expr.kind {
                    variables.push(&inner.value_variable);
                    variables.extend(inner.key_variable.as_deref());
                }
                named.add(expr);
            });
        }
        // The variable of a `for` shadows the name, at least partially: evaluation finds out.
        if variables.contains(&STACKS) {
            named.stacks.clear();
            named.computes = true;
        }
        if variables.contains(&SELF) {
            named.itself = None;
        }
        named
    }

    fn add(&mut self, expr: &'p Expr) {
        match &expr.kind {
            ExprKind::Variable(name) if &**name == SELF => {
                self.itself.get_or_insert(expr.span);
            }
            ExprKind::Traversal(base, steps) => {
                let ExprKind::Variable(name) = &base.kind else {
                    return;
                };
                if &**name == SELF {
                    let first = steps.first().map(|step| &step.kind);
                    self.uses_own_outputs |= !matches!(
                        first,
                        Some(TraversalStepKind::Attribute(name))
                            if ["action", "changes"].contains(&&**name)
                    );
                }
                if &**name != STACKS {
                    return;
                }
                match steps.first().map(|step| &step.kind) {
                    Some(TraversalStepKind::Index(Expr {
                        kind: ExprKind::String(written),
                        span,
                    })) => self.stacks.push((written, *span)),
                    _ => self.computes = true,
                }
            }
            _ => {}
        }
    }
}
