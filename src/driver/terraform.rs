//! The plan of Terraform and its kin, as `show -json` prints it.

use std::collections::BTreeMap;
use std::io::Read;

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::answer::{Answer, Counts, ResourceChange};
use super::command::PlanKind;

/// The first number of the formats that can be read.
const FORMAT: &str = "1.";

/// Why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadPlan {
    /// The text is not the JSON of a plan.
    #[error("`show -json` prints something else than a plan: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The text is in a format that is not known.
    #[error("the plan has the format {0}, and formats 1.x can be read")]
    Format(String),
    /// The tool could not finish it.
    #[error("the plan is not finished: the tool met an error")]
    Errored,
}

#[derive(Deserialize)]
struct PlanJson {
    format_version: String,
    #[serde(default)]
    resource_changes: Vec<ResourceJson>,
    /// What differs from the state of the tool: all that a plan with `-refresh-only` is about.
    #[serde(default)]
    resource_drift: Vec<ResourceJson>,
    #[serde(default)]
    output_changes: BTreeMap<String, ChangeJson>,
    #[serde(default)]
    prior_state: Option<StateJson>,
    #[serde(default)]
    complete: Option<bool>,
    #[serde(default)]
    errored: bool,
}

#[derive(Deserialize)]
struct ResourceJson {
    address: String,
    #[serde(default)]
    mode: String,
    #[serde(default)]
    deposed: Option<String>,
    change: ChangeJson,
}

#[derive(Deserialize)]
struct ChangeJson {
    actions: Vec<String>,
    #[serde(default)]
    before: Option<Box<RawValue>>,
    #[serde(default)]
    after: Option<Box<RawValue>>,
    #[serde(default)]
    after_unknown: Option<Box<RawValue>>,
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
    fn values(&self) -> String {
        let parts = [&self.before, &self.after, &self.after_unknown];
        let texts = parts.map(|value| value.as_deref().map_or("", RawValue::get));
        digest(texts.map(str::as_bytes))
    }
}

/// Returns a digest of parts, each of which counts with its length.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let hash = hasher.finalize();
    let digits = hash.iter().map(|byte| format!("{byte:02x}"));
    digits.take(16).collect()
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
    let plan: PlanJson = serde_json::from_reader(text)?;
    if !plan.format_version.starts_with(FORMAT) {
        return Err(BadPlan::Format(plan.format_version));
    }
    if plan.errored {
        return Err(BadPlan::Errored);
    }
    let changed = match kind {
        PlanKind::Normal | PlanKind::Destroy => &plan.resource_changes,
        PlanKind::RefreshOnly => &plan.resource_drift,
    };
    let mut counts = Counts::default();
    let mut resources = Vec::new();
    for ResourceJson {
        address,
        mode,
        deposed,
        change,
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
        resources.push(ResourceChange {
            address,
            actions: change.actions.clone(),
            values: change.values(),
        });
    }
    let mut outputs = plan.output_changes.iter();
    let changed_outputs = outputs.clone().filter(|(_, change)| change.changes());
    let changed_outputs: Vec<String> = changed_outputs
        .map(|(name, change)| {
            format!(
                "output.{name} {} {}",
                change.actions.join(","),
                change.values()
            )
        })
        .collect();
    let had_outputs = outputs.any(|(_, change)| change.actions != ["create"]);
    let owns = |state: &StateJson| {
        let values = state.values.as_ref();
        values.is_some_and(|values| values.root_module.owns())
    };
    let lines = resources
        .iter()
        .map(|it| format!("{} {} {}", it.address, it.actions.join(","), it.values));
    let lines: Vec<String> = lines.chain(changed_outputs).collect();
    Ok(Answer {
        exists: Some(plan.prior_state.as_ref().is_some_and(owns) || had_outputs),
        action: None,
        reason: None,
        has_changes: !lines.is_empty(),
        counts: Some(counts),
        changes: Some(digest(lines.iter().map(String::as_bytes))),
        is_complete: plan.complete.unwrap_or(true),
        resources,
    })
}
