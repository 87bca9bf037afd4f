//! What names mean in expressions that are evaluated for a stack: `terramate` and its twin `orch`
//! (metadata of project and stack), `env` (the host's environment) and `global`.
//!
//! A name is evaluated only when an expression uses it, and for that stack alone. There is one function
//! so far, `tm_fileexists`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{
    Answer, Budget, Call, EvalResult, NamePath, Namespaces, evaluate_within,
};
use crate::language::function::{self, Surroundings};
use crate::language::syntax::{Expr, ExprKind};
use crate::language::value::Value;
use crate::project::discover::FileKind;
use crate::project::stack::{Stack, StackIndex};
use crate::project::{DirectoryScope, Project};
use crate::source::Span;

/// How many globals may refer to each other in a row.
const MAX_GLOBAL_DEPTH: usize = 32;

/// The namespaces that all stacks of a project share.
#[derive(Debug)]
pub struct ProjectNamespaces<'p> {
    project: &'p Project,
    env: Value,
    stack_list: Value,
}

impl<'p> ProjectNamespaces<'p> {
    /// Prepares the namespaces. Host variables that are not UTF-8 cannot be named by expressions.
    pub fn new(
        project: &'p Project,
        host_environment: impl Iterator<Item = (String, String)>,
    ) -> Self {
        let env = host_environment.map(|(name, value)| (name, Value::string(value)));
        let paths = project
            .stacks
            .iter()
            .map(|(_, stack)| Value::string(stack.path.as_str()));
        ProjectNamespaces {
            project,
            env: Value::object(env),
            stack_list: Value::list(paths),
        }
    }

    /// Returns the namespaces of one stack.
    pub fn of_stack(&self, stack: StackIndex) -> StackNamespaces<'_> {
        StackNamespaces {
            outer: self,
            stack: &self.project.stacks[stack],
            global: RefCell::default(),
            budget: Budget::default(),
            evaluating: RefCell::default(),
        }
    }

    fn metadata(&self, stack: &Stack) -> Value {
        let root = &self.project.root;
        let root_name = root.file_name().unwrap_or_default().to_string_lossy();
        let fs = Value::object([
            ("absolute", Value::string(root.to_string_lossy())),
            ("basename", Value::string(root_name)),
        ]);
        let path = stack.path.as_str();
        let description = stack.description.as_deref().unwrap_or_default();
        let mut own = vec![
            ("name", Value::string(&*stack.name)),
            ("description", Value::string(description)),
            ("tags", Value::list(stack.tags().map(Value::string))),
            (
                "path",
                Value::object([
                    ("absolute", Value::string(path)),
                    ("relative", Value::string(stack.path.relative())),
                    ("basename", Value::string(stack.path.basename())),
                    (
                        "to_root",
                        Value::string(crate::path::ProjectPath::root().relative_to(&stack.path)),
                    ),
                ]),
            ),
        ];
        if let Some(id) = &stack.id {
            own.push(("id", Value::string(&*id.value)));
        }
        if let Some(parent) = self.project.stacks.nearest_above(&stack.path) {
            let parent = &self.project.stacks[parent];
            let id = parent.id.as_ref().map_or("", |id| &id.value);
            let tags = Value::list(parent.tags().map(Value::string));
            own.push((
                "parent",
                Value::object([("id", Value::string(id)), ("tags", tags)]),
            ));
        }
        Value::object([
            ("version", Value::string(env!("CARGO_PKG_VERSION"))),
            (
                "root",
                Value::object([("path", Value::object([("fs", fs)]))]),
            ),
            ("stacks", Value::object([("list", self.stack_list.clone())])),
            ("stack", Value::object(own)),
            // Older names for the same values.
            ("name", Value::string(&*stack.name)),
            ("path", Value::string(path)),
            ("description", Value::string(description)),
        ])
    }
}

/// What names mean for one stack.
#[derive(Debug)]
pub struct StackNamespaces<'p> {
    outer: &'p ProjectNamespaces<'p>,
    stack: &'p Stack,
    /// The globals evaluated so far, by their first name, including those that failed.
    global: RefCell<BTreeMap<Arc<str>, EvalResult<Option<Value>>>>,
    budget: Budget,
    /// The globals being evaluated, to detect one that needs itself.
    evaluating: RefCell<Vec<String>>,
}

