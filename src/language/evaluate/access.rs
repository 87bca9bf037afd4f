//! Follows names, attributes, indexes and splats to values.
//!
//! This module knows where to look up a value, but not how the values there were computed.

use super::problem::fail;
use super::{EvalResult, EvalScope, Value};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{Expr, ExprKind, TraversalStep, TraversalStepKind};
use crate::source::Span;

impl EvalScope<'_> {
    pub(super) fn variable(&self, name: &str, rest: &[&str], span: Span) -> EvalResult {
        let mut scope = Some(self);
        while let Some(EvalScope {
            variable, outer, ..
        }) = scope
        {
            match variable {
                Some((variable, value)) if *variable == name => return Ok(value.clone()),
                _ => scope = *outer,
            }
        }
        if let Some(value) = self.namespaces.get(name, rest, span)? {
            return Ok(value);
        }
        let diagnostic = Diagnostic::error(Code::UnknownName, format!("unknown name `{name}`"))
            .label(span, "nothing of that name exists here")
            .did_you_mean(name, self.namespaces.names());
        let quote = format!("quote it if it is meant as text: `\"{name}\"`");
        Err(Box::new(if rest.is_empty() {
            diagnostic.help(quote)
        } else {
            diagnostic
        }))
    }

    pub(super) fn traversal(&self, base: &Expr, steps: &[TraversalStep]) -> EvalResult {
        let value = match &base.kind {
            ExprKind::Variable(name) => {
                let rest: Vec<&str> = steps
                    .iter()
                    .map_while(|step| match &step.kind {
                        TraversalStepKind::Attribute(name) => Some(&**name),
                        _ => None,
                    })
                    .collect();
                self.variable(name, &rest, base.span)?
            }
            _ => self.evaluate(base)?,
        };
        self.steps(value, steps)
    }

    fn steps(&self, mut value: Value, steps: &[TraversalStep]) -> EvalResult {
        for (index, step) in steps.iter().enumerate() {
            self.spend(1, step.span)?;
            value = match &step.kind {
                TraversalStepKind::Attribute(name) => attribute(&value, name, step.span)?,
                TraversalStepKind::Index(key) => element(&value, &self.evaluate(key)?, key.span)?,
                TraversalStepKind::AttributeSplat | TraversalStepKind::FullSplat => {
                    let rest = &steps[index + 1..];
                    let taken = match step.kind {
                        TraversalStepKind::FullSplat => rest.len(),
                        _ => rest
                            .iter()
                            .take_while(|step| matches!(step.kind, TraversalStepKind::Attribute(_)))
                            .count(),
                    };
                    let (each, rest) = rest.split_at(taken);
                    let items: Vec<Value> = match value {
                        Value::Null => Vec::new(),
                        Value::List(items) => items.to_vec(),
                        single => vec![single],
                    };
                    let items: EvalResult<Vec<Value>> = items
                        .into_iter()
                        .map(|item| self.steps(item, each))
                        .collect();
                    return self.steps(Value::list(items?), rest);
                }
            };
        }
        Ok(value)
    }
}

fn attribute(value: &Value, name: &str, span: Span) -> EvalResult {
    match value {
        Value::Object(object) => match object.get(name) {
            Some(value) => Ok(value.clone()),
            None => Err(Box::new(
                Diagnostic::error(Code::UnknownName, format!("no attribute `{name}`"))
                    .label(span, "there is no such attribute")
                    .did_you_mean(name, object.keys().map(|key| &**key)),
            )),
        },
        other => fail(
            Code::UnknownName,
            format!("no attribute `{name}`"),
            span,
            format!(
                "attributes belong to objects; this is {}",
                other.type_name()
            ),
        ),
    }
}

fn element(value: &Value, key: &Value, span: Span) -> EvalResult {
    match value {
        Value::Object(_) => match key.to_text() {
            Some(name) => attribute(value, &name, span),
            None => fail(
                Code::WrongType,
                "a key must be a string",
                span,
                format!("this is {}", key.type_name()),
            ),
        },
        Value::List(items) => {
            let Some(number) = key.to_number() else {
                return fail(
                    Code::WrongType,
                    "an index must be a number",
                    span,
                    format!("this is {}", key.type_name()),
                );
            };
            let index = number
                .is_integer()
                .then(|| number.to_string().parse::<usize>().ok())
                .flatten();
            match index.and_then(|index| items.get(index)) {
                Some(item) => Ok(item.clone()),
                None => fail(
                    Code::UnknownName,
                    "no such element",
                    span,
                    format!("the list has {} elements", items.len()),
                ),
            }
        }
        other => fail(
            Code::WrongType,
            "this cannot be indexed",
            span,
            format!("only lists and objects can; this is {}", other.type_name()),
        ),
    }
}
