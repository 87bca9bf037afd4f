//! The environment of a command in a stack.
//!
//! The host's environment without git's variables of one repository, then `config.run.env` from the stack's directory
//! up to the root, where the nearest definition of a name wins, then the `ORCH_…` variables. `null` and `unset`
//! remove a variable, including the host's own.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::process::Command;
use std::sync::Arc;

use memchr::memmem;
use rayon::prelude::*;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{EvalResult, EvalValue, NoValue};
use crate::language::syntax::{Expr, ExprKind};
use crate::language::value::Value;
use crate::path::{Generation, ProjectPath};
use crate::project::Project;
use crate::project::config::{EnvDefinition, LetDefinition, STACK_KEY};
use crate::project::globals::is_unset;
use crate::project::host::host_variable;
use crate::project::lifecycle::STACKS;
use crate::project::namespaces::{
    Definition, Generations, ProjectNamespaces, StackNamespaces, Used,
};
use crate::project::per_stack::{SharedProblem, for_each, needed_at};
use crate::project::stack::StackIndex;
use crate::source::Span;

/// Changes to the host's environment, by name; `None` removes the variable.
pub type Environment = BTreeMap<String, Option<String>>;

/// The variables that tie git to one repository or one index: those that
/// `git rev-parse --local-env-vars` lists, without the ones that hold configuration.
///
/// Git sets them for its hooks. A command that inherits them, and runs git in a repository of its own as
/// `terraform init` does for modules, writes into the repository of the hook.
pub const REPOSITORY_VARIABLES: [&str; 13] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Adds this environment to the one that a command inherits.
pub fn compose(command: &mut Command, environment: &Environment) {
    // An outer run may have set it, and only instances get a key of their own.
    command.env_remove(STACK_KEY);
    for variable in REPOSITORY_VARIABLES {
        command.env_remove(variable);
    }
    for (name, value) in environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

pub fn lookup(environment: &Environment, name: &str) -> Option<String> {
    match environment.get(name) {
        Some(own) => own.clone(),
        None => host_variable(name),
    }
}

#[derive(Debug, Clone)]
pub struct EnvOrigin<'p> {
    pub span: Span,
    /// The globals and lets in its value, each once, in the order of use.
    pub values: Vec<Definition<'p>>,
}

/// A variable of `run.env`, as one stack sees it.
pub struct Variable<'p> {
    pub definition: &'p EnvDefinition,
    /// The value; `None` removes the variable.
    pub value: Result<Option<String>, Diagnostic>,
    pub uses: Vec<Used<'p>>,
}

/// From so many stacks on, several threads evaluate.
const MANY: usize = 512;

#[derive(Debug)]
pub struct Environments<'p> {
    project: &'p Project,
    namespaces: ProjectNamespaces<'p>,
    /// Whether any may depend on the generation of another stack, once that has been asked.
    names_stacks: OnceCell<bool>,
}

impl<'p> Environments<'p> {
    pub fn new(
        project: &'p Project,
        host_environment: impl Iterator<Item = (String, String)>,
    ) -> Self {
        Environments::of(ProjectNamespaces::new(project, host_environment))
    }

    /// Sets the numbers for `terramate.stack.generation`.
    #[must_use]
    pub fn in_generations(self, generations: Arc<Generations>) -> Self {
        Environments::of(self.namespaces.in_generations(generations))
    }

    pub fn of(namespaces: ProjectNamespaces<'p>) -> Self {
        Environments {
            project: namespaces.project(),
            namespaces,
            names_stacks: OnceCell::new(),
        }
    }

