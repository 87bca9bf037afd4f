//! The names in expressions of a stack: `terramate` and its alias `orch` (metadata of the project and the stack),
//! `each` (what distinguishes an instance), `env` (the host's environment), `global` and `let`; and the files that
//! functions may read.
//!
//! A name is evaluated only when an expression uses it. Names that only conditions have are added where these are
//! checked.

mod definition;
mod generations;
mod global;
mod lets;
mod map;
mod metadata;
mod progress;
mod scope;

use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

pub use self::definition::Definition;
pub(crate) use self::generations::GENERATION;
pub use self::generations::Generations;
use self::global::Lookup;
pub use self::progress::Used;
use self::progress::{EvaluatedValues, EvaluationProgress};
use self::scope::{GlobalScope, GlobalScopes};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{
    Budget, Call, EvalResult, EvalValue, NamePath, Namespaces, NoValue, Unknown, evaluate_within,
};
use crate::language::function::{self, FunctionContext, Impure};
use crate::language::syntax::Expr;
use crate::language::value::Value;
use crate::path::{ProjectPath, StackPath};
use crate::project::Project;
use crate::project::config::LetDefinition;
use crate::project::discover::FileTree;
use crate::project::function_files::{FileSource, ProjectFiles};
use crate::project::globals::GlobalDefinition;
use crate::project::host::unless_text;
use crate::project::lifecycle::STACKS;
use crate::project::stack::{Stack, StackIndex, no_each};
use crate::source::Span;

pub struct ProjectNamespaces<'p> {
    basis: NamespaceInputs<'p>,
    scopes: GlobalScopes<'p>,
}

/// The inputs of the namespaces, before anything is evaluated.
#[derive(Clone)]
pub(crate) struct NamespaceInputs<'p> {
    project: &'p Project,
    /// The files, if they are not those on disk.
    tree: Option<&'p dyn FileTree>,
    env: Value,
    stack_list: Value,
    /// The globals that apply after those of all directories.
    overrides: &'p [GlobalDefinition],
    changing: Impure,
    /// The generations of stacks that are not the first.
    generations: Arc<Generations>,
    /// Whether names that depend on the machine have the same values on every machine.
    is_portable: bool,
}

impl NamespaceInputs<'_> {
    pub(crate) fn generations(&self) -> &Generations {
        &self.generations
    }
}

impl<'p> From<NamespaceInputs<'p>> for ProjectNamespaces<'p> {
    fn from(basis: NamespaceInputs<'p>) -> Self {
        let scopes = GlobalScopes::default();
        ProjectNamespaces { basis, scopes }
    }
}

impl fmt::Debug for ProjectNamespaces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Leaves out the environment, which holds secrets.
        f.debug_struct("ProjectNamespaces").finish_non_exhaustive()
    }
}

impl<'p> ProjectNamespaces<'p> {
    /// Prepares the namespaces. Expressions cannot name host variables that are not UTF-8.
    pub fn new(
        project: &'p Project,
        host_environment: impl Iterator<Item = (String, String)>,
    ) -> Self {
        let env = host_environment.map(|(name, value)| (name, Value::string(value)));
        NamespaceInputs {
            project,
            tree: None,
            env: Value::object(env),
            stack_list: metadata::stack_list(project),
            overrides: &[],
            changing: Impure::Allowed,
            generations: Arc::default(),
            is_portable: false,
        }
        .into()
    }

    /// Prepares namespaces whose values can be compared with those of another state of the project:
    /// functions whose result differs from call to call always return the same value.
    #[must_use]
    pub fn comparable(mut self) -> Self {
        self.basis.changing = Impure::Fixed;
        self
    }

    /// Makes values comparable with those of other machines and versions: the value of a host variable is its own
    /// name, and `terramate.version` is the same for all.
    #[must_use]
    pub fn portable(mut self) -> Self {
        self.basis.is_portable = true;
        self.comparable()
    }

    /// Applies these globals after those of all directories.
    #[must_use]
    pub fn overriding(mut self, overrides: &'p [GlobalDefinition]) -> Self {
        self.basis.overrides = overrides;
        self
    }

    /// Lets functions read the files of the tree from which the project was loaded.
    #[must_use]
    pub fn reading(mut self, tree: &'p dyn FileTree) -> Self {
        self.basis.tree = Some(tree);
        self
    }

