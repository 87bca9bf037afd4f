//! `--released`: the stacks that policies select when a module gets a new version.

mod input;
mod policies;

use std::collections::BTreeMap;

use crate::context::Context;
use crate::error::{Error, ErrorContext as _, Refusal, Result};
use crate::git::{GitError, Repository};
use crate::printable::count;
use crate::project::stack::StackIndex;
use crate::release::{Release, ReleaseError, ReleaseName, consumers};
use crate::run::workflow::RecordedStack;
use crate::selection::select::ReleasedQuery;

const FETCH_TAGS: &str = "git fetch --tags";

impl Context {
    /// Returns the stacks that policies select at a release. Fails if there is no such release, if
    /// the state or git cannot be read, or if a policy fails.
    pub(super) fn released(&mut self, name: &ReleaseName) -> Result<ReleasedQuery> {
        let found = Repository::open(&self.project.root)
            .map_err(ReleaseError::from)
            .and_then(|repository| {
                Release::find(name, &self.project, &repository).map(|it| (it, repository))
            });
        let (release, repository) = match found {
            Ok(found) => found,
            Err(why) => return Err(self.no_release(why)),
        };
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

    /// Returns the error of an unknown release, with the fix.
    fn no_release(&self, why: ReleaseError) -> Error {
        let error = match &why {
            ReleaseError::UnknownModule { closest, .. } => {
                let known: Vec<String> = self
                    .project
                    .modules
                    .keys()
                    .map(|it| format!("`{it}`"))
                    .collect();
                let hint = match closest {
                    Some(closest) => format!("did you mean `{closest}`?"),
                    None if known.is_empty() => {
                        "the project has no `module` block; see `orch help releases`".to_owned()
                    }
                    None => format!("the modules are {}", known.join(", ")),
                };
                return Error::usage(why.to_string()).hint(hint);
            }
            ReleaseError::NoTag { known, .. } => {
                let known: Vec<String> = known.iter().map(ToString::to_string).collect();
                let error = Error::refused(why.to_string())
                    .hint(format!("if the tag exists elsewhere, run `{FETCH_TAGS}`"));
                if known.is_empty() {
                    error.hint("no tag looks like a version: check `tag` in the `module` block")
                } else {
                    error.hint(format!("its newest versions here are {}", known.join(", ")))
                }
            }
            ReleaseError::Git(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => {
                Error::refused(why.to_string())
                    .hint("the versions of a module are tags: run `orch` in its git repository")
            }
            ReleaseError::Git(_) => {
                let failed = "failed to read the tags of the repository";
                return Error::described(failed, why);
            }
        };
        let has_command = matches!(why, ReleaseError::NoTag { .. });
        error.with_refusal(Refusal {
            problem: why.to_string(),
            command: has_command.then(|| FETCH_TAGS.to_owned()),
        })
    }
}
