//! Refuses drift that cannot be accepted.

use std::collections::BTreeSet;
use std::path::Path;

use super::Verification;
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::printable::{first_of, printable};
use crate::project::Project;

const MOST: usize = 5;

impl Verification<'_> {
    /// Refuses to accept drift if a driver has no command for that.
    pub fn check_drift(&self, project: &Project) -> Result<()> {
        let saved = self.saved;
        let drifted = saved
            .plan
            .entries
            .iter()
            .filter(|entry| saved.plan.accepts_drift(entry));
        let lacking = drifted.filter_map(|entry| {
            let name = saved.stack(&entry.stack)?.driver.as_str();
            let driver = Driver::named(project, name)?;
            // The path of the plan does not matter.
            let is_lacking = driver.accepting_drift(Path::new("")).is_none();
            is_lacking.then_some((name, printable(entry.stack.as_str())))
        });
        let lacking: Vec<_> = lacking.collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let drivers: BTreeSet<String> = lacking.iter().map(|it| format!("`{}`", it.0)).collect();
        let drivers: Vec<String> = drivers.into_iter().collect();
        Err(Error::refused(format!(
            "drift cannot be accepted in {}: the driver {} has no command for it",
            first_of(lacking.iter().map(|it| &it.1), MOST),
            drivers.join(", ")
        ))
        .hint("leave these stacks out with `--exclude`; only Terraform, OpenTofu and Terragrunt can accept drift, unless their `driver` block has `read` or `apply`"))
    }
}
