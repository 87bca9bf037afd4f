//! Whether a run would put back what a later commit has applied.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use orch::change::Pairs;
use orch::change::base::fetch_command;
use orch::git::{CommitId, Repository};
use orch::project::config::ProjectSettings;
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

/// Refuses runs that would put back what a later commit has applied.
pub(super) struct RollbackGuard {
    is_allowed: bool,
    fetches: bool,
    /// What has been found out, and said.
    relations: BTreeMap<CommitId, Relation>,
}

impl RollbackGuard {
    /// Returns the guard of a run: whether it may put something back, and whether it gets the commits that
    /// are missing.
    pub(super) fn new(is_allowed: bool, fetches: bool) -> Self {
        RollbackGuard {
            is_allowed,
            fetches,
            relations: BTreeMap::new(),
        }
    }

    /// Refuses a run that would put back what a later commit has applied to one of some stacks, unless that
    /// is allowed.
    ///
    /// Only stacks whose inputs differ from what was applied count: the others would get what they have.
    pub(super) fn check(
        &mut self,
        loaded: &mut Loaded,
        document: &Document,
        stacks: &[StackIndex],
    ) -> Result<()> {
        let differing = applied_from(loaded, document, stacks)?;
        if differing.is_empty() {
            return Ok(());
        }
        let read = loaded.read.as_mut().context("git was read")?;
        let remote = remote(&loaded.project.settings, &read.repository)?;
        let mut relations: BTreeMap<Relation, Vec<(CommitId, Vec<StackIndex>)>> = BTreeMap::new();
        let mut is_new = BTreeSet::new();
        for (commit, stacks) in differing {
            let relation = if let Some(&known) = self.relations.get(&commit) {
                known
            } else {
                let remote = remote.as_deref();
                let relation = relation(&mut read.repository, remote, &commit, self.fetches)?;
                self.relations.insert(commit.clone(), relation);
                is_new.insert(commit.clone());
                relation
            };
            relations
                .entry(relation)
                .or_default()
                .push((commit, stacks));
        }
        let first = |relation: Relation| relations.get(&relation).and_then(|found| found.first());
        if let Some((commit, stacks)) = first(Relation::Missing)
            && !self.is_allowed
        {
            let remote = remote.as_deref().unwrap_or("origin");
            return Err(ProgramError::refused(format!(
                "{} was applied from commit {commit}, which is not in this clone: it may be newer than HEAD",
                loaded.names(stacks)
            ))
            .hint(format!(
                "run `git fetch {} {commit}`, or let orch do that with `--fetch`",
                shell_words::quote(remote)
            ))
            .hint("to apply HEAD whatever was applied before, add `--allow-rollback`"));
        }
        if let Some((commit, stacks)) = first(Relation::Ahead)
            && !self.is_allowed
        {
            return Err(ProgramError::refused(format!(
                "{} was applied from commit {}, which is ahead of HEAD: this run would put it back",
                loaded.names(stacks),
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
            let found = relations.get(&relation).into_iter().flatten();
            for (commit, stacks) in found.filter(|(commit, _)| is_new.contains(commit)) {
                console::note(&format!(
                    "{} was applied from commit {}, {what}",
                    loaded.names(stacks),
                    commit.short()
                ));
            }
        }
        Ok(())
    }
}

/// Returns the commits that are known to have been applied to stacks whose inputs differ now.
fn applied_from(
    loaded: &mut Loaded,
    document: &Document,
    stacks: &[StackIndex],
) -> Result<BTreeMap<CommitId, Vec<StackIndex>>> {
    let digests = loaded.digests_on_disk()?;
    let pairs = Pairs::new(&loaded.project.stacks, document);
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

/// Returns the remote that commits are fetched from.
fn remote(settings: &ProjectSettings, repository: &Repository) -> Result<Option<String>> {
    if settings.default_remote.is_some() {
        return Ok(settings.default_remote.clone());
    }
    let remotes = repository.remotes().context("failed to ask git")?;
    let origin = remotes.iter().find(|remote| *remote == "origin");
    Ok(origin.or(remotes.first()).cloned())
}

fn relation(
    repository: &mut Repository,
    remote: Option<&str>,
    commit: &CommitId,
    fetches: bool,
) -> Result<Relation> {
    let failed = "failed to ask git";
    let is_present = |repository: &Repository| -> Result<bool> {
        let found = repository.commit(commit.as_str()).context(failed)?;
        Ok(found.as_ref() == Some(commit))
    };
    if !is_present(repository)? {
        let Some(remote) = remote else {
            return Ok(Relation::Gone);
        };
        if !fetches {
            return Ok(Relation::Missing);
        }
        let one = [remote.to_owned(), commit.to_string()];
        console::note(&format!("running `{}`", fetch_command(&one)));
        if repository.fetch(&one).is_err() {
            // A server need not give a commit by name; if it gives everything else, it has lost this one.
            let all = [remote.to_owned()];
            console::note(&format!("running `{}`", fetch_command(&all)));
            repository
                .fetch(&all)
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

/// Returns the commits that an entry names: the newest that is known to be like what was applied, and that of
/// the last attempt.
fn commits(entry: &Entry) -> BTreeSet<CommitId> {
    let seen = entry.applied.as_ref().and_then(|it| it.seen.as_deref());
    let last = entry.last.as_ref().and_then(|it| it.commit.as_deref());
    let named = seen.into_iter().chain(last);
    named.filter_map(CommitId::new).collect()
}
