//! Tests of policies, in requests and replies.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegoFile {
    /// Its name, for its problems.
    pub name: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRule {
    /// Its name, without the package.
    pub name: String,
    /// Its first line, from 1.
    pub line: u32,
    /// Whether it is skipped: its name begins with `todo_`.
    pub is_skipped: bool,
}

/// The result of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestOutcome {
    pub is_passed: bool,
    /// The texts that it printed, one per call.
    pub prints: Vec<String>,
}
