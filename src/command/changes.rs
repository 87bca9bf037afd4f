//! `--changed`: finds the base and the changes, and refuses an unknown base.

use std::collections::BTreeSet;

use tracing::info;

use crate::change::base::{BaseUnknown, Remedy};
use crate::change::{Baseline, ChangeBase, Changes, StatusKind};
use crate::context::{ChangeQuery, Context};
use crate::diagnostic::Code;
use crate::error::{Error, Refusal, Result};
use crate::git::GitError;
use crate::path::StackPath;
use crate::printable::printable;
use crate::project::Problems;
use crate::selection::select::RecordedQuery;

/// Returns the fix for an unknown base. `fetched` says whether `--fetch` has already tried.
fn fix(why: &BaseUnknown, fetched: bool) -> String {
    match why {
        BaseUnknown::Refused { remedy, .. } => match (remedy.command(), remedy) {
            (Some(command), _) if fetched => format!("run `{command}`"),
            (Some(command), _) => {
                format!("run `{command}`, or add `--fetch`")
            }
            (None, Remedy::Advice(advice)) => advice.clone(),
            (None, _) => String::new(),
        },
        BaseUnknown::Unclear(_) => "name a base with `--base REV`".to_owned(),
        BaseUnknown::Git(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => {
            "change into a git repository, or remove `--changed` to select all stacks".to_owned()
        }
        BaseUnknown::Git(GitError::Fetch { .. }) => {
            "see git's message above, or name another base with `--base REV`".to_owned()
        }
        BaseUnknown::Git(GitError::Start(_)) => "install `git`, or add it to the PATH".to_owned(),
        BaseUnknown::Git(error) => match error.remedy() {
            Some(command) => format!("if you trust the repository, run `{command}`"),
            None => "run `git status` in this directory to see the cause".to_owned(),
        },
    }
}

/// Returns the command that makes the base known, if there is one.
fn remedy_command(why: &BaseUnknown) -> Option<String> {
    match why {
        BaseUnknown::Refused { remedy, .. } => remedy.command(),
        BaseUnknown::Git(error) => error.remedy(),
        BaseUnknown::Unclear(_) => None,
    }
}

impl Context {
    pub(super) fn note_unselectable(&self, since: &Baseline) {
        for removed in &since.removed {
            let since = match &since.base {
                ChangeBase::Commit(_) => "was removed since the base",
                ChangeBase::Applied(_) => "is recorded, and was removed from the project",
            };
            self.notices.note(&format!(
                "stack `{}` {since}; nothing is run for it",
                printable(removed.as_str())
            ));
        }
        if since.outside {
            self.notices.note(
                "files of the repository outside of the project have changed; they select no stacks",
            );
        }
    }

    /// Finds the changes, and prints the base.
    pub(super) fn changes(&mut self, query: &ChangeQuery) -> Result<Changes> {
        let base = match self.base(query) {
            Ok(base) => base,
            Err(why) => {
                let refusal = Refusal {
                    problem: why.to_string(),
                    command: remedy_command(&why),
                };
                let hint = fix(&why, query.fetch);
                let error = Error::described("the changes are unknown", why);
                return Err(error.refusing().hint(hint).with_refusal(refusal));
            }
        };
        self.report_base(&ChangeBase::Commit(base.clone()));
        let mut problems = std::mem::take(&mut self.problems);
        let changes = self.find_changes(base, query, &mut problems);
        self.problems = problems;
        let mut changes = changes?;
        self.note_removed(&changes.since);
        let is_here = |path: &StackPath| path.directory().is_at_or_below(&self.directory);
        changes.since.removed.retain(is_here);
        info!(
            changed = changes.stacks.len(),
            removed = changes.since.removed.len(),
            "changes"
        );
        Ok(changes)
    }

    /// Adds a note to each invalid reference whose stack was removed since the base. Adds none if
    /// the base is unknown, or if other errors may hide stacks.
    pub fn explain_references(&mut self, query: &ChangeQuery) {
        let Problems {
            diagnostics,
            errors,
            ..
        } = &self.problems;
        let mut wrong = diagnostics.iter().filter(|it| it.is_error());
        if !errors.is_empty() || !wrong.all(|it| it.code == Code::UnknownReference) {
            return;
        }
        if self.git.is_unread() {
            return;
        }
        let query = ChangeQuery {
            fetch: false,
            ..query.clone()
        };
        if self.is_applied(&query) {
            return;
        }
        let Ok(base) = self.base(&query) else {
            return;
        };
        self.report_base(&ChangeBase::Commit(base.clone()));
        // The command fails with these errors, so warnings about inputs and triggers can wait.
        let mut others = Problems::default();
        if let Ok(changes) = self.find_changes(base, &query, &mut others) {
            self.note_removed(&changes.since);
        }
    }

    fn note_removed(&mut self, since: &Baseline) {
        let (workspace, problems) = self.parts();
        workspace
            .references
            .note_removed(since, &mut problems.diagnostics);
    }

    pub(super) fn recorded(
        &mut self,
        change: Option<&ChangeQuery>,
        wanted: BTreeSet<StatusKind>,
        explains: bool,
    ) -> Result<RecordedQuery> {
        let statuses = self
            .read_statuses(change, explains)
            .map_err(Error::documented)?;
        Ok(RecordedQuery {
            statuses,
            counted: self.counted(change),
            changed: change.is_some(),
            wanted,
        })
    }

    /// Returns the stacks that were removed since the base and match the path filters, as written
    /// in the flags.
    pub fn removed_since(
        &mut self,
        query: &ChangeQuery,
        globs: &[String],
        exclude: &[String],
    ) -> Result<Baseline> {
        let globs = self.path_filters("--match", globs)?;
        let exclude = self.path_filters("--exclude", exclude)?;
        let mut since = if self.is_applied(query) {
            self.since_applied(query)?
        } else {
            self.changes(query)?.since
        };
        since.removed.retain(|path| {
            let is_meant = globs.is_empty() || globs.iter().any(|filter| filter.matches(path));
            is_meant && !exclude.iter().any(|filter| filter.matches(path))
        });
        Ok(since)
    }

    /// Returns the changes since the state, if that is the base.
    fn since_applied(&mut self, query: &ChangeQuery) -> Result<Baseline> {
        let statuses = self
            .read_statuses(Some(query), false)
            .map_err(Error::documented)?;
        Ok(Baseline {
            removed: statuses.removed(),
            base: ChangeBase::Applied(statuses.base),
            outside: false,
        })
    }
}
