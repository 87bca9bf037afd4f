//! The environment that a command gets in a stack.
//!
//! The host's environment, then `config.run.env` from the stack's directory up to the root, the
//! nearest definition of a name winning, then the `ORCH_…` variables. `null` and `unset` remove a
//! variable, the host's own included.

use std::collections::{BTreeMap, HashMap};

use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::NoValue;
use crate::language::value::Value;
use crate::project::Project;
use crate::project::globals::is_unset;
use crate::project::namespaces::ProjectNamespaces;
use crate::project::stack::StackIndex;
use crate::source::Span;

/// Changes to the host's environment, by name; `None` removes the variable.
pub type Environment = BTreeMap<String, Option<String>>;

/// A problem that several stacks have.
#[derive(Debug, Clone)]
pub struct SharedProblem {
    /// The problem, as the first of the stacks has it.
    pub diagnostic: Diagnostic,
    /// The stacks; at least one.
    pub stacks: Vec<StackIndex>,
}

/// Computes environments, one stack at a time.
#[derive(Debug)]
pub struct Environments<'p> {
    project: &'p Project,
    namespaces: ProjectNamespaces<'p>,
}

impl<'p> Environments<'p> {
    /// Makes one for a project and the environment that `orch` was started in.
    pub fn new(
        project: &'p Project,
        host_environment: impl Iterator<Item = (String, String)>,
    ) -> Self {
        Environments {
            project,
            namespaces: ProjectNamespaces::new(project, host_environment),
        }
    }

    /// Returns the environments of stacks, and the problems: one diagnostic for each place, worded for the
    /// first stack, with all stacks that have it. Many stacks inherit a definition, and a mistake in it
    /// is one mistake, though the wording may differ by stack.
    pub fn of_stacks(
        &self,
        stacks: impl IntoIterator<Item = StackIndex>,
    ) -> (Vec<(StackIndex, Environment)>, Vec<SharedProblem>) {
        let mut known = Vec::new();
        let mut problems: Vec<SharedProblem> = Vec::new();
        let mut by_place: HashMap<(Code, Option<Span>), usize> = HashMap::new();
        for stack in stacks {
            let found = match self.of_stack(stack) {
                Ok(environment) => {
                    known.push((stack, environment));
                    continue;
                }
                Err(found) => found,
            };
            for diagnostic in found {
                let place = diagnostic.labels.first().map(|label| label.span);
                let index = *by_place
                    .entry((diagnostic.code, place))
                    .or_insert(problems.len());
                match problems.get_mut(index) {
                    // A mistake in a global affects each variable that uses it.
                    Some(known) if known.stacks.last() == Some(&stack) => {}
                    Some(known) => known.stacks.push(stack),
                    None => problems.push(SharedProblem {
                        diagnostic,
                        stacks: vec![stack],
                    }),
                }
            }
        }
        (known, problems)
    }

    /// Returns what a run changes for a stack; `ORCH_RUN_ID`, which is new in each run, is missing.
    ///
    /// # Errors
    ///
    /// A diagnostic for each definition that does not give a string.
    pub fn of_stack(&self, stack: StackIndex) -> Result<Environment, Vec<Diagnostic>> {
        let mut environment = Environment::new();
        let mut problems = Vec::new();
        let namespaces = self.namespaces.of_stack(stack);
        let path = &self.project.stacks[stack].path;
        for scope in self.project.scopes_of(path) {
            for definition in &scope.env {
                let name = &*definition.name.text;
                if environment.contains_key(name) {
                    continue; // a nearer definition holds
                }
                let value = if is_unset(&definition.value) {
                    Ok(Value::Null)
                } else {
                    let answer = namespaces.evaluate(&definition.value);
                    answer
                        .map(|answer| answer.value)
                        .map_err(NoValue::into_diagnostic)
                };
                match value.and_then(|value| variable(value, definition.value.span, name)) {
                    Ok(value) => _ = environment.insert(name.to_owned(), value),
                    Err(diagnostic) => {
                        problems.push(diagnostic);
                        environment.insert(name.to_owned(), None);
                    }
                }
            }
        }
        environment.extend(self.identity(stack));
        if problems.is_empty() {
            Ok(environment)
        } else {
            Err(problems)
        }
    }

    /// Returns the variables that tell a command where it runs.
    fn identity(&self, stack: StackIndex) -> Environment {
        let stack = &self.project.stacks[stack];
        let tags: Vec<&str> = stack.tags().collect();
        let id = stack.id.as_ref().map_or("", |id| &id.value);
        [
            (
                "ORCH_ROOT",
                self.project.root.to_string_lossy().into_owned(),
            ),
            ("ORCH_STACK_PATH", stack.path.to_string()),
            ("ORCH_STACK_NAME", stack.name.clone()),
            ("ORCH_STACK_ID", id.to_owned()),
            ("ORCH_STACK_TAGS", tags.join(",")),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), Some(value)))
        .collect()
    }
}

fn variable(value: Value, span: Span, name: &str) -> Result<Option<String>, Diagnostic> {
    let problem = match value {
        Value::Null => return Ok(None),
        Value::String(text) if text.contains('\0') => "this text has a NUL character".to_owned(),
        Value::String(text) => return Ok(Some(text.to_string())),
        other => format!("this is {}", other.type_name()),
    };
    let diagnostic = Diagnostic::error(
        Code::WrongType,
        format!("`run.env.{name}` must be a string"),
    )
    .label(span, problem);
    Err(diagnostic.help("write it as a template: `\"${…}\"`; `null` removes the variable"))
}
