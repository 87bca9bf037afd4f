//! The facts of a run for policies: the commit, the repository, and the user.

use std::collections::{BTreeMap, BTreeSet};

use crate::author;
use crate::change::EntryIndex;
use crate::change::base::{self, BaseQuery};
use crate::context::Context;
use crate::error::{Error, ErrorContext as _, Result};
use crate::git::{CommitId, CommitText, GitError, Repository};
use crate::project::Project;
use crate::project::host::host_variable;
use crate::project::stack::StackIndex;
use crate::run::workflow::{CommitInput, RecordedStack, RunFacts, SessionInput, state_on_record};
use crate::state::document::{Document, Entry};

const NO_ANSWER: &str = "failed to ask git";

impl Context {
    pub fn run_facts(&mut self, metadata: &[String]) -> Result<RunFacts> {
        let uncommitted = self.uncommitted();
        let repository = match Repository::open(&self.project.root) {
            Ok(repository) => Some(repository),
            Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => None,
            Err(error) => return Err(Error::described(NO_ANSWER, error)),
        };
        let user = author::known_user(repository.as_ref()).context(NO_ANSWER)?;
        let user = user.unwrap_or_default();
        let teams = host_variable("ORCH_TEAMS").unwrap_or_default();
        let teams = teams
            .split(',')
            .map(str::trim)
            .filter(|team| !team.is_empty());
        let session = SessionInput {
            login: author::account(),
            name: user.split(" <").next().unwrap_or_default().to_owned(),
            teams: teams.map(str::to_owned).collect(),
            machine: host_variable("CI")
                .is_some_and(|value| !["", "0", "false"].contains(&&*value)),
            ..SessionInput::default()
        };
        let known = match &repository {
            Some(repository) => repository_facts(&self.project, repository)?,
            None => RunFacts {
                tracked_branch: self
                    .project
                    .settings
                    .default_branch
                    .clone()
                    .unwrap_or_default(),
                ..RunFacts::default()
            },
        };
        Ok(RunFacts {
            is_dirty: match uncommitted {
                Some(files) => !files.is_empty(),
                None if repository.is_none() => false,
                None => {
                    let what = "failed to look for uncommitted changes in the working tree";
                    return Err(Error::external(what)
                        .hint("run `git status` in this directory to see the cause"));
                }
            },
            metadata: metadata.to_vec(),
            session,
            ..known
        })
    }

    /// Reads the state document, and returns the records of stacks for policies. Fails if the
    /// document cannot be used, or git fails.
    pub fn read_on_record(&mut self) -> Result<BTreeMap<StackIndex, RecordedStack>> {
        let document = self.read_document()?;
        on_record(&self.project, &document)
    }

    /// Reads the state document but computes no digests of the stacks. Fails if it cannot be used.
    pub fn read_document(&mut self) -> Result<Document> {
        let mut document = self.opened()?.read()?;
        let opened = self.state.opened.as_ref().context("it has been opened")?;
        opened.check(&self.project, &mut document)?;
        Ok(document)
    }
}

pub fn on_record(
    project: &Project,
    document: &Document,
) -> Result<BTreeMap<StackIndex, RecordedStack>> {
    let pairs = EntryIndex::new(&project.stacks, document);
    let entries: Vec<(StackIndex, &Entry)> = pairs
        .iter()
        .map(|(stack, key)| (stack, &document.stacks[key]))
        .collect();
    let commits: BTreeMap<StackIndex, CommitId> = entries
        .iter()
        .filter_map(|(stack, entry)| {
            let commit = entry.applied.as_ref()?.commit.as_deref()?;
            Some((*stack, CommitId::new(commit)?))
        })
        .collect();
    let distinct: BTreeSet<CommitId> = commits.values().cloned().collect();
    // Without a repository, only the ids are known.
    let texts = match Repository::open(&project.root) {
        Ok(repository) => repository.commit_texts(&distinct),
        Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    };
    let texts = texts.context(NO_ANSWER)?;
    let known = |(stack, entry): (StackIndex, &Entry)| {
        let commit = commits.get(&stack);
        let record = RecordedStack {
            state: state_on_record(entry)?,
            is_applied: entry.applied.is_some(),
            // The state does not know the branch from which a commit was applied.
            commit: commit.map(|id| commit_input(id, texts.get(id), String::new())),
        };
        Some((stack, record))
    };
    Ok(entries.into_iter().filter_map(known).collect())
}

/// Returns the input of policies for a commit, with its text if this clone has it.
fn commit_input(id: &CommitId, text: Option<&CommitText>, branch: String) -> CommitInput {
    let text = text.cloned().unwrap_or_default();
    CommitInput {
        author: text.author,
        branch,
        created_at: text.committed_at.saturating_mul(1_000_000_000),
        hash: id.to_string(),
        message: text.message,
    }
}

/// Returns the facts of a repository and its HEAD for policies.
pub fn repository_facts(project: &Project, repository: &Repository) -> Result<RunFacts> {
    let mut facts = RunFacts::default();
    let preferred = project.settings.default_remote.as_deref();
    let mut remotes = repository.remotes().context(NO_ANSWER)?;
    remotes.sort_by_key(|remote| remote != preferred.unwrap_or("origin"));
    if let Some(remote) = remotes.first() {
        let url = repository
            .config(&format!("remote.{remote}.url"))
            .context(NO_ANSWER)?
            .unwrap_or_default();
        (facts.namespace, facts.repository) = names_in(&url);
    }
    if let Some(head) = repository.commit("HEAD").context(NO_ANSWER)? {
        let texts = repository
            .commit_texts(&BTreeSet::from([head.clone()]))
            .context(NO_ANSWER)?;
        let branch = repository
            .branch()
            .context(NO_ANSWER)?
            .unwrap_or_else(built_branch);
        facts.commit = commit_input(&head, texts.get(&head), branch);
    }
    let query = BaseQuery::of(&project.settings);
    let tracked = base::known_default_branch(repository, &query)
        .context(NO_ANSWER)?
        .map(|known| known.branch)
        .or(query.branch);
    facts.tracked_branch = tracked.unwrap_or_else(|| facts.commit.branch.clone());
    Ok(facts)
}

/// Returns the branch that a CI job is about; jobs usually have no branch checked out.
fn built_branch() -> String {
    let mut names = [
        "GITHUB_HEAD_REF",
        "GITHUB_REF_NAME",
        "CI_COMMIT_REF_NAME",
        "BUILDKITE_BRANCH",
        "BRANCH_NAME",
    ]
    .iter()
    .filter_map(|name| host_variable(name));
    names.find(|name| !name.is_empty()).unwrap_or_default()
}

/// Returns the owner and the name of a repository with this address, never the user in the address.
fn names_in(url: &str) -> (String, String) {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => url.split_once(':').map_or(url, |(_, path)| path),
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    match path.rsplit_once('/') {
        Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
        None => (String::new(), path.to_owned()),
    }
}
