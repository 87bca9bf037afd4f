//! `--changed`: finding the base and the changes, and refusing where the base is unknown.

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context as _;
use orch::change::base::{self, Base, BaseQuery, BaseUnknown, Remedy, ci};
use orch::change::{self, Changes, Counted, Since, SinceBase, SwitchedOff};
use orch::diagnostic::Code;
use orch::git::{ChangedFile, CommitId, FileState, GitError, Repository};
use orch::path::StackPath;
use orch::plan::is_saved_plan;
use orch::printable::printable;
use orch::project::Problems;
use orch::project::host::host_variable;
use orch::report::Refusal;
use tracing::{debug, info};

use super::Loaded;
use super::selection_flags::{ChangeSource, SelectArgs};
use crate::program::console;
use crate::program::error::{ErrorKind, ProgramError, Result};

/// What the user asks of change detection.
#[derive(Clone)]
pub(super) struct ChangeQuery {
    base: Option<String>,
    fetch: bool,
    untracked: Option<bool>,
    uncommitted: Option<bool>,
}

impl ChangeQuery {
    /// Reads the flags.
    pub(super) fn new(args: &SelectArgs) -> Result<Self> {
        let switch = |source: ChangeSource, name: &str| {
            let is_enabled = args.enable_change_detection.contains(&source);
            let is_disabled = args.disable_change_detection.contains(&source);
            match (is_enabled, is_disabled) {
                (true, true) => Err(ProgramError::usage(format!(
                    "`{name}` is in --enable-change-detection and in --disable-change-detection"
                ))),
                (false, false) => Ok(None),
                _ => Ok(Some(is_enabled)),
            }
        };
        Ok(ChangeQuery {
            base: args.base.clone(),
            fetch: args.fetch,
            untracked: switch(ChangeSource::GitUntracked, "git-untracked")?,
            uncommitted: switch(ChangeSource::GitUncommitted, "git-uncommitted")?,
        })
    }
}

impl ChangeQuery {
    /// Returns the base that the user names.
    pub(super) fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }
}

