//! What in policies is valid, but hardly meant: keys that the input doesn't have, and names that mean no stack.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::policies::{LoadedPolicies, LoadedPolicy};
use super::workflow::{NamedStack, SCHEMA, StackNames, id};
use crate::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::Problem;
use crate::project::Project;
use crate::project::policy::PolicyBlock;

/// The inputs that the schema describes.
const INPUTS: [&str; 2] = ["run_input", "module_input"];

/// What separates the names in a label: `depends-on:a,b|state:FAILED`.
const SEPARATORS: [char; 2] = [',', '|'];

impl Context {
    pub fn lint_policies(&mut self, loaded: &LoadedPolicies) {
        let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
        let (workspace, problems) = self.parts();
        let project = &workspace.project;
        let names = StackNames::new(&project.stacks, BTreeSet::new());
        for (block, policy) in project.policies.iter().zip(&loaded.policies) {
            let Some(policy) = policy else { continue };
            let found = lints(&schema, project, &names, policy);
            let diagnostics = found.into_iter().map(|lint| lint.diagnostic(block));
            problems.diagnostics.extend(diagnostics);
        }
    }
}

struct PolicyLint {
    problem: Problem,
    help: Option<String>,
}

impl PolicyLint {
    fn new(place: (u32, u32), message: String, meant: Option<&str>) -> Self {
        PolicyLint {
            problem: Problem {
                place: Some(place),
                message,
            },
            help: meant.map(|meant| format!("did you mean `{meant}`?")),
        }
    }

    fn diagnostic(self, block: &PolicyBlock) -> Diagnostic {
        let file = block.file.value.as_str().trim_start_matches('/');
        let message = format!(
            "in the policy `{}`: {}",
            block.name.value, self.problem.message
        );
        let place = match self.problem.place {
            Some((line, column)) => format!("at {file}:{line}:{column}"),
            None => "this file".to_owned(),
        };
        let diagnostic =
            Diagnostic::warning(Code::InvalidPolicy, message).label(block.file.span, place);
        match self.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}

fn lints(
    schema: &Value,
    project: &Project,
    names: &StackNames,
    policy: &LoadedPolicy,
) -> Vec<PolicyLint> {
    let outline = &policy.outline;
    let mut lints: Vec<PolicyLint> = Vec::new();
    let warnings = outline.warnings.iter().cloned();
    lints.extend(warnings.map(|problem| PolicyLint {
        problem,
        help: None,
    }));
    // The first place of each.
    let mut unknown = BTreeMap::new();
    for (path, place) in &outline.inputs {
        if let Some((at, known)) = unknown_key(schema, path) {
            unknown.entry(&path[..=at]).or_insert((*place, known));
        }
    }
    for (path, (place, known)) in unknown {
        let key = path.last().map_or("", String::as_str);
        let message = format!("the input has no `{}`", shown(path));
        let meant = crate::diagnostic::closest(key, known);
        lints.push(PolicyLint::new(place, message, meant));
    }
    let stacks = &project.stacks;
    for (name, place) in &outline.asked {
        if let NamedStack::Unknown = names.find(name) {
            let message = format!("it asks for `{name}`, but no stack has this id or path");
            let ids: Vec<String> = stacks.iter().map(|(_, stack)| id(stack)).collect();
            let meant = crate::diagnostic::closest(name, ids.iter().map(String::as_str));
            lints.push(PolicyLint::new(*place, message, meant));
        }
    }
    lints.extend(other_spellings(project, names, policy));
    lints
}

/// Returns labels that name a stack with another spelling than the id that policies see, for policies that compare them
/// with ids.
fn other_spellings(
    project: &Project,
    names: &StackNames,
    policy: &LoadedPolicy,
) -> Vec<PolicyLint> {
    let ids = [&["stack", "id"][..], &["workflow", "*", "stack_id"]];
    let reads = |path: &[String]| ids.iter().any(|id| path == *id);
    let mut inputs = policy.outline.inputs.iter();
    let Some((_, place)) = inputs.find(|(path, _)| reads(path)) else {
        return Vec::new();
    };
    let texts = policy.outline.texts.iter();
    let texts = texts.map(|text| text.trim_end_matches("%s").trim_end_matches("%v"));
    let prefixes: BTreeSet<&str> = texts.filter(|text| text.ends_with([':', '='])).collect();
    let stacks = &project.stacks;
    let mut lints = Vec::new();
    for (_, stack) in stacks.iter() {
        let labels = stack.labels.iter().map(String::as_str).chain(stack.tags());
        for label in labels {
            let Some(rest) = prefixes
                .iter()
                .find_map(|prefix| label.strip_prefix(*prefix))
            else {
                continue;
            };
            for name in rest.split(SEPARATORS) {
                let NamedStack::One(meant) = names.find(name) else {
                    continue;
                };
                let meant = id(&stacks[meant]);
                if meant != name {
                    let message = format!(
                        "the label `{label}` of {} names `{name}`, but policies know that stack as `{meant}`",
                        stack.path
                    );
                    lints.push(PolicyLint::new(*place, message, None));
                }
            }
        }
    }
    lints
}

/// Returns the position of the first key of a path that no input has, and the keys that it could be.
fn unknown_key<'s>(schema: &'s Value, path: &[String]) -> Option<(usize, Vec<&'s str>)> {
    let mut unknown = None;
    for input in INPUTS {
        let found = unknown_in(schema, &schema["$defs"][input], path)?;
        // The input that knows more of the path is meant.
        if unknown.as_ref().is_none_or(|(at, _)| found.0 > *at) {
            unknown = Some(found);
        }
    }
    unknown
}

fn unknown_in<'s>(
    schema: &'s Value,
    mut node: &'s Value,
    path: &[String],
) -> Option<(usize, Vec<&'s str>)> {
    for (at, key) in path.iter().enumerate() {
        if let Some(named) = node["$ref"].as_str() {
            node = &schema["$defs"][named.trim_start_matches("#/$defs/")];
        }
        if !node["items"].is_null() {
            if key != "*" && key.parse::<usize>().is_err() {
                return Some((at, Vec::new()));
            }
            node = &node["items"];
        } else if let Some(properties) = node["properties"].as_object() {
            if key == "*" {
                return None;
            }
            let Some(property) = properties.get(key) else {
                return Some((at, properties.keys().map(String::as_str).collect()));
            };
            node = property;
        } else {
            return None;
        }
    }
    None
}

/// Returns a path as it is written in a policy.
fn shown(path: &[String]) -> String {
    let mut shown = "input".to_owned();
    for key in path {
        match key.as_str() {
            "*" => shown += "[_]",
            key => {
                shown.push('.');
                shown += key;
            }
        }
    }
    shown
}
