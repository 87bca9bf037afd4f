//! Checks that ids are unique.

use std::collections::{HashMap, HashSet};

use crate::diagnostic::{Code, Diagnostic};
use crate::path::ProjectPath;
use crate::project::stack::Stack;
use crate::source::Spanned;

pub(super) fn check_ids(stacks: &[Box<Stack>], problems: &mut Vec<Diagnostic>) {
    let mut first: HashMap<String, &Stack> = HashMap::new();
    let mut first_of_directory: HashSet<&ProjectPath> = HashSet::new();
    for stack in stacks {
        let Some(id) = &stack.id else {
            continue;
        };
        let folded = id.value.to_ascii_lowercase();
        let Some(other) = first.get(&folded) else {
            first.insert(folded, stack);
            continue;
        };
        if other.path.directory() == stack.path.directory() {
            if first_of_directory.insert(stack.path.directory()) {
                problems.push(same_for_instances(other, stack, id));
            }
            continue;
        }
        if stack.path.key().is_some() && !first_of_directory.insert(stack.path.directory()) {
            continue; // the same mistake of the same block
        }
        let mut diagnostic = Diagnostic::error(
            Code::DuplicateId,
            format!(
                "stacks `{}` and `{}` have the same id `{}`",
                other.path, stack.path, id.value
            ),
        )
        .label(id.span, "an id must be unique in the project");
        if let Some(other_id) = &other.id {
            diagnostic = diagnostic.label(other_id.span, "also used here");
            if other_id.value != id.value {
                diagnostic = diagnostic.note("ids are compared ignoring case");
            }
        }
        problems.push(diagnostic.help("give one of the stacks another id"));
    }
}

fn same_for_instances(one: &Stack, other: &Stack, id: &Spanned<String>) -> Diagnostic {
    let message = format!(
        "duplicate id: the stacks `{}` and `{}` have the same id `{}`",
        one.path, other.path, id.value
    );
    let diagnostic = Diagnostic::error(Code::DuplicateId, message)
        .label(id.span, "the same for several instances of this block");
    if one.id.as_ref().is_some_and(|it| it.value != id.value) {
        let diagnostic = diagnostic.note("ids are compared ignoring case");
        return diagnostic.help("give one of the instances another key, or leave out the id");
    }
    diagnostic.help(format!(
        "make `each.key` part of the id, as in `id = \"{}-${{each.key}}\"`",
        id.value
    ))
}
