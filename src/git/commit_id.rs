//! The name of a commit.

use std::fmt;

use super::is_hexadecimal;

/// The full name of a commit, in lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub(super) String);

impl CommitId {
    /// Makes an id from the name of a commit; `None` if it is not a hexadecimal number.
    pub fn new(digits: &str) -> Option<Self> {
        let is_name = !digits.is_empty() && is_hexadecimal(digits);
        is_name.then(|| CommitId(digits.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first digits, for people.
    pub fn short(&self) -> &str {
        self.0.get(..7).unwrap_or(&self.0)
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
