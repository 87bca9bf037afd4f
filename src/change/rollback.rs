//! Whether applying HEAD would revert changes that were applied from a commit that HEAD lacks.
//!
//! `orch run`, `orch plan`, `orch apply` and the follow-ups of both ask [`rollbacks`], so they
//! refuse in the same cases. An apply of a plan in a file does not ask again: its inputs and
//! records are compared by content.
//!
//! A stack is checked if its inputs differ from the recorded ones, or if its last attempt failed or
//! was of another commit than the applied one. These commits count: `seen`; the applied commit,
//! unless `seen` has the same inputs, as after a squash; and the commit of the last attempt.
//!
//! | commit that was applied last | answer |
//! | --- | --- |
//! | part of HEAD | no rollback: HEAD moves on from it |
//! | HEAD is behind it or has diverged from it, and lacks its changes of the stack | rollback, even if HEAD has changes of its own |
//! | the same, but HEAD has all its changes of the stack since the merge base, or there are none | no rollback |
//! | the same, and it changed a file that no longer exists and may have been an input | rollback |
//! | a shallow clone does not show the merge base | rollback, until the history is fetched |
//! | not in this clone | rollback, until it is fetched |
//! | not on the remote either, as after a force-push | rollback |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::applied::EntryIndex;
use super::base::fetch_command;
use super::digest::InputDigests;
use super::error::ChangeError;
use super::find::causes_by;
use super::lacking::{EarlierInputs, RevertedFiles};
use super::present::CurrentProject;
use crate::git::{BranchWith, CommitId, GitError, Repository};
use crate::project::config::ProjectSettings;
use crate::project::stack::StackIndex;
use crate::state::document::{Document, Entry, Inputs};

/// A commit that applying HEAD to a stack would revert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollback {
    pub commit: CommitId,
    /// A branch that contains it, as git names it: `origin/feature`.
    pub branch: Option<String>,
    pub lack: MissingCommit,
    /// The arguments of the `git fetch` that may answer the question.
    pub fetch: Option<Vec<String>>,
}

/// How HEAD relates to a commit that it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingCommit {
    /// HEAD is an ancestor of it.
    Behind,
    /// Neither is an ancestor of the other.
    Apart,
    /// The shallow clone lacks the history to tell.
    Unclear,
    NotHere,
    /// It is neither in this clone nor on the remote.
    Lost,
}

impl Rollback {
    /// Returns why a stack must not be applied.
    pub fn why(&self) -> String {
        let commit = self.named();
        match self.lack {
            MissingCommit::Behind => format!("HEAD is behind the last applied {commit}"),
            MissingCommit::Apart => format!("HEAD lacks the last applied {commit}"),
            MissingCommit::Unclear => format!(
                "this shallow clone does not show whether HEAD has the last applied {commit}"
            ),
            MissingCommit::NotHere => {
                format!("the last applied {commit} is not in this clone")
            }
            MissingCommit::Lost => {
                format!("the last applied {commit} is neither in this clone nor on the remote")
            }
        }
    }

    /// Returns the same reason with the `git fetch` that may resolve it.
    pub fn why_with_fetch(&self) -> String {
        let mut why = self.why();
        if let Some(fetch) = self.fetch_command() {
            _ = write!(why, ": run `{fetch}`, or add `--fetch`");
        }
        why
    }

    /// Returns the effect of an apply that may roll back.
    pub fn effect(&self) -> String {
        let commit = self.named();
        match self.lack {
            MissingCommit::Behind | MissingCommit::Apart => format!("reverts {commit}"),
            MissingCommit::Unclear => format!("may revert {commit}"),
            MissingCommit::NotHere | MissingCommit::Lost => {
                format!("may revert {commit}, which is not in this clone")
            }
        }
    }

    /// Returns the command that may answer the question, if there is one.
    pub fn fetch_command(&self) -> Option<String> {
        self.fetch
            .as_ref()
            .map(|arguments| fetch_command(arguments))
    }

    fn named(&self) -> String {
        let commit = self.commit.short();
        match &self.branch {
            Some(branch) => format!("commit {commit} of {branch}"),
            None => format!("commit {commit}"),
        }
    }
}

