//! The base of a comparison and its side facts.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::base::Base;
use crate::path::StackPath;

#[derive(Debug, Clone)]
pub struct Baseline {
    pub base: ChangeBase,
    /// The stacks removed since the base, by path.
    pub removed: Vec<StackPath>,
    /// Whether repository files outside of the project differ too; these select nothing.
    pub outside: bool,
}

#[derive(Debug, Clone)]
pub enum ChangeBase {
    Commit(Base),
    Applied(AppliedBase),
}

/// To follow "since".
impl fmt::Display for ChangeBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeBase::Commit(base) => f.write_str(base.commit.short()),
            ChangeBase::Applied(_) => f.write_str("the last apply"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedBase {
    pub address: String,
    pub lineage: String,
    pub serial: u64,
}

/// The reason for this base, for messages.
impl fmt::Display for AppliedBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "serial {} of `{}`", self.serial, self.address)
    }
}
