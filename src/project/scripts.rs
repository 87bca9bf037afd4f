//! The scripts of a project: which one a stack has, and its commands there.
//!
//! A script applies to the stacks at and below its directory. A deeper one with the same labels replaces it there.

use std::ffi::OsString;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{Expr, ExprKind};
use crate::language::value::Value;
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::blocks::elements;
use crate::project::namespaces::{ProjectNamespaces, StackNamespaces};
use crate::project::per_stack::{SharedProblem, for_each, needed_at};
use crate::project::script::{JobCommands, ScriptBlock};
use crate::project::stack::StackIndex;
use crate::source::Span;

/// A script where it is defined.
#[derive(Debug, Clone, Copy)]
pub struct PlacedScript<'p> {
    pub directory: &'p ProjectPath,
    pub block: &'p ScriptBlock,
}

#[derive(Debug, Clone, Default)]
pub struct StackScript {
    /// The words of each command; at least one of each.
    pub commands: Vec<Vec<OsString>>,
    /// Whether a command asks for the outputs of other stacks.
    pub wants_outputs: bool,
    /// Whether mocks take the place of missing outputs.
    pub wants_mocks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionType {
    Bool,
    Number,
    String,
}

/// The options of a command. All but those about outputs are about Terramate Cloud.
const OPTIONS: [(&str, OptionType); 17] = [
    ("cloud_sync_deployment", OptionType::Bool),
    ("cloud_sync_drift_status", OptionType::Bool),
    ("cloud_sync_layer", OptionType::String),
    ("cloud_sync_preview", OptionType::Bool),
    ("cloud_sync_terraform_plan_file", OptionType::String),
    (ENABLE_SHARING, OptionType::Bool),
    ("layer", OptionType::String),
    (MOCK_ON_FAIL, OptionType::Bool),
    ("plan_render_timeout", OptionType::Number),
    ("sync_deployment", OptionType::Bool),
    ("sync_drift_status", OptionType::Bool),
    ("sync_layer", OptionType::String),
    ("sync_preview", OptionType::Bool),
    ("sync_terraform_plan_file", OptionType::String),
    ("terraform_plan_file", OptionType::String),
    ("terragrunt", OptionType::Bool),
    ("tofu_plan_file", OptionType::String),
];

const ENABLE_SHARING: &str = "enable_sharing";

const MOCK_ON_FAIL: &str = "mock_on_fail";

impl Project {
    /// Returns all scripts, in the order of their directories.
    pub fn scripts(&self) -> Vec<PlacedScript<'_>> {
        let scopes = self.scopes.iter();
        let mut scripts: Vec<PlacedScript<'_>> = scopes
            .flat_map(|(directory, scope)| {
                let blocks = scope.scripts.iter();
                blocks.map(move |block| PlacedScript { directory, block })
            })
            .collect();
        scripts.sort_by(|a, b| {
            let key = |it: &PlacedScript<'_>| self.sources.place(it.block.keyword);
            let directories = a.directory.components().cmp(b.directory.components());
            directories.then_with(|| key(a).cmp(&key(b)))
        });
        scripts
    }

    /// Returns the script of a stack with these labels: that of the nearest directory.
    pub fn script_of(&self, stack: StackIndex, labels: &[String]) -> Option<&ScriptBlock> {
        let mut scopes = self.scopes_of(self.stacks[stack].path.directory());
        scopes.find_map(|scope| scope.scripts.iter().find(|it| it.labels == labels))
    }
}

/// Evaluates the script with these labels for stacks. Those that have none are left out.
pub fn of_stacks(
    labels: &[String],
    namespaces: &ProjectNamespaces<'_>,
    stacks: impl IntoIterator<Item = StackIndex>,
) -> (Vec<(StackIndex, StackScript)>, Vec<SharedProblem>) {
    let project = namespaces.project();
    let with_script = stacks
        .into_iter()
        .filter(|stack| project.script_of(*stack, labels).is_some());
    for_each(with_script, |stack| {
        let block = project.script_of(stack, labels).expect("filtered above");
        of_stack(block, &namespaces.of_stack(stack))
    })
}

fn of_stack<'p>(
    block: &'p ScriptBlock,
    names: &StackNamespaces<'_, 'p>,
) -> Result<StackScript, Vec<Diagnostic>> {
    let mut evaluation = Evaluation {
        block,
        names,
        script: StackScript::default(),
        deployment: None,
        preview: None,
        problems: Vec::new(),
    };
    evaluation.text(block.name.as_ref(), "name");
    evaluation.text(block.description.as_ref(), "description");
    for job in &block.jobs {
        evaluation.text(job.name.as_ref(), "name");
        evaluation.text(job.description.as_ref(), "description");
        evaluation.job(&job.commands);
    }
    if evaluation.problems.is_empty() {
        Ok(evaluation.script)
    } else {
        Err(evaluation.problems)
    }
}

struct Evaluation<'a, 'n, 'p> {
    block: &'p ScriptBlock,
    names: &'a StackNamespaces<'n, 'p>,
    script: StackScript,
    /// The first command that would be the deployment, or the preview.
    deployment: Option<Span>,
    preview: Option<Span>,
    problems: Vec<Diagnostic>,
}

impl<'p> Evaluation<'_, '_, 'p> {
    fn value(&mut self, expr: &'p Expr) -> Option<Value> {
        match self.names.evaluate_in_script(expr, &self.block.lets) {
            Ok(answer) => Some(answer.value),
            Err(none) => {
                let diagnostic = needed_at(none.into_diagnostic(), expr.span, expr.span);
                self.problems.push(diagnostic);
                None
            }
        }
    }

