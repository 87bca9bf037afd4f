//! The answer of a driver to a plan.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter;

use serde::{Deserialize, Serialize};

use super::completeness::IncompletePlan;
use super::outputs::Outputs;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct DriverAnswer {
    /// Whether any resource exists, if known.
    pub exists: Option<bool>,
    /// The driver's own classification of the action.
    pub action: Option<DriverAction>,
    /// The reason, in the driver's words.
    pub reason: Option<String>,
    pub has_changes: bool,
    pub counts: Option<ChangeCounts>,
    /// A digest of the changes, if known: equal changes have equal digests.
    pub changes: Option<String>,
    pub is_complete: bool,
    pub resources: Vec<ResourceChange>,
    /// The names of the outputs that change, if the tool reports them.
    pub changed_outputs: Vec<String>,
    /// The outputs after the apply, if all are known. Those of a `-refresh-only` plan, which is not applied, are the
    /// current ones.
    pub outputs: Option<Outputs>,
    /// The current outputs, if known.
    pub outputs_before: Option<Outputs>,
    pub backend: Option<String>,
    pub tool_version: Option<String>,
    /// Why the plan does not cover the whole stack, if it does not.
    pub unasked: Option<IncompletePlan>,
    /// Whether resources are destroyed and none is left, as far as is known.
    pub leaves_nothing: bool,
}

/// Separates the address of a resource from the key of its deposed object.
pub(super) const DEPOSED: &str = " (deposed ";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceChange {
    pub address: String,
    /// Its previous address, if that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_address: Option<String>,
    /// The actions in order: `delete`, `create`. `move` and `import` change only the tool's own state.
    pub actions: Vec<String>,
    /// Digests of its planned attributes, by name, without unknown ones.
    #[serde(default)]
    pub values: BTreeMap<String, Option<String>>,
    /// Whether it is recreated only because its creation did not finish.
    #[serde(default)]
    pub is_tainted: bool,
    /// Whether it is imported, perhaps with other changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_imported: bool,
}

impl ResourceChange {
    pub fn destroys(&self) -> bool {
        self.actions.iter().any(|action| action == "delete")
    }

    /// Returns its address without the key of a deposed object.
    pub fn base_address(&self) -> &str {
        let address = &*self.address;
        let deposed = address.ends_with(')').then(|| address.rfind(DEPOSED));
        deposed.flatten().map_or(address, |end| &address[..end])
    }

    /// Returns the addresses that rules may name: the one without a key, and the previous one.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        let previous = self.previous_address.as_deref();
        iter::once(self.base_address()).chain(previous)
    }

    /// Returns the actions as one word: `create`, `update`, `delete`, `replace`, or the tool's own word.
    pub fn action(&self) -> Cow<'_, str> {
        match &*self.actions {
            [action] => action.into(),
            [..] if self.destroys() => "replace".into(),
            actions => actions.join("-").into(),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCounts {
    #[serde(default)]
    pub add: u64,
    #[serde(default)]
    pub change: u64,
    #[serde(default)]
    pub remove: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriverAction {
    NoOp,
    Update,
    Replace,
}

#[derive(Debug, thiserror::Error)]
pub enum BadAnswer {
    #[error("the answer is malformed: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("the answer is not a JSON object")]
    NotAnObject,
    #[error("the driver must not answer `{0}`")]
    NotAllowed(&'static str),
}

/// The answer of a driver's `plan`, as it writes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    exists: Option<bool>,
    action: Option<DriverAction>,
    reason: Option<String>,
    add: Option<u64>,
    change: Option<u64>,
    remove: Option<u64>,
    changes: Option<String>,
}

impl DriverAction {
    pub fn word(self) -> &'static str {
        match self {
            DriverAction::NoOp => "no-op",
            DriverAction::Update => "update",
            DriverAction::Replace => "replace",
        }
    }
}

impl DriverAnswer {
    /// Returns whether anything exists to destroy. A status only shows a difference: without other information,
    /// resources that are presumed to exist count as well.
    pub fn is_there(&self, is_presumed: bool) -> bool {
        match (self.exists, self.action) {
            (Some(exists), _) => exists && self.action != Some(DriverAction::NoOp),
            (None, Some(action)) => action != DriverAction::NoOp,
            (None, None) => self.has_changes || is_presumed,
        }
    }

    pub fn destroys_resources(&self) -> bool {
        let removes = || self.counts.is_some_and(|counts| counts.remove > 0);
        match &*self.resources {
            [] => removes(),
            resources => resources.iter().any(ResourceChange::destroys),
        }
    }

    /// Returns whether anything would change: the driver's own answer wins over its status.
    pub fn changes_something(&self) -> bool {
        match self.action {
            Some(DriverAction::NoOp) => false,
            Some(DriverAction::Update | DriverAction::Replace) => true,
            None => self.has_changes,
        }
    }

    /// Returns whether a refresh has found that resources differ from the tool's state. Writing
    /// outputs to a state that was never written is no drift.
    pub fn has_drifted(&self) -> bool {
        self.changes_something() && (self.exists != Some(false) || !self.resources.is_empty())
    }

    /// Returns the answer for a partial plan, whose outputs are unknown.
    #[must_use]
    pub fn left_out(self) -> Self {
        DriverAnswer {
            is_complete: false,
            outputs: None,
            outputs_before: None,
            ..self
        }
    }

    /// Returns the answer of a driver whose `plan` reports changes by its exit status, and may have written more.
    pub fn written(has_changes: bool, text: &[u8]) -> Result<Self, BadAnswer> {
        let mut answer = DriverAnswer {
            has_changes,
            is_complete: true,
            ..DriverAnswer::default()
        };
        // A list would be read like the fields of an object in order.
        match text.trim_ascii_start().first() {
            None => return Ok(answer),
            Some(b'{') => {}
            Some(_) => return Err(BadAnswer::NotAnObject),
        }
        let written: Written = serde_json::from_slice(text)?;
        let numbers = [written.add, written.change, written.remove];
        if numbers.iter().any(Option::is_some) {
            let [add, change, remove] = numbers.map(Option::unwrap_or_default);
            answer.counts = Some(ChangeCounts {
                add,
                change,
                remove,
            });
        }
        answer.exists = written.exists;
        answer.action = written.action;
        answer.reason = written.reason;
        answer.changes = written.changes;
        Ok(answer)
    }
}
