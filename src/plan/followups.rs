//! The follow-ups that policies add to an apply.

use serde::{Deserialize, Serialize};

use crate::path::StackPath;
use crate::run::evaluated::{PolicyProblem, ProblemSeverity};

/// The follow-ups of an apply whose turns all succeed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFollowUps {
    /// The turns that policies add, in the sequence of a serial run.
    pub turns: Vec<PlannedFollowUp>,
    /// The errors of policies, and the stacks that they ask for but that do not follow.
    pub problems: Vec<PolicyProblem>,
    /// The stacks whose follow-ups may differ: policies see their changes, which are known only
    /// during the apply.
    pub uncertain: Vec<StackPath>,
}

impl PlannedFollowUps {
    /// Checks that the apply will not fail because of policies.
    ///
    /// # Errors
    ///
    /// If it will.
    pub fn check(&self) -> Result<(), FailedPolicies> {
        let is_error = |it: &PolicyProblem| it.severity == ProblemSeverity::Error;
        if self.problems.iter().any(is_error) {
            return Err(FailedPolicies);
        }
        Ok(())
    }
}

/// An apply will fail because of policies.
#[derive(Debug, thiserror::Error)]
#[error("a policy failed or a limit is exceeded: an apply of this plan would end with status 1")]
pub struct FailedPolicies;

/// A turn that policies add to an apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFollowUp {
    pub stack: StackPath,
    /// The policies that ask for it.
    pub policies: Vec<String>,
    /// The stack whose turn it follows.
    pub after: StackPath,
    /// Whether the stack has `autodeploy = true`, so that its changes need no approval.
    pub autodeploy: bool,
    /// Why it will fail, if that is known.
    pub problem: Option<String>,
}
