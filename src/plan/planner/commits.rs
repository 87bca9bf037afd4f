//! The commits whose code destroys removed stacks, each checked out once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::context::{Context, PLANS, PrivateFolder, sweep};
use crate::error::Result;
use crate::folder::GuardedFolder;
use crate::git::{CommitId, Repository};
use crate::plan::commit_code::CommitCode;

/// Folder in `.orch` for checkouts.
const FOLDER: &str = "worktrees";

/// Checked-out commits. The checkouts are removed on drop.
#[derive(Default)]
pub struct Commits {
    /// By commit: its code, or why there is none.
    by_commit: BTreeMap<CommitId, std::result::Result<CommitCode, String>>,
    /// Declared last, so that it is dropped after the checkouts in it.
    folder: Option<PrivateFolder>,
}

impl Commits {
    /// Checks out the missing commits. Removes leftovers of killed processes first.
    pub fn check_out(&mut self, context: &Context, commits: BTreeSet<CommitId>) -> Result<()> {
        let new: Vec<CommitId> = commits
            .into_iter()
            .filter(|it| !self.by_commit.contains_key(it))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        self.check_out_of(context, &context.known_git()?.repository, new)
    }

    pub fn check_out_of(
        &mut self,
        context: &Context,
        repository: &Repository,
        commits: impl IntoIterator<Item = CommitId>,
    ) -> Result<()> {
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => PrivateFolder::of(context, FOLDER)?,
        };
        let folder = self.folder.insert(folder);
        for commit in commits {
            let path = folder.path().join(commit.as_str());
            let code =
                CommitCode::check_out(repository, &commit, &path).map_err(|why| why.to_string());
            self.by_commit.insert(commit, code);
        }
        Ok(())
    }

    pub fn code(&self, commit: &CommitId) -> std::result::Result<&CommitCode, String> {
        match self.by_commit.get(commit) {
            Some(code) => code.as_ref().map_err(Clone::clone),
            None => Err("its commit was not checked out".to_owned()),
        }
    }
}

impl Context {
    /// Removes checkouts and plans of killed processes. In a repository, git must have been read.
    pub fn sweep(&self) {
        if !matches!(GuardedFolder::find(&self.project.root), Ok(Some(_))) {
            return;
        }
        let folder = self.project.root.join(crate::folder::NAME);
        let is_there = |place: &Path| place.symlink_metadata().is_ok_and(|it| it.is_dir());
        let plans = folder.join(PLANS);
        if is_there(&plans) {
            sweep(&plans, &|_| {});
        }
        let checkouts = folder.join(FOLDER);
        if let Some(git) = self.git.known().filter(|_| is_there(&checkouts)) {
            sweep(&checkouts, &|folder| {
                git.repository.remove_checkouts(folder);
            });
        }
    }
}
