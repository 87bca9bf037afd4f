//! What policies are told of a run: the commit, the repository, and who runs `orch`.

use anyhow::Context as _;
use orch::author;
use orch::git::Repository;
use orch::project::Project;
use orch::run::workflow::{CommitInput, RunFacts, SessionInput};

use super::Loaded;
use crate::program::error::Result;

impl Loaded {
    /// Returns what policies are told of a run.
    ///
    /// # Errors
    ///
    /// If git cannot answer.
    pub(super) fn run_facts(&mut self, metadata: &[String]) -> Result<RunFacts> {
        let uncommitted = self.uncommitted();
        let repository = Repository::open(&self.project.root).ok();
        let user = author::user(repository.as_ref());
        let teams = std::env::var("ORCH_TEAMS").unwrap_or_default();
        let teams = teams
            .split(',')
            .map(str::trim)
            .filter(|team| !team.is_empty());
        let session = SessionInput {
            login: author::account(),
            name: user.split(" <").next().unwrap_or_default().to_owned(),
            teams: teams.map(str::to_owned).collect(),
            machine: std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&&*value)),
            ..SessionInput::default()
        };
        let known = match &repository {
            Some(repository) => repository_facts(&self.project, repository)?,
            None => RunFacts::default(),
        };
        Ok(RunFacts {
            is_dirty: uncommitted.is_some_and(|files| !files.is_empty()),
            metadata: metadata.to_vec(),
            session,
            ..known
        })
    }
}

/// Returns what policies are told of a repository and of its HEAD.
///
/// # Errors
///
/// If git cannot answer.
pub(super) fn repository_facts(project: &Project, repository: &Repository) -> Result<RunFacts> {
    let mut facts = RunFacts::default();
    let preferred = project.settings.default_remote.as_deref();
    let mut remotes = repository.remotes().context("failed to ask git")?;
    remotes.sort_by_key(|remote| remote != preferred.unwrap_or("origin"));
    if let Some(remote) = remotes.first() {
        let url = repository.config(&format!("remote.{remote}.url"));
        let url = url.context("failed to ask git")?.unwrap_or_default();
        (facts.namespace, facts.repository) = names_in(&url);
    }
    if let Some(head) = repository.commit("HEAD").context("failed to ask git")? {
        let text = repository.commit_text(&head).context("failed to ask git")?;
        let branch = repository.branch().ok().flatten();
        facts.commit = CommitInput {
            author: text.author,
            branch: branch.unwrap_or_else(built_branch),
            created_at: text.committed_at.saturating_mul(1_000_000_000),
            hash: head.to_string(),
            message: text.message,
        };
    }
    Ok(facts)
}

/// Returns the branch that a CI job is about; jobs usually have no branch checked out.
fn built_branch() -> String {
    let names = [
        "GITHUB_HEAD_REF",
        "GITHUB_REF_NAME",
        "CI_COMMIT_REF_NAME",
        "BUILDKITE_BRANCH",
        "BRANCH_NAME",
    ];
    let mut names = names.iter().filter_map(|name| std::env::var(name).ok());
    names.find(|name| !name.is_empty()).unwrap_or_default()
}

/// Returns the owner and the name of a repository with this address; never what the address says of a user.
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
