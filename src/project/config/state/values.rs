//! The values of attributes, of which some may need variables of the host.

use std::collections::HashMap;

use super::{NAME_HELP, name_problem};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::{
    Budget, Call, EvalResult, EvalValue, NamePath, Namespaces, NoValue, Unknown, evaluate_within,
};
use crate::language::function::{self, FunctionContext};
use crate::language::syntax::Attribute;
use crate::language::value::Value;
use crate::project::attempt::block;
use crate::project::blocks::elements;
use crate::project::host::unless_text;
use crate::source::{Span, Spanned};

#[derive(Clone, Copy)]
pub(super) enum HostVariables<'a> {
    /// Values with variables are not evaluated.
    NotAsked,
    /// Looks up a variable.
    Known(&'a dyn Fn(&str) -> Option<String>),
}

/// Evaluates attributes by path, and collects problems.
pub(super) struct Values<'a> {
    attributes: &'a HashMap<String, Attribute>,
    host: HostVariables<'a>,
    budget: Budget,
    pub(super) problems: Vec<Diagnostic>,
}

impl<'a> Values<'a> {
    pub(super) fn new(attributes: &'a HashMap<String, Attribute>, host: HostVariables<'a>) -> Self {
        Values {
            attributes,
            host,
            budget: Budget::default(),
            problems: Vec::new(),
        }
    }

    /// Returns where the value of an attribute is written, if it is set.
    pub(super) fn span(&self, path: &str) -> Option<Span> {
        self.attributes
            .get(path)
            .map(|attribute| attribute.value.span)
    }

    /// Returns the value of an attribute that is set and can be evaluated.
    fn value(&mut self, path: &str) -> Option<(&'a Attribute, EvalValue)> {
        let attribute = self.attributes.get(path)?;
        match evaluate_within(&attribute.value, &Env(self.host), &self.budget) {
            Ok(answer) => Some((attribute, answer)),
            Err(NoValue::Undecided(_)) => None,
            Err(NoValue::Wrong(diagnostic)) => {
                self.problems.push(*diagnostic);
                None
            }
        }
    }

    fn wrong_type(&mut self, path: &str, expected: &str, span: Span, value: &Value) {
        let message = format!("`{path}` must be {expected}");
        // Values from variables must not be shown.
        let label = format!("this is {}", value.type_name());
        self.problems
            .push(Diagnostic::error(Code::WrongType, message).label(span, label));
    }

    /// Returns a text that is not empty.
    pub(super) fn text(&mut self, path: &str) -> Option<String> {
        let (attribute, answer) = self.value(path)?;
        let span = attribute.value.span;
        let name = path.rsplit('.').next().unwrap_or(path);
        match &answer.value {
            Value::String(text) if text.is_empty() => {
                let message = format!("`{name}` must not be empty");
                self.problems.push(
                    Diagnostic::error(Code::InvalidValue, message).label(span, "this is empty"),
                );
                None
            }
            Value::String(text) => Some(text.to_string()),
            other => {
                self.wrong_type(name, "a string", span, other);
                None
            }
        }
    }

    /// Returns a whole number from 0.
    pub(super) fn number(&mut self, path: &str) -> Option<u32> {
        let (attribute, answer) = self.value(path)?;
        let number = block::whole_number(&answer.value, 0, u32::MAX);
        if number.is_none() {
            let message = format!("`{path}` must be a whole number from 0");
            self.problems.push(
                Diagnostic::error(Code::InvalidValue, message)
                    .label(attribute.value.span, block::this_is(&answer.value)),
            );
        }
        number
    }

    /// Returns the strings of a list, each with its own place if the list is a literal.
    pub(super) fn texts(&mut self, path: &str) -> Vec<Spanned<String>> {
        let Some((attribute, answer)) = self.value(path) else {
            return Vec::new();
        };
        let texts: Option<Vec<Spanned<String>>> = answer.value.sequence().and_then(|items| {
            let texts = elements(&attribute.value, items).map(|(span, item)| {
                let value = item.as_str()?.to_owned();
                Some(Spanned { value, span })
            });
            texts.collect()
        });
        texts.unwrap_or_else(|| {
            let span = attribute.value.span;
            self.wrong_type(path, "a list of strings", span, &answer.value);
            Vec::new()
        })
    }

    /// Returns whether a text can name a project or a namespace.
    pub(super) fn check_name(&mut self, path: &str, name: &str) -> bool {
        let Some(problem) = name_problem(name) else {
            return true;
        };
        self.invalid(path, format!("`{path}` is not a name"), problem, NAME_HELP);
        false
    }

    pub(super) fn invalid(&mut self, path: &str, message: String, label: &str, help: &str) {
        let mut diagnostic = Diagnostic::error(Code::InvalidValue, message);
        if let Some(span) = self.span(path) {
            diagnostic = diagnostic.label(span, label);
        }
        self.problems.push(diagnostic.help(help));
    }
}

/// The names in `config.state`: only `env`.
struct Env<'a>(HostVariables<'a>);

impl Namespaces for Env<'_> {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        const PLACE: &str = "the configuration of the state";
        if path.name != "env" {
            if ["global", "let", "orch", "terramate"].contains(&path.name) {
                let message = format!("`{}` cannot be used in {PLACE}", path.name);
                return Err(Diagnostic::error(Code::UnavailableName, message)
                    .label(path.span, "not available here")
                    .help("only literals, functions and `env` are evaluated here")
                    .into());
            }
            return Ok(None);
        }
        let Some(&(variable, span)) = path.rest.first() else {
            let message = "`env` needs the name of a variable here: `env.NAME`";
            return Err(Diagnostic::error(Code::UnavailableName, message)
                .label(path.span, "all variables")
                .into());
        };
        let host = match self.0 {
            HostVariables::NotAsked => {
                return Err(NoValue::Undecided(Box::new(Unknown {
                    name: format!("env.{variable}"),
                    when: "known when the state is asked for".to_owned(),
                    span: path.span,
                    is_on_demand: false,
                })));
            }
            HostVariables::Known(host) => host,
        };
        let Some(value) = host(variable) else {
            let message = format!("the environment has no variable `{variable}`");
            let help = format!("set `{variable}` before running orch");
            return Err(Diagnostic::error(Code::UnsetVariable, message)
                .label(span, "`env` is the environment that orch was started in")
                .help(help)
                .into());
        };
        if let Some(problem) = unless_text(variable, &value, span) {
            return Err(problem.into());
        }
        let value = Value::string(value);
        Ok(Some(EvalValue {
            value: Value::object([(variable.to_owned(), value)]),
            is_sensitive: true,
        }))
    }

    fn names(&self) -> Vec<&str> {
        vec!["env"]
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        function::call(
            call,
            &FunctionContext::none("the configuration of the state"),
        )
    }

    fn functions(&self) -> Vec<String> {
        function::names(function::PREFIX).collect()
    }
}
