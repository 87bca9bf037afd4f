//! The plan of Terraform and its kin, as `show -json` prints it.

use std::collections::BTreeMap;
use std::io::Read;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::answer::{Answer, Counts, ResourceChange};
use super::command::PlanKind;
use super::outputs::Outputs;
use super::value::{digest, digest_of, has_true, object};

/// The first number of the formats that can be read.
const FORMAT: &str = "1.";

/// Why a resource that was left half made is made anew.
const TAINTED: &str = "replace_because_tainted";

/// Why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadPlan {
    /// The text is not the JSON of a plan.
    ///
    /// What it has instead is not quoted: it may be a secret.
    #[error("`show -json` prints something else than a plan: line {line}, column {column}")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The text is in a format that is not known.
    #[error(
        "the plan has {0}, and orch reads formats 1.x: use a version of the tool that writes one, or a newer orch"
    )]
    Format(String),
    /// The text is a state.
    #[error("`show -json` prints a state and not a plan")]
    State,
    /// It changes resources, and was asked only to refresh.
    #[error("the plan changes resources, and was to refresh only")]
    NotRefreshOnly,
    /// The tool could not finish it.
    #[error("the plan is not finished: the tool met an error")]
    Errored,
}

#[derive(Deserialize)]
pub(super) struct PlanJson {
    format_version: String,
    #[serde(default)]
    pub(super) terraform_version: String,
    #[serde(default)]
    pub(super) resource_changes: Vec<ResourceJson>,
    /// What differs from the state of the tool: all that a plan with `-refresh-only` is about.
    #[serde(default)]
    resource_drift: Vec<ResourceJson>,
    #[serde(default)]
    pub(super) output_changes: BTreeMap<String, ChangeJson>,
    #[serde(default)]
    prior_state: Option<StateJson>,
    #[serde(default)]
    complete: Option<bool>,
    #[serde(default)]
    errored: bool,
    /// Only states have them.
    #[serde(default)]
    values: Option<IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct ResourceJson {
    pub(super) address: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default, rename = "type")]
    pub(super) type_name: String,
    #[serde(default)]
    mode: String,
    #[serde(default)]
    deposed: Option<String>,
    #[serde(default)]
    action_reason: Option<String>,
    pub(super) change: ChangeJson,
}

#[derive(Deserialize)]
pub(super) struct ChangeJson {
    pub(super) actions: Vec<String>,
    #[serde(default)]
    pub(super) before: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) after: Option<Box<RawValue>>,
    #[serde(default)]
    after_unknown: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) before_sensitive: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) after_sensitive: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct StateJson {
    #[serde(default)]
    values: Option<ValuesJson>,
}

#[derive(Deserialize)]
struct ValuesJson {
    #[serde(default)]
    root_module: ModuleJson,
}

#[derive(Default, Deserialize)]
struct ModuleJson {
    #[serde(default)]
    resources: Vec<OwnedJson>,
    #[serde(default)]
    child_modules: Vec<ModuleJson>,
}

#[derive(Deserialize)]
struct OwnedJson {
    #[serde(default)]
    mode: String,
}

impl ModuleJson {
    /// Returns whether something exists that the tool has made.
    fn owns(&self) -> bool {
        self.resources.iter().any(|it| it.mode != "data")
            || self.child_modules.iter().any(ModuleJson::owns)
    }
}

impl ChangeJson {
    fn changes(&self) -> bool {
        let is_quiet = |action: &String| matches!(action.as_str(), "no-op" | "read");
        !self.actions.iter().all(is_quiet)
    }

    /// Returns a digest of what is known before and after.
    fn digest(&self) -> String {
        let parts = [&self.before, &self.after, &self.after_unknown];
        let texts = parts.map(|value| value.as_deref().map_or("", RawValue::get));
        digest(texts.map(str::as_bytes))
    }

    /// Returns digests of the attributes after it; none of one that is not wholly known.
    fn values(&self) -> BTreeMap<String, Option<String>> {
        let known = attributes(self.after.as_deref()).into_iter();
        let known = known.map(|(name, value)| (name, Some(digest_of(value))));
        let mut values: BTreeMap<String, Option<String>> = known.collect();
        let unknown = attributes(self.after_unknown.as_deref()).into_iter();
        let unknown = unknown.filter(|(_, value)| has_true(value));
        values.extend(unknown.map(|(name, _)| (name, None)));
        values
    }

    /// Returns an output before it, if there is one, with its digest unless it is sensitive.
    fn output_before(&self, name: &str) -> Option<(String, Option<String>)> {
        let value = self.before.as_deref()?;
        let is_open = !is_marked(self.before_sensitive.as_deref());
        Some((name.to_owned(), is_open.then(|| digest_of(value))))
    }

