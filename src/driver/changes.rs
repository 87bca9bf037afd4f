//! The changes in a plan of Terraform, `OpenTofu` or Terragrunt, with values, for policies.
//!
//! Sensitive values are replaced by a mark.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::command::PlanKind;
use super::plan_json::{ChangeJson, PlanJson};
use super::terraform::{BadPlan, check_format, parse};

/// The vendor of the resources in such plans.
const VENDOR: &str = "terraform";

const OUTPUT: &str = "output";

/// The replacement of a sensitive value.
const MASK: &str = "(sensitive)";

#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    pub kind: ChangeKind,
    pub address: String,
    pub name: String,
    /// Its type; `output` for an output.
    pub type_name: String,
    pub vendor: &'static str,
    /// Its kind: `resource` or `output`.
    pub entity: &'static str,
    /// Its values, without sensitive parts: the planned ones, as far as they are known, or those after the apply; the
    /// ones before if it is deleted. That of an output is called `value`.
    pub data: Map<String, Value>,
    /// Which parts of the values are sensitive, according to the plan; unknown if `None`.
    pub sensitive: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Changed,
    Deleted,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChangedPlan {
    /// The version of the tool; empty if the plan lacks it.
    pub terraform_version: String,
    /// Its resources, then its outputs, in the order of the tool.
    pub changes: Vec<Changed>,
}

impl ChangeJson {
    fn kind(&self) -> Option<ChangeKind> {
        let actions: Vec<&str> = self.actions.iter().map(String::as_str).collect();
        match actions[..] {
            [] | ["no-op" | "read"] => None,
            ["create"] => Some(ChangeKind::Added),
            ["delete" | "forget"] => Some(ChangeKind::Deleted),
            _ => Some(ChangeKind::Changed),
        }
    }

    /// Returns the value without sensitive parts, and which these are.
    fn shown(&self) -> (Value, Option<Value>) {
        let (value, sensitive) = match self.kind() {
            Some(ChangeKind::Deleted) => (&self.before, &self.before_sensitive),
            _ => (&self.after, &self.after_sensitive),
        };
        let sensitive = read(sensitive.as_deref());
        (shown(value.as_deref(), sensitive.as_ref()), sensitive)
    }
}

/// Returns a value without sensitive parts; `null` if it is unknown which these are.
fn shown(value: Option<&RawValue>, sensitive: Option<&Value>) -> Value {
    match (read(value), sensitive) {
        (Some(value), Some(sensitive)) => masked(value, sensitive),
        _ => Value::Null,
    }
}

/// Reads a value. One that is nested too deeply is left out.
fn read(text: Option<&RawValue>) -> Option<Value> {
    serde_json::from_str(text?.get()).ok()
}

/// Returns a value without sensitive parts: `true` marks all of it, and lists and objects their parts.
fn masked(value: Value, sensitive: &Value) -> Value {
    match (value, sensitive) {
        (value, Value::Bool(false) | Value::Null) => value,
        (Value::Object(values), Value::Object(marks)) => {
            let values = values.into_iter().map(|(name, value)| {
                let value = match marks.get(&name) {
                    Some(mark) => masked(value, mark),
                    None => value,
                };
                (name, value)
            });
            Value::Object(values.collect())
        }
        (Value::Array(values), Value::Array(marks)) => {
            let values =
                values
                    .into_iter()
                    .enumerate()
                    .map(|(index, value)| match marks.get(index) {
                        Some(mark) => masked(value, mark),
                        None => value,
                    });
            Value::Array(values.collect())
        }
        // An empty object or list marks nothing.
        (value, Value::Object(marks)) if marks.is_empty() => value,
        (value, Value::Array(marks)) if marks.is_empty() => value,
        _ => Value::String(MASK.to_owned()),
    }
}

impl ChangedPlan {
    /// Reads the output of `show -json` for a plan. The changes of a refresh are the drift.
    pub fn read(from: impl Read, kind: PlanKind) -> Result<Self, BadPlan> {
        let plan = parse(from)?;
        Ok(ChangedPlan {
            terraform_version: plan.terraform_version.clone(),
            changes: changes(plan, kind),
        })
    }
}