    pub fn namespaces(&self) -> &ProjectNamespaces<'p> {
        &self.namespaces
    }

    pub fn of_stacks(
        &self,
        stacks: impl IntoIterator<Item = StackIndex>,
    ) -> (Vec<(StackIndex, Environment)>, Vec<SharedProblem>) {
        let stacks: Vec<StackIndex> = stacks.into_iter().collect();
        if stacks.len() < MANY || self.gives_new_values() {
            return for_each(stacks, |stack| self.of_stack(stack));
        }
        let basis = self.namespaces.basis();
        let size = stacks.len().div_ceil(rayon::current_num_threads());
        let of_part = |part: &[StackIndex]| -> Vec<_> {
            let environments = Environments::of(basis.clone().into());
            let stacks = part.iter();
            stacks.map(|&stack| environments.of_stack(stack)).collect()
        };
        let parts: Vec<Vec<_>> = stacks.par_chunks(size).map(of_part).collect();
        let mut results = parts.into_iter().flatten();
        let next = |_| results.next().expect("each stack has a result");
        for_each(stacks, next)
    }

    /// Returns whether functions with changing results may be called. A global with such a result is the same for all
    /// stacks only if one thread evaluates all.
    fn gives_new_values(&self) -> bool {
        let names = ["tm_bcrypt", "tm_timestamp", "tm_uuid"].map(memmem::Finder::new);
        let mut scopes = self.project.scopes.values();
        if scopes.all(|scope| scope.env.is_empty()) {
            return false;
        }
        let mut files = self.project.sources.files();
        files.any(|file| {
            let mut names = names.iter();
            names.any(|name| name.find(file.text.as_bytes()).is_some())
        })
    }

    /// Returns the environment changes of a run for a stack, without `ORCH_RUN_ID`, which is new in each run.
    pub fn of_stack(&self, stack: StackIndex) -> Result<Environment, Vec<Diagnostic>> {
        let mut environment = Environment::new();
        let mut problems = Vec::new();
        let namespaces = self.namespaces.of_stack(stack);
        for (definition, lets) in
            definitions(self.project, self.project.stacks[stack].path.directory())
        {
            match value(definition, |expr| namespaces.evaluate_variable(expr, lets)) {
                Ok(value) => _ = environment.insert(definition.name.text.to_string(), value),
                Err(diagnostic) => problems.push(diagnostic),
            }
        }
        environment.remove(STACK_KEY);
        environment.extend(self.identity(stack));
        if problems.is_empty() {
            Ok(environment)
        } else {
            Err(problems)
        }
    }

    /// Returns the origins of the variables that the configuration sets or removes for a stack.
    pub fn definitions_of(&self, stack: StackIndex) -> BTreeMap<&'p str, EnvOrigin<'p>> {
        let origin = |variable: Variable<'p>| {
            let mut values = Vec::new();
            collect(&variable.uses, &mut values);
            let name = &variable.definition.name;
            let span = name.span;
            (&*name.text, EnvOrigin { span, values })
        };
        self.variables(stack).into_iter().map(origin).collect()
    }

    /// Returns the variables of `run.env` for a stack, by name, with their inputs.
    pub fn variables(&self, stack: StackIndex) -> Vec<Variable<'p>> {
        let mut variables = self.variables_where(stack, |_| true);
        variables.sort_by(|a, b| a.definition.name.text.cmp(&b.definition.name.text));
        variables
    }

    /// Returns the variable with a name, if `run.env` defines it for a stack.
    pub fn variable(&self, stack: StackIndex, name: &str) -> Option<Variable<'p>> {
        self.variables_where(stack, |known| known == name).pop()
    }

    fn variables_where(
        &self,
        stack: StackIndex,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<Variable<'p>> {
        let namespaces: StackNamespaces<'_, 'p> = self.namespaces.of_stack(stack);
        let path = self.project.stacks[stack].path.directory();
        let wanted = definitions(self.project, path)
            .filter(|(definition, _)| is_wanted(&definition.name.text));
        let variable = |(definition, lets): (&'p EnvDefinition, &'p [LetDefinition])| {
            let mut uses = Vec::new();
            let value = value(definition, |expr| {
                let (answer, noted) = namespaces.evaluate_noting(expr, lets);
                uses = noted;
                answer
            });
            Variable {
                definition,
                value,
                uses,
            }
        };
        wanted.map(variable).collect()
    }

    /// Returns the other stacks whose generations the environment of a stack is computed from, each with a place
    /// that names it. Variables that `ignore_changes` leaves out do not count.
    pub fn stacks_used(&self, stack: StackIndex) -> BTreeMap<StackIndex, Span> {
        let mut used = BTreeMap::new();
        if !*self.names_stacks.get_or_init(|| names_stacks(self.project)) {
            return used;
        }
        let rule = self.project.rules_of(stack).ignore_changes;
        let is_ignored = |name: &str| rule.is_some_and(|rule| rule.value.leaves_out_variable(name));
        for variable in self.variables(stack) {
            if !is_ignored(&variable.definition.name.text) {
                add_stacks(&variable.uses, &mut used);
            }
        }
        used
    }

    pub fn generations_used(&self, stack: StackIndex) -> BTreeMap<String, Generation> {
        let used = self.stacks_used(stack).into_keys();
        let generation = |used: StackIndex| {
            let path = self.project.stacks[used].path.to_string();
            (path, self.namespaces.generation_for_others(used))
        };
        used.map(generation).collect()
    }

    fn identity(&self, stack: StackIndex) -> Environment {
        let stack = &self.project.stacks[stack];
        let tags: Vec<&str> = stack.tags().collect();
        let id = stack.id.as_ref().map_or("", |id| &id.value);
        let key = stack.path.key();
        let key = key.map(|key| (STACK_KEY, key.to_string()));
        let known = [
            (
                "ORCH_ROOT",
                self.project.root.to_string_lossy().into_owned(),
            ),
            ("ORCH_STACK_PATH", stack.path.to_string()),
            ("ORCH_STACK_NAME", stack.name.clone()),
            ("ORCH_STACK_ID", id.to_owned()),
            ("ORCH_STACK_TAGS", tags.join(",")),
        ];
        let all = known.into_iter().chain(key);
        all.map(|(name, value)| (name.to_owned(), Some(value)))
            .collect()
    }
}