    /// Sets `terramate.stacks.list` to these paths, which are in order.
    #[must_use]
    pub fn with_stacks<'s>(mut self, paths: impl Iterator<Item = &'s StackPath>) -> Self {
        let paths = paths.map(|path| Value::string(path.as_str()));
        self.basis.stack_list = Value::list(paths);
        self
    }

    /// Returns the inputs, from which another thread can create the same namespaces.
    pub(crate) fn basis(&self) -> &NamespaceInputs<'p> {
        &self.basis
    }

    pub fn project(&self) -> &'p Project {
        self.basis.project
    }

    fn scope(&self, directory: &ProjectPath) -> Option<Rc<GlobalScope<'p>>> {
        let scope = self.scopes.of(self.basis.project, directory);
        if self.basis.overrides.is_empty() {
            return scope;
        }
        Some(Rc::new(GlobalScope::new(scope, self.basis.overrides)))
    }

    pub fn of_stack(&self, stack: StackIndex) -> StackNamespaces<'_, 'p> {
        let stack = &self.basis.project.stacks[stack];
        self.namespaces(EvaluationSubject::Stack(stack), stack.path.directory())
    }

    /// Returns the namespaces of a directory that is not a stack: they lack the metadata of one.
    pub fn of_directory(&self, directory: &'p ProjectPath) -> StackNamespaces<'_, 'p> {
        self.namespaces(EvaluationSubject::Directory(directory), directory)
    }

    fn namespaces(
        &self,
        subject: EvaluationSubject<'p>,
        directory: &ProjectPath,
    ) -> StackNamespaces<'_, 'p> {
        StackNamespaces {
            project: self,
            subject,
            directory: directory.clone(),
            scope: OnceCell::new(),
            own: EvaluatedValues::default(),
            progress: EvaluationProgress::default(),
            metadata: OnceCell::new(),
            budget: Budget::default(),
        }
    }

    fn files(&self) -> FileSource<'_> {
        let index = self.basis.project.tree.as_deref();
        FileSource {
            root: &self.basis.project.root,
            tree: index.zip(self.basis.tree),
        }
    }
}

pub struct StackNamespaces<'a, 'p> {
    project: &'a ProjectNamespaces<'p>,
    subject: EvaluationSubject<'p>,
    directory: ProjectPath,
    /// The globals that apply, once an expression has used one.
    scope: OnceCell<Option<Rc<GlobalScope<'p>>>>,
    /// The values for this stack alone.
    own: EvaluatedValues<'p>,
    progress: EvaluationProgress<'p>,
    metadata: OnceCell<Value>,
    budget: Budget,
}

