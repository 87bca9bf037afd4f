//! The follow-ups that policies add to an apply.

use serde::{Deserialize, Serialize};

use crate::path::StackPath;
use crate::run::evaluated::{PolicyProblem, ProblemSeverity};

/// The follow-ups of an apply if all its turns succeed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFollowUps {
    /// The added turns, in the sequence of a serial run.
    pub turns: Vec<PlannedFollowUp>,
    /// Errors of policies, and requested stacks that cannot run as follow-ups.
    pub problems: Vec<PolicyProblem>,
    /// Stacks whose follow-ups may differ because their changes are known only during the apply.
    pub uncertain: Vec<StackPath>,
}

impl PlannedFollowUps {
    /// Fails if policies would fail the apply.
    pub fn check(&self) -> Result<(), FailedPolicies> {
        let is_error = |it: &PolicyProblem| it.severity == ProblemSeverity::Error;
        if self.problems.iter().any(is_error) {
            return Err(FailedPolicies);
        }
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a policy failed or a limit is exceeded: an apply of this plan would end with status 1")]
pub struct FailedPolicies;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFollowUp {
    pub stack: StackPath,
    pub policies: Vec<String>,
    pub after: StackPath,
    /// Whether the stack has `autodeploy = true`: its changes need no approval.
    pub autodeploy: bool,
    pub problem: Option<String>,
}
