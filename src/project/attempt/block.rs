//! Reads the configuration of attempts: `timeout`, `retry { … }`, and the meaning of exit statuses.
//!
//! They occur in the `run` block of a `stack` and in `config.run`. This module doesn't know the inheritance.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::{AttemptSettings, DEFAULT_BACKOFF, MAX_ATTEMPTS, Retry, Timeout, patterns};
use crate::diagnostic::{Code, Diagnostic};
use crate::duration;
use crate::language::NoNamespaces;
use crate::language::syntax::{Attribute, Block};
use crate::language::value::Value;
use crate::project::blocks::{
    elements, no_labels, twice, unknown_block, unlisted_attribute, value,
};
use crate::source::{Span, Spanned};

const NAMES: NoNamespaces = NoNamespaces("a `run` block");

const RETRY: [&str; 4] = ["attempts", "backoff", "on_exit", "on_output"];

/// The attributes for the meaning of exit statuses.
pub(crate) const SUCCESS_EXIT_CODES: &str = "success_exit_codes";
pub(crate) const CHANGES_EXIT_CODES: &str = "changes_exit_codes";
pub(crate) const SUCCESS_ON_INTERRUPT: &str = "success_on_interrupt";

/// Reads the `run` block of a `stack`. Errors go to `problems`, and a wrong setting
/// counts as not set.
pub(crate) fn run(block: &Block, problems: &mut Vec<Diagnostic>) -> AttemptSettings {
    let mut settings = AttemptSettings::default();
    no_labels(block, problems);
    for attribute in &block.body.attributes {
        if !setting(attribute, &mut settings, problems) {
            let known = [
                "timeout",
                SUCCESS_EXIT_CODES,
                CHANGES_EXIT_CODES,
                SUCCESS_ON_INTERRUPT,
            ];
            problems.push(unlisted_attribute(attribute, block, &known));
        }
    }
    let mut first: Option<Span> = None;
    for inner in &block.body.blocks {
        if &*inner.kind.text != "retry" {
            let help = "a `run` block has `timeout = \"30m\"` and `retry { … }`";
            problems.push(unknown_block(inner, block).help(help));
        } else if let Some(first) = first {
            problems.push(twice(inner, first));
        } else {
            first = Some(inner.kind.span);
            settings.retry = retry(inner, problems);
        }
    }
    settings
}

/// Reads an attribute, if it is about attempts; returns whether it is.
pub(crate) fn setting(
    attribute: &Attribute,
    settings: &mut AttemptSettings,
    problems: &mut Vec<Diagnostic>,
) -> bool {
    let codes = &mut settings.exit_codes;
    match &*attribute.name.text {
        "timeout" => settings.timeout = timeout(attribute, problems),
        SUCCESS_EXIT_CODES => codes.success = exit_codes(attribute, problems),
        CHANGES_EXIT_CODES => codes.changes = exit_codes(attribute, problems),
        SUCCESS_ON_INTERRUPT => codes.success_on_interrupt = flag(attribute, problems),
        _ => return false,
    }
    true
}

