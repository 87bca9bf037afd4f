//! Why something is to be done with a stack.

use serde::{Deserialize, Serialize};

/// Who says that something is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonSource {
    /// The configuration: files of the tree.
    Config,
    /// A flag.
    Option,
    Driver,
    /// What is on record.
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

/// Why something is to be done with a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Who says it.
    pub source: ReasonSource,
    /// What is said.
    pub text: String,
    /// The file that says it, relative to the project root, if one does.
    #[serde(default)]
    pub file: Option<String>,
    /// The line in that file, from 1, if it is known.
    #[serde(default)]
    pub line: Option<usize>,
}

impl Reason {
    pub fn new(source: ReasonSource, text: impl Into<String>) -> Self {
        Reason {
            source,
            text: text.into(),
            file: None,
            line: None,
        }
    }

    /// Returns the reason with the file that says it, and the line if it is known.
    #[must_use]
    pub fn said_in(self, file: Option<&str>, line: Option<usize>) -> Self {
        Reason {
            file: file.map(str::to_owned),
            line,
            ..self
        }
    }
}
