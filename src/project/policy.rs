//! `policy` blocks and `config.policies`: the Rego files that decide follow-ups of finished turns.
//!
//! This module knows neither Rego nor the stacks of an entry of `attach`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::diagnostic::{Code, Diagnostic};
use crate::duration;
use crate::language::NoNamespaces;
use crate::language::syntax::{Attribute, Block};
use crate::language::value::Value;
use crate::path::ProjectPath;
use crate::project::blocks::{
    elements, is_name, misplaced_block, needs, string, unknown_attribute, value, wrong_type,
};
use crate::source::Spanned;

pub(crate) const POLICY: &str = "policy";

/// The only kind of policies.
const TRIGGER: &str = "trigger";

const ATTRIBUTES: [&str; 4] = ["file", "attach", "on_error", "timeout"];

const NAMES: NoNamespaces = NoNamespaces("a `policy` block");

/// The default time limit of an evaluation.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest name of a policy, in characters.
const MAX_NAME: usize = 64;

#[derive(Debug, Clone)]
pub struct PolicyBlock {
    pub name: Spanned<String>,
    pub file: Spanned<ProjectPath>,
    /// The entries of `attach`, as written; `None` for all stacks at and below its directory.
    pub attach: Option<Vec<Spanned<String>>>,
    pub directory: ProjectPath,
    /// Whether a failed evaluation is a failure of the run.
    pub on_error: OnPolicyError,
    pub timeout: Duration,
}

/// The effect of a failed evaluation on the exit status of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnPolicyError {
    Fail,
    Ignore,
}

/// Whether policies are evaluated, and how they see the turns of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyRun {
    Tracked,
    Task,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicySettings {
    /// How many turns a stack may have in a workflow.
    pub max_turns: u32,
    /// How many follow-ups a workflow may have.
    pub max_followups: u32,
    /// Whether recorded applies evaluate policies by default.
    pub run: PolicyRun,
}

impl Default for PolicySettings {
    fn default() -> Self {
        PolicySettings {
            max_turns: 5,
            max_followups: 500,
            run: PolicyRun::Off,
        }
    }
}

pub(crate) fn read(
    block: &Block,
    directory: &ProjectPath,
    problems: &mut Vec<Diagnostic>,
) -> Option<PolicyBlock> {
    let name = name(block, problems);
    for inner in &block.body.blocks {
        let diagnostic = misplaced_block(inner, block, "a policy has no blocks");
        problems.push(diagnostic.help(format!("attributes are: {}", ATTRIBUTES.join(", "))));
    }
    let (mut file, mut attach) = (None, None);
    let (mut on_error, mut limit) = (OnPolicyError::Fail, TIMEOUT);
    for attribute in &block.body.attributes {
        match &*attribute.name.text {
            "file" => file = rego_file(attribute, directory, problems),
            "attach" => attach = strings(attribute, problems),
            "on_error" => {
                let written = text(attribute, problems).map(|text| text.value);
                match written.as_deref() {
                    Some("ignore") => on_error = OnPolicyError::Ignore,
                    Some("fail") | None => {}
                    Some(_) => problems.push(invalid(
                        attribute,
                        "`on_error` must be `\"fail\"` or `\"ignore\"`",
                        "neither of the two",
                    )),
                }
            }
            "timeout" => {
                if let Some(text) = text(attribute, problems) {
                    match duration::parse(&text.value) {
                        Ok(Duration::ZERO) => problems.push(invalid(
                            attribute,
                            "`timeout` must be longer than zero",
                            "this allows no time at all",
                        )),
                        Ok(timeout) => limit = timeout,
                        Err(problem) => problems.push(
                            invalid(attribute, "`timeout` must be a duration", &problem)
                                .help("write it with units: `\"500ms\"`, `\"5s\"`, `\"1m\"`"),
                        ),
                    }
                }
            }
            _ => problems.push(unknown_attribute(attribute, block, &ATTRIBUTES)),
        }
    }
    if block.body.attribute("file").is_none() {
        let help = "write the path of a Rego file: `file = \"policies/….rego\"`";
        problems.push(needs(block, "file").help(help));
    }
    Some(PolicyBlock {
        name: name?,
        file: file?,
        attach,
        directory: directory.clone(),
        on_error,
        timeout: limit,
    })
}

