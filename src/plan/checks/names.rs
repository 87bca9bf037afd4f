//! Resolves the names in conditions: values of the project, outputs of stacks, and facts about the stack itself.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::Checker;
use crate::diagnostic::{Code, Diagnostic};
use crate::driver::{ChangeCounts, OutputValue, OutputValues};
use crate::language::evaluate::{
    Call, EvalResult, EvalValue, NamePath, Namespaces, NoValue, Unknown,
};
use crate::language::value::Value;
use crate::printable::first_of;
use crate::project::lifecycle::{SELF, STACKS};
use crate::project::namespaces::GENERATION;
use crate::project::stack::StackIndex;
use crate::source::Span;

const NAMESPACE: &str = "namespace";

const OUTPUTS: &str = "outputs";

/// The names of `run.env`, the namespace of the state, and the known facts about stacks.
pub(super) struct CheckNames<'a> {
    pub(super) own: &'a dyn Namespaces,
    pub(super) checker: &'a Checker<'a>,
    pub(super) stack: StackIndex,
    pub(super) itself: &'a SelfValue,
    /// The stacks whose outputs must be read.
    pub(super) needed: &'a RefCell<BTreeSet<StackIndex>>,
}

impl Namespaces for CheckNames<'_> {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        let entry = path.rest.first().map(|(name, _)| *name);
        match path.name {
            "orch" | "terramate" if entry == Some(NAMESPACE) => self.namespace(path).map(Some),
            STACKS => self.of_stacks(path).map(Some),
            SELF => self.of_itself(path).map(Some),
            _ => self.own.get(path),
        }
    }

    fn names(&self) -> Vec<&str> {
        let mut names = self.own.names();
        names.push(STACKS);
        if !matches!(self.itself, SelfValue::Nothing) {
            names.push(SELF);
        }
        names
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        self.own.call(call)
    }

    fn functions(&self) -> Vec<String> {
        self.own.functions()
    }
}

fn unavailable(message: impl Into<String>, span: Span, label: &str, help: &str) -> NoValue {
    let diagnostic = Diagnostic::error(Code::UnavailableName, message);
    diagnostic.label(span, label).help(help).into()
}

/// Wraps an answer in an object, as an attribute of this name.
fn inside(name: &str, answer: EvalValue) -> EvalValue {
    EvalValue {
        value: Value::object([(name, answer.value)]),
        ..answer
    }
}

pub(super) fn no_itself(span: Span) -> Diagnostic {
    Diagnostic::error(Code::UnavailableName, "a precondition has no `self`")
        .label(span, "the stack was not applied yet")
        .help("move the condition to a `postcondition` block")
}

