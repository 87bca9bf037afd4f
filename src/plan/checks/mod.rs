//! Conditions: what must hold before something is done with a stack.
//!
//! A condition is evaluated for each stack, with the names that `run.env` has and `orch.namespace`. This module
//! reads and runs nothing; it does not know the outputs of stacks, so conditions about these are not checked
//! yet.

mod names;
mod shown;

use std::collections::BTreeMap;

use rayon::prelude::*;

use self::names::CheckNames;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{Answer, Budget, NoValue, evaluate_within};
use crate::language::syntax::{Expr, ExprKind};
use crate::language::value::Value;
use crate::project::lifecycle::{Condition, ConditionKind};
use crate::project::namespaces::ProjectNamespaces;
use crate::project::stack::StackIndex;
use crate::project::{self, Project};

/// The names in a condition that stand for what is only known once stacks have been applied.
const OF_OUTPUTS: [&str; 2] = ["stacks", "self"];

/// A condition that does not hold, or that cannot be evaluated.
#[derive(Debug, Clone)]
pub struct FailedCheck {
    /// What is said of it in a line: `precondition failed: …`.
    pub text: String,
    /// The same with the place, and the values of the names in it.
    pub diagnostic: Diagnostic,
}

/// Returns whether this version can check a condition.
pub fn is_checkable(condition: &Condition) -> bool {
    let mut is_known = condition.kind == ConditionKind::Precondition;
    for expr in [&condition.condition, &condition.error_message] {
        expr.each(&mut |expr| {
            if let ExprKind::Variable(name) = &expr.kind {
                is_known &= !OF_OUTPUTS.contains(&&**name);
            }
        });
    }
    is_known
}

/// Checks the preconditions of stacks; returns those that do not hold, by stack, in the order in which they
/// count. `namespace` is that of the state, if the project keeps one.
///
/// # Errors
///
/// If no thread can be started.
pub fn failed_preconditions(
    project: &Project,
    host_environment: impl Iterator<Item = (String, String)>,
    namespace: Option<&str>,
    stacks: &[StackIndex],
) -> Result<BTreeMap<StackIndex, Vec<FailedCheck>>, rayon::ThreadPoolBuildError> {
    let has_any = |stack: &&StackIndex| !project.rules_of(**stack).conditions.is_empty();
    let stacks: Vec<StackIndex> = stacks.iter().filter(has_any).copied().collect();
    if stacks.is_empty() {
        return Ok(BTreeMap::new());
    }
    let namespaces = ProjectNamespaces::new(project, host_environment);
    let basis = namespaces.basis();
    let of_part = |stacks: &[StackIndex]| -> Vec<(StackIndex, Vec<FailedCheck>)> {
        let namespaces = ProjectNamespaces::from(basis.clone());
        let of_stack = |&stack: &StackIndex| {
            let failed = of_stack(project, &namespaces, namespace, stack);
            (!failed.is_empty()).then_some((stack, failed))
        };
        stacks.iter().filter_map(of_stack).collect()
    };
    Ok(project::pool()?.install(|| {
        let size = stacks.len().div_ceil(rayon::current_num_threads()).max(1);
        stacks.par_chunks(size).flat_map_iter(of_part).collect()
    }))
}

fn of_stack(
    project: &Project,
    namespaces: &ProjectNamespaces<'_>,
    namespace: Option<&str>,
    stack: StackIndex,
) -> Vec<FailedCheck> {
    let own = namespaces.of_stack(stack);
    let own = own.of_conditions();
    let names = CheckNames {
        own: &own,
        namespace,
    };
    let conditions = project.rules_of(stack).conditions.into_iter();
    let preconditions = conditions.filter(|it| it.kind == ConditionKind::Precondition);
    let path = project.stacks[stack].path.as_str();
    preconditions
        .filter_map(|condition| check(condition, &names, path))
        .collect()
}

fn evaluate(expr: &Expr, names: &CheckNames<'_>) -> Result<Answer, Diagnostic> {
    evaluate_within(expr, names, &Budget::default()).map_err(NoValue::into_diagnostic)
}

/// Returns a condition if it does not hold.
fn check(condition: &Condition, names: &CheckNames<'_>, path: &str) -> Option<FailedCheck> {
    let word = condition.kind.word();
    let broken = |diagnostic: Diagnostic| {
        Some(FailedCheck {
            text: format!("{word} cannot be evaluated: {}", diagnostic.message),
            diagnostic: diagnostic.note(format!("needed for the {word} of `{path}`")),
        })
    };
    match evaluate(&condition.condition, names) {
        Ok(Answer {
            value: Value::Bool(true),
            ..
        }) => return None,
        Ok(Answer {
            value: Value::Bool(false),
            ..
        }) => {}
        Ok(other) => {
            let message = format!("a {word} must be `true` or `false`");
            let label = format!("this is {}", other.value.type_name());
            let diagnostic = Diagnostic::error(Code::WrongType, message);
            return broken(diagnostic.label(condition.condition.span, label));
        }
        Err(diagnostic) => return broken(diagnostic),
    }
    let said = match evaluate(&condition.error_message, names) {
        Ok(answer) if answer.is_sensitive => "(sensitive)".to_owned(),
        Ok(answer) => match answer.value.as_str() {
            Some(text) => text.to_owned(),
            None => format!("its `error_message` is {}", answer.value.type_name()),
        },
        Err(diagnostic) => format!(
            "its `error_message` cannot be evaluated: {}",
            diagnostic.message
        ),
    };
    let message = format!("{word} of `{path}` failed: {said}");
    let mut diagnostic = Diagnostic::error(Code::FailedCondition, message);
    let shown = shown::values(&condition.condition, names);
    if shown.is_empty() {
        diagnostic = diagnostic.label(condition.condition.span, "this is false");
    }
    for (span, label) in shown {
        diagnostic = diagnostic.label(span, label);
    }
    Some(FailedCheck {
        text: format!("{word} failed: {said}"),
        diagnostic,
    })
}
