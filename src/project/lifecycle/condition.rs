//! Reads `precondition` and `postcondition` blocks. Only their shape is checked here: their expressions are evaluated
//! when they are needed.

use super::{Condition, ConditionKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::Block;
use crate::project::blocks::{misplaced_block, no_labels};

/// The attributes of a condition, both required.
const CONDITION: &str = "condition";
const ERROR_MESSAGE: &str = "error_message";

pub(super) fn condition(
    block: &Block,
    kind: ConditionKind,
    problems: &mut Vec<Diagnostic>,
) -> Option<Condition> {
    let before = problems.len();
    no_labels(block, problems);
    for inner in &block.body.blocks {
        let diagnostic = misplaced_block(inner, block, "a condition has no blocks");
        problems.push(diagnostic.label(block.kind.span, "in this block"));
    }
    for attribute in &block.body.attributes {
        let name = &*attribute.name.text;
        if ![CONDITION, ERROR_MESSAGE].contains(&name) {
            let message = format!("unknown attribute `{name}` in `{}`", kind.word());
            problems.push(
                Diagnostic::error(Code::UnknownAttribute, message)
                    .label(attribute.name.span, "not an attribute of a condition")
                    .label(block.kind.span, "in this block")
                    .did_you_mean(name, [CONDITION, ERROR_MESSAGE]),
            );
        }
    }
    let mut required = |name: &str| {
        let attribute = block.body.attribute(name);
        if attribute.is_none() {
            let message = format!("this `{}` has no `{name}`", kind.word());
            let help = match name {
                CONDITION => "add `condition = …`, an expression that must be true",
                _ => "add `error_message = \"…\"`, which is shown if the condition does not hold",
            };
            problems.push(
                Diagnostic::error(Code::MissingAttribute, message)
                    .label(block.kind.span, format!("`{name}` is missing"))
                    .help(help),
            );
        }
        attribute.map(|attribute| attribute.value.clone())
    };
    let (condition, error_message) = (required(CONDITION), required(ERROR_MESSAGE));
    let (condition, error_message) = (condition?, error_message?);
    (problems.len() == before).then_some(Condition {
        kind,
        condition,
        error_message,
        span: block.kind.span,
    })
}