impl CheckNames<'_> {
    fn namespace(&self, path: &NamePath<'_>) -> EvalResult<EvalValue> {
        let Some(namespace) = &self.checker.namespace else {
            return Err(unavailable(
                "`orch.namespace` needs a state",
                path.whole_span(),
                "no state",
                "see `orch help state`",
            ));
        };
        Ok(inside(NAMESPACE, Value::string(namespace.as_str()).into()))
    }

    /// Resolves the outputs of another stack: `stacks["/network"].outputs.id`.
    fn of_stacks(&self, path: &NamePath<'_>) -> EvalResult<EvalValue> {
        let Checker { project, after, .. } = self.checker;
        let Some(&(written, span)) = path.rest.first() else {
            return self.of_hidden(path);
        };
        let source = after.resolve(project, self.stack, written, span)?;
        match path.rest.get(1) {
            Some((GENERATION, _)) => {
                let generation = self.generation(source, path)?;
                return Ok(inside(written, inside(GENERATION, generation)));
            }
            Some((name, span)) if *name != OUTPUTS => {
                return Err(unavailable(
                    format!("a condition cannot use `{name}` of another stack"),
                    *span,
                    "only `outputs` and `generation` are available",
                    "write `stacks[\"/path\"].outputs.NAME`",
                ));
            }
            _ => {}
        }
        let outputs = self.outputs(source, path.rest.get(2).copied(), path)?;
        Ok(inside(written, inside(OUTPUTS, outputs)))
    }

    /// Resolves them for a computed path that is secret.
    fn of_hidden(&self, path: &NamePath<'_>) -> EvalResult<EvalValue> {
        let wrong = |message: &str, label: &str| {
            let help = "write `stacks[\"/path\"].outputs.NAME`";
            unavailable(message, path.span, label, help)
        };
        let Some(written) = path.computed.first().and_then(Value::to_text) else {
            return Err(wrong("`stacks` needs a path here", "which stack?"));
        };
        let Checker { project, after, .. } = self.checker;
        let source = after.resolve(project, self.stack, &written, path.span);
        let source = source.map_err(|_| {
            // The usual error would show the path.
            wrong(
                "this is not a stack that the stack of the condition runs after",
                "its path was computed, and may be secret",
            )
        })?;
        let outputs = self.outputs(source, None, path)?;
        Ok(inside(&written, inside(OUTPUTS, outputs)))
    }

    /// Returns the generation of a stack: the new one if this plan recreates it, as for its
    /// outputs.
    fn generation(&self, source: StackIndex, path: &NamePath<'_>) -> EvalResult<EvalValue> {
        let checker = self.checker;
        match checker.outputs.get(&source) {
            Some(StackOutputs::Later) => Err(self.undecided(source, GENERATION, path, false)),
            None if checker.reads => {
                self.needed.borrow_mut().insert(source);
                Err(self.undecided(source, GENERATION, path, true))
            }
            _ => {
                let path = &checker.project.stacks[source].path;
                let generation = checker.basis.generations().for_others(path).get();
                Ok(Value::from(u64::from(generation)).into())
            }
        }
    }

    fn undecided(
        &self,
        source: StackIndex,
        what: &str,
        path: &NamePath<'_>,
        is_on_demand: bool,
    ) -> NoValue {
        let of = self.checker.project.stacks[source].path.as_str();
        NoValue::Undecided(Box::new(Unknown {
            name: if source == self.stack {
                format!("{SELF}.{what}")
            } else {
                format!("{STACKS}[\"{of}\"].{what}")
            },
            when: format!("known once `{of}` has been applied"),
            span: path.whole_span(),
            is_on_demand,
        }))
    }

    fn outputs(
        &self,
        source: StackIndex,
        name: Option<(&str, Span)>,
        path: &NamePath<'_>,
    ) -> EvalResult<EvalValue> {
        let of = self.checker.project.stacks[source].path.as_str();
        let undecided = |is_on_demand| self.undecided(source, OUTPUTS, path, is_on_demand);
        match self.checker.outputs.get(&source) {
            Some(StackOutputs::Values(values)) => pick(values, name, of),
            Some(StackOutputs::Later) => Err(undecided(false)),
            Some(StackOutputs::Unreadable(why)) => {
                let message = format!("the outputs of `{of}` cannot be read");
                let diagnostic = Diagnostic::error(Code::UnavailableName, message);
                Err(diagnostic.label(path.whole_span(), why).into())
            }
            None if self.checker.reads => {
                self.needed.borrow_mut().insert(source);
                Err(undecided(true))
            }
            None => Err(unavailable(
                format!("the outputs of `{of}` were not read before the apply began"),
                path.whole_span(),
                "needed here",
                "write its path in quotes instead of computing it",
            )),
        }
    }

    /// Resolves `self.outputs.url`, `self.action`, `self.changes.add`.
    fn of_itself(&self, path: &NamePath<'_>) -> EvalResult<EvalValue> {
        const NAMES: [&str; 3] = [OUTPUTS, "action", "changes"];
        let itself = match self.itself {
            SelfValue::Nothing => return Err(no_itself(path.span).into()),
            itself => itself,
        };
        let Some(&(name, span)) = path.rest.first() else {
            return Err(unavailable(
                "`self` needs a name here",
                path.span,
                "add a name",
                "write `self.outputs`, `self.action` or `self.changes`",
            ));
        };
        if !NAMES.contains(&name) {
            let diagnostic =
                Diagnostic::error(Code::UnknownName, format!("`self` has no `{name}`"));
            let diagnostic = diagnostic.label(span, "it has no such attribute");
            return Err(diagnostic.did_you_mean(name, NAMES).into());
        }
        let SelfValue::Done { action, changes } = itself else {
            let path_of = &self.checker.project.stacks[self.stack].path;
            return Err(NoValue::Undecided(Box::new(Unknown {
                name: format!("{SELF}.{name}"),
                when: format!("known once `{path_of}` has been applied"),
                span: path.whole_span(),
                is_on_demand: false,
            })));
        };
        let answer = match name {
            OUTPUTS => self.outputs(self.stack, path.rest.get(1).copied(), path)?,
            "action" => Value::string(*action).into(),
            _ => {
                let Some(changes) = changes else {
                    return Err(unavailable(
                        "the number of changed resources is unknown",
                        path.whole_span(),
                        "its driver does not report it",
                        "its `plan` can write `add`, `change` and `remove` to `$ORCH_ANSWER`",
                    ));
                };
                let count = |number: u64| Value::Number(number.into());
                Value::object([
                    ("add", count(changes.add)),
                    ("change", count(changes.change)),
                    ("remove", count(changes.remove)),
                ])
                .into()
            }
        };
        Ok(inside(name, answer))
    }
}

