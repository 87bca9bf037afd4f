//! `for` over collections, in expressions and in templates.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::outcome::{EvalResult, NoValue, fail};
use super::{EvalScope, Value, too_large, within_limits};
use crate::diagnostic::Code;
use crate::language::syntax::{Expr, ForExpr};
use crate::language::value::MAX_WEIGHT;
use crate::source::Span;

impl EvalScope<'_> {
    /// Calls `body` for each element of a collection, with the variables set.
    pub(super) fn each(
        &self,
        (key_variable, value_variable): (Option<&str>, &str),
        collection: &Expr,
        mut body: impl FnMut(&EvalScope) -> EvalResult<()>,
    ) -> EvalResult<()> {
        let evaluated = self.evaluate(collection)?;
        let entries: Vec<(Value, Value)> = match &evaluated {
            Value::Tuple(items) | Value::List(items) => {
                let pairs = items.iter().zip(0_u64..);
                pairs
                    .map(|(item, index)| (index.into(), item.clone()))
                    .collect()
            }
            Value::Set(items) => {
                let pairs = items.iter().map(|item| (item.clone(), item.clone()));
                pairs.collect()
            }
            Value::Object(entries) | Value::Map(entries) => entries
                .iter()
                .map(|(key, value)| (Value::String(key.clone()), value.clone()))
                .collect(),
            other => {
                return fail(
                    Code::WrongType,
                    "`for` needs a list or an object",
                    collection.span,
                    self.this_is(collection, other),
                );
            }
        };
        // An error takes precedence over something undecided.
        let mut undecided = Ok(());
        for (key, value) in entries {
            self.spend(1, collection.span)?;
            let result = match key_variable {
                // If both have the same name, it is that of the value.
                Some(key_variable) => {
                    body(&self.with(key_variable, key).with(value_variable, value))
                }
                None => body(&self.with(value_variable, value)),
            };
            match result {
                Err(NoValue::Undecided(_)) if undecided.is_err() => {}
                Err(NoValue::Undecided(_)) => undecided = result,
                result => result?,
            }
        }
        undecided
    }

    pub(super) fn for_expr(&self, for_expr: &ForExpr, span: Span) -> EvalResult {
        if for_expr.grouping && for_expr.key.is_none() {
            let message = "`...` in a `for` groups the values of an object";
            let label = "this `for` makes a list";
            return fail(Code::WrongType, message, span, label);
        }
        let variables = (for_expr.key_variable.as_deref(), &*for_expr.value_variable);
        let mut list = Vec::new();
        let mut weight = 0;
        let mut object: BTreeMap<Arc<str>, Vec<Value>> = BTreeMap::new();
        self.each(variables, &for_expr.collection, |scope| {
            if let Some(condition) = &for_expr.condition
                && !scope.condition(condition)?
            {
                return Ok(());
            }
            let mut made = |value: &Value| {
                // Before it is complete, so that memory is limited as well.
                weight += value.weight();
                if weight > MAX_WEIGHT {
                    return too_large(span);
                }
                Ok(())
            };
            let Some(key) = &for_expr.key else {
                let value = scope.evaluate(&for_expr.value)?;
                made(&value)?;
                list.push(value);
                return Ok(());
            };
            let values = object.entry(scope.key(key)?).or_default();
            if !values.is_empty() && !for_expr.grouping {
                return fail(
                    Code::DuplicateEntry,
                    "two elements have the same key",
                    key.span,
                    "add `...` after the value to group them",
                );
            }
            let value = scope.evaluate(&for_expr.value)?;
            made(&value)?;
            values.push(value);
            Ok(())
        })?;
        if for_expr.key.is_none() {
            return within_limits(Value::tuple(list), span);
        }
        let object = object.into_iter().map(|(key, mut values)| {
            let value = if for_expr.grouping {
                Value::tuple(values)
            } else {
                values.pop().unwrap_or(Value::Null)
            };
            (key, value)
        });
        within_limits(Value::object(object), span)
    }
}