/// Returns the error of an unknown base, with a remedy. `fetched` says whether `--fetch` has done what
/// it can.
fn way_out(why: &BaseUnknown, fetched: bool) -> String {
    match why {
        BaseUnknown::Refused { remedy, .. } => match (remedy.command(), remedy) {
            (Some(command), _) if fetched => format!("run `{command}`"),
            (Some(command), _) => {
                format!("run `{command}`, or let orch get what it needs with `--fetch`")
            }
            (None, Remedy::Advice(advice)) => advice.clone(),
            (None, _) => String::new(),
        },
        BaseUnknown::Unclear(_) => "name a base with `--base REV`".to_owned(),
        BaseUnknown::Git(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => {
            "change into a git repository, or leave out `--changed` to act on all stacks".to_owned()
        }
        BaseUnknown::Git(GitError::Fetch { .. }) => {
            "see git's message above, or name another base with `--base REV`".to_owned()
        }
        BaseUnknown::Git(GitError::Start(_)) => "install `git`, or put it on the PATH".to_owned(),
        BaseUnknown::Git(error) => match error.remedy() {
            Some(command) => format!("if you trust the repository, run `{command}`"),
            None => "see what `git status` reports in this directory".to_owned(),
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

/// The state of git, which another thread reads while this one reads the project.
///
/// The thread owns all that it needs, and only a caller that needs the state waits for it: a command
/// that ends early because of the configuration does not wait for git.
pub(super) struct PendingGitState(thread::JoinHandle<Result<GitState, GitError>>);

pub(super) struct GitState {
    pub(super) repository: Repository,
    pub(super) status: Result<Vec<ChangedFile>, GitError>,
    /// Whether the status need not be exact.
    pub(super) is_rough: bool,
}

/// Returns what is not committed, without saved plans: these are no work in progress.
///
/// # Errors
///
/// If git cannot answer.
pub(super) fn exact_status(
    repository: &Repository,
    root: &Path,
) -> Result<Vec<ChangedFile>, GitError> {
    let status = repository.status()?;
    Ok(without_plans(root, status))
}

fn without_plans(root: &Path, mut status: Vec<ChangedFile>) -> Vec<ChangedFile> {
    status.retain(|file| {
        file.state != FileState::Untracked || !is_saved_plan(&file.path.to_host(root))
    });
    status
}

fn read(root: &Path, is_rough: bool) -> Result<GitState, GitError> {
    let repository = Repository::open(root)?;
    let status = if is_rough {
        repository
            .rough_status()
            .map(|files| without_plans(root, files))
    } else {
        exact_status(&repository, root)
    };
    debug!("status read");
    Ok(GitState {
        repository,
        status,
        is_rough,
    })
}

impl PendingGitState {
    /// Starts to read; the status need not be exact if `is_rough`.
    pub(super) fn start(root: &Path, is_rough: bool) -> Self {
        let root: PathBuf = root.to_path_buf();
        PendingGitState(thread::spawn(move || read(&root, is_rough)))
    }

    fn join(self) -> Result<GitState, GitError> {
        match self.0.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Returns which changes are switched off: by the flag, else by the setting.
fn switched_off(query: Option<bool>, setting: bool) -> Option<SwitchedOff> {
    match query {
        Some(is_on) => (!is_on).then_some(SwitchedOff::Flag),
        None => (!setting).then_some(SwitchedOff::Configuration),
    }
}

/// Prints notes about changes that select nothing.
pub(super) fn note_unselectable(since: &Since) {
    for removed in &since.removed {
        let since = match &since.base {
            SinceBase::Commit(_) => "was removed since the base",
            SinceBase::Applied(_) => "is on record, and has been removed here",
        };
        console::note(&format!(
            "stack `{}` {since}; nothing is run for it",
            printable(removed.as_str())
        ));
    }
    if since.outside {
        console::note(
            "files of the repository outside of the project have changed; they select no stacks",
        );
    }
}

impl Loaded {
    /// Returns the state of git. Must be called once.
    pub(super) fn read(&mut self) -> Result<GitState, GitError> {
        match (self.read.take(), self.reading.take()) {
            (Some(read), _) => Ok(read),
            (None, Some(reading)) => reading.join(),
            (None, None) => read(&self.project.root, false),
        }
    }

    /// Returns the commit of HEAD; nothing outside of git and before the first commit.
    pub(super) fn head(&mut self) -> Result<Option<CommitId>> {
        let failed = "failed to ask git for HEAD";
        let read = match self.read() {
            Ok(read) => read,
            Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => return Ok(None),
            Err(error) => return Err(anyhow::Error::new(error).context(failed).into()),
        };
        let head = read.repository.commit("HEAD").context(failed);
        self.read = Some(read);
        Ok(head?)
    }

    /// Finds what has changed, and prints the base.
    pub(super) fn changes(&mut self, query: &ChangeQuery) -> Result<Changes> {
        let reading = self.reading.take().context("git was not read")?;
        let (read, base) = match self.base(reading, query) {
            Ok(found) => found,
            Err(why) => {
                self.write_problems(Some(Refusal {
                    problem: &why.to_string(),
                    command: remedy_command(&why).as_deref(),
                }))?;
                let hint = way_out(&why, query.fetch);
                let error = anyhow::Error::new(why).context("what has changed is unknown");
                return Err(ProgramError::new(ErrorKind::Refused, error).hint(hint));
            }
        };
        console::base(&SinceBase::Commit(base.clone()));
        let mut problems = std::mem::take(&mut self.problems);
        let changes = self.find_changes(read, base, query, &mut problems);
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

    /// Adds a note to each reference that is an error because its stack was removed since the base.
    /// Adds none if the base is unknown, or if other errors may hide stacks.
    pub(super) fn explain_references(&mut self, query: &ChangeQuery) {
        let Problems {
            diagnostics,
            errors,
            ..
        } = &self.problems;
        let mut wrong = diagnostics.iter().filter(|it| it.is_error());
        if !errors.is_empty() || !wrong.all(|it| it.code == Code::UnknownReference) {
            return;
        }
        let Some(reading) = self.reading.take() else {
            return;
        };
        let query = ChangeQuery {
            fetch: false,
            ..query.clone()
        };
        if self.is_applied(&query) {
            return;
        }
        let Ok((read, base)) = self.base(reading, &query) else {
            return;
        };
        console::base(&SinceBase::Commit(base.clone()));
        // The command fails with these errors, so warnings about inputs and triggers can wait.
        let mut others = Problems::default();
        if let Ok(changes) = self.find_changes(read, base, &query, &mut others) {
            self.note_removed(&changes.since);
        }
    }

    fn note_removed(&mut self, since: &Since) {
        let diagnostics = &mut self.problems.diagnostics;
        self.references.note_removed(since, diagnostics);
    }

    /// Returns which changes count that are not committed.
    pub(super) fn counted(&self, query: Option<&ChangeQuery>) -> Counted {
        let settings = &self.project.settings;
        let asked = |of: fn(&ChangeQuery) -> Option<bool>| query.and_then(of);
        Counted {
            untracked: switched_off(asked(|query| query.untracked), settings.untracked),
            uncommitted: switched_off(asked(|query| query.uncommitted), settings.uncommitted),
        }
    }

    /// Finds what has changed since a base, and adds warnings to `problems`.
    fn find_changes(
        &mut self,
        read: GitState,
        base: Base,
        query: &ChangeQuery,
        problems: &mut Problems,
    ) -> Result<Changes> {
        let counted = self.counted(Some(query));
        // What does not count need not be known.
        let is_needed = counted.untracked.is_none() || counted.uncommitted.is_none();
        let GitState {
            repository,
            status,
            is_rough,
        } = read;
        let status = match status {
            Err(error) if is_needed => {
                let what = "failed to read the status of the working tree";
                return Err(anyhow::Error::new(error).context(what).into());
            }
            status => status,
        };
        // A run needs it again, for the safeguards.
        self.read = Some(GitState {
            repository,
            status,
            is_rough,
        });
        let changes =
            self.with_present(counted, |present| change::find(present, base, problems))?;
        Ok(changes.context("failed to find what has changed")?)
    }

    /// Finds the base; fetches what is missing for that if the user allows it.
    fn base(
        &self,
        reading: PendingGitState,
        query: &ChangeQuery,
    ) -> Result<(GitState, Base), BaseUnknown> {
        let mut read = reading.join()?;
        let ci = match query.base {
            Some(_) => None,
            None => ci::context(host_variable, |file| {
                std::fs::read_to_string(file).map_err(|error| error.to_string())
            })?,
        };
        let base_query = BaseQuery {
            revision: query.base.clone(),
            ci,
            ..BaseQuery::of(&self.project.settings)
        };
        let mut deepened = 0;
        let mut previous = None;
        loop {
            let unknown = match base::find(&read.repository, &base_query) {
                Ok(base) => return Ok((read, base)),
                Err(unknown) => unknown,
            };
            let BaseUnknown::Refused { problem, remedy } = unknown else {
                return Err(unknown);
            };
            let Some(arguments) = remedy.fetch(deepened).filter(|_| query.fetch) else {
                return Err(BaseUnknown::Refused { problem, remedy });
            };
            // What did not help once does not help twice.
            if previous.as_ref() == Some(&arguments) {
                let advice = "fetching did not help; name another base with `--base REV`";
                let remedy = Remedy::Advice(advice.to_owned());
                return Err(BaseUnknown::Refused { problem, remedy });
            }
            console::note(&format!("running `{}`", base::fetch_command(&arguments)));
            if remedy.is_deepening() {
                deepened += 1;
            }
            read.repository.fetch(&arguments)?;
            previous = Some(arguments);
        }
    }
}