const MAX_NAMES: usize = 20;

#[derive(Debug, Clone)]
pub enum StackOutputs {
    Values(Arc<OutputValues>),
    /// Known once the stack has been applied.
    Later,
    Unreadable(String),
}

/// The value of `self` in a condition.
#[derive(Debug, Clone, Copy)]
pub enum SelfValue {
    /// None: it is a precondition.
    Nothing,
    /// The action, but not yet its result.
    Later,
    Done {
        action: &'static str,
        changes: Option<ChangeCounts>,
    },
}

/// Returns the value after `outputs`: an object with the named output, or with all.
pub(super) fn pick(
    values: &OutputValues,
    name: Option<(&str, Span)>,
    path: &str,
) -> EvalResult<EvalValue> {
    let object = |outputs: &mut dyn Iterator<Item = (&Arc<str>, &OutputValue)>| {
        let mut is_sensitive = false;
        let entries: Vec<(Arc<str>, Value)> = outputs
            .map(|(name, output)| {
                is_sensitive |= output.is_sensitive;
                (name.clone(), output.value.clone())
            })
            .collect();
        EvalValue {
            value: Value::object(entries),
            is_sensitive,
        }
    };
    let Some((name, span)) = name else {
        return Ok(object(&mut values.iter()));
    };
    if values.get(name).is_some() {
        return Ok(object(&mut values.iter().filter(|(it, _)| ***it == *name)));
    }
    let diagnostic = Diagnostic::error(
        Code::UnknownName,
        format!("`{path}` has no output `{name}`"),
    );
    let names: Vec<&str> = values.iter().map(|(name, _)| &**name).collect();
    Err(diagnostic
        .label(span, "it has no such output")
        .note(list_of_outputs(names.iter().copied()))
        .did_you_mean(name, names)
        .into())
}

/// Names a stack's outputs, for a note that it lacks one.
pub(in crate::plan) fn list_of_outputs<'n>(
    names: impl ExactSizeIterator<Item = &'n str>,
) -> String {
    if names.len() == 0 {
        return "it has no outputs".to_owned();
    }
    let listed = first_of(names.map(|name| format!("`{name}`")), MAX_NAMES);
    format!("its outputs are {listed}")
}
