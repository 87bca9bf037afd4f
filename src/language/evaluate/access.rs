//! Follows names, attributes, indexes and splats to values.
//!
//! This module knows where to look up a value, but not how the values there were computed.

use std::sync::Arc;

use super::outcome::{all, fail};
use super::{EvalResult, EvalScope, Value, within_limits};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{Expr, ExprKind, TraversalStep, TraversalStepKind};
use crate::source::Span;

/// A name of a namespace and the names that follow it, as an expression uses them: `global.network.cidr`,
/// `global["network"].cidr`.
#[derive(Debug, Clone)]
pub struct NamePath<'a> {
    pub name: &'a str,
    pub span: Span,
    /// The names that follow, each with its place, including computed ones, up to the first that is not text. After
    /// the use of a sensitive value, only up to the first computed one: errors may show them.
    pub rest: Vec<(&'a str, Span)>,
    /// The values of the computed ones, which may be secret.
    pub computed: &'a [Value],
}

impl NamePath<'_> {
    pub fn whole_span(&self) -> Span {
        let last = self.rest.last().map_or(self.span, |(_, span)| *span);
        Span {
            end: last.end,
            ..self.span
        }
    }
}

impl EvalScope<'_> {
    fn has_variable(&self, name: &str) -> bool {
        let is_it =
            |scope: &EvalScope| matches!(&scope.variable, Some((known, _)) if *known == name);
        let mut scopes = std::iter::successors(Some(self), |scope| scope.outer);
        scopes.any(is_it)
    }

    /// Returns the value of a name: that of a `for` variable, or else of a namespace.
    pub(super) fn variable(&self, path: &NamePath) -> EvalResult {
        let name = path.name;
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
        if let Some(answer) = self.namespaces.get(path)? {
            if answer.is_sensitive {
                self.is_sensitive.set(true);
            }
            return Ok(answer.value);
        }
        let diagnostic = Diagnostic::error(Code::UnknownName, format!("unknown name `{name}`"))
            .label(path.span, "this name is not defined here")
            .did_you_mean(name, self.namespaces.names());
        let quote = format!("if it is text, put it in quotes: `\"{name}\"`");
        Err(if path.rest.is_empty() {
            diagnostic.help(quote).into()
        } else {
            diagnostic.into()
        })
    }

    pub(super) fn traversal(&self, base: &Expr, steps: &[TraversalStep]) -> EvalResult {
        let ExprKind::Variable(name) = &base.kind else {
            return self.steps(self.evaluate(base)?, steps, &[]);
        };
        // Of a namespace, only the part at the path is evaluated, so the whole path must be known.
        let keys = if self.has_variable(name) {
            Vec::new()
        } else {
            self.keys(steps)?
        };
        // Errors may show the names of a path.
        let shown = if self.is_sensitive.get() {
            &[]
        } else {
            keys.as_slice()
        };
        let texts: Vec<Option<Arc<str>>> = shown.iter().map(Value::to_text).collect();
        let mut texts = texts.iter();
        let rest = steps.iter().map_while(|step| match &step.kind {
            TraversalStepKind::Index(key) if literal_name(step).is_none() => {
                let text = texts.next().and_then(Option::as_deref);
                text.map(|text| (text, key.span))
            }
            _ => literal_name(step),
        });
        let value = self.variable(&NamePath {
            name,
            span: base.span,
            rest: rest.collect(),
            computed: &keys,
        })?;
        self.steps(value, steps, &keys)
    }

    /// Evaluates the computed indexes among the first steps, up to a splat.
    fn keys(&self, steps: &[TraversalStep]) -> EvalResult<Vec<Value>> {
        let mut keys = Vec::new();
        for step in steps {
            match &step.kind {
                TraversalStepKind::Attribute(_) => {}
                TraversalStepKind::Index(key) => {
                    if literal_name(step).is_none() {
                        keys.push(self.evaluate(key)?);
                    }
                }
                TraversalStepKind::AttributeSplat | TraversalStepKind::FullSplat => break,
            }
        }
        Ok(keys)
    }

    /// Follows steps. `keys` are the values of the first computed indexes, if they have been evaluated.
    fn steps(&self, mut value: Value, steps: &[TraversalStep], keys: &[Value]) -> EvalResult {
        let mut keys = keys.iter();
        for (index, step) in steps.iter().enumerate() {
            self.spend(1, step.span)?;
            value = match &step.kind {
                TraversalStepKind::Attribute(name) => self.attribute(&value, name, step.span)?,
                TraversalStepKind::Index(key) => {
                    let known = literal_name(step).is_none().then(|| keys.next()).flatten();
                    let key_value = match known {
                        Some(known) => known.clone(),
                        None => self.evaluate(key)?,
                    };
                    self.element(&value, key, &key_value)?
                }
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
                    return self.steps(self.splat(value, each, step.span)?, rest, &[]);
                }
            };
        }
        Ok(value)
    }

    /// Follows steps from each element of a collection. Null counts as no elements, and a value that is
    /// not a collection as one element.
    fn splat(&self, value: Value, steps: &[TraversalStep], span: Span) -> EvalResult {
        let (items, is_list) = match value {
            Value::Null => (Vec::new(), false),
            Value::Tuple(items) => (items.to_vec(), false),
            Value::List(items) | Value::Set(items) => (items.to_vec(), true),
            single => (vec![single], false),
        };
        let items = items.into_iter().map(|item| self.steps(item, steps, &[]));
        let items: Vec<Value> = all(items)?;
        let splat = if is_list {
            Value::list(items)
        } else {
            Value::tuple(items)
        };
        within_limits(splat, span)
    }

    fn attribute(&self, value: &Value, name: &str, span: Span) -> EvalResult {
        let label = match value {
            Value::Object(entries) | Value::Map(entries) => {
                if let Some(value) = entries.get(name) {
                    return Ok(value.clone());
                }
                // The name may have been computed from a secret.
                if self.is_sensitive.get() {
                    let label = "it has no such attribute";
                    return fail(Code::UnknownName, "no such attribute", span, label);
                }
                let message = format!("no attribute `{name}`");
                let diagnostic = Diagnostic::error(Code::UnknownName, message)
                    .label(span, "it has no such attribute");
                let known = entries.keys().map(|key| &**key);
                return Err(diagnostic.did_you_mean(name, known).into());
            }
            Value::Tuple(items) | Value::List(items) if is_position(name) => {
                let item = name.parse().ok().and_then(|at: usize| items.get(at));
                if let Some(item) = item {
                    return Ok(item.clone());
                }
                let label = element_count(items.len());
                return fail(Code::UnknownName, "no such element", span, label);
            }
            Value::Null => "the object is null".to_owned(),
            other => format!(
                "attributes belong to objects; this is {}",
                self.shown(other)
            ),
        };
        fail(Code::UnknownName, "no such attribute", span, label)
    }

    fn element(&self, value: &Value, key: &Expr, key_value: &Value) -> EvalResult {
        match value {
            Value::Object(_) | Value::Map(_) => match key_value.to_text() {
                Some(name) => self.attribute(value, &name, key.span),
                None => fail(
                    Code::WrongType,
                    "a key must be a string",
                    key.span,
                    self.this_is(key, key_value),
                ),
            },
            Value::Tuple(items) | Value::List(items) => {
                let Some(number) = key_value.to_number() else {
                    return fail(
                        Code::WrongType,
                        "an index must be a number",
                        key.span,
                        self.this_is(key, key_value),
                    );
                };
                let index = number
                    .is_integer()
                    .then(|| number.with_scale(0).to_plain_string().parse::<usize>().ok())
                    .flatten();
                match index.and_then(|index| items.get(index)) {
                    Some(item) => Ok(item.clone()),
                    None => fail(
                        Code::UnknownName,
                        "no such element",
                        key.span,
                        element_count(items.len()),
                    ),
                }
            }
            other => fail(
                Code::WrongType,
                "this cannot be indexed",
                key.span,
                format!("only lists and objects can; this is {}", self.shown(other)),
            ),
        }
    }
}

/// Returns whether a name is an index in its old form: `list.0`.
fn is_position(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_digit())
}

fn element_count(count: usize) -> String {
    match count {
        1 => "the list has 1 element".to_owned(),
        _ => format!("the list has {count} elements"),
    }
}

/// Returns the name that a step takes, if it is written there.
fn literal_name(step: &TraversalStep) -> Option<(&str, Span)> {
    match &step.kind {
        TraversalStepKind::Attribute(name) if !is_position(name) => Some((name, step.span)),
        TraversalStepKind::Index(Expr {
            kind: ExprKind::String(name),
            span,
        }) => Some((name, *span)),
        _ => None,
    }
}
