//! Compares the stacks with the state, for the flags and commands that need their status.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use super::used_outputs::{UsedDigests, UsedOutputs};
use super::{ChangeQuery, Context, GitSnapshot, MARK_ROOT, OpenedState, exact_status};
use crate::change::base::{
    BaseQuery, BaseUnknown, RemoteBranch, ask_default_branch, fetch_command,
};
use crate::change::{
    ChangeBase, CountedStates, CurrentProject, InputDigests, NoProof, Pending, StackStatus,
    StackStatuses, UncommittedChanges, digests as digests_of, stack_statuses,
};
use crate::error::{Error, ErrorContext as _, ErrorKind, Result, with_causes};
use crate::git::{ChangedFile, FileState, GitError};
use crate::notice::Notices;
use crate::path::ProjectPath;
use crate::printable::printable;
use crate::project::config::StateConfig;
use crate::project::discover::RootRule;
use crate::project::host::{host_environment, host_variable};
use crate::project::lifecycle::IgnoredChanges;
use crate::project::stack::StackIndex;
use crate::project::{Problems, Project, stack};
use crate::selection::select::Query;
use crate::state::document::Document;

/// The base that refers to the state, if the project keeps one.
const APPLIED: &str = "applied";

/// The error if the default branch cannot be fetched.
const FETCH_FAILED: &str = "failed to fetch the default branch";

const MAX_NAMED: usize = 3;

pub(super) struct CountedDigests {
    digests: Rc<InputDigests>,
    /// Which kinds of uncommitted changes count.
    counted: CountedStates,
}

/// Returns the configuration of the state. Fails if there is none, or it is invalid.
pub fn state_config(project: &Project, notices: &Notices) -> Result<StateConfig> {
    let Some(block) = &project.settings.state else {
        let what = "this project keeps no state";
        return Err(Error::refused(what)
            .hint("add a block `orch { config { state { project = \"…\" } } }` to its root; see `orch help state`"));
    };
    block.evaluate(&host_variable).map_err(|problems| {
        notices.diagnostics(&problems, &project.sources);
        Error::new(
            ErrorKind::Configuration,
            "the configuration of the state is wrong",
        )
    })
}

impl Context {
    pub fn is_applied(&self, query: &ChangeQuery) -> bool {
        query.base() == Some(APPLIED) && self.project.settings.state.is_some()
    }

    /// Returns the statuses of the stacks. `change` says which changes count; its base is noted.
    pub fn read_statuses(
        &mut self,
        change: Option<&ChangeQuery>,
        explains: bool,
    ) -> Result<StackStatuses> {
        let counted = self.counted(change);
        let document = self.read_and_digest(counted)?;
        if change.is_some() {
            self.note_namesake()?;
        }
        let address = self.opened()?.backend.address();
        let statuses = self.statuses_with_outputs(&document, address, counted, explains)?;
        if change.is_some() {
            self.report_base(&ChangeBase::Applied(statuses.base.clone()));
            note_absent(&self.notices, &statuses);
        }
        Ok(statuses)
    }

    /// Returns the state of the project, opened once.
    pub fn opened(&mut self) -> Result<&mut OpenedState> {
        if self.state.opened.is_none() {
            let config = state_config(&self.project, &self.notices)?;
            if self.rule == RootRule::WorkingDirectory {
                let what = "no state: nothing marks the root of a project here";
                return Err(Error::refused(what).hint(MARK_ROOT));
            }
            self.state.opened = Some(OpenedState::new(
                &self.project,
                config,
                self.notices.clone(),
            )?);
        }
        Ok(self.state.opened.as_mut().expect("it has just been opened"))
    }

    /// Reads the document of this project, and digests all stacks at the same time. Fails if the
    /// document is unusable; else, if the stacks cannot be digested.
    pub fn read_and_digest(&mut self, counted: CountedStates) -> Result<Document> {
        self.opened()?;
        let opened = self
            .state
            .opened
            .take()
            .context("it has just been opened")?;
        let reading = thread::spawn(move || {
            let document = opened.read();
            (opened, document)
        });
        let digested = self.digest(counted);
        let (opened, document) = match reading.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let opened = self.state.opened.insert(opened);
        let mut document = document?;
        opened.relocate(&self.workspace.project, &mut document)?;
        let mut checked = opened.check_stacks(&self.workspace.project, &document);
        if checked.is_err() && self.state.fetches_seen && digested.is_ok() {
            // Fetched commits may show that the recorded stacks belong to this project.
            let address = opened.backend.address();
            self.statuses_in(&document, address, counted, false)?;
            let opened = self.state.opened.as_mut().context("it has been opened")?;
            opened.reopen_repository(&self.workspace.project)?;
            checked = opened.check_stacks(&self.workspace.project, &document);
        }
        checked?;
        digested?;
        Ok(document)
    }