/// Returns whether `run.env` defines a variable for stacks in a directory.
pub fn sets_variable(project: &Project, directory: &ProjectPath, name: &str) -> bool {
    let mut scopes = project.scopes_of(directory);
    scopes.any(|scope| scope.env.iter().any(|it| *it.name.text == *name))
}

/// Returns whether a variable, or a `let` beside one, may be computed from the generation of another stack.
fn names_stacks(project: &Project) -> bool {
    let mut scopes = project.scopes.values();
    scopes.any(|scope| {
        let variables = scope.env.iter().map(|it| &it.value);
        let mut all = variables.chain(scope.lets.iter().map(|it| &it.value));
        all.any(names_stacks_in)
    })
}

fn names_stacks_in(expr: &Expr) -> bool {
    let mut is_named = false;
    expr.each(&mut |expr| {
        is_named |= matches!(&expr.kind, ExprKind::Variable(name) if &**name == STACKS);
    });
    is_named
}

fn add_stacks(uses: &[Used<'_>], stacks: &mut BTreeMap<StackIndex, Span>) {
    for used in uses {
        match used {
            Used::Generation(stack, span) => _ = stacks.entry(*stack).or_insert(*span),
            Used::Value(_, inner) => add_stacks(inner, stacks),
            Used::File(..) => {}
        }
    }
}

/// Collects the used globals and lets, and those that these use in turn.
fn collect<'p>(uses: &[Used<'p>], values: &mut Vec<Definition<'p>>) {
    for used in uses {
        if let Used::Value(definition, inner) = used
            && values.iter().all(|known| known.span() != definition.span())
        {
            values.push(*definition);
            collect(inner, values);
        }
    }
}

/// Returns the definitions for a stack: for each name, the nearest one, with the lets of its directory.
fn definitions<'p>(
    project: &'p Project,
    path: &'p ProjectPath,
) -> impl Iterator<Item = (&'p EnvDefinition, &'p [LetDefinition])> {
    let mut seen: HashSet<&str> = HashSet::new();
    let all = project.scopes_of(path).flat_map(|scope| {
        let definitions = scope.env.iter();
        definitions.map(|definition| (definition, scope.lets.as_slice()))
    });
    all.filter(move |(definition, _)| seen.insert(&definition.name.text))
}

/// Returns the value of a variable; `None` removes it.
fn value(
    definition: &EnvDefinition,
    evaluate: impl FnOnce(&Expr) -> EvalResult<EvalValue>,
) -> Result<Option<String>, Diagnostic> {
    let EnvDefinition { name, value } = definition;
    if is_unset(value) {
        return Ok(None);
    }
    let answer = evaluate(value)
        .map_err(|none: NoValue| needed_at(none.into_diagnostic(), name.span, value.span))?;
    variable(answer.value, value.span, &name.text)
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
    Err(diagnostic
        .help("convert it: `tm_tostring(…)` a number or a bool, `tm_jsonencode(…)` anything else"))
}