    /// Returns an output after it, if there is one, with its digest unless it is sensitive or not known.
    fn output_after(&self, name: &str) -> Option<(String, Option<String>)> {
        let name = name.to_owned();
        if is_marked(self.after_unknown.as_deref()) {
            return Some((name, None));
        }
        let value = self.after.as_deref()?;
        let is_open = !is_marked(self.after_sensitive.as_deref());
        Some((name, is_open.then(|| digest_of(value))))
    }
}

/// Returns the attributes of an object; none of another value.
fn attributes(value: Option<&RawValue>) -> BTreeMap<String, &RawValue> {
    value
        .and_then(|value| object(value.get()))
        .unwrap_or_default()
}

/// Returns whether a value, or a part of it, is marked as unknown or sensitive.
fn is_marked(marks: Option<&RawValue>) -> bool {
    marks.is_some_and(has_true)
}

/// Names a format, unless it is something else than a version: then it is not quoted.
fn named_format(version: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-');
    if version.is_empty() || version.len() > 20 || !version.chars().all(is_plain) {
        return "an unknown format".to_owned();
    }
    format!("the format {version}")
}

/// Reads the plan of a kind that `show -json` has printed.
///
/// Something exists if the state has a resource, or an output that is not about to be created: constant
/// outputs are part of the state before anything was ever applied.
///
/// # Errors
///
/// If it is not such a plan, or not a finished one.
pub fn read_plan(text: impl Read, kind: PlanKind) -> Result<Answer, BadPlan> {
    let plan: PlanJson = serde_json::from_reader(text).map_err(|error| BadPlan::Malformed {
        line: error.line(),
        column: error.column(),
    })?;
    if !plan.format_version.starts_with(FORMAT) {
        return Err(BadPlan::Format(named_format(&plan.format_version)));
    }
    if plan.values.is_some() {
        return Err(BadPlan::State);
    }
    if plan.errored {
        return Err(BadPlan::Errored);
    }
    let changes_something = |it: &ResourceJson| it.mode != "data" && it.change.changes();
    if kind == PlanKind::RefreshOnly && plan.resource_changes.iter().any(changes_something) {
        return Err(BadPlan::NotRefreshOnly);
    }
    let changed = match kind {
        PlanKind::Normal | PlanKind::Destroy => &plan.resource_changes,
        PlanKind::RefreshOnly => &plan.resource_drift,
    };
    let mut counts = Counts::default();
    let mut resources = Vec::new();
    let mut lines = Vec::new();
    for ResourceJson {
        address,
        mode,
        deposed,
        action_reason,
        change,
        ..
    } in changed
    {
        if mode == "data" || !change.changes() {
            continue;
        }
        for action in &change.actions {
            match action.as_str() {
                "create" => counts.add += 1,
                "update" => counts.change += 1,
                "delete" => counts.remove += 1,
                _ => {}
            }
        }
        let address = match deposed {
            Some(key) => format!("{address} (deposed {key})"),
            None => address.clone(),
        };
        let actions = change.actions.join(",");
        lines.push(format!("{address} {actions} {}", change.digest()));
        resources.push(ResourceChange {
            address,
            actions: change.actions.clone(),
            values: change.values(),
            is_tainted: action_reason.as_deref() == Some(TAINTED),
        });
    }
    let mut outputs = plan.output_changes.iter();
    let changed_outputs = outputs.clone().filter(|(_, change)| change.changes());
    lines.extend(changed_outputs.map(|(name, change)| {
        let actions = change.actions.join(",");
        format!("output.{name} {actions} {}", change.digest())
    }));
    let had_outputs = outputs.any(|(_, change)| change.actions != ["create"]);
    let owns = |state: &StateJson| {
        let values = state.values.as_ref();
        values.is_some_and(|values| values.root_module.owns())
    };
    // Those of `prior_state` are no help: there, what the configuration says has replaced what others can read.
    let outputs = plan.output_changes.iter();
    let before = outputs
        .clone()
        .filter_map(|(name, it)| it.output_before(name));
    let before: Outputs = before.collect();
    let after: Outputs = outputs
        .filter_map(|(name, it)| it.output_after(name))
        .collect();
    let answer = Answer {
        exists: Some(plan.prior_state.as_ref().is_some_and(owns) || had_outputs),
        action: None,
        reason: None,
        has_changes: !lines.is_empty(),
        counts: Some(counts),
        changes: Some(digest(lines.iter().map(String::as_bytes))),
        is_complete: true,
        resources,
        outputs: Some(match kind {
            PlanKind::Normal | PlanKind::Destroy => after,
            // What others can read of it. A state that was never written has nothing for them, and then a refresh
            // has found all that there is.
            PlanKind::RefreshOnly if before.is_empty() => after,
            PlanKind::RefreshOnly => before.clone(),
        }),
        outputs_before: Some(before),
        backend: None,
    };
    Ok(match plan.complete {
        Some(false) => answer.left_out(),
        // Older versions do not say so: see `leaves_out`.
        Some(true) | None => answer,
    })
}

#[cfg(test)]
mod tests;