/// Returns the stacks that an apply of HEAD would roll back, and from which commit. `fetched` has the
/// arguments of each `git fetch` that already ran, which is not proposed again.
pub fn rollbacks(
    present: CurrentProject<'_>,
    digests: &InputDigests,
    document: &Document,
    stacks: &[StackIndex],
    fetched: &BTreeSet<Vec<String>>,
) -> Result<BTreeMap<StackIndex, Rollback>, ChangeError> {
    let pairs = EntryIndex::new(&present.project.stacks, document);
    let asked: Vec<RollbackQuestion<'_>> = stacks
        .iter()
        .filter_map(|&stack| {
            let key = pairs.key(stack)?;
            let entry = document.stacks.get(key)?;
            let applied = entry.applied.as_ref();
            let inputs = applied.and_then(|applied| applied.inputs.as_ref());
            let is_same = inputs.is_some_and(|inputs| digests.are(stack, inputs));
            let key = document.key_as_read(key);
            let question = RollbackQuestion::new(stack, (key, entry), is_same);
            (!question.commits.is_empty()).then_some(question)
        })
        .collect();
    if asked.is_empty() {
        return Ok(BTreeMap::new());
    }
    let repository = present.repository;
    let commits: BTreeSet<&CommitId> = asked
        .iter()
        .flat_map(|question| &question.commits)
        .map(|named| &named.commit)
        .collect();
    let relations = relations(repository, commits)?;
    let mut lacking: BTreeMap<&CommitId, BTreeSet<StackIndex>> = BTreeMap::new();
    for (&commit, relation) in &relations {
        let CommitRelation::Lacks {
            parting: Some(parting),
            ..
        } = relation
        else {
            continue;
        };
        let questions = asked.iter();
        let had: Vec<EarlierInputs<'_>> = questions
            .filter_map(|question| question.inputs_at(commit, present))
            .collect();
        let found = RevertedFiles::find(present, parting, commit)?;
        lacking.insert(commit, lacked((present, digests), commit, &found, &had)?);
    }
    let remote = remote(&present.project.settings, repository)?;
    let mut found: BTreeMap<StackIndex, Rollback> = BTreeMap::new();
    for question in &asked {
        let mut named = question.commits.iter();
        let lacks = |named: &&RecordedCommit| -> Result<bool, GitError> {
            if !named.counts(&relations, repository)? {
                return Ok(false);
            }
            Ok(match &relations[&named.commit] {
                CommitRelation::Has => false,
                CommitRelation::Lacks {
                    parting: Some(_), ..
                } => named.is_dirty || lacking[&named.commit].contains(&question.stack),
                CommitRelation::Lacks { parting: None, .. } | CommitRelation::NotHere => true,
            })
        };
        let lacked = named.find_map(|named| match lacks(&named) {
            Ok(false) => None,
            Ok(true) => Some(Ok(named)),
            Err(error) => Some(Err(error)),
        });
        let Some(lacked) = lacked.transpose()? else {
            continue;
        };
        let commit = &lacked.commit;
        let (lack, fetch) = match &relations[commit] {
            CommitRelation::Has => continue,
            CommitRelation::Lacks { lack, .. } => (*lack, vec!["--unshallow".to_owned()]),
            CommitRelation::NotHere => (MissingCommit::NotHere, vec![commit.to_string()]),
        };
        let fetch = remote.clone().map(|remote| match lack {
            MissingCommit::Unclear => [fetch, vec![remote]].concat(),
            _ => [vec![remote], fetch].concat(),
        });
        let is_done = fetch.as_ref().is_some_and(|fetch| fetched.contains(fetch));
        let is_asked = matches!(lack, MissingCommit::Unclear | MissingCommit::NotHere) && !is_done;
        let rollback = Rollback {
            commit: commit.clone(),
            branch: None,
            lack: match lack {
                MissingCommit::NotHere if is_done => MissingCommit::Lost,
                lack => lack,
            },
            fetch: fetch.filter(|_| is_asked),
        };
        found.insert(question.stack, rollback);
    }
    let is_here = |it: &&Rollback| !matches!(it.lack, MissingCommit::NotHere | MissingCommit::Lost);
    let here = found.values().filter(is_here).map(|it| it.commit.clone());
    let branches = repository.branches_with(&here.collect())?;
    for rollback in found.values_mut() {
        let branch = branches.get(&rollback.commit).and_then(BranchWith::name);
        rollback.branch = branch.map(str::to_owned);
    }
    Ok(found)
}

/// A stack and its applied commits, the latest first.
struct RollbackQuestion<'d> {
    stack: StackIndex,
    /// The key under which its entry was read.
    key: &'d str,
    commits: Vec<RecordedCommit<'d>>,
}

struct RecordedCommit<'d> {
    commit: CommitId,
    /// The inputs of the stack there, if they are recorded.
    inputs: Option<&'d Inputs>,
    /// A commit known to have the same inputs. If set, this one counts only as a descendant of it.
    after: Option<CommitId>,
    /// Whether uncommitted changes were applied too.
    is_dirty: bool,
}