fn changes(plan: PlanJson, kind: PlanKind) -> Vec<Changed> {
    let PlanJson {
        resource_changes,
        resource_drift,
        output_changes,
        ..
    } = plan;
    let resources = match kind {
        PlanKind::Normal | PlanKind::Destroy => resource_changes,
        PlanKind::RefreshOnly => resource_drift,
    };
    let resources = resources.into_iter().filter_map(|resource| {
        let (data, sensitive) = resource.change.shown();
        Some(Changed {
            kind: resource.change.kind()?,
            address: resource.address,
            name: resource.name,
            type_name: resource.type_name,
            vendor: VENDOR,
            entity: "resource",
            data: object(data),
            sensitive,
        })
    });
    let outputs = output_changes.into_iter().filter_map(|(name, change)| {
        let (value, sensitive) = change.shown();
        Some(Changed {
            kind: change.kind()?,
            address: format!("output.{name}"),
            name,
            type_name: "output".to_owned(),
            vendor: VENDOR,
            entity: OUTPUT,
            data: Map::from_iter([("value".to_owned(), value)]),
            sensitive,
        })
    });
    resources.chain(outputs).collect()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(values) => values,
        _ => Map::new(),
    }
}

#[derive(Deserialize)]
struct StateJson {
    format_version: String,
    /// Missing if nothing exists.
    #[serde(default)]
    values: StateValuesJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StateValuesJson {
    outputs: BTreeMap<String, StateOutputJson>,
    root_module: StateModuleJson,
}

#[derive(Deserialize)]
struct StateOutputJson {
    #[serde(default)]
    sensitive: bool,
    value: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StateModuleJson {
    resources: Vec<StateResourceJson>,
    child_modules: Vec<StateModuleJson>,
}

#[derive(Deserialize)]
struct StateResourceJson {
    address: String,
    deposed_key: Option<String>,
    values: Option<Box<RawValue>>,
    sensitive_values: Option<Box<RawValue>>,
}

/// The sensitive texts and numbers of a state. Providers may copy them to values that are not marked.
#[derive(Default)]
struct Secrets(HashSet<String>);

/// How long a secret is at least that is masked as a part of a text, too.
const MIN_PART: usize = 4;

impl Secrets {
    fn of(state: &StateJson, resources: &BTreeMap<&str, &StateResourceJson>) -> Self {
        let mut secrets = Secrets::default();
        for output in state.values.outputs.values().filter(|it| it.sensitive) {
            secrets.add(read(output.value.as_deref()), Some(&Value::Bool(true)));
        }
        for resource in resources.values() {
            let marks = read(resource.sensitive_values.as_deref());
            secrets.add(read(resource.values.as_deref()), marks.as_ref());
        }
        secrets
    }

    fn add(&mut self, value: Option<Value>, marks: Option<&Value>) {
        match (value, marks) {
            (_, None | Some(Value::Bool(false) | Value::Null)) | (None, _) => {}
            (Some(Value::Object(values)), Some(marks)) => {
                for (name, value) in values {
                    self.add(Some(value), marks.get(&name).or(all(marks)));
                }
            }
            (Some(Value::Array(values)), Some(marks)) => {
                for (index, value) in values.into_iter().enumerate() {
                    self.add(Some(value), marks.get(index).or(all(marks)));
                }
            }
            (Some(Value::String(text)), Some(Value::Bool(true))) if !text.is_empty() => {
                self.0.insert(text);
            }
            (Some(Value::Number(number)), Some(Value::Bool(true))) => {
                self.0.insert(number.to_string());
            }
            _ => {}
        }
    }

    /// Returns a value without its parts that are secrets.
    fn masked(&self, value: Value) -> Value {
        match value {
            Value::Object(values) => {
                let values = values.into_iter();
                Value::Object(values.map(|(name, it)| (name, self.masked(it))).collect())
            }
            Value::Array(values) => {
                Value::Array(values.into_iter().map(|it| self.masked(it)).collect())
            }
            Value::Number(number) if self.0.contains(&number.to_string()) => MASK.into(),
            Value::String(text) if self.is_part_of(&text) => MASK.into(),
            value => value,
        }
    }