pub(crate) fn timeout(attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Option<Timeout> {
    let span = attribute.value.span;
    let (problem, help) = match value(&attribute.value, &NAMES, problems)? {
        Value::Null => return Some(Timeout::Never),
        Value::String(text) => match duration::parse(&text) {
            Ok(Duration::ZERO) => (
                "the limit must be longer than zero".to_owned(),
                "write `timeout = null` for no limit",
            ),
            Ok(timeout) => return Some(Timeout::After(timeout)),
            Err(problem) => (problem, DURATION_HELP),
        },
        other => (format!("this is {}", other.type_name()), DURATION_HELP),
    };
    let diagnostic =
        Diagnostic::error(Code::InvalidValue, "`timeout` must be a duration").label(span, problem);
    problems.push(diagnostic.help(help));
    None
}

const DURATION_HELP: &str = "write it with units: `\"90s\"`, `\"30m\"`, `\"1h 30m\"`";

pub(crate) fn retry(block: &Block, problems: &mut Vec<Diagnostic>) -> Option<Arc<Retry>> {
    let n_problems = problems.len();
    no_labels(block, problems);
    for inner in &block.body.blocks {
        let diagnostic = unknown_block(inner, block);
        problems.push(diagnostic.help(format!("attributes are: {}", RETRY.join(", "))));
    }
    let mut attempts = None;
    let mut backoff = DEFAULT_BACKOFF;
    let mut on_exit = Vec::new();
    let mut on_output = Vec::new();
    for attribute in &block.body.attributes {
        match &*attribute.name.text {
            "attempts" => attempts = number(attribute, problems),
            "backoff" => backoff = wait(attribute, problems).unwrap_or(backoff),
            "on_exit" => on_exit = statuses(attribute, problems),
            "on_output" => on_output = texts(attribute, problems),
            _ => problems.push(unlisted_attribute(attribute, block, &RETRY)),
        }
    }
    let on_output = patterns_of(&on_output, problems);
    if problems.len() > n_problems {
        return None;
    }
    let Some(attempts) = attempts else {
        let diagnostic = Diagnostic::error(Code::MissingAttribute, "`retry` needs `attempts`")
            .label(block.kind.span, "`attempts` is missing");
        problems.push(diagnostic.help("write `attempts = 3` for one attempt and two retries"));
        return None;
    };
    let on_output = on_output?;
    if attempts.get() > 1 && on_exit.is_empty() && on_output.is_empty() {
        let diagnostic = Diagnostic::error(Code::MissingAttribute, "this `retry` never retries")
            .label(block.kind.span, "`on_exit` and `on_output` are missing");
        problems.push(diagnostic.help(
            "write `on_exit = [1]` to retry after these exit statuses, `on_output = [\"timed out\"]` to retry after this output, or `attempts = 1`",
        ));
        return None;
    }
    Some(Arc::new(Retry {
        attempts,
        backoff,
        on_exit,
        on_output,
    }))
}

pub(crate) fn whole_number(value: &Value, from: u32, to: u32) -> Option<u32> {
    let Value::Number(_) = value else {
        return None;
    };
    let number: u32 = value.to_text()?.parse().ok()?;
    (from..=to).contains(&number).then_some(number)
}

/// Describes a value of the wrong type for a label.
pub(crate) fn this_is(value: &Value) -> String {
    match (value, value.to_text()) {
        (Value::Number(_), Some(text)) if text.len() <= 20 => format!("this is {text}"),
        _ => format!("this is {}", value.type_name()),
    }
}

fn number(attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Option<NonZeroU32> {
    let value = value(&attribute.value, &NAMES, problems)?;
    if let Some(number) = whole_number(&value, 1, MAX_ATTEMPTS).and_then(NonZeroU32::new) {
        return Some(number);
    }
    let message = format!("`attempts` must be a whole number from 1 to {MAX_ATTEMPTS}");
    let diagnostic =
        Diagnostic::error(Code::InvalidValue, message).label(attribute.value.span, this_is(&value));
    problems.push(diagnostic.help("the first attempt counts: 3 allows two retries"));
    None
}

fn wait(attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Option<Duration> {
    let problem = match value(&attribute.value, &NAMES, problems)? {
        Value::String(text) => match duration::parse(&text) {
            Ok(backoff) => return Some(backoff),
            Err(problem) => problem,
        },
        other => format!("this is {}", other.type_name()),
    };
    let diagnostic = Diagnostic::error(Code::InvalidValue, "`backoff` must be a duration")
        .label(attribute.value.span, problem);
    problems.push(diagnostic.help(DURATION_HELP));
    None
}

/// Reads exit statuses that count as success. An empty list, or `null`, replaces those of a parent
/// directory.
pub(crate) fn exit_codes(
    attribute: &Attribute,
    problems: &mut Vec<Diagnostic>,
) -> Option<Arc<[i32]>> {
    let name = &attribute.name.text;
    let n_problems = problems.len();
    let codes: Vec<i32> = items(attribute, "`[0, 2]`", problems)
        .into_iter()
        .filter_map(|item| {
            let status = whole_number(&item.value, 0, 255);
            if status.is_none() {
                let message = format!("`{name}` must be a list of exit statuses from 0 to 255");
                let diagnostic = Diagnostic::error(Code::InvalidValue, message);
                problems.push(diagnostic.label(item.span, this_is(&item.value)));
            }
            status.map(u32::cast_signed)
        })
        .collect();
    (problems.len() == n_problems).then(|| codes.into())
}

/// Reads an attribute that is `true` or `false`; `null` counts as not set.
pub(crate) fn flag(attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Option<bool> {
    match value(&attribute.value, &NAMES, problems)? {
        Value::Null => None,
        Value::Bool(flag) => Some(flag),
        other => {
            let message = format!("`{}` must be `true` or `false`", attribute.name.text);
            let diagnostic = Diagnostic::error(Code::WrongType, message);
            problems.push(diagnostic.label(attribute.value.span, this_is(&other)));
            None
        }
    }
}

fn statuses(attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Vec<i32> {
    let mut statuses = Vec::new();
    for item in items(attribute, "`[1, 75]`", problems) {
        match whole_number(&item.value, 1, 255) {
            Some(status) => statuses.push(status.cast_signed()),
            None => problems.push(
                Diagnostic::error(
                    Code::InvalidValue,
                    "`on_exit` must be a list of exit statuses from 1 to 255",
                )
                .label(item.span, this_is(&item.value))
                .help("0 is success, which is never retried"),
            ),
        }
    }
    statuses
}

fn texts(attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Vec<Spanned<Arc<str>>> {
    let mut texts = Vec::new();
    for Spanned { value, span } in items(attribute, "`[\"timed out\"]`", problems) {
        match value {
            Value::String(value) => texts.push(Spanned { value, span }),
            other => problems.push(
                Diagnostic::error(
                    Code::WrongType,
                    "`on_output` must be a list of regular expressions",
                )
                .label(span, format!("this is {}", other.type_name()))
                .help("write each as a string: `on_output = [\"timed out\"]`"),
            ),
        }
    }
    texts
}

fn patterns_of(
    written: &[Spanned<Arc<str>>],
    problems: &mut Vec<Diagnostic>,
) -> Option<regex::bytes::RegexSet> {
    let texts: Vec<&str> = written.iter().map(|text| &*text.value).collect();
    match patterns(&texts) {
        Ok(patterns) => Some(patterns),
        Err((index, problem)) => {
            let Spanned { value, span } = &written[index];
            let message = format!("`{value}` is not a valid pattern for output");
            let diagnostic = Diagnostic::error(Code::InvalidPattern, message).label(*span, problem);
            problems.push(diagnostic.help(
                "a pattern is a regular expression that is matched against each line: write `\\\\(` for the character `(`",
            ));
            None
        }
    }
}

/// Evaluates an attribute that must be a list; `null` counts as not set. The elements have places of
/// their own where the list is written out.
fn items(
    attribute: &Attribute,
    example: &str,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Spanned<Value>> {
    let whole = attribute.value.span;
    let items = match value(&attribute.value, &NAMES, problems) {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Tuple(items) | Value::List(items)) => items,
        Some(other) => {
            let name = &attribute.name.text;
            let diagnostic = Diagnostic::error(Code::WrongType, format!("`{name}` must be a list"))
                .label(whole, this_is(&other));
            problems.push(diagnostic.help(format!("write it as in {example}")));
            return Vec::new();
        }
    };
    let items = elements(&attribute.value, &items);
    items
        .map(|(span, value)| Spanned {
            value: value.clone(),
            span,
        })
        .collect()
}