    /// Notes that a branch or tag has the name that refers to the state.
    fn note_namesake(&mut self) -> Result<()> {
        let notices = self.notices.clone();
        let Some(repository) = &self.opened()?.repository else {
            return Ok(());
        };
        for (what, name) in [
            ("branch", "refs/heads/applied"),
            ("tag", "refs/tags/applied"),
        ] {
            if repository
                .commit(name)
                .context("failed to ask git")?
                .is_some()
            {
                notices.note(&format!(
                    "`--base applied` means the state; for the {what} of that name, write `--base {name}`"
                ));
            }
        }
        Ok(())
    }

    /// Like [`Self::statuses_in`], but a stack that uses changed outputs is pending.
    pub fn statuses_with_outputs(
        &mut self,
        document: &Document,
        address: String,
        counted: CountedStates,
        explains: bool,
    ) -> Result<StackStatuses> {
        let mut statuses = self.statuses_in(document, address, counted, explains)?;
        let entries = self.entries_of(document);
        let used_by = |stack: &StackIndex| UsedDigests::of(entries.get(stack)?.1.applied.as_ref()?);
        let is_never_updated = |stack: StackIndex| {
            let rule = self.project.rules_of(stack).ignore_changes;
            rule.is_some_and(|rule| rule.value == IgnoredChanges::All)
        };
        // Most projects record no outputs, and need no graph.
        let mut used = None;
        for (&stack, status) in &mut statuses.stacks {
            let Some(before) = used_by(&stack).filter(|_| *status == StackStatus::Applied) else {
                continue;
            };
            if is_never_updated(stack) {
                continue;
            }
            let outputs = |stack| entries.get(&stack)?.1.outputs.as_ref();
            let used =
                used.get_or_insert_with(|| UsedOutputs::new(&self.project, &self.graph, outputs));
            let differences = used.differences(stack, &before);
            if differences.is_none() {
                continue;
            }
            let newer = used.newer_sources(stack, &entries, |_| false);
            // Another order also makes a difference, but is no input.
            if !differences.inputs.is_empty() || !newer.is_empty() {
                let why = used.described(&differences, &newer);
                *status = StackStatus::Pending(Pending::Outputs(why));
            }
        }
        Ok(statuses)
    }

    /// Returns the statuses of the stacks by their own inputs. A plan compares the outputs that they use itself.
    pub fn statuses_in(
        &mut self,
        document: &Document,
        address: String,
        counted: CountedStates,
        explains: bool,
    ) -> Result<StackStatuses> {
        self.digest(counted)?;
        let found = self.compare(document, address.clone(), counted, explains)?;
        if !std::mem::take(&mut self.state.fetches_seen) || found.missing.is_empty() {
            return Ok(found);
        }
        self.fetch_default_branch()?;
        let history = missing_history(&found);
        let fetched = match history.clone() {
            Some(arguments) => self.fetch_applied(arguments),
            None => Ok(()),
        };
        let mut found = self.compare(document, address, counted, explains)?;
        match fetched {
            // Without the commits, no removal is proven.
            Err(error) => self.notices.warning(&error.message()),
            Ok(()) if missing_history(&found) == history => found.lose_commits(),
            Ok(()) => {}
        }
        Ok(found)
    }

    /// Fetches the remote's current default branch: it may have a removed stack again.
    fn fetch_default_branch(&mut self) -> Result<()> {
        let git = self.git.known_mut().context("git was read")?;
        let repository = &mut git.repository;
        let query = BaseQuery::of(&self.workspace.project.settings);
        let branch = match ask_default_branch(repository, &query) {
            Ok(Some(branch)) => branch,
            // If it is unknown, that blocks the removals.
            Ok(None) | Err(BaseUnknown::Refused { .. } | BaseUnknown::Unclear(_)) => return Ok(()),
            Err(BaseUnknown::Git(error)) => {
                return Err(error).context(FETCH_FAILED);
            }
        };
        let arguments = branch.fetch();
        if !self.state.fetched.insert(arguments.clone()) {
            return Ok(());
        }
        self.notices
            .note(&format!("running `{}`", fetch_command(&arguments)));
        // If the remote no longer has the branch, nothing is known.
        repository.fetch(&arguments).context(FETCH_FAILED)?;
        let RemoteBranch { remote, branch } = branch;
        let known = repository
            .remote_head(&remote)
            .context("failed to ask git")?;
        if query.branch.is_none() && known.as_ref() != Some(&branch) {
            let set = repository.set_remote_head(&remote, &branch);
            set.context("failed to note the default branch of the remote")?;
        }
        Ok(())
    }