#[derive(Debug, Clone, Copy)]
enum EvaluationSubject<'p> {
    /// Any stack: values that depend on it are unknown.
    Open,
    Stack(&'p Stack),
    /// A directory that is not a stack.
    Directory(&'p ProjectPath),
}

#[derive(Debug, Clone, Copy)]
enum ExpressionPlace<'p> {
    Command,
    /// In `run.env`, or in `lets` beside it: the definitions that `let` has there.
    Environment(&'p [LetDefinition]),
    /// In a script, with the definitions that `let` has there.
    Script(&'p [LetDefinition]),
    Globals,
}

impl<'p> StackNamespaces<'_, 'p> {
    fn scope(&self) -> Option<&Rc<GlobalScope<'p>>> {
        let scope = self
            .scope
            .get_or_init(|| self.project.scope(&self.directory));
        scope.as_ref()
    }

    fn names(&self, place: ExpressionPlace<'p>) -> Names<'_, 'p> {
        Names {
            project: self.project,
            subject: self.subject,
            scope: NamesScope::OfStack(self),
            own: &self.own,
            progress: &self.progress,
            metadata: &self.metadata,
            budget: &self.budget,
            place,
        }
    }

    /// Evaluates an expression from the command line for this stack.
    pub fn evaluate(&self, expr: &Expr) -> EvalResult<EvalValue> {
        self.names(ExpressionPlace::Command).evaluate(expr)
    }

    /// Returns the names that conditions of this stack have: those of a variable without `let`.
    pub fn of_conditions(&self) -> impl Namespaces {
        self.names(ExpressionPlace::Environment(&[]))
    }

    /// Evaluates the expression of a variable for this stack, with these definitions as `let`.
    pub fn evaluate_variable(
        &self,
        expr: &Expr,
        lets: &'p [LetDefinition],
    ) -> EvalResult<EvalValue> {
        self.names(ExpressionPlace::Environment(lets))
            .evaluate(expr)
    }

    /// Evaluates an expression of a script for this stack, with these definitions as `let`.
    pub fn evaluate_in_script(
        &self,
        expr: &Expr,
        lets: &'p [LetDefinition],
    ) -> EvalResult<EvalValue> {
        self.names(ExpressionPlace::Script(lets)).evaluate(expr)
    }

    /// Does the same as [`Self::evaluate_variable`], and also returns the inputs of the value.
    pub fn evaluate_noting(
        &self,
        expr: &Expr,
        lets: &'p [LetDefinition],
    ) -> (EvalResult<EvalValue>, Vec<Used<'p>>) {
        self.progress.record(|| self.evaluate_variable(expr, lets))
    }

    /// Returns the names of the globals that apply, in byte order.
    pub fn globals(&self) -> Vec<&'p str> {
        let scope = self.scope().into_iter();
        scope.flat_map(|scope| scope.names()).collect()
    }

    /// Returns the value of a global; `None` if it is unset.
    pub fn global(&self, name: &str) -> EvalResult<Option<EvalValue>> {
        let Some(scope) = self.scope() else {
            return Ok(None);
        };
        let definitions = scope.definitions(name);
        let Some(first) = definitions.first() else {
            return Ok(None);
        };
        let names = self.names(ExpressionPlace::Command);
        let lookup = Lookup {
            scope,
            names: &names,
        };
        lookup.first(name, first.span)
    }

    /// Returns the definitions that a global consists of here, those of whole objects before those of
    /// their entries.
    pub fn definitions(&self, name: &str) -> Vec<&'p GlobalDefinition> {
        let scope = self.scope();
        scope.map_or_else(Vec::new, |scope| scope.definitions(name))
    }
}

#[derive(Clone)]
enum NamesScope<'a, 'p> {
    OfStack(&'a StackNamespaces<'a, 'p>),
    Given(Rc<GlobalScope<'p>>),
}

struct Names<'a, 'p> {
    project: &'a ProjectNamespaces<'p>,
    subject: EvaluationSubject<'p>,
    scope: NamesScope<'a, 'p>,
    own: &'a EvaluatedValues<'p>,
    progress: &'a EvaluationProgress<'p>,
    metadata: &'a OnceCell<Value>,
    budget: &'a Budget,
    place: ExpressionPlace<'p>,
}

impl<'p> Names<'_, 'p> {
    fn scope(&self) -> Option<&Rc<GlobalScope<'p>>> {
        match &self.scope {
            NamesScope::OfStack(stack) => stack.scope(),
            NamesScope::Given(scope) => Some(scope),
        }
    }

    fn evaluate(&self, expr: &Expr) -> EvalResult<EvalValue> {
        evaluate_within(expr, self, self.budget)
    }

    fn metadata(&self, path: &NamePath) -> EvalResult {
        let project = self.project.basis.project;
        let basis = &self.project.basis;
        let of_project = || {
            let mut entries = metadata::of_project(project, basis.stack_list.clone());
            if basis.is_portable {
                entries.retain(|(name, _)| *name != metadata::VERSION);
                entries.push((metadata::VERSION, Value::string("0.0.0")));
            }
            entries
        };
        let entry = path.rest.first().map(|(name, _)| *name);
        let needs_stack = entry.is_none_or(|name| metadata::OF_STACK.contains(&name));
        let own = path.rest.get(1).map(|(name, _)| *name);
        if entry.is_none_or(|name| name == "stack") && own.is_none_or(|name| name == GENERATION) {
            basis.generations.ask();
        }
        match self.subject {
            EvaluationSubject::Stack(stack) => {
                let all = || {
                    let mut all = of_project();
                    let generation = basis.generations.of(&stack.path);
                    all.extend(metadata::of_stack(project, stack, generation));
                    Value::object(all)
                };
                Ok(self.metadata.get_or_init(all).clone())
            }
            EvaluationSubject::Open if needs_stack => {
                let name = format!("{}.stack", path.name);
                Err(undecided(&name, path.span))
            }
            EvaluationSubject::Directory(directory) if needs_stack && entry.is_some() => {
                let message = format!("`{directory}` is not a stack");
                let diagnostic = Diagnostic::error(Code::UnavailableName, message)
                    .label(path.whole_span(), "only a stack has this");
                Err(diagnostic
                    .help("evaluate it in a stack, or choose one with `--stack`")
                    .into())
            }
            EvaluationSubject::Open | EvaluationSubject::Directory(_) => {
                Ok(Value::object(of_project()))
            }
        }
    }

