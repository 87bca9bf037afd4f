//! Conditions: checked before and after a stack is applied.
//!
//! A condition is evaluated for each stack with the names of `run.env`, `orch.namespace` and the
//! outputs of stacks. This module runs no tools. It returns the stacks whose outputs are missing;
//! the caller reads them and checks again. Failed conditions never contain a secret.

mod names;
mod references;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::names::CheckNames;
pub(super) use self::names::list_of_outputs;
pub use self::names::{SelfValue, StackOutputs};
use self::references::EarlierStacks;
pub use self::references::{MentionedStacks, mentioned, misplaced, misplaced_generations};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{Budget, EvalResult, EvalValue, NoValue, evaluate_within};
use crate::language::syntax::{Expr, ExprKind};
use crate::language::value::Value;
use crate::project::lifecycle::{Condition, ConditionKind};
use crate::project::namespaces::{NamespaceInputs, ProjectNamespaces};
use crate::project::stack::StackIndex;
use crate::project::{self, Project};
use crate::selection::graph::Graph;
use crate::source::{Sources, Span};

pub struct Checker<'p> {
    project: &'p Project,
    basis: NamespaceInputs<'p>,
    namespace: Option<String>,
    after: EarlierStacks<'p>,
    outputs: BTreeMap<StackIndex, StackOutputs>,
    /// Whether outputs can still be read.
    reads: bool,
}

#[derive(Debug, Default)]
pub struct Checked<'p> {
    /// Those that do not hold, in order of precedence.
    pub failed: Vec<FailedCheck>,
    /// The stacks whose outputs must be read to decide the others.
    pub needed: BTreeSet<StackIndex>,
    /// Those that can only be decided later.
    pub open: Vec<&'p Condition>,
}

impl Checked<'_> {
    pub fn holds(&self) -> bool {
        self.failed.is_empty() && self.open.is_empty()
    }
}

impl<'p> Checker<'p> {
    /// Checks with the names of `run.env`, and the state's namespace if there is a state.
    pub fn new(names: &ProjectNamespaces<'p>, graph: &'p Graph, namespace: Option<String>) -> Self {
        Checker {
            project: names.project(),
            basis: names.basis().clone(),
            namespace,
            after: EarlierStacks::new(graph),
            outputs: BTreeMap::new(),
            reads: true,
        }
    }

    pub fn set(&mut self, stack: StackIndex, outputs: StackOutputs) {
        self.outputs.insert(stack, outputs);
    }

    pub fn knows(&self, stack: StackIndex) -> bool {
        self.outputs.contains_key(&stack)
    }

    /// Makes unknown outputs an error from now on: no more are read.
    pub fn end_reading(&mut self) {
        self.reads = false;
    }

    /// Checks conditions of stacks; returns the stacks where not all hold. For postconditions, each
    /// stack comes with its `self`. Fails if no thread can be started.
    pub fn check_all(
        &self,
        kind: ConditionKind,
        stacks: &[(StackIndex, SelfValue)],
    ) -> Result<BTreeMap<StackIndex, Checked<'p>>, rayon::ThreadPoolBuildError> {
        let has_any = |(stack, _): &&(StackIndex, SelfValue)| self.has_any(*stack, kind);
        let stacks: Vec<&(StackIndex, SelfValue)> = stacks.iter().filter(has_any).collect();
        if stacks.is_empty() {
            return Ok(BTreeMap::new());
        }
        let of_part = |stacks: &[&(StackIndex, SelfValue)]| -> Vec<(StackIndex, Checked<'p>)> {
            let namespaces = ProjectNamespaces::from(self.basis.clone());
            let checked = stacks.iter().map(|(stack, itself)| {
                let checked = self.of_stack(&namespaces, kind, *stack, itself);
                (*stack, checked)
            });
            checked.filter(|(_, checked)| !checked.holds()).collect()
        };
        Ok(project::pool()?.install(|| {
            let size = stacks.len().div_ceil(rayon::current_num_threads()).max(1);
            stacks.par_chunks(size).flat_map_iter(of_part).collect()
        }))
    }

    pub fn check(&self, kind: ConditionKind, stack: StackIndex, itself: &SelfValue) -> Checked<'p> {
        if !self.has_any(stack, kind) {
            return Checked::default();
        }
        let namespaces = ProjectNamespaces::from(self.basis.clone());
        self.of_stack(&namespaces, kind, stack, itself)
    }

    pub fn has_any(&self, stack: StackIndex, kind: ConditionKind) -> bool {
        let rules = self.project.rules_of(stack);
        rules.conditions.iter().any(|it| it.kind == kind)
    }

    fn of_stack(
        &self,
        namespaces: &ProjectNamespaces<'_>,
        kind: ConditionKind,
        stack: StackIndex,
        itself: &SelfValue,
    ) -> Checked<'p> {
        let own = namespaces.of_stack(stack);
        let own = own.of_conditions();
        let needed = RefCell::default();
        let names = CheckNames {
            own: &own,
            checker: self,
            stack,
            itself,
            needed: &needed,
        };
        let mut checked = Checked::default();
        let conditions = self.project.rules_of(stack).conditions.into_iter();
        for condition in conditions.filter(|it| it.kind == kind) {
            match check(condition, &names, self.project.stacks[stack].path.as_str()) {
                Ok(failed) => checked.failed.extend(failed),
                Err(UndecidedCondition) => checked.open.push(condition),
            }
        }
        if !checked.open.is_empty() {
            checked.needed = needed.into_inner();
        }
        checked
    }
}

struct UndecidedCondition;

fn evaluate(expr: &Expr, names: &CheckNames<'_>) -> EvalResult<EvalValue> {
    evaluate_within(expr, names, &Budget::default())
}

