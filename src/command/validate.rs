//! `orch validate`: every problem is an error.

use crate::change::{Use, trigger, unknown_paths};
use crate::context::{Context, CyclesAre};
use crate::diagnostic::Severity;
use crate::error::{ErrorContext as _, Result};
use crate::project::stack::{self, StackIndex};
use crate::workspace::Workspace;

impl Context {
    /// Checks the whole project, and prints its problems. Returns the uses of files whose paths
    /// cannot be determined.
    pub fn validate(&mut self) -> Result<Vec<Use>> {
        self.check_cycles(CyclesAre::Errors);
        let all: Vec<StackIndex> = self.project.stacks.iter().map(|(stack, _)| stack).collect();
        self.check_conditions(all.iter().copied());
        // The state does not matter: the problems are the same for any generation.
        let (_, problems) = self.evaluator().of_stacks(all.clone());
        self.add_shared(problems);
        if !self.project.policies.is_empty() {
            let policies = self.load_policies(|_, _| true)?;
            self.lint_policies(&policies);
        }
        let (Workspace { project, .. }, problems) = self.parts();
        let unmatched = stack::unmatched(&project.stacks, &project.root);
        problems.diagnostics.extend(unmatched);
        trigger::check_all(&project.root, problems);
        self.add_sources();
        for diagnostic in &mut self.problems.diagnostics {
            diagnostic.severity = Severity::Error;
        }
        self.report()?;
        let unknown = unknown_paths(&self.project, &self.listing, &all);
        unknown.context("failed to read the inputs of the stacks")
    }
}
