//! Why an entry has its action.

use serde::{Deserialize, Serialize};

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