/// Returns the condition if it does not hold.
fn check(
    condition: &Condition,
    names: &CheckNames<'_>,
    path: &str,
) -> Result<Option<FailedCheck>, UndecidedCondition> {
    let word = condition.kind.word();
    let failed = |text: String, diagnostic: Diagnostic| {
        Ok(Some(FailedCheck {
            kind: condition.kind,
            span: condition.span,
            text,
            diagnostic,
        }))
    };
    let broken = |diagnostic: Diagnostic| {
        failed(
            format!("{word} cannot be evaluated: {}", diagnostic.message),
            diagnostic.note(format!("needed for the {word} of `{path}`")),
        )
    };
    match evaluate(&condition.condition, names) {
        Ok(EvalValue {
            value: Value::Bool(true),
            ..
        }) => return Ok(None),
        Ok(EvalValue {
            value: Value::Bool(false),
            ..
        }) => {}
        Ok(other) => {
            let message = format!("a {word} must be `true` or `false`");
            let label = format!("this is {}", other.value.type_name());
            let diagnostic = Diagnostic::error(Code::WrongType, message);
            return broken(diagnostic.label(condition.condition.span, label));
        }
        Err(NoValue::Wrong(diagnostic)) => return broken(*diagnostic),
        Err(NoValue::Undecided(_)) => return Err(UndecidedCondition),
    }
    let said = match evaluate(&condition.error_message, names) {
        Ok(answer) if answer.is_sensitive => "(sensitive)".to_owned(),
        Ok(answer) => match answer.value.as_str() {
            Some(text) => text.to_owned(),
            None => format!("its `error_message` is {}", answer.value.type_name()),
        },
        Err(NoValue::Undecided(undecided)) if undecided.is_on_demand => {
            return Err(UndecidedCondition);
        }
        Err(none) => format!(
            "its `error_message` cannot be evaluated: {}",
            none.into_diagnostic().message
        ),
    };
    let message = format!("{word} of `{path}` failed: {said}");
    let mut diagnostic = Diagnostic::error(Code::FailedCondition, message);
    let shown = values(&condition.condition, names);
    if shown.is_empty() {
        diagnostic = diagnostic.label(condition.condition.span, "this is false");
    }
    for (span, label) in shown {
        diagnostic = diagnostic.label(span, label);
    }
    failed(format!("{word} failed: {said}"), diagnostic)
}

const MAX_WRITTEN: usize = 200;

/// A condition that does not hold or cannot be evaluated.
#[derive(Debug, Clone)]
pub struct FailedCheck {
    pub kind: ConditionKind,
    /// The keyword of its block.
    pub span: Span,
    /// The message in one line: `precondition failed: …`.
    pub text: String,
    /// The message with its position and the values of its names.
    pub diagnostic: Diagnostic,
}

/// A [`FailedCheck`] as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCondition {
    /// `precondition` or `postcondition`.
    pub kind: String,
    /// Relative to the project root.
    pub file: String,
    /// From 1.
    pub line: usize,
    pub message: String,
    pub values: Vec<ShownValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownValue {
    pub expression: String,
    /// From 1.
    pub line: usize,
    pub text: String,
}

impl FailedCheck {
    /// Converts it to data, given the project's files.
    pub fn data(&self, sources: &Sources) -> FailedCondition {
        let (file, line) = sources.file_and_line(self.span);
        let written = |span: Span| {
            let text = sources.file(span.file).text.get(span.range());
            text.unwrap_or_default().chars().take(MAX_WRITTEN).collect()
        };
        let values = self.diagnostic.labels.iter().map(|label| ShownValue {
            expression: written(label.span),
            line: sources.file_and_line(label.span).1,
            text: label.text.clone(),
        });
        FailedCondition {
            kind: self.kind.word().to_owned(),
            file: file.to_owned(),
            line,
            message: self.diagnostic.message.clone(),
            values: values.collect(),
        }
    }
}

const MAX_TEXT: usize = 200;

const MAX_NAMES: usize = 5;

/// Returns the names in a condition with their values. Variables of a `for` are left out.
fn values(condition: &Expr, names: &CheckNames<'_>) -> Vec<(Span, String)> {
    let mut found: Vec<(Span, String)> = Vec::new();
    let mut covered: Option<Span> = None;
    condition.each(&mut |expr| {
        let is_name = match &expr.kind {
            ExprKind::Variable(_) => true,
            ExprKind::Traversal(base, _) => matches!(base.kind, ExprKind::Variable(_)),
            _ => false,
        };
        let is_inside = covered
            .is_some_and(|outer| outer.start <= expr.span.start && expr.span.end <= outer.end);
        if !is_name || is_inside || found.len() == MAX_NAMES {
            return;
        }
        if let Ok(answer) = evaluate_within(expr, names, &Budget::default()) {
            covered = Some(expr.span);
            found.push((expr.span, format!("this is {}", in_words(&answer))));
        }
    });
    found
}

/// Describes a value: texts and numbers in full, collections by kind and size.
fn in_words(answer: &EvalValue) -> String {
    if answer.is_sensitive {
        return "(sensitive)".to_owned();
    }
    let value = &answer.value;
    if let Some(text) = value.as_str() {
        return match text.char_indices().nth(MAX_TEXT) {
            Some((end, _)) => format!("{:?}…", &text[..end]),
            None => format!("{text:?}"),
        };
    }
    if let Some(text) = value.to_text() {
        return text.to_string();
    }
    let size = match (value.items(), value.entries()) {
        (Some(items), _) => items.len(),
        (_, Some(entries)) => entries.len(),
        _ => return value.type_name().to_owned(),
    };
    format!("{} of {size}", value.type_name())
}
