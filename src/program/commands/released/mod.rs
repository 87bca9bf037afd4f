//! `--released`: the stacks that policies name when a module gets a new version.

mod input;
mod policies;

use std::collections::BTreeMap;

use anyhow::Context as _;
use orch::error::ErrorKind;
use orch::git::{GitError, Repository};
use orch::printable::count;
use orch::project::stack::StackIndex;
use orch::release::{Release, ReleaseError, ReleaseName, consumers};
use orch::report::Refusal;
use orch::run::workflow::StackOnRecord;
use orch::selection::select::ReleasedQuery;

use super::Loaded;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

const FETCH_TAGS: &str = "git fetch --tags";

impl Loaded {
    /// Returns the stacks that policies name at a release. Fails if there is no such release, if
    /// the state or git cannot be read, or if a policy fails.
    pub(super) fn released(&mut self, name: &ReleaseName) -> Result<ReleasedQuery> {
        let found = Repository::open(&self.project.root)
            .map_err(ReleaseError::from)
            .and_then(|repository| {
                Release::find(name, &self.project, &repository).map(|it| (it, repository))
            });
        let (release, repository) = match found {
            Ok(found) => found,
            Err(why) => return Err(self.no_release(why)?),
        };
        let mut problems = std::mem::take(&mut self.problems);
        let consumers = consumers(&release, &self.project, &self.listing, &mut problems);
        self.problems = problems;
        let mut consumers = consumers.context("failed to find the calls of the module")?;
        let module = &release.module.name.value;
        let old = &release.old.version;
        let mut records = BTreeMap::new();
        if consumers.is_empty() {
            console::note(&format!("no call of `{module}` resolves to {old}"));
        } else if self.project.settings.state.is_some() {
            records = self.read_on_record()?;
            // A failed first apply may have left nothing of the module.
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
                console::note(&format!(
                    "of {} whose calls of `{module}` resolve to {old}, {not_counted}",
                    count(all, "stack")
                ));
            }
        }
        let stacks = consumers.keys();
        let stacks = stacks.map(|stack| (*stack, records.get(stack).cloned()));
        let stacks: Vec<(StackIndex, Option<StackOnRecord>)> = stacks.collect();
        Ok(ReleasedQuery {
            module: module.clone(),
            old: old.to_string(),
            new: release.new.version.to_string(),
            named: self.named_at(&release, &repository, &stacks)?,
            consumers,
        })
    }

    /// The error of a release that does not exist, with the fix.
    fn no_release(&self, why: ReleaseError) -> Result<ProgramError> {
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
                return Ok(ProgramError::usage(why.to_string()).hint(hint));
            }
            ReleaseError::NoTag { known, .. } => {
                let known: Vec<String> = known.iter().map(ToString::to_string).collect();
                let error = ProgramError::refused(why.to_string());
                let error = error.hint(format!("if the tag exists elsewhere, run `{FETCH_TAGS}`"));
                if known.is_empty() {
                    error.hint("no tag looks like a version: check `tag` in the `module` block")
                } else {
                    error.hint(format!("its newest versions here are {}", known.join(", ")))
                }
            }
            ReleaseError::Git(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => {
                ProgramError::refused(why.to_string())
                    .hint("the versions of a module are tags: run `orch` in its git repository")
            }
            ReleaseError::Git(_) => {
                let failed = "failed to read the tags of the repository";
                return Ok(ProgramError::new(
                    ErrorKind::External,
                    anyhow::Error::new(why).context(failed),
                ));
            }
        };
        let command = matches!(why, ReleaseError::NoTag { .. }).then_some(FETCH_TAGS);
        self.write_problems(Some(Refusal {
            problem: &why.to_string(),
            command,
        }))?;
        Ok(error)
    }
}
