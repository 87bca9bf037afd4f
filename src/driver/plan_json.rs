//! The JSON of a plan, as far as `orch` reads it: the three tools share the format.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::outputs::{OutputDigest, Secret};
use super::value::{digest, digest_of, has_true, object};

/// The mode of managed resources, unlike data sources.
pub(super) const MANAGED: &str = "managed";

#[derive(Deserialize)]
pub(super) struct PlanJson {
    pub(super) format_version: String,
    #[serde(default)]
    pub(super) terraform_version: String,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, VariableJson>,
    #[serde(default)]
    pub(super) resource_changes: Vec<ResourceJson>,
    /// The drift: the only changes of a `-refresh-only` plan.
    #[serde(default)]
    pub(super) resource_drift: Vec<ResourceJson>,
    #[serde(default)]
    pub(super) output_changes: BTreeMap<String, ChangeJson>,
    pub(super) prior_state: Option<StateJson>,
    pub(super) complete: Option<bool>,
    #[serde(default)]
    pub(super) errored: bool,
    /// Only states have them.
    pub(super) values: Option<IgnoredAny>,
    pub(super) configuration: Option<ConfigurationJson>,
    #[serde(default)]
    pub(super) deferred_changes: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct VariableJson {
    pub(super) value: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct ResourceJson {
    pub(super) address: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default, rename = "type")]
    pub(super) type_name: String,
    #[serde(default)]
    pub(super) mode: String,
    pub(super) deposed: Option<String>,
    pub(super) previous_address: Option<String>,
    pub(super) action_reason: Option<String>,
    pub(super) change: ChangeJson,
}