    fn env(&self, path: &NamePath) -> EvalResult {
        if matches!(self.place, ExpressionPlace::Globals) {
            let message = "`env` cannot be used in `globals`";
            let diagnostic = Diagnostic::error(Code::UnavailableName, message)
                .label(path.span, "globals do not depend on the machine");
            return Err(diagnostic.help("use it in `run.env`").into());
        }
        if self.project.basis.is_portable {
            let named = path.rest.first().map(|&(variable, _)| {
                let name = Value::string(format!("env.{variable}"));
                (variable, name)
            });
            return Ok(Value::object(named));
        }
        let env = &self.project.basis.env;
        let Some(&(variable, span)) = path.rest.first() else {
            return Ok(env.clone());
        };
        let Some(value) = env.entries().and_then(|host| host.get(variable)) else {
            let message = format!("the environment has no variable `{variable}`");
            let diagnostic = Diagnostic::error(Code::UnsetVariable, message)
                .label(span, "`env` is the environment that orch was started in");
            let help = format!("set `{variable}` before running orch");
            return Err(diagnostic.help(help).into());
        };
        let text = value.as_str().unwrap_or_default();
        match unless_text(variable, text, span) {
            Some(problem) => Err(problem.into()),
            None => Ok(env.clone()),
        }
    }

    /// Returns the `each` of the instance.
    fn each(&self, path: &NamePath) -> EvalResult {
        match self.subject {
            EvaluationSubject::Stack(Stack {
                each: Some(each), ..
            }) => Ok(each.clone()),
            EvaluationSubject::Stack(_) | EvaluationSubject::Directory(_) => {
                Err(no_each(path).into())
            }
            EvaluationSubject::Open => Err(undecided("each", path.span)),
        }
    }

    fn global(&self, path: &NamePath) -> EvalResult<EvalValue> {
        let empty = Rc::default();
        let scope = self.scope().unwrap_or(&empty);
        let lookup = Lookup { scope, names: self };
        lookup.get(path)
    }
}

/// Returns the answer for a name that has no value yet, since that differs from stack to stack.
fn undecided(name: &str, span: Span) -> NoValue {
    NoValue::Undecided(Box::new(Unknown {
        name: name.to_owned(),
        when: "known for each stack".to_owned(),
        span,
        is_on_demand: false,
    }))
}

impl Namespaces for Names<'_, '_> {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        match path.name {
            "terramate" | "orch" => Ok(Some(self.metadata(path)?.into())),
            // It may hold passwords, which no message may show.
            "env" => Ok(Some(EvalValue {
                value: self.env(path)?,
                is_sensitive: true,
            })),
            "global" => Ok(Some(self.global(path)?)),
            "each" => Ok(Some(self.each(path)?.into())),
            "let" => Ok(Some(self.lets(path)?)),
            STACKS => Ok(Some(self.stacks(path)?.into())),
            _ => Ok(None),
        }
    }

    fn names(&self) -> Vec<&str> {
        let mut names = vec!["each", "env", "global", "orch", "terramate"];
        match self.place {
            ExpressionPlace::Environment(_) => names.extend(["let", STACKS]),
            ExpressionPlace::Script(_) => names.push("let"),
            ExpressionPlace::Command | ExpressionPlace::Globals => {}
        }
        names
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        let directory = match self.subject {
            EvaluationSubject::Open => None,
            EvaluationSubject::Stack(stack) => Some(stack.path.directory()),
            EvaluationSubject::Directory(directory) => Some(directory),
        };
        let files = ProjectFiles::new(self.project.files(), directory);
        let surroundings = FunctionContext {
            files: Some(&files),
            changing: self.project.basis.changing,
            ..FunctionContext::none("this place")
        };
        let result = function::call(call, &surroundings);
        let span = call.name.span;
        let reads = files.into_reads().into_iter();
        self.progress.note(reads.map(|read| Used::File(read, span)));
        result
    }

    fn functions(&self) -> Vec<String> {
        function::names(function::PREFIX).collect()
    }
}
