//! Recorded lifecycle rules: those in force when a stack was applied last.
//!
//! Once the code of a stack is removed, they are the only source of its rules. This module doesn't know the rules of
//! the project.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::project::lifecycle::ProtectedResources;

/// The recorded form of `ignore_changes = all`.
const ALL: &str = "all";

/// The rules of a stack, each only if it is stated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRules {
    /// Whether nothing that the stack has built may be destroyed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prevent_destroy: Option<RecordedRule<bool>>,
    /// The resources that may be neither destroyed nor replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prevent_resource_destroy: Option<RecordedRule<ProtectedResources>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_before_destroy: Option<RecordedRule<bool>>,
    /// The inputs whose changes bring about nothing, as written: `["all"]` for every input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_changes: Option<RecordedRule<Vec<String>>>,
    /// The references that replace the stack when they change, with paths from the project root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace_triggered_by: Option<RecordedRule<Vec<String>>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRule<T> {
    pub value: T,
    /// The file that states it, relative to the project root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The stack that it extends from, if it is not stated for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl RecordedRules {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == RecordedRules::default()
    }

    pub fn ignores_all(&self) -> bool {
        let ignored = self.ignore_changes.as_ref();
        ignored.is_some_and(|rule| rule.value == [ALL])
    }

    /// Returns whether other rules are the same, at the same places. The commits may differ.
    pub fn is_same(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(a: Option<&RecordedRule<T>>, b: Option<&RecordedRule<T>>) -> bool {
            match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => {
                    a.value == b.value && a.file == b.file && a.line == b.line && a.from == b.from
                }
                _ => false,
            }
        }
        same(
            self.prevent_destroy.as_ref(),
            other.prevent_destroy.as_ref(),
        ) && same(
            self.prevent_resource_destroy.as_ref(),
            other.prevent_resource_destroy.as_ref(),
        ) && same(
            self.create_before_destroy.as_ref(),
            other.create_before_destroy.as_ref(),
        ) && same(self.ignore_changes.as_ref(), other.ignore_changes.as_ref())
            && same(
                self.replace_triggered_by.as_ref(),
                other.replace_triggered_by.as_ref(),
            )
    }
}
