//! The globals of stacks, with their definitions: `orch globals`.

use crate::language::evaluate::NoValue;
use crate::language::value::Value;
use crate::project::Project;
use crate::project::namespaces::ProjectNamespaces;
use crate::project::per_stack::{SharedProblem, SharedProblems};
use crate::project::stack::StackIndex;
use crate::source::Span;

pub struct InspectedGlobal {
    pub name: String,
    pub state: GlobalState,
    /// The definitions that it consists of, those of whole objects before those of their entries.
    pub definitions: Vec<InspectedDefinition>,
}

pub enum GlobalState {
    Known(Value),
    /// It has no value, for this reason.
    Broken(String),
}

pub struct InspectedDefinition {
    /// Its name in expressions: `global.network.cidr`.
    pub name: String,
    pub span: Span,
    pub is_imported: bool,
}

/// Evaluates all globals of these stacks. Returns those of each stack, and the problems of those without a value.
pub fn inspect(
    project: &Project,
    host_environment: impl Iterator<Item = (String, String)>,
    stacks: impl IntoIterator<Item = StackIndex>,
) -> (Vec<(StackIndex, Vec<InspectedGlobal>)>, Vec<SharedProblem>) {
    let namespaces = ProjectNamespaces::new(project, host_environment);
    let mut problems = SharedProblems::default();
    let mut inspected = Vec::new();
    for stack in stacks {
        let names = namespaces.of_stack(stack);
        let mut globals = Vec::new();
        for name in names.globals() {
            let state = match names.global(name) {
                Ok(Some(answer)) => GlobalState::Known(answer.value),
                Ok(None) => continue,
                Err(none) => {
                    let diagnostic = NoValue::into_diagnostic(none);
                    let message = diagnostic.message.clone();
                    problems.add(stack, [diagnostic]);
                    GlobalState::Broken(message)
                }
            };
            let definitions = names.definitions(name).into_iter();
            globals.push(InspectedGlobal {
                name: name.to_owned(),
                state,
                definitions: definitions
                    .map(|definition| InspectedDefinition {
                        name: definition.name(),
                        span: definition.span,
                        is_imported: definition.is_imported,
                    })
                    .collect(),
            });
        }
        inspected.push((stack, globals));
    }
    (inspected, problems.into_vec())
}