    /// Returns the statuses of the stacks from their digests.
    fn compare(
        &self,
        document: &Document,
        address: String,
        counted: CountedStates,
        explains: bool,
    ) -> Result<StackStatuses> {
        let failed = "failed to compare the stacks with the state";
        let digests = &self
            .state
            .digested
            .as_ref()
            .context("digests were made")?
            .digests;
        let statuses = self.with_present(counted, |present| {
            stack_statuses(present, digests, document, address, explains)
        });
        statuses?.context(failed)
    }

    /// Calls a function with the project as it is on disk. Git must have been read.
    pub fn with_present<T>(
        &self,
        counted: CountedStates,
        call: impl FnOnce(CurrentProject<'_>) -> T,
    ) -> Result<T> {
        let git = self.known_git()?;
        let status = match &git.status {
            Ok(status) => status.clone(),
            // If uncommitted changes do not count, git's status is not needed.
            Err(_) if counted.untracked.is_some() && counted.uncommitted.is_some() => Vec::new(),
            Err(error) => return Err(no_status(error)),
        };
        let host: Vec<(String, String)> = host_environment().collect();
        let uncommitted = UncommittedChanges {
            status,
            counted,
            same: BTreeSet::new(),
        };
        Ok(call(CurrentProject {
            project: &self.project,
            listing: &self.listing,
            repository: &git.repository,
            uncommitted: &uncommitted,
            host: &host,
        }))
    }

    /// Digests all stacks, once.
    fn digest(&mut self, counted: CountedStates) -> Result<()> {
        let done = self.state.digested.as_ref();
        if done.is_some_and(|done| done.counted == counted) {
            return Ok(());
        }
        let git = self
            .git
            .read(&self.workspace.project.root)
            .map_err(|error| match error {
                GitError::NoRepository(_) | GitError::NoWorkingTree(_) => Error::refused(
                    "the state needs a git repository: applies are recorded by commit",
                ),
                error => Error::external(error),
            })?;
        let failed = "failed to read the inputs of the stacks";
        if git.is_rough {
            let status = exact_status(&git.repository, &self.workspace.project.root);
            git.status = status.map_err(Arc::new);
            git.is_rough = false;
        }
        let mut problems = Problems::default();
        let workspace = &self.workspace;
        let made = match &git.status {
            Ok(status) => {
                let counts: Vec<_> = status
                    .iter()
                    .filter(|file| counted.off(file.state).is_none())
                    .cloned()
                    .collect();
                digests_of(
                    &workspace.project,
                    &workspace.listing,
                    &git.repository,
                    &counts,
                    &mut problems,
                )
                .map_err(Error::external)
            }
            Err(error) => Err(no_status(error)),
        };
        let digests = made.context(failed)?;
        let warnings = stack::unmatched(&self.project.stacks, &self.project.root);
        problems.diagnostics.extend(warnings);
        if self.state.digested.is_none() {
            self.problems.diagnostics.append(&mut problems.diagnostics);
            self.problems.errors.append(&mut problems.errors);
        }
        self.state.digested = Some(CountedDigests {
            digests: Rc::new(digests),
            counted,
        });
        Ok(())
    }

    /// Digests the inputs that a plan depends on, in a git repository. Files count as they are on
    /// disk, except those that `init` of a tool writes: these count as committed.
    pub fn digest_inputs(&mut self) -> Result<()> {
        match self.git() {
            Err(GitError::NoRepository(_) | GitError::NoWorkingTree(_)) => return Ok(()),
            git => _ = git.context("failed to ask git")?,
        }
        let digests = self.digests_on_disk()?;
        let git = self.known_git()?;
        let status = git.status.as_ref().map_err(|error| no_status(error))?;
        let (written, others): (Vec<_>, Vec<_>) = status.iter().cloned().partition(|file| {
            file.state != FileState::Committed && is_written_by_tools(&file.path)
        });
        if written.is_empty() {
            self.state.input_digests = Some(digests);
            return Ok(());
        }
        let made = digests_of(
            &self.project,
            &self.listing,
            &git.repository,
            &others,
            // They have already been reported.
            &mut Problems::default(),
        );
        self.state.input_digests = Some(Rc::new(
            made.context("failed to read the inputs of the stacks")?,
        ));
        Ok(())
    }

    /// Returns the tracked files that tools have rewritten since git's status was read, as far as
    /// known.
    pub fn rewritten_by_tools(&self) -> Vec<ProjectPath> {
        let Some(GitSnapshot {
            repository,
            status: Ok(before),
            ..
        }) = self.git.known()
        else {
            return Vec::new();
        };
        let is_rewritten = |file: &&ChangedFile| {
            file.state == FileState::Uncommitted && is_written_by_tools(&file.path)
        };
        let known: BTreeSet<&ProjectPath> = before
            .iter()
            .filter(is_rewritten)
            .map(|file| &file.path)
            .collect();
        let now = exact_status(repository, &self.project.root).unwrap_or_default();
        let rewritten = now.iter().filter(is_rewritten);
        let paths = rewritten.map(|file| &file.path);
        paths
            .filter(|path| !known.contains(path))
            .cloned()
            .collect()
    }

    /// Returns the digests of all stacks as they are on disk.
    pub fn digests_on_disk(&mut self) -> Result<Rc<InputDigests>> {
        self.digest(CountedStates::default())?;
        let digested = self.state.digested.as_ref().context("digests were made")?;
        Ok(Rc::clone(&digested.digests))
    }

    /// Evaluates a query that depends on the document for another version of it.
    pub fn by_document(&mut self, query: &Query, document: &Document) -> Result<Option<Query>> {
        let Some(recorded) = &query.recorded else {
            return Ok(None);
        };
        let address = recorded.statuses.base.address.clone();
        let counted = recorded.counted;
        let statuses = self.statuses_with_outputs(document, address, counted, false)?;
        let mut query = query.clone();
        if let Some(recorded) = &mut query.recorded {
            recorded.statuses = statuses;
        }
        Ok(Some(query))
    }
}

/// Returns the error if git's status cannot be read.
pub fn no_status(error: &GitError) -> Error {
    let text = with_causes(error);
    Error::external(format!(
        "failed to read the status of the working tree: {text}"
    ))
}

/// Returns whether Terraform, `OpenTofu` or Terragrunt writes such a file beside the files of a
/// stack.
fn is_written_by_tools(path: &ProjectPath) -> bool {
    let names = || path.as_str().split('/');
    names().any(|name| name == ".terraform" || name == ".terragrunt-cache")
        || names().next_back().is_some_and(|name| {
            name == ".terraform.lock.hcl" || name.starts_with("terraform.tfstate")
        })
}

/// Notes the recorded stacks that this commit lacks without proof of removal.
fn note_absent(notices: &Notices, statuses: &StackStatuses) {
    let missing = statuses.missing.iter();
    let absent: Vec<(&String, &NoProof)> = missing
        .filter_map(|(key, missing)| Some((key, missing.evidence.as_ref().err()?)))
        .collect();
    if absent.is_empty() {
        return;
    }
    let first = absent
        .iter()
        .take(MAX_NAMED)
        .map(|(key, why)| format!("`{}` ({why})", printable(key)));
    let mut named = first.collect::<Vec<String>>().join(", ");
    if absent.len() > MAX_NAMED {
        named += &format!(" and {} more", absent.len() - MAX_NAMED);
    }
    let verb = match absent.len() {
        1 => "is",
        _ => "are",
    };
    notices.note(&printable(&format!(
        "{named} {verb} recorded but not in the project, and no commit proves the removal; see `orch list --status absent --why`"
    )));
}

/// Returns the arguments of the `git fetch` for the commits that may prove a removal, if any are
/// missing.
fn missing_history(statuses: &StackStatuses) -> Option<Vec<String>> {
    let missing = statuses.missing.values();
    let fetches = missing.filter_map(|missing| missing.evidence.as_ref().err()?.fetch());
    let mut arguments: Vec<String> = Vec::new();
    for fetch in fetches {
        // A shallow clone gets all of them that way.
        if fetch.iter().any(|argument| argument == "--unshallow") {
            return Some(fetch);
        }
        for argument in fetch {
            if !arguments.contains(&argument) {
                arguments.push(argument);
            }
        }
    }
    (!arguments.is_empty()).then_some(arguments)
}
