//! Stacks that may not be destroyed: which of those that a plan or a command would destroy are protected.

use std::cell::OnceCell;

use orch::git::{CommitTree, Repository};
use orch::path::StackPath;
use orch::plan::SavedPlan;
use orch::plan::entry::Action as Planned;
use orch::plan::protection::{Destroyer, Protected, Protection};
use orch::project::config::RecordPatterns;
use orch::project::discover::is_configuration;
use orch::project::stack::StackIndex;
use orch::project::{Problems, Project};
use orch::run::request::PreparedRun;
use orch::run::run_command::RunCommand;
use orch::state::document::Document;

use super::Loaded;
use crate::program::console;
use crate::program::error::{ErrorKind, ProgramError, Result};
use crate::program::exit::ExitStatus;

/// The rules that protect stacks of the tree.
pub(super) struct Protections<'l> {
    loaded: &'l Loaded,
    /// Whether the configuration has changes that are not committed, as far as git tells.
    is_dirty: bool,
    /// The project as HEAD has it, once somebody has asked.
    head: OnceCell<Option<Project>>,
}

impl<'l> Protections<'l> {
    pub(super) fn new(loaded: &'l Loaded) -> Self {
        let status = loaded.read.as_ref().map(|read| read.status.as_ref());
        let is_dirty = match status {
            Some(Ok(files)) => files
                .iter()
                .any(|file| is_configuration(file.path.basename().as_ref())),
            Some(Err(_)) => true,
            None => false,
        };
        Protections {
            loaded,
            is_dirty,
            head: OnceCell::new(),
        }
    }

    /// Returns the rule that protects a stack of the tree, if one does. A change that lifts the protection
    /// counts once it is committed.
    pub(super) fn of(&self, stack: StackIndex) -> Option<Protection> {
        let project = &self.loaded.project;
        let of_tree = Protection::of_tree(project, stack);
        of_tree.or_else(|| self.of_head(stack))
    }

    fn of_head(&self, stack: StackIndex) -> Option<Protection> {
        let project = &self.loaded.project;
        // What lifts it may stand in a file that git ignores.
        let is_lifted = project.rules_of(stack).prevent_destroy.is_some();
        if !self.is_dirty && !is_lifted {
            return None;
        }
        let head = self.head.get_or_init(|| self.load_head()).as_ref()?;
        let stack = head.stacks.find(&project.stacks[stack].path)?;
        Protection::of_head(head, stack)
    }

    fn load_head(&self) -> Option<Project> {
        let root = &self.loaded.project.root;
        let repository = Repository::open(root).ok()?;
        let head = repository.commit("HEAD").ok()??;
        let tree = CommitTree::new(repository, head);
        Project::load_tree(root, &tree, &mut Problems::default()).ok()
    }
}

/// Prints why protected stacks are not destroyed; returns the exit status.
pub(super) fn refuse(loaded: &Loaded, destroyer: Destroyer, protected: &[Protected]) -> ExitStatus {
    let refusals = protected.iter().map(|it| it.refusal(destroyer));
    let refusals: Vec<_> = refusals.collect();
    console::diagnostics(refusals.iter(), &loaded.project.sources);
    ExitStatus::Refused
}

impl Loaded {
    /// Returns the protected stacks that a saved plan would destroy, given what is on record now.
    pub(super) fn protected_in(
        &self,
        saved: &SavedPlan,
        document: Option<&Document>,
    ) -> Vec<Protected> {
        let destroys = |action: Planned| matches!(action, Planned::Delete | Planned::Replace);
        let entries = saved.plan.entries.iter();
        let mut entries = entries
            .filter(|entry| entry.blocked.is_none() && destroys(entry.action))
            .peekable();
        if entries.peek().is_none() {
            return Vec::new();
        }
        let protections = Protections::new(self);
        let recorded = |path: &StackPath| document?.stacks.get(path.as_str());
        let protected = entries.filter_map(|entry| {
            let of_gone = || {
                let recorded = recorded(&entry.stack)?;
                Protection::of_gone(&self.project, &entry.stack, recorded)
            };
            let here = self.project.stacks.find(&entry.stack);
            let protection = here.map_or_else(of_gone, |stack| protections.of(stack));
            Some(Protected {
                stack: entry.stack.clone(),
                because: entry.reason.text.clone(),
                protection: protection?,
            })
        });
        protected.collect()
    }

    /// Returns the protected stacks that a run would destroy: those whose commands are known to destroy what a
    /// stack has built, or are recorded as such (`is_destroy`).
    ///
    /// # Errors
    ///
    /// If the patterns of such commands are wrong.
    pub(super) fn protected_in_run(
        &mut self,
        run: &PreparedRun,
        command: &RunCommand,
        is_destroy: bool,
    ) -> Result<Vec<Protected>> {
        let host = |name: &str| std::env::var(name).ok();
        let patterns = match &self.project.settings.state {
            None => RecordPatterns::built_in(),
            Some(block) => block.patterns(&host).map_err(|problems| {
                console::diagnostics(problems.iter(), &self.project.sources);
                let error = anyhow::anyhow!("the configuration of the state is wrong");
                ProgramError::new(ErrorKind::Configuration, error)
            })?,
        };
        let turns = run.sequence.iter().zip(&run.tasks);
        let destroying = turns.filter_map(|(&stack, task)| {
            let variable = |name: &str| match task.environment.get(name) {
                Some(own) => own.clone(),
                None => host(name),
            };
            match patterns.destroys(command.of(stack), variable) {
                Some(pattern) => Some((stack, format!("the command is `{pattern}`"))),
                None if is_destroy => Some((stack, "`--record=destroy` says so".to_owned())),
                None => None,
            }
        });
        let destroying: Vec<(StackIndex, String)> = destroying.collect();
        if destroying.is_empty() {
            return Ok(Vec::new());
        }
        // Outside of git nothing is committed.
        self.read = self.read().ok();
        let protections = Protections::new(self);
        let protected = destroying.into_iter().filter_map(|(stack, because)| {
            Some(Protected {
                stack: self.project.stacks[stack].path.clone(),
                because,
                protection: protections.of(stack)?,
            })
        });
        Ok(protected.collect())
    }
}
