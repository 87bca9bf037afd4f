//! The outputs, and the facts about the stack itself, that are known when conditions are checked.

use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::driver::{ChangeCounts, OutputValue, OutputValues};
use crate::language::evaluate::{EvalResult, EvalValue};
use crate::language::value::Value;
use crate::printable::first_of;
use crate::source::Span;

const MAX_NAMES: usize = 20;

#[derive(Debug, Clone)]
pub enum StackOutputs {
    Values(Arc<OutputValues>),
    /// Known once the stack has been applied.
    Later,
    Unreadable(String),
}

/// The value of `self` in a condition.
#[derive(Debug, Clone, Copy)]
pub enum SelfValue {
    /// None: it is a precondition.
    Nothing,
    /// The action, but not yet its result.
    Later,
    Done {
        action: &'static str,
        changes: Option<ChangeCounts>,
    },
}

/// Returns the value after `outputs`: an object with the named output, or with all.
pub(super) fn pick(
    values: &OutputValues,
    name: Option<(&str, Span)>,
    path: &str,
) -> EvalResult<EvalValue> {
    let object = |outputs: &mut dyn Iterator<Item = (&Arc<str>, &OutputValue)>| {
        let mut is_sensitive = false;
        let entries: Vec<(Arc<str>, Value)> = outputs
            .map(|(name, output)| {
                is_sensitive |= output.is_sensitive;
                (name.clone(), output.value.clone())
            })
            .collect();
        EvalValue {
            value: Value::object(entries),
            is_sensitive,
        }
    };
    let Some((name, span)) = name else {
        return Ok(object(&mut values.iter()));
    };
    if values.get(name).is_some() {
        return Ok(object(&mut values.iter().filter(|(it, _)| ***it == *name)));
    }
    let diagnostic = Diagnostic::error(
        Code::UnknownName,
        format!("`{path}` has no output `{name}`"),
    );
    let names: Vec<&str> = values.iter().map(|(name, _)| &**name).collect();
    Err(diagnostic
        .label(span, "it has no such output")
        .note(list_of_outputs(names.iter().copied()))
        .did_you_mean(name, names)
        .into())
}

/// Names a stack's outputs, for a note that it lacks one.
pub(in crate::plan) fn list_of_outputs<'n>(
    names: impl ExactSizeIterator<Item = &'n str>,
) -> String {
    if names.len() == 0 {
        return "it has no outputs".to_owned();
    }
    let listed = first_of(names.map(|name| format!("`{name}`")), MAX_NAMES);
    format!("its outputs are {listed}")
}
