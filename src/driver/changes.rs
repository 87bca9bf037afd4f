//! The changes in a plan of Terraform, `OpenTofu` or Terragrunt, with values, for policies.
//!
//! Sensitive values are replaced by a mark.

use std::io::Read;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::plan_json::{ChangeJson, PlanJson};
use super::terraform::{BadPlan, parse};

/// The vendor of the resources in such plans.
const VENDOR: &str = "terraform";

/// The replacement of a sensitive value.
const MASK: &str = "(sensitive)";

#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    pub kind: ChangeKind,
    pub address: String,
    pub name: String,
    /// Its type; `output` for an output.
    pub type_name: String,
    /// Whose it is.
    pub vendor: &'static str,
    /// Its kind: `resource` or `output`.
    pub entity: &'static str,
    /// Its planned values, as far as they are known; the current ones if it is deleted. That of an output is called
    /// `value`.
    pub data: Map<String, Value>,
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

    fn shown(&self) -> Value {
        let (value, sensitive) = match self.kind() {
            Some(ChangeKind::Deleted) => (&self.before, &self.before_sensitive),
            _ => (&self.after, &self.after_sensitive),
        };
        // Values that are nested too deeply are left out.
        let read = |text: &Option<Box<RawValue>>| {
            let text = text.as_ref()?;
            serde_json::from_str::<Value>(text.get()).ok()
        };
        match (read(value), read(sensitive)) {
            (Some(value), Some(sensitive)) => masked(value, &sensitive),
            // It is unknown which parts are sensitive.
            _ => Value::Null,
        }
    }
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
    /// Reads the output of `show -json` for a plan.
    pub fn read(from: impl Read) -> Result<Self, BadPlan> {
        let plan = parse(from)?;
        Ok(ChangedPlan {
            terraform_version: plan.terraform_version.clone(),
            changes: changes(plan),
        })
    }
}

fn changes(plan: PlanJson) -> Vec<Changed> {
    let PlanJson {
        resource_changes,
        output_changes,
        ..
    } = plan;
    let resources = resource_changes.into_iter().filter_map(|resource| {
        let data = match resource.change.shown() {
            Value::Object(values) => values,
            _ => Map::new(),
        };
        Some(Changed {
            kind: resource.change.kind()?,
            address: resource.address,
            name: resource.name,
            type_name: resource.type_name,
            vendor: VENDOR,
            entity: "resource",
            data,
        })
    });
    let outputs = output_changes.into_iter().filter_map(|(name, change)| {
        let value = ("value".to_owned(), change.shown());
        Some(Changed {
            kind: change.kind()?,
            address: format!("output.{name}"),
            name,
            type_name: "output".to_owned(),
            vendor: VENDOR,
            entity: "output",
            data: Map::from_iter([value]),
        })
    });
    resources.chain(outputs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(changes: &str) -> Vec<Changed> {
        ChangedPlan::read(changes.as_bytes()).unwrap().changes
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
            assert!(ChangedPlan::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