#[derive(Deserialize)]
pub(super) struct ChangeJson {
    pub(super) actions: Vec<String>,
    pub(super) before: Option<Box<RawValue>>,
    pub(super) after: Option<Box<RawValue>>,
    after_unknown: Option<Box<RawValue>>,
    pub(super) before_sensitive: Option<Box<RawValue>>,
    pub(super) after_sensitive: Option<Box<RawValue>>,
    pub(super) importing: Option<IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct StateJson {
    pub(super) values: Option<ValuesJson>,
}

#[derive(Deserialize)]
pub(super) struct ValuesJson {
    #[serde(default)]
    pub(super) root_module: ModuleJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ModuleJson {
    resources: Vec<OwnedJson>,
    child_modules: Vec<ModuleJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OwnedJson {
    address: String,
    mode: String,
    deposed_key: Option<String>,
}

/// An object of a resource: the address, and the key of a deposed one.
pub(super) type ResourceObject<'a> = (&'a str, Option<&'a str>);

impl ModuleJson {
    /// Returns whether something exists that the tool has made.
    pub(super) fn owns(&self) -> bool {
        self.resources.iter().any(|it| it.mode != "data")
            || self.child_modules.iter().any(ModuleJson::owns)
    }

    /// Returns whether all resources that exist are among these.
    pub(super) fn owns_only(&self, objects: &BTreeSet<ResourceObject<'_>>) -> bool {
        let mut owned = self.resources.iter().filter(|it| it.mode != "data");
        owned.all(|it| objects.contains(&(&*it.address, it.deposed_key.as_deref())))
            && self.child_modules.iter().all(|it| it.owns_only(objects))
    }

    pub(super) fn add_managed(&self, addresses: &mut Vec<String>) {
        let named = |it: &&OwnedJson| it.mode == "managed" && !it.address.is_empty();
        let own = self.resources.iter().filter(named);
        addresses.extend(own.map(|it| it.address.clone()));
        for module in &self.child_modules {
            module.add_managed(addresses);
        }
    }
}

impl ResourceJson {
    /// Returns the actions of an apply on the resource, in order; none if it changes neither the resource nor the
    /// tool's own state. `move` and `import` change only the latter.
    pub(super) fn effects(&self) -> Vec<String> {
        let is_moved = |from: &String| *from != self.address;
        if self.mode == "data" {
            Vec::new()
        } else if self.change.changes() {
            self.change.actions.clone()
        } else if self.change.importing.is_some() {
            vec!["import".to_owned()]
        } else if self.previous_address.as_ref().is_some_and(is_moved) {
            vec!["move".to_owned()]
        } else {
            Vec::new()
        }
    }
}

/// The actions of the format. The last three are those of ephemeral resources.
const ACTIONS: &[&str] = &[
    "no-op", "create", "read", "update", "delete", "forget", "open", "renew", "close",
];

impl ChangeJson {
    /// Returns whether all its actions are known, and there is one.
    pub(super) fn is_known(&self) -> bool {
        let mut actions = self.actions.iter();
        !self.actions.is_empty() && actions.all(|action| ACTIONS.contains(&&**action))
    }

    /// Returns whether a data source is read during the apply.
    pub(super) fn reads(&self) -> bool {
        self.actions == ["read"]
    }

    pub(super) fn changes(&self) -> bool {
        let is_quiet = |action: &String| matches!(action.as_str(), "no-op" | "read");
        !self.actions.iter().all(is_quiet)
    }

    /// Returns whether the tool no longer knows it: it is deleted or forgotten.
    pub(super) fn only_removes(&self) -> bool {
        let removes = |action: &String| matches!(action.as_str(), "delete" | "forget");
        self.actions.iter().all(removes)
    }

    /// Returns a digest of the known values before and after.
    pub(super) fn digest(&self) -> String {
        let parts = [&self.before, &self.after, &self.after_unknown];
        let texts = parts.map(|value| value.as_deref().map_or("", RawValue::get));
        digest(texts.map(str::as_bytes))
    }

    /// Returns digests of the planned attributes, without those that are partly unknown.
    pub(super) fn values(&self) -> BTreeMap<String, Option<String>> {
        let known = attributes(self.after.as_deref())
            .into_iter()
            .map(|(name, value)| (name, Some(digest_of(value))));
        let mut values: BTreeMap<String, Option<String>> = known.collect();
        let unknown = attributes(self.after_unknown.as_deref())
            .into_iter()
            .filter(|(_, value)| has_true(value));
        values.extend(unknown.map(|(name, _)| (name, None)));
        values
    }

    pub(super) fn output_before(&self, name: &str) -> Option<(String, OutputDigest)> {
        let value = self.before.as_deref()?;
        Some((
            name.to_owned(),
            output(value, self.before_sensitive.as_deref()),
        ))
    }

    pub(super) fn output_after(&self, name: &str) -> Option<(String, OutputDigest)> {
        let name = name.to_owned();
        if is_marked(self.after_unknown.as_deref()) {
            return Some((name, OutputDigest::Unknown));
        }
        let value = self.after.as_deref()?;
        Some((name, output(value, self.after_sensitive.as_deref())))
    }
}

/// Returns the storable part of an output, given its sensitivity marks.
fn output(value: &RawValue, marks: Option<&RawValue>) -> OutputDigest {
    if is_marked(marks) {
        OutputDigest::Sensitive(Secret::of(value))
    } else {
        OutputDigest::Open(digest_of(value))
    }
}

fn attributes(value: Option<&RawValue>) -> BTreeMap<String, &RawValue> {
    value
        .and_then(|value| object(value.get()))
        .unwrap_or_default()
}

/// Returns whether a value, or a part of it, is marked as unknown or sensitive.
fn is_marked(marks: Option<&RawValue>) -> bool {
    marks.is_some_and(has_true)
}

#[derive(Default, Deserialize)]
pub(super) struct ConfigurationJson {
    #[serde(default)]
    pub(super) root_module: ConfiguredModuleJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ConfiguredModuleJson {
    resources: Vec<ConfiguredJson>,
    module_calls: BTreeMap<String, CallJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ConfiguredJson {
    address: String,
    mode: String,
    count_expression: Option<IgnoredAny>,
    for_each_expression: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct CallJson {
    count_expression: Option<IgnoredAny>,
    for_each_expression: Option<IgnoredAny>,
    #[serde(default)]
    module: ConfiguredModuleJson,
}

impl ConfiguredModuleJson {
    /// Adds the addresses of managed resources with exactly one instance.
    pub(super) fn add_single(&self, prefix: &str, single: &mut Vec<String>) {
        for resource in &self.resources {
            let is_repeated =
                resource.count_expression.is_some() || resource.for_each_expression.is_some();
            if resource.mode == MANAGED && !is_repeated {
                single.push(format!("{prefix}{}", resource.address));
            }
        }
        for (name, call) in &self.module_calls {
            if call.count_expression.is_none() && call.for_each_expression.is_none() {
                call.module
                    .add_single(&format!("{prefix}module.{name}."), single);
            }
        }
    }

    pub(super) fn has_resources(&self) -> bool {
        let mut calls = self.module_calls.values();
        self.resources.iter().any(|it| it.mode == MANAGED)
            || calls.any(|call| call.module.has_resources())
    }
}