impl<'d> RollbackQuestion<'d> {
    fn new(stack: StackIndex, (key, entry): (&'d str, &'d Entry), is_same: bool) -> Self {
        let mut commits = Vec::new();
        let mut add = |commit: Option<&str>,
                       inputs: Option<&'d Inputs>,
                       after: Option<&CommitId>,
                       is_dirty: bool| {
            let commit = commit.and_then(CommitId::new);
            commits.extend(commit.map(|commit| RecordedCommit {
                commit,
                inputs,
                after: after.cloned(),
                is_dirty,
            }));
        };
        let applied = entry.applied.as_ref();
        let of_applied = applied.and_then(|applied| applied.commit.as_deref());
        if let Some(last) = &entry.last
            && (!entry.has_succeeded() || last.commit.as_deref() != of_applied)
        {
            add(last.commit.as_deref(), None, None, false);
        }
        if let Some(applied) = applied.filter(|_| !is_same) {
            let seen = applied.seen.as_deref().and_then(CommitId::new);
            let of_applied = of_applied.filter(|_| applied.commit != applied.seen);
            let inputs = applied.inputs.as_ref();
            add(of_applied, inputs, seen.as_ref(), applied.dirty);
            add(applied.seen.as_deref(), inputs, None, false);
        }
        RollbackQuestion {
            stack,
            key,
            commits,
        }
    }

    /// Returns the inputs of the stack at a commit; `None` if that is not one of its commits.
    fn inputs_at<'q>(
        &'q self,
        commit: &CommitId,
        present: CurrentProject<'q>,
    ) -> Option<EarlierInputs<'q>> {
        let mut named = self.commits.iter().filter(|named| named.commit == *commit);
        let inputs = named.next()?.inputs.or_else(|| named.next()?.inputs);
        Some(EarlierInputs::new(present, self.stack, self.key, inputs))
    }
}

impl RecordedCommit<'_> {
    /// Returns whether it must be an ancestor of HEAD.
    fn counts(
        &self,
        relations: &BTreeMap<&CommitId, CommitRelation>,
        repository: &Repository,
    ) -> Result<bool, GitError> {
        let Some(after) = &self.after else {
            return Ok(true);
        };
        let is_here = |commit| !matches!(relations[commit], CommitRelation::NotHere);
        Ok(is_here(&self.commit)
            && is_here(after)
            && repository.is_ancestor(after, &self.commit)?)
    }
}

enum CommitRelation {
    Has,
    /// HEAD lacks it; with the merge base, if known.
    Lacks {
        lack: MissingCommit,
        parting: Option<CommitId>,
    },
    NotHere,
}

fn relations<'c>(
    repository: &Repository,
    commits: BTreeSet<&'c CommitId>,
) -> Result<BTreeMap<&'c CommitId, CommitRelation>, GitError> {
    let head = repository.commit("HEAD")?;
    let is_shallow = repository.is_shallow()?;
    let mut relations = BTreeMap::new();
    for commit in commits {
        let is_here = repository.commit(commit.as_str())?.as_ref() == Some(commit);
        let relation = match &head {
            Some(head) if repository.is_ancestor(commit, head)? => CommitRelation::Has,
            _ if !is_here => CommitRelation::NotHere,
            None => CommitRelation::Lacks {
                lack: MissingCommit::Apart,
                parting: None,
            },
            Some(head) => {
                let parting = repository.merge_base(commit, head)?;
                let lack = match &parting {
                    Some(parting) if parting == head => MissingCommit::Behind,
                    _ if is_shallow => MissingCommit::Unclear,
                    _ => MissingCommit::Apart,
                };
                CommitRelation::Lacks { lack, parting }
            }
        };
        relations.insert(commit, relation);
    }
    Ok(relations)
}

/// Returns the stacks whose inputs, now or at the commit, include one of the files.
fn lacked(
    (present, digests): (CurrentProject<'_>, &InputDigests),
    commit: &CommitId,
    lacking: &RevertedFiles,
    had: &[EarlierInputs<'_>],
) -> Result<BTreeSet<StackIndex>, ChangeError> {
    let (had, others): (Vec<_>, Vec<_>) = had.iter().partition(|it| it.may_have(lacking, digests));
    let others: Vec<StackIndex> = others.iter().map(|it| it.stack).collect();
    let causes = if lacking.files.is_empty() {
        BTreeMap::new()
    } else {
        causes_by(present, commit, &lacking.files, &others)?
    };
    let had = had.iter().map(|it| it.stack);
    Ok(had.chain(causes.into_keys()).collect())
}

/// Returns the remote to fetch from.
fn remote(settings: &ProjectSettings, repository: &Repository) -> Result<Option<String>, GitError> {
    let remotes = repository.remotes()?;
    let usual = settings.default_remote.as_deref().unwrap_or("origin");
    let found = remotes.iter().find(|remote| *remote == usual);
    // Only a configured remote may become an argument of `git fetch`.
    let any = remotes
        .first()
        .filter(|_| settings.default_remote.is_none());
    Ok(found.or(any).cloned())
}
