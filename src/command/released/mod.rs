//! `--released`: the stacks that policies select when a module gets a new version.

mod input;
mod policies;

use std::collections::BTreeMap;

use crate::context::Context;
use crate::error::{ErrorContext as _, Result};
use crate::printable::count;
use crate::project::stack::StackIndex;
use crate::release::{Release, ReleaseName, consumers, open_repository};
use crate::run::workflow::RecordedStack;
use crate::selection::select::ReleasedQuery;

impl Context {
    /// Returns the stacks that policies select at a release. Fails if there is no such release, if
    /// the state or git cannot be read, or if a policy fails.
    pub(super) fn released(&mut self, name: &ReleaseName) -> Result<ReleasedQuery> {
        let repository = open_repository(&self.project)?;
        let release = Release::find(name, &self.project, &repository)?;
        let mut problems = std::mem::take(&mut self.problems);
        let consumers = consumers(&release, &self.project, &self.listing, &mut problems);
        self.problems = problems;
        let mut consumers = consumers.context("failed to find the calls of the module")?;
        let module = &release.module.name.value;
        let old = &release.old.version;
        let mut records = BTreeMap::new();
        if consumers.is_empty() {
            self.notices
                .note(&format!("no call of `{module}` resolves to {old}"));
        } else if self.project.settings.state.is_some() {
            records = self.read_on_record()?;
            // A failed first apply may have created nothing of the module.
            let is_applied =
                |stack: &StackIndex| records.get(stack).is_some_and(|it| it.is_applied);
            let all = consumers.len();
            consumers.retain(|stack, _| is_applied(stack));
            let unapplied = all - consumers.len();
            if unapplied > 0 {
                let not_counted = match unapplied {
                    1 => "1 has never been applied and does not count".to_owned(),
                    more => format!("{more} have never been applied and do not count"),
                };
                self.notices.note(&format!(
                    "of {} whose calls of `{module}` resolve to {old}, {not_counted}",
                    count(all, "stack")
                ));
            }
        }
        let stacks: Vec<(StackIndex, Option<RecordedStack>)> = consumers
            .keys()
            .map(|stack| (*stack, records.get(stack).cloned()))
            .collect();
        Ok(ReleasedQuery {
            module: module.clone(),
            old: old.to_string(),
            new: release.new.version.to_string(),
            named: self.named_at(&release, &repository, &stacks)?,
            consumers,
        })
    }
}