impl Namespaces for StackNamespaces<'_> {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<Answer>> {
        let rest: Vec<&str> = path.rest.iter().map(|(name, _)| *name).collect();
        let span = path.rest.first().map_or(path.span, |(_, span)| *span);
        let value = match (path.name, rest.as_slice()) {
            ("terramate" | "orch", _) => self.outer.metadata(self.stack),
            ("env", &[variable, ..]) => {
                if let Some(host) = self.outer.env.entries()
                    && !host.contains_key(variable)
                {
                    let message = format!("the environment has no variable `{variable}`");
                    let diagnostic = Diagnostic::error(Code::UnsetVariable, message)
                        .label(span, "`env` is the environment that orch was started in");
                    let help = format!("set `{variable}` before running orch");
                    return Err(diagnostic.help(help).into());
                }
                self.outer.env.clone()
            }
            ("env", []) => self.outer.env.clone(),
            ("global", &[first, ..]) => {
                let Some(value) = self.global(first, span)? else {
                    let message = format!("no global `{first}` applies to `{}`", self.stack.path);
                    let diagnostic = Diagnostic::error(Code::UnknownName, message)
                        .label(span, "not defined here or in a directory above");
                    return Err(diagnostic.did_you_mean(first, self.global_names()).into());
                };
                Value::object([(first, value)])
            }
            ("global", []) => {
                let mut all: BTreeMap<Arc<str>, Value> = BTreeMap::new();
                for name in self.global_names() {
                    if let Some(value) = self.global(name, span)? {
                        all.insert(name.into(), value);
                    }
                }
                Value::Object(all.into())
            }
            _ => return Ok(None),
        };
        Ok(Some(value.into()))
    }

    fn names(&self) -> Vec<&str> {
        vec!["env", "global", "orch", "terramate"]
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        let name = call.name;
        if &*name.text != "tm_fileexists" {
            let place = Surroundings::none("this place");
            return function::call(call, &place);
        }
        let [(Value::String(path), _)] = &*call.values()? else {
            let diagnostic = Diagnostic::error(
                Code::WrongType,
                format!("`{}` takes the path of a file", name.text),
            );
            let diagnostic = diagnostic.label(name.span, "called with something else");
            return Err(diagnostic.help("give it one string").into());
        };
        // As in Terraform: relative to the directory that the expression is evaluated for.
        let host = self.stack.path.to_host(&self.outer.project.root);
        let inside = self.stack.path.resolve(path).ok();
        let is_file = match (&self.outer.project.tree, inside) {
            (Some(tree), Some(inside)) if !path.starts_with('/') => {
                tree.kind(&inside) == Some(FileKind::File)
            }
            _ => host.join(&**path).is_file(),
        };
        Ok(Some(Value::Bool(is_file)))
    }
}

impl<'p> StackNamespaces<'p> {
    /// Returns the directories whose globals apply, the root first.
    fn scopes(&self) -> Vec<&'p DirectoryScope> {
        let mut scopes: Vec<&DirectoryScope> =
            self.outer.project.scopes_of(&self.stack.path).collect();
        scopes.reverse();
        scopes
    }

    fn global_names(&self) -> Vec<&'p str> {
        let definitions = self.scopes().into_iter().flat_map(|scope| &scope.globals);
        definitions.map(|definition| &*definition.path[0]).collect()
    }

    /// Evaluates an expression for this stack.
    ///
    /// # Errors
    ///
    /// A diagnostic for the first thing that is wrong.
    pub fn evaluate(&self, expr: &Expr) -> EvalResult<Answer> {
        evaluate_within(expr, self, &self.budget)
    }

    /// Evaluates the global whose first name is `first`, once; `None` if there is none.
    fn global(&self, first: &str, span: Span) -> EvalResult<Option<Value>> {
        if let Some(known) = self.global.borrow().get(first) {
            return known.clone();
        }
        if self.evaluating.borrow().iter().any(|name| name == first) {
            let diagnostic = Diagnostic::error(
                Code::CircularValue,
                format!("`global.{first}` needs its own value"),
            );
            let label = "used here while it is being evaluated";
            return Err(diagnostic.label(span, label).into());
        }
        if self.evaluating.borrow().len() == MAX_GLOBAL_DEPTH {
            let message = format!("more than {MAX_GLOBAL_DEPTH} globals refer to each other");
            let diagnostic = Diagnostic::error(Code::Limit, message);
            return Err(diagnostic.label(span, "in a row up to here").into());
        }
        self.evaluating.borrow_mut().push(first.to_owned());
        let value = self.merged(first);
        self.evaluating.borrow_mut().pop();
        self.global.borrow_mut().insert(first.into(), value.clone());
        value
    }

    fn merged(&self, first: &str) -> EvalResult<Option<Value>> {
        let mut merged = None;
        for scope in self.scopes() {
            for definition in scope
                .globals
                .iter()
                .filter(|definition| &*definition.path[0] == first)
            {
                let value = if is_unset(&definition.value) {
                    None
                } else {
                    Some(self.evaluate(&definition.value)?.value)
                };
                place(&mut merged, &definition.path[1..], value);
            }
        }
        Ok(merged)
    }
}

/// Puts a value at a path of nested objects, creating objects on the way; `None` removes it.
fn place(target: &mut Option<Value>, path: &[Box<str>], value: Option<Value>) {
    let Some((name, rest)) = path.split_first() else {
        *target = value;
        return;
    };
    let mut object = match target.take() {
        Some(Value::Object(object)) => (*object).clone(),
        _ => BTreeMap::new(),
    };
    let mut inner = object.remove(&**name);
    place(&mut inner, rest, value);
    if let Some(inner) = inner {
        object.insert((&**name).into(), inner);
    }
    *target = Some(Value::Object(object.into()));
}

/// Returns whether an expression is the bare word `unset`, which removes a definition from above.
pub(crate) fn is_unset(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Variable(name) if &**name == "unset")
}
