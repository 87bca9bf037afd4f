//! The lifecycle rules in force for a stack, as text and as JSON, each with its place.

use serde::Serialize;

use crate::project::lifecycle::ReplaceTrigger;
use crate::project::{Project, Rules};
use crate::source::{Span, Spanned};

/// The rules of a stack as JSON.
#[derive(Serialize)]
pub(super) struct RulesJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    prevent_destroy: Option<RuleJson<'a, bool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    create_before_destroy: Option<RuleJson<'a, bool>>,
    /// What is ignored, as written: `["all"]` for every input.
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
    file: &'a str,
    line: usize,
}

#[derive(Serialize)]
struct ConditionJson<'a> {
    kind: &'static str,
    file: &'a str,
    line: usize,
}

impl<'a> RulesJson<'a> {
    /// Returns the rules; `None` if no rule is in force.
    pub(super) fn new(rules: &Rules<'_>, project: &'a Project) -> Option<Self> {
        fn rule<T>(value: T, span: Span, project: &Project) -> RuleJson<'_, T> {
            let (file, line) = project.sources.file_and_line(span);
            RuleJson { value, file, line }
        }
        if rules.is_empty() {
            return None;
        }
        let of_bool = |it: &Spanned<bool>| rule(it.value, it.span, project);
        let triggers = rules.replace_triggered_by.iter();
        let conditions = rules.conditions.iter();
        Some(RulesJson {
            prevent_destroy: rules.prevent_destroy.map(of_bool),
            create_before_destroy: rules.create_before_destroy.map(of_bool),
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

/// Returns a line for each rule.
pub(super) fn rule_lines(rules: &Rules<'_>, project: &Project) -> Vec<String> {
    let place = |span: Span| project.sources.line(span);
    let mut lines = Vec::new();
    let switches = [
        ("prevent_destroy", rules.prevent_destroy),
        ("create_before_destroy", rules.create_before_destroy),
    ];
    for (name, rule) in switches {
        lines.extend(rule.map(|it| format!("{name} = {}, {}", it.value, place(it.span))));
    }
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