    fn is_part_of(&self, text: &str) -> bool {
        let mut parts = self.0.iter().filter(|secret| secret.len() >= MIN_PART);
        self.0.contains(text) || parts.any(|secret| text.contains(secret.as_str()))
    }
}

/// Returns the mark of a value for its parts, if it marks all of them.
fn all(marks: &Value) -> Option<&Value> {
    (*marks == Value::Bool(true)).then_some(marks)
}

impl StateModuleJson {
    fn add_to<'s>(&'s self, resources: &mut BTreeMap<&'s str, &'s StateResourceJson>) {
        let current = self.resources.iter().filter(|it| it.deposed_key.is_none());
        resources.extend(current.map(|it| (it.address.as_str(), it)));
        for module in &self.child_modules {
            module.add_to(resources);
        }
    }
}

impl ChangedPlan {
    /// Returns the changes with their values after the apply, from the output of `show -json` for the state. What the
    /// state does not have, such as an ephemeral resource, has no values.
    pub fn applied(&self, state: impl Read) -> Result<Vec<Changed>, BadPlan> {
        let state: StateJson =
            serde_json::from_reader(state).map_err(|error| BadPlan::NoState {
                line: error.line(),
                column: error.column(),
            })?;
        check_format(&state.format_version)?;
        let mut resources = BTreeMap::new();
        state.values.root_module.add_to(&mut resources);
        let secrets = Secrets::of(&state, &resources);
        let applied = self.changes.iter().map(|planned| {
            let is_output = planned.entity == OUTPUT;
            let value = if planned.kind == ChangeKind::Deleted {
                return planned.clone();
            } else if is_output {
                state.values.outputs.get(&planned.name).map(|output| {
                    let sensitive = Value::Bool(output.sensitive);
                    shown(output.value.as_deref(), Some(&sensitive))
                })
            } else {
                resources.get(&*planned.address).map(|resource| {
                    let sensitive = read(resource.sensitive_values.as_deref());
                    shown(resource.values.as_deref(), sensitive.as_ref())
                })
            };
            // Older versions of the tools mark less in the state than in the plan.
            let value = match (value, &planned.sensitive) {
                (Some(value), Some(sensitive)) => secrets.masked(masked(value, sensitive)),
                _ => Value::Null,
            };
            Changed {
                data: if is_output {
                    Map::from_iter([("value".to_owned(), value)])
                } else {
                    object(value)
                },
                ..planned.clone()
            }
        });
        Ok(applied.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(changes: &str) -> Vec<Changed> {
        let plan = ChangedPlan::read(changes.as_bytes(), PlanKind::Normal);
        plan.unwrap().changes
    }

    /// Returns the data of a resource that a plan has these changes of.
    fn data(change: &str) -> String {
        let plan = format!(
            r#"{{"format_version":"1.2","resource_changes":[{{"address":"a.b","name":"b","type":"a","change":{change}}}]}}"#
        );
        let found = of(&plan);
        serde_json::to_string(&found[0].data).unwrap()
    }

    #[test]
    fn what_is_sensitive_is_masked_wherever_it_stands() {
        let after = |value: &str, sensitive: &str| {
            data(&format!(
                r#"{{"actions":["create"],"after":{value},"after_sensitive":{sensitive}}}"#
            ))
        };
        let cases = [
            (r#"{"a":1}"#, "false", r#"{"a":1}"#),
            (r#"{"a":1}"#, "{}", r#"{"a":1}"#),
            (r#"{"a":"hunter2"}"#, "true", "{}"),
            (
                r#"{"a":"hunter2","b":2}"#,
                r#"{"a":true}"#,
                r#"{"a":"(sensitive)","b":2}"#,
            ),
            (
                r#"{"a":[{"p":"hunter2"},{"p":"x"}]}"#,
                r#"{"a":[{"p":true},{}]}"#,
                r#"{"a":[{"p":"(sensitive)"},{"p":"x"}]}"#,
            ),
            // A mark of another shape hides everything.
            (
                r#"{"a":"hunter2"}"#,
                r#"{"a":{"x":true}}"#,
                r#"{"a":"(sensitive)"}"#,
            ),
            (
                r#"{"a":{"x":1}}"#,
                r#"{"a":[true]}"#,
                r#"{"a":"(sensitive)"}"#,
            ),
        ];
        for (value, sensitive, expected) in cases {
            assert_eq!(after(value, sensitive), expected, "{value} {sensitive}");
        }
    }

    #[test]
    fn without_a_mark_no_value_is_shown() {
        let shown = data(r#"{"actions":["create"],"after":{"a":"hunter2"}}"#);
        assert_eq!(shown, "{}");
    }

    #[test]
    fn applied_changes_have_the_values_of_the_state_without_sensitive_ones() {
        let plan = r#"{"format_version":"1.2","resource_changes":[
            {"address":"a.new","name":"new","type":"a","change":{"actions":["create"],"after":{"p":"hunter2"},"after_unknown":{"id":true},"after_sensitive":{"p":true}}},
            {"address":"module.m.a.b[0]","name":"b","type":"a","change":{"actions":["update"],"after":{},"after_sensitive":{}}},
            {"address":"a.temporary","name":"temporary","type":"a","change":{"actions":["open"],"after":{"x":1},"after_sensitive":{}}},
            {"address":"a.gone","name":"gone","type":"a","change":{"actions":["delete"],"before":{"id":"old"},"before_sensitive":{}}}
        ],"output_changes":{
            "id":{"actions":["create"],"after_unknown":true,"after_sensitive":false},
            "key":{"actions":["create"],"after_unknown":true,"after_sensitive":true}
        }}"#;
        let plan = ChangedPlan::read(plan.as_bytes(), PlanKind::Normal).unwrap();
        let applied = |state: &str| {
            let applied = plan.applied(state.as_bytes())?;
            let data = applied
                .iter()
                .map(|it| serde_json::to_string(&it.data).unwrap());
            Ok::<_, BadPlan>(data.collect::<Vec<_>>())
        };
        let state = r#"{"format_version":"1.0","values":{"outputs":{
            "id":{"sensitive":false,"value":"i-1"},"key":{"sensitive":false,"value":"hunter2"}
        },"root_module":{"resources":[
            {"address":"a.new","deposed_key":"x","values":{"id":"old"},"sensitive_values":{}},
            {"address":"a.new","values":{"id":"i-1","p":"hunter2","q":"hunter2","copy":["hunter2","as hunter2!"]},"sensitive_values":{"q":true}}
        ],"child_modules":[{"resources":[
            {"address":"module.m.a.b[0]","values":{"n":2},"sensitive_values":{}}
        ]}]}}}"#;
        let expected = [
            r#"{"copy":["(sensitive)","(sensitive)"],"id":"i-1","p":"(sensitive)","q":"(sensitive)"}"#,
            r#"{"n":2}"#,
            "{}",
            r#"{"id":"old"}"#,
            r#"{"value":"i-1"}"#,
            r#"{"value":"(sensitive)"}"#,
        ];
        assert_eq!(applied(state).unwrap(), expected);
        // It is unknown what is sensitive.
        let unmarked = r#"{"format_version":"1.0","values":{"root_module":{"resources":[{"address":"a.new","values":{"id":"hunter2"}}]}}}"#;
        assert_eq!(applied(unmarked).unwrap()[0], "{}");
        assert_eq!(applied(r#"{"format_version":"1.0"}"#).unwrap()[0], "{}");
        for text in ["", "hunter2", "{}", r#"{"format_version":"2.0"}"#] {
            let error = applied(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn what_is_deleted_has_the_values_that_it_had() {
        let shown = data(
            r#"{"actions":["delete"],"before":{"a":1,"b":"x"},"before_sensitive":{"b":true},"after":null,"after_sensitive":false}"#,
        );
        assert_eq!(shown, r#"{"a":1,"b":"(sensitive)"}"#);
    }

    #[test]
    fn each_kind_of_change_is_told_and_what_does_not_change_is_not() {
        let kind = |actions: &str| {
            let change = format!(
                r#"{{"actions":{actions},"after":{{}},"before":{{}},"before_sensitive":false,"after_sensitive":false}}"#
            );
            let plan = format!(
                r#"{{"format_version":"1.2","resource_changes":[{{"address":"a.b","change":{change}}}],"output_changes":{{"o":{change}}}}}"#
            );
            of(&plan).iter().map(|it| it.kind).collect::<Vec<_>>()
        };
        let both = |it: ChangeKind| vec![it, it];
        assert_eq!(kind(r#"["create"]"#), both(ChangeKind::Added));
        assert_eq!(kind(r#"["update"]"#), both(ChangeKind::Changed));
        assert_eq!(kind(r#"["delete","create"]"#), both(ChangeKind::Changed));
        assert_eq!(kind(r#"["create","delete"]"#), both(ChangeKind::Changed));
        assert_eq!(kind(r#"["delete"]"#), both(ChangeKind::Deleted));
        assert_eq!(kind(r#"["forget"]"#), both(ChangeKind::Deleted));
        assert_eq!(kind(r#"["no-op"]"#), []);
        assert_eq!(kind(r#"["read"]"#), []);
    }

    #[test]
    fn a_plan_that_cannot_be_read_is_an_error() {
        for text in ["", "null", "[]", "{}", r#"{"resource_changes":1}"#] {
            let read = ChangedPlan::read(text.as_bytes(), PlanKind::Normal);
            assert!(read.is_err(), "{text}");
        }
    }
}
