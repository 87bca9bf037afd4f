//! The results of a policy: which rules they are, and what their values mean.

use std::collections::BTreeSet;

use regorus::Value;

use super::references::RuleDefinition;
use crate::policy::{PolicyOutput, Problem};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Result {
    Trigger,
    Flag,
    ResetFlag,
    Sample,
}

pub(super) const RESULTS: [Result; 4] = [
    Result::Trigger,
    Result::Flag,
    Result::ResetFlag,
    Result::Sample,
];

/// How many bytes the names of a result may have.
const MAX_ANSWERED: usize = 1 << 20;

/// How many bytes of what a policy prints are kept.
const MAX_PRINTED: usize = 64 << 10;

impl Result {
    pub(super) fn name(self) -> &'static str {
        match self {
            Result::Trigger => "trigger",
            Result::Flag => "flag",
            Result::ResetFlag => "reset_flag",
            Result::Sample => "sample",
        }
    }

    pub(super) fn take(
        self,
        value: &Value,
        answer: &mut PolicyOutput,
    ) -> std::result::Result<(), Problem> {
        let texts = match self {
            Result::Sample => {
                let Value::Bool(sample) = value else {
                    return Err(Problem::new("`sample` must be `true` or `false`"));
                };
                answer.sample = *sample;
                return Ok(());
            }
            Result::Trigger => &mut answer.trigger,
            Result::Flag => &mut answer.flag,
            Result::ResetFlag => &mut answer.reset_flag,
        };
        let name = self.name();
        *texts = strings(value).ok_or_else(|| {
            Problem::new(format!(
                "`{name}` must be a set or a list of strings, or an object whose values are `true`"
            ))
        })?;
        if texts.iter().map(String::len).sum::<usize>() > MAX_ANSWERED {
            let limit = MAX_ANSWERED >> 20;
            return Err(Problem::new(format!("`{name}` is larger than {limit} MiB")));
        }
        Ok(())
    }
}

fn strings(value: &Value) -> Option<BTreeSet<String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.to_string()),
        _ => None,
    };
    match value {
        Value::Set(items) => items.iter().map(text).collect(),
        Value::Array(items) => items.iter().map(text).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| text(key).filter(|_| *value == Value::Bool(true)))
            .collect(),
        _ => None,
    }
}

/// Returns the query of each result that a policy defines.
pub(super) fn queries(
    package: &[String],
    definitions: &[RuleDefinition],
) -> std::result::Result<Vec<(Result, String)>, Problem> {
    let mut queries = Vec::new();
    for result in RESULTS {
        let name = result.name();
        let is_its =
            |rule: &&RuleDefinition| rule.path.get(package.len()).is_some_and(|own| own == name);
        let mut rules = definitions.iter().filter(is_its).peekable();
        if rules.peek().is_none() {
            continue;
        }
        if let Some(function) = rules.find(|rule| rule.is_function) {
            let message = format!("`{name}` must be a rule without arguments, not a function");
            return Err(Problem::at(function.place, message));
        }
        queries.push((result, format!("{}.{name}", below_data(package))));
    }
    Ok(queries)
}

/// Returns a path below `data` as a query has it.
pub(super) fn below_data(path: &[String]) -> String {
    let is_word = |name: &str| {
        let mut characters = name.chars();
        characters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|other| other.is_ascii_alphanumeric() || other == '_')
    };
    let mut query = "data".to_owned();
    for name in path {
        if is_word(name) {
            query += &format!(".{name}");
        } else {
            query += &format!("[{}]", serde_json::Value::from(name.as_str()));
        }
    }
    query
}

/// Returns what is kept of what a policy printed, without the place that the library puts in front.
pub(super) fn prints(mut prints: Vec<String>) -> Vec<String> {
    let mut left = MAX_PRINTED;
    let n_kept = prints.iter().take_while(|text| {
        let fits = text.len() <= left;
        left = left.saturating_sub(text.len());
        fits
    });
    let n_kept = n_kept.count();
    if n_kept < prints.len() {
        let n_lost = prints.len() - n_kept;
        prints.truncate(n_kept);
        prints.push(format!("({n_lost} more not kept: too much output)"));
    }
    prints
}
