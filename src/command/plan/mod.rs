//! `orch plan` and the first half of `orch apply`: tools plan, and policies predict follow-ups.

mod followups;
mod tools;

use std::path::PathBuf;

pub use self::tools::{Tools, cannot_ask};
use crate::context::{Context, PLANS, PrivateFolder};
use crate::error::{Error, ErrorContext as _, Result};
use crate::plan::archive::Archive;
use crate::plan::planner::{AskedTools, Commits};
use crate::plan::{LeftBehind, SavedPlan, SavedPolicies};
use crate::run::policies::LoadedPolicies;

pub struct Planned {
    pub context: Context,
    /// The plan and the facts that it depends on.
    pub saved: SavedPlan,
    /// The tools' plans, in the order of the indices in `saved`.
    pub plans: Vec<PathBuf>,
    /// Kept stacks that run after stacks which the plan destroys.
    pub left_behind: Vec<LeftBehind>,
    /// The answers of the tools, kept until drop.
    pub asked: AskedTools,
    /// The commits whose code planned removed stacks.
    pub commits: Commits,
}

impl Planned {
    /// Moves the plan and the tools' plans into an unnamed file. The process may be killed at the
    /// prompt, and tools' plans may contain secrets.
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
    /// Loads the policies of an apply, if they are on. Their errors are added to the problems.
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
        let policies = self.load_policies_of_stacks()?;
        let is_any = !policies.attached.policies_of_stacks().is_empty();
        Ok(is_any.then_some(policies))
    }
}
