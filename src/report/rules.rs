//! The lifecycle rules in force for a stack, as text and as JSON, each with its place.

use serde::Serialize;

use crate::path::StackPath;
use crate::project::lifecycle::{ProtectedResources, ReplaceTrigger};
use crate::project::{CreateBeforeDestroyRule, Project, Rules};
use crate::source::{Span, Spanned};

/// The rules of a stack as JSON.
#[derive(Serialize)]
pub(super) struct RulesJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    prevent_destroy: Option<RuleJson<'a, bool>>,
    /// `true` or `false`, or the globs.
    #[serde(skip_serializing_if = "Option::is_none")]
    prevent_resource_destroy: Option<RuleJson<'a, &'a ProtectedResources>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    create_before_destroy: Option<RuleJson<'a, bool>>,
    /// The ignored inputs as written: `["all"]` for every input.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_changes: Option<RuleJson<'a, Vec<String>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replace_triggered_by: Vec<RuleJson<'a, String>>,
    /// By directory from the outermost to the stack, in the order written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<ConditionJson<'a>>,
}

#[derive(Serialize)]
struct RuleJson<'a, T> {
    value: T,
    /// `None` for a rule that is only recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// The stack that it extends from, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

#[derive(Serialize)]
struct ConditionJson<'a> {
    kind: &'static str,
    file: &'a str,
    line: usize,
}

impl<'a> RulesJson<'a> {
    /// Returns the rules; `None` if no rule is in force.
    pub(super) fn new(rules: &Rules<'a>, project: &'a Project) -> Option<Self> {
        fn rule<T>(value: T, span: Span, project: &Project) -> RuleJson<'_, T> {
            let (file, line) = project.sources.file_and_line(span);
            RuleJson {
                value,
                file: Some(file),
                line: Some(line),
                from: None,
            }
        }
        let create_before_destroy = |it: CreateBeforeDestroyRule<'_>| {
            let place = it.span.map(|span| project.sources.file_and_line(span));
            let (file, line) = place.unzip();
            RuleJson {
                value: it.value,
                file,
                line,
                from: it.from.map(StackPath::to_string),
            }
        };
        if rules.is_empty() {
            return None;
        }
        let of_bool = |it: &Spanned<bool>| rule(it.value, it.span, project);
        let triggers = rules.replace_triggered_by.iter();
        let conditions = rules.conditions.iter();
        Some(RulesJson {
            prevent_destroy: rules.prevent_destroy.map(of_bool),
            prevent_resource_destroy: rules
                .prevent_resource_destroy
                .map(|it| rule(&it.value, it.span, project)),
            create_before_destroy: rules.create_before_destroy.map(create_before_destroy),
            ignore_changes: rules
                .ignore_changes
                .map(|it| rule(it.value.words(), it.span, project)),
            replace_triggered_by: triggers
                .map(|it| rule(trigger_text(&it.value), it.span, project))
                .collect(),
            conditions: conditions
                .map(|condition| {
                    let (file, line) = project.sources.file_and_line(condition.span);
                    let kind = condition.kind.word();
                    ConditionJson { kind, file, line }
                })
                .collect(),
        })
    }
}

fn trigger_text(trigger: &ReplaceTrigger) -> String {
    let output = trigger.output.as_ref().map(|output| format!("#{output}"));
    trigger.reference.clone() + output.as_deref().unwrap_or_default()
}

pub(super) fn rule_lines(rules: &Rules<'_>, project: &Project) -> Vec<String> {
    let place = |span: Span| project.sources.line(span);
    let mut lines = Vec::new();
    let protected = rules.prevent_destroy;
    lines.extend(protected.map(|it| format!("prevent_destroy = {}, {}", it.value, place(it.span))));
    lines.extend(rules.prevent_resource_destroy.map(|it| {
        let value = match &it.value {
            ProtectedResources::All(all) => format!(" = {all}"),
            ProtectedResources::Matching(globs) => format!(": {}", globs.join(", ")),
        };
        format!("prevent_resource_destroy{value}, {}", place(it.span))
    }));
    lines.extend(rules.create_before_destroy.map(|it| {
        let from = it.from.map(|from| format!(", from {from}"));
        let place = it.span.map(|span| format!(", {}", place(span)));
        let (from, place) = (from.unwrap_or_default(), place.unwrap_or_default());
        format!("create_before_destroy = {}{from}{place}", it.value)
    }));
    lines.extend(rules.ignore_changes.map(|it| {
        let words = it.value.words().join(", ");
        format!("ignore_changes: {words}, {}", place(it.span))
    }));
    lines.extend(rules.replace_triggered_by.iter().map(|it| {
        let trigger = trigger_text(&it.value);
        format!("replace_triggered_by: {trigger}, {}", place(it.span))
    }));
    let conditions = rules.conditions.iter();
    lines.extend(conditions.map(|it| format!("{}, {}", it.kind.word(), place(it.span))));
    lines
}