    fn wrong(&mut self, code: Code, message: &str, span: Span, label: String) {
        let diagnostic = Diagnostic::error(code, message).label(span, label);
        let help = "write it as in `command = [\"terraform\", \"apply\"]` or `commands = [[\"terraform\", \"init\"], [\"terraform\", \"apply\"]]`";
        self.problems.push(diagnostic.help(help));
    }

    fn text(&mut self, expr: Option<&'p Expr>, name: &str) {
        let Some(expr) = expr else {
            return;
        };
        match self.value(expr) {
            None | Some(Value::String(_)) => {}
            Some(other) => {
                let message = format!("`{name}` must be a string");
                let label = format!("this is {}", other.type_name());
                let diagnostic = Diagnostic::error(Code::WrongType, message);
                self.problems.push(diagnostic.label(expr.span, label));
            }
        }
    }

    fn job(&mut self, commands: &'p JobCommands) {
        match commands {
            JobCommands::One(expr) => {
                if let Some(value) = self.value(expr) {
                    self.command(expr, expr.span, &value);
                }
            }
            JobCommands::Several(expr) => {
                let Some(value) = self.value(expr) else {
                    return;
                };
                let message = "`commands` must be a list of commands";
                let Some(items) = value.sequence() else {
                    let label = format!("this is {}", value.type_name());
                    return self.wrong(Code::WrongType, message, expr.span, label);
                };
                let mut n_commands = 0;
                for (span, item) in elements(expr, items) {
                    n_commands += 1;
                    let list = match &expr.kind {
                        ExprKind::List(written) => &written[n_commands - 1],
                        _ => expr,
                    };
                    self.command(list, span, item);
                }
                if n_commands == 0 {
                    let label = "there is none".to_owned();
                    self.wrong(Code::InvalidValue, message, expr.span, label);
                }
            }
        }
    }

    /// Takes a command with its value, and the expression and the place where it is written.
    fn command(&mut self, expr: &Expr, span: Span, value: &Value) {
        let message = "a command must be a list of strings";
        let Some(items) = value.sequence() else {
            let label = format!("this is {}", value.type_name());
            return self.wrong(Code::WrongType, message, span, label);
        };
        let mut words: Vec<OsString> = Vec::new();
        let items: Vec<(Span, &Value)> = elements(expr, items).collect();
        for (index, (place, item)) in items.iter().enumerate() {
            match item {
                Value::String(text) if text.contains('\0') => {
                    let label = "this text has a NUL character".to_owned();
                    return self.wrong(Code::InvalidValue, message, *place, label);
                }
                Value::String(text) => words.push(OsString::from(&**text)),
                options if index + 1 == items.len() && options.entries().is_some() => {
                    self.options(options, *place);
                }
                other => {
                    let label = format!("this is {}", other.type_name());
                    return self.wrong(Code::WrongType, message, *place, label);
                }
            }
        }
        match words.first() {
            None => self.wrong(
                Code::InvalidValue,
                "a command needs at least the name of a program",
                span,
                "this names none".to_owned(),
            ),
            Some(program) if program.is_empty() => self.wrong(
                Code::InvalidValue,
                "the name of the program is empty",
                span,
                "this is an empty string".to_owned(),
            ),
            Some(_) => self.script.commands.push(words),
        }
    }

    /// Checks the options of a command.
    fn options(&mut self, options: &Value, place: Span) {
        let entries = options.entries().into_iter().flat_map(|it| it.iter());
        let mut given: Vec<&str> = Vec::new();
        for (name, value) in entries {
            let known = OPTIONS.iter().find(|(known, _)| *known == &**name);
            let Some((name, kind)) = known else {
                let message = format!("unknown option `{name}` of a command");
                let diagnostic = Diagnostic::error(Code::UnknownAttribute, message)
                    .label(place, "not an option");
                let known = OPTIONS.iter().map(|(known, _)| *known);
                self.problems.push(diagnostic.did_you_mean(name, known));
                continue;
            };
            let (is_right, expected) = match kind {
                OptionType::Bool => (matches!(value, Value::Bool(_)), "a bool"),
                OptionType::Number => (matches!(value, Value::Number(_)), "a number"),
                OptionType::String => (matches!(value, Value::String(_)), "a string"),
            };
            if !is_right {
                let message = format!("the option `{name}` must be {expected}");
                let label = format!("this is {}", value.type_name());
                let diagnostic = Diagnostic::error(Code::WrongType, message);
                self.problems.push(diagnostic.label(place, label));
            } else if !matches!(value, Value::Bool(false)) {
                given.push(name.trim_start_matches("cloud_"));
            }
        }
        let has = |name: &str| given.contains(&name);
        self.script.wants_outputs |= has(ENABLE_SHARING);
        self.script.wants_mocks |= has(MOCK_ON_FAIL);
        let contradictions = [
            ("sync_deployment", "sync_drift_status"),
            ("sync_preview", "sync_deployment"),
            ("sync_preview", "sync_drift_status"),
            ("terraform_plan_file", "tofu_plan_file"),
        ];
        for (one, other) in contradictions {
            if has(one) && has(other) {
                let message = format!("a command cannot have both `{one}` and `{other}`");
                let diagnostic = Diagnostic::error(Code::Conflict, message);
                self.problems.push(diagnostic.label(place, "both are here"));
            }
        }
        for (name, first) in [
            ("sync_deployment", &mut self.deployment),
            ("sync_preview", &mut self.preview),
        ] {
            if !has(name) {
                continue;
            }
            match *first {
                None => *first = Some(place),
                Some(first) => {
                    let message = format!("only one command of a script can have `{name}`");
                    let diagnostic = Diagnostic::error(Code::Conflict, message)
                        .label(place, "a second one")
                        .label(first, "the first one");
                    self.problems.push(diagnostic);
                }
            }
        }
    }
}
