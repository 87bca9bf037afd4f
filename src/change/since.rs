//! What changes are measured from.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::base::Base;
use crate::path::StackPath;

/// What changes are measured from.
#[derive(Debug, Clone)]
pub struct Since {
    pub base: SinceBase,
    /// The stacks that have been removed since the base, by path.
    pub removed: Vec<StackPath>,
    /// Whether files of the repository outside the project differ too; these select nothing.
    pub outside: bool,
}

/// A commit, or the document of what was applied.
#[derive(Debug, Clone)]
pub enum SinceBase {
    Commit(Base),
    /// The document.
    Applied(AppliedBase),
}

/// What comes after "since".
impl fmt::Display for SinceBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SinceBase::Commit(base) => f.write_str(base.commit.short()),
            SinceBase::Applied(_) => f.write_str("the last apply"),
        }
    }
}

/// The document that stacks are compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedBase {
    /// Where it is.
    pub address: String,
    pub lineage: String,
    pub serial: u64,
}

/// Why it is the base, for people.
impl fmt::Display for AppliedBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "serial {} of `{}`", self.serial, self.address)
    }
}
