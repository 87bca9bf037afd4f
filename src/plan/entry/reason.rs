//! Why an entry has its action, and why a stack may be destroyed.

use serde::{Deserialize, Serialize};

use crate::path::Generation;
use crate::printable::first_of;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonSource {
    /// Files in the working tree.
    Config,
    Option,
    Driver,
    State,
}

impl ReasonSource {
    pub fn word(self) -> &'static str {
        match self {
            ReasonSource::Config => "config",
            ReasonSource::Option => "option",
            ReasonSource::Driver => "driver",
            ReasonSource::State => "state",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanReason {
    pub source: ReasonSource,
    pub text: String,
    /// The file behind the reason, relative to the project root.
    #[serde(default)]
    pub file: Option<String>,
    /// The line in that file, from 1.
    #[serde(default)]
    pub line: Option<usize>,
}

impl PlanReason {
    pub fn new(source: ReasonSource, text: impl Into<String>) -> Self {
        PlanReason {
            source,
            text: text.into(),
            file: None,
            line: None,
        }
    }

    /// Adds the file behind the reason, and the line if known.
    #[must_use]
    pub fn at(self, file: Option<&str>, line: Option<usize>) -> Self {
        PlanReason {
            file: file.map(str::to_owned),
            line,
            ..self
        }
    }
}

const MAX_NAMED: usize = 5;

#[derive(Debug, Clone, Copy)]
pub struct IgnoredInputs<'a> {
    pub names: &'a [String],
    /// Changed inputs from other stacks.
    pub inputs: &'a [String],
    /// Whether all inputs are ignored, so that the stack is never applied for changes.
    pub is_all: bool,
    /// The file with the rule, relative to the project root.
    pub file: &'a str,
    /// From 1.
    pub line: usize,
}

impl IgnoredInputs<'_> {
    /// Returns the reason to do nothing, if something differs.
    pub(super) fn reason(&self) -> Option<PlanReason> {
        let names = [self.names, self.inputs].concat();
        if names.is_empty() {
            return None;
        }
        let text = format!("ignored: {}", first_of(names.iter(), MAX_NAMED));
        let reason = PlanReason::new(ReasonSource::Config, text);
        Some(reason.at(Some(self.file), Some(self.line)))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Removed {
    /// This commit deletes its block.
    Commit(String),
    /// Its key is no longer in `for_each`.
    Key,
    /// A `removed` block names it.
    Block {
        /// Relative to the project root.
        file: String,
        /// From 1.
        line: usize,
        destroys: bool,
    },
    Replaced {
        by: Generation,
    },
    /// A generation that was never finished.
    Unfinished,
    /// HEAD lacks it, but it may be another stack now, or be on the default branch: blocked.
    Doubtful,
    /// This clone lacks the commits that would show whether it was removed: blocked.
    Unknown,
    /// It is in the state but not in this commit; nothing proves its removal.
    Unproven,
}

impl Removed {
    pub fn leaves(&self) -> bool {
        matches!(
            self,
            Removed::Block {
                destroys: false,
                ..
            }
        )
    }
}
