//! The environment that a command gets in a stack.
//!
//! The host's environment, then `config.run.env` from the stack's directory up to the root, the
//! nearest definition of a name winning, then the `ORCH_…` variables. `null` and `unset` remove a
//! variable, the host's own included.

use std::collections::BTreeMap;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::NoValue;
use crate::language::value::Value;
use crate::project::Project;
use crate::project::globals::is_unset;
use crate::project::namespaces::{ProjectNamespaces, Used};
use crate::project::per_stack::{SharedProblem, for_each, needed_at};
use crate::project::stack::StackIndex;
use crate::source::Span;

/// Changes to the host's environment, by name; `None` removes the variable.
pub type Environment = BTreeMap<String, Option<String>>;

/// Where a variable comes from.
#[derive(Debug, Clone)]
pub struct EnvOrigin {
    /// The definition.
    pub span: Span,
    /// The globals that its value was computed from, each once: the name, and the definition.
    pub globals: Vec<(String, Span)>,
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

    /// Returns the namespaces that environments are computed with.
    pub fn namespaces(&self) -> &ProjectNamespaces<'p> {
        &self.namespaces
    }

    /// Returns the environments of stacks, and the problems.
    pub fn of_stacks(
        &self,
        stacks: impl IntoIterator<Item = StackIndex>,
    ) -> (Vec<(StackIndex, Environment)>, Vec<SharedProblem>) {
        for_each(stacks, |stack| self.of_stack(stack))
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
                    answer.map(|answer| answer.value).map_err(|none: NoValue| {
                        let (name, value) = (definition.name.span, definition.value.span);
                        needed_at(none.into_diagnostic(), name, value)
                    })
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

    /// Returns where the variables of a stack that the configuration sets or removes come from.
    pub fn definitions_of(&self, stack: StackIndex) -> BTreeMap<&'p str, EnvOrigin> {
        let mut origins = BTreeMap::new();
        let namespaces = self.namespaces.of_stack(stack);
        let path = &self.project.stacks[stack].path;
        for scope in self.project.scopes_of(path) {
            for definition in &scope.env {
                origins.entry(&*definition.name.text).or_insert_with(|| {
                    let mut globals = Vec::new();
                    if !is_unset(&definition.value) {
                        let (_, uses) = namespaces.evaluate_noting(&definition.value);
                        collect(&uses, &mut globals);
                    }
                    EnvOrigin {
                        span: definition.name.span,
                        globals,
                    }
                });
            }
        }
        origins
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

/// Collects the globals among what was used, and those that they use themselves, in the order of use.
fn collect(uses: &[Used<'_>], globals: &mut Vec<(String, Span)>) {
    for used in uses {
        if let Used::Global(definition, inner) = used
            && globals.iter().all(|(_, span)| *span != definition.span)
        {
            globals.push((definition.name(), definition.span));
            collect(inner, globals);
        }
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
