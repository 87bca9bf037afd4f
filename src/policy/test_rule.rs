//! Tests of policies, as the worker is given them and answers.

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
    /// The line that it begins in, from 1.
    pub line: u32,
    /// Whether it is not to be run: its name begins with `todo_`.
    pub is_skipped: bool,
}

/// What a test came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestOutcome {
    pub is_passed: bool,
    /// What it printed, a text for each call.
    pub prints: Vec<String>,
}
