//! Whether a run would put back what a later commit has applied.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use orch::change::Pairs;
use orch::git::{CommitId, Repository};
use orch::project::stack::StackIndex;
use orch::state::document::{Document, Entry};

use crate::program::commands::Loaded;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// How a commit on record relates to HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Relation {
    /// HEAD has it.
    InHistory,
    /// It has HEAD: HEAD is older.
    Ahead,
    /// Neither has the other.
    Diverged,
    /// The history of this shallow clone does not show it.
    Unclear,
    /// It is not in this clone.
    Missing,
    /// It is not in this clone, and the remote does not have it either.
    Gone,
}

impl Loaded {
    /// Refuses a run that would put back what a later commit has applied to one of some stacks, unless that
    /// is allowed; with `fetches`, gets the commits that are missing first.
    ///
    /// Only stacks whose inputs differ from what was applied count: the others would get what they have.
    pub(super) fn check_rollback(
        &mut self,
        document: &Document,
        stacks: &[StackIndex],
        is_allowed: bool,
        fetches: bool,
    ) -> Result<()> {
        let differing = self.applied_from(document, stacks)?;
        if differing.is_empty() {
            return Ok(());
        }
        let mut relations: BTreeMap<Relation, Vec<(CommitId, Vec<StackIndex>)>> = BTreeMap::new();
        for (commit, stacks) in differing {
            let relation = self.relation(&commit, fetches)?;
            relations
                .entry(relation)
                .or_default()
                .push((commit, stacks));
        }
        let of = |relation: Relation| relations.get(&relation).and_then(|found| found.first());
        if let Some((commit, stacks)) = of(Relation::Missing)
            && !is_allowed
        {
            let remote = self.remote_of_state()?;
            let remote = remote.as_deref().unwrap_or("origin");
            return Err(ProgramError::refused(format!(
                "{} was applied from commit {commit}, which is not in this clone: it may be newer than HEAD",
                self.names(stacks)
            ))
            .hint(format!(
                "run `git fetch {remote} {commit}`, or let orch do that with `--fetch`"
            ))
            .hint("to apply HEAD whatever was applied before, add `--allow-rollback`"));
        }
        if let Some((commit, stacks)) = of(Relation::Ahead)
            && !is_allowed
        {
            return Err(ProgramError::refused(format!(
                "{} was applied from commit {}, which is ahead of HEAD: this run would put it back",
                self.names(stacks),
                commit.short()
            ))
            .hint(
                "check out the newest commit, or add `--allow-rollback` if you mean to put it back",
            ));
        }
        for (relation, what) in [
            (Relation::Gone, "which the remote no longer has"),
            (Relation::Diverged, "which is not in the history of HEAD"),
        ] {
            if let Some((commit, stacks)) = of(relation) {
                console::note(&format!(
                    "{} was applied from commit {}, {what}",
                    self.names(stacks),
                    commit.short()
                ));
            }
        }
        Ok(())
    }

    /// Returns the commits that are known to have been applied to stacks whose inputs differ now.
    fn applied_from(
        &mut self,
        document: &Document,
        stacks: &[StackIndex],
    ) -> Result<BTreeMap<CommitId, Vec<StackIndex>>> {
        let digests = self.digests_on_disk()?;
        let pairs = Pairs::new(&self.project.stacks, document);
        let mut found: BTreeMap<CommitId, Vec<StackIndex>> = BTreeMap::new();
        for &stack in stacks {
            let entry = pairs.key(stack).and_then(|key| document.stacks.get(key));
            let Some(entry) = entry else { continue };
            let applied = entry.applied.as_ref();
            let applied = applied.and_then(|applied| applied.inputs.as_ref());
            if applied.is_some_and(|applied| digests.are(stack, applied)) {
                continue;
            }
            for commit in commits(entry) {
                found.entry(commit).or_default().push(stack);
            }
        }
        Ok(found)
    }

    fn remote_of_state(&mut self) -> Result<Option<String>> {
        let configured = self.project.settings.default_remote.clone();
        let Some(repository) = &self.opened()?.repository else {
            return Ok(None);
        };
        if configured.is_some() {
            return Ok(configured);
        }
        let remotes = repository.remotes().context("failed to ask git")?;
        let origin = remotes.iter().find(|remote| *remote == "origin");
        Ok(origin.or(remotes.first()).cloned())
    }

    fn relation(&mut self, commit: &CommitId, fetches: bool) -> Result<Relation> {
        let failed = "failed to ask git";
        let is_present = |repository: &Repository| -> Result<bool> {
            let found = repository.commit(commit.as_str()).context(failed)?;
            Ok(found.as_ref() == Some(commit))
        };
        let remote = self.remote_of_state()?;
        let Some(repository) = &mut self.opened()?.repository else {
            return Ok(Relation::Missing);
        };
        if !is_present(repository)? {
            let Some(remote) = remote else {
                return Ok(Relation::Gone);
            };
            if !fetches {
                return Ok(Relation::Missing);
            }
            let one = [remote.clone(), commit.to_string()];
            console::note(&format!("running `git fetch {remote} {commit}`"));
            if repository.fetch(&one).is_err() {
                // A server need not give a commit by name; if it gives everything else, it has lost this one.
                console::note(&format!("running `git fetch {remote}`"));
                repository
                    .fetch(&[remote])
                    .context("failed to fetch what was applied")?;
            }
            if !is_present(repository)? {
                return Ok(Relation::Gone);
            }
        }
        let Some(head) = repository.commit("HEAD").context(failed)? else {
            return Ok(Relation::Diverged);
        };
        Ok(if repository.is_ancestor(commit, &head).context(failed)? {
            Relation::InHistory
        } else if repository.is_ancestor(&head, commit).context(failed)? {
            Relation::Ahead
        } else if repository.is_shallow().context(failed)? {
            Relation::Unclear
        } else {
            Relation::Diverged
        })
    }
}

/// Returns the commits that an entry names: the newest that is known to be like what was applied, and that of
/// the last attempt.
fn commits(entry: &Entry) -> BTreeSet<CommitId> {
    let seen = entry.applied.as_ref().and_then(|it| it.seen.as_deref());
    let last = entry.last.as_ref().and_then(|it| it.commit.as_deref());
    let named = seen.into_iter().chain(last);
    named.filter_map(CommitId::new).collect()
}
