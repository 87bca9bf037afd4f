//! What a driver answers when it is asked what would change.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter;

use serde::{Deserialize, Serialize};

use super::completeness::IncompletePlan;
use super::outputs::Outputs;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct DriverAnswer {
    /// Whether anything exists, if that is known.
    pub exists: Option<bool>,
    /// What the driver makes of the action that it was asked for.
    pub action: Option<DriverAction>,
    /// Why, in its own words.
    pub reason: Option<String>,
    pub has_changes: bool,
    pub counts: Option<ChangeCounts>,
    /// A digest of the changes, if that is known: equal changes have equal digests.
    pub changes: Option<String>,
    /// Whether the plan has everything.
    pub is_complete: bool,
    pub resources: Vec<ResourceChange>,
    /// The outputs that others can read once that is done, if all are known. Those of a `-refresh-only` plan,
    /// which nobody applies, are the ones before.
    pub outputs: Option<Outputs>,
    /// The outputs that others can read before, if they are known.
    pub outputs_before: Option<Outputs>,
    pub backend: Option<String>,
    pub tool_version: Option<String>,
    /// What the plan is, if it is not that of the whole stack.
    pub unasked: Option<IncompletePlan>,
    /// Whether resources are destroyed and none is left, as far as is known.
    pub leaves_nothing: bool,
}

/// Separates the address of a resource from the key of its deposed object.
pub(super) const DEPOSED: &str = " (deposed ";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceChange {
    pub address: String,
    /// Its address before, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_address: Option<String>,
    /// What is done, in order: `delete`, `create`. `move` and `import` change only the state of the tool.
    pub actions: Vec<String>,
    /// Digests of the attributes that it is to have, by name; none of what is not known yet.
    #[serde(default)]
    pub values: BTreeMap<String, Option<String>>,
    /// Whether it is recreated only because its creation did not finish.
    #[serde(default)]
    pub is_tainted: bool,
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

    /// Returns the actions as one word: `create`, `update`, `delete`, `replace`, or as the tool says.
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
    #[error("the answer is not as expected: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("the answer is not a JSON object")]
    NotAnObject,
    #[error("the driver answers `{0}`, which it may not")]
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
    /// Returns whether anything is there to destroy. A status says only that something differs, as far as
    /// anybody knows: where nothing else is said, what is presumed to be there counts as well.
    pub fn is_there(&self, is_presumed: bool) -> bool {
        match (self.exists, self.action) {
            (Some(exists), _) => exists && self.action != Some(DriverAction::NoOp),
            (None, Some(action)) => action != DriverAction::NoOp,
            (None, None) => self.has_changes || is_presumed,
        }
    }

    /// Returns whether resources would be destroyed or replaced.
    pub fn destroys_resources(&self) -> bool {
        let removes = || self.counts.is_some_and(|counts| counts.remove > 0);
        match &*self.resources {
            [] => removes(),
            resources => resources.iter().any(ResourceChange::destroys),
        }
    }

    /// Returns whether anything would change: what the driver says itself counts more than its status.
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

    /// Returns the same of a plan that leaves something out: which outputs there are is not known.
    #[must_use]
    pub fn left_out(self) -> Self {
        DriverAnswer {
            is_complete: false,
            outputs: None,
            outputs_before: None,
            ..self
        }
    }

    /// Returns the answer of a driver whose `plan` says by its exit status whether there are changes, and may
    /// have written more.
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