/// Takes the policies of all directories, in the order of their places, and returns them by name. Those that have the name
/// of another one are reported.
pub(crate) fn by_name(
    policies: Vec<PolicyBlock>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<PolicyBlock> {
    let mut by_name: BTreeMap<String, PolicyBlock> = BTreeMap::new();
    for policy in policies {
        let Some(first) = by_name.get(&policy.name.value) else {
            by_name.insert(policy.name.value.clone(), policy);
            continue;
        };
        let message = format!("the policy `{}` is defined twice", policy.name.value);
        let diagnostic = Diagnostic::error(Code::DuplicateDefinition, message);
        problems.push(if first.name.span == policy.name.span {
            diagnostic
                .label(policy.name.span, "several directories import this file")
                .help("import it in one of them, and name its stacks in `attach`")
        } else {
            diagnostic
                .again(policy.name.span, first.name.span)
                .help("rename one of them")
        });
    }
    by_name.into_values().collect()
}

pub(crate) fn settings(block: &Block, problems: &mut Vec<Diagnostic>) -> PolicySettings {
    const SETTINGS: [&str; 3] = ["max_turns", "max_followups", "run"];
    let mut settings = PolicySettings::default();
    for label in &block.labels {
        let message = "a `policies` block has no labels";
        let diagnostic = Diagnostic::error(Code::UnexpectedLabel, message);
        problems.push(diagnostic.label(label.span, "unexpected label"));
    }
    for inner in &block.body.blocks {
        let diagnostic = misplaced_block(inner, block, "not a block of `policies`");
        problems.push(diagnostic.help("write a top-level block: `policy \"trigger\" \"…\" { … }`"));
    }
    for attribute in &block.body.attributes {
        match &*attribute.name.text {
            "max_turns" => {
                settings.max_turns = limit(attribute, 1, problems).unwrap_or(settings.max_turns);
            }
            "max_followups" => {
                let limit = limit(attribute, 0, problems);
                settings.max_followups = limit.unwrap_or(settings.max_followups);
            }
            "run" => {
                let written = text(attribute, problems).map(|text| text.value);
                match written.as_deref() {
                    Some("tracked") => settings.run = PolicyRun::Tracked,
                    Some("off") | None => settings.run = PolicyRun::Off,
                    Some(_) => problems.push(invalid(
                        attribute,
                        "`run` must be `\"tracked\"` or `\"off\"`",
                        "neither of the two",
                    )),
                }
            }
            _ => problems.push(unknown_attribute(attribute, block, &SETTINGS)),
        }
    }
    settings
}

fn limit(attribute: &Attribute, least: u32, problems: &mut Vec<Diagnostic>) -> Option<u32> {
    let value = value(&attribute.value, &NAMES, problems)?;
    let number = match &value {
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    };
    let fitting = number.filter(|number| *number >= least);
    if fitting.is_none() {
        let message = format!("`{}` must be a whole number", attribute.name.text);
        let label = format!("at least {least}, and without a fraction");
        problems.push(invalid(attribute, &message, &label));
    }
    fitting
}

fn name(block: &Block, problems: &mut Vec<Diagnostic>) -> Option<Spanned<String>> {
    let help = "write `policy \"trigger\" \"name\" { … }`";
    let [kind, name] = &block.labels[..] else {
        let message = "a `policy` block has two labels: its kind and its name";
        let diagnostic = Diagnostic::error(Code::InvalidValue, message);
        let span = block.labels.get(2).map_or(block.kind.span, |it| it.span);
        let label = format!("there are {}", block.labels.len());
        problems.push(diagnostic.label(span, label).help(help));
        return None;
    };
    if &*kind.text != TRIGGER {
        let message = format!("`{}` is not a kind of policy", kind.text);
        let diagnostic = Diagnostic::error(Code::InvalidValue, message)
            .label(kind.span, "the only kind is `trigger`");
        problems.push(diagnostic.help(help));
        return None;
    }
    let text = &*name.text;
    if text.len() > MAX_NAME || !is_name(text) {
        let message = format!("`{text}` cannot be the name of a policy");
        let label = format!(
            "a name has at most {MAX_NAME} characters, all ASCII letters, digits, `-` or `_`"
        );
        let diagnostic = Diagnostic::error(Code::InvalidValue, message);
        problems.push(diagnostic.label(name.span, label));
        return None;
    }
    let (value, span) = (text.to_owned(), name.span);
    Some(Spanned { value, span })
}

fn rego_file(
    attribute: &Attribute,
    directory: &ProjectPath,
    problems: &mut Vec<Diagnostic>,
) -> Option<Spanned<ProjectPath>> {
    let Spanned { value, span } = text(attribute, problems)?;
    if value.is_empty() || value.contains('\0') || value.len() > ProjectPath::MAX_BYTES {
        problems.push(invalid(
            attribute,
            "`file` must be the path of a Rego file",
            "this is not a path",
        ));
        return None;
    }
    let Ok(path) = directory.resolve(&value) else {
        let diagnostic = Diagnostic::outside_project(&value, span);
        problems.push(diagnostic.help("a leading `/` is the project root"));
        return None;
    };
    Some(Spanned { value: path, span })
}

fn text(attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Option<Spanned<String>> {
    string(attribute, "a string", &NAMES, problems)
}

fn strings(attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Option<Vec<Spanned<String>>> {
    let value = value(&attribute.value, &NAMES, problems)?;
    let whole = attribute.value.span;
    let Some(items) = value.sequence() else {
        problems.push(wrong_type(attribute, whole, "a list of strings", &value));
        return None;
    };
    let mut strings = Vec::new();
    for (span, item) in elements(&attribute.value, items) {
        match item {
            Value::String(text) => {
                let value = text.to_string();
                strings.push(Spanned { value, span });
            }
            other => problems.push(wrong_type(attribute, span, "a list of strings", other)),
        }
    }
    Some(strings)
}

fn invalid(attribute: &Attribute, message: &str, label: &str) -> Diagnostic {
    Diagnostic::error(Code::InvalidValue, message).label(attribute.value.span, label)
}
