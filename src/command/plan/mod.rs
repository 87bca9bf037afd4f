//! `orch plan` and the first half of `orch apply`: the tools are asked, and policies foresee what follows.

mod followups;
mod starts;
mod tools;

use std::path::PathBuf;

pub use self::tools::{Tools, cannot_ask};
use crate::context::{Context, PLANS, PrivateFolder};
use crate::error::{Error, ErrorContext as _, Result};
use crate::plan::archive::Archive;
use crate::plan::planner::{AskedTools, Commits};
use crate::plan::{LeftBehind, SavedPlan, SavedPolicies};
use crate::run::policies::LoadedPolicies;

/// A plan that has been made.
pub struct Planned {
    pub context: Context,
    /// The plan, and what it rests on.
    pub saved: SavedPlan,
    /// The plans of the tools, in the order in which `saved` counts them.
    pub plans: Vec<PathBuf>,
    /// Stacks that are kept although they run after one that the plan destroys.
    pub left_behind: Vec<LeftBehind>,
    /// The answers of the tools, which are kept until this is dropped.
    pub asked: AskedTools,
    /// The commits whose code was asked.
    pub commits: Commits,
}

impl Planned {
    /// Moves the plan, and the plans of the tools if there are any, into a file without a name: the process may be
    /// killed while the user thinks about the plan, and plans of tools may be secret.
    pub fn without_names(self) -> Result<(SavedPlan, Option<Archive>)> {
        if self.plans.is_empty() {
            return Ok((self.saved, None));
        }
        let failed = "failed to keep the plan";
        let folder = PrivateFolder::of(&self.context, PLANS)?;
        let file = folder.path().join("plan");
        self.saved.write(&file, &self.plans).context(failed)?;
        let (saved, archive) = SavedPlan::read(&file).context(failed)?;
        Ok((saved, Some(archive)))
    }
}

impl Context {
    /// Loads the policies that follow an apply, if any do. Their errors are added to the problems.
    pub fn apply_policies(&mut self, options: &SavedPolicies) -> Result<Option<LoadedPolicies>> {
        if options.is_off {
            if !options.metadata.is_empty() {
                let what = "`--metadata` has no effect with `--policies=off`";
                return Err(Error::usage(what));
            }
            return Ok(None);
        }
        if self.project.policies.is_empty() {
            return Ok(None);
        }
        let policies = self.load_policies(|attached, position| {
            attached.policies_of_stacks().contains(&position)
        })?;
        let is_any = !policies.attached.policies_of_stacks().is_empty();
        Ok(is_any.then_some(policies))
    }
}
