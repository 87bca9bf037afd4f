//! Stacks that may not be destroyed: which of those that a plan or a command would destroy are protected.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use orch::change::Pairs;
use orch::git::{CommitTree, Repository};
use orch::path::StackPath;
use orch::plan::SavedPlan;
use orch::plan::entry::Action as Planned;
use orch::plan::protection::{Destroyer, Protected, Protection};
use orch::project::config::{RecordPatterns, Recorded};
use orch::project::stack::StackIndex;
use orch::project::{Problems, Project};
use orch::run::request::PreparedRun;
use orch::run::run_command::RunCommand;
use orch::state::document::{Document, Entry};

use super::Loaded;
use crate::program::console;
use crate::program::error::{ErrorKind, ProgramError, Result};
use crate::program::exit::ExitStatus;

/// The rules that protect stacks of the tree.
pub(super) struct Protections<'l> {
    loaded: &'l Loaded,
    /// The project as HEAD has it, once somebody has asked.
    head: OnceCell<Option<Head>>,
}

/// The project as HEAD has it.
struct Head {
    project: Project,
    /// Its stacks by where the `moved` blocks of the tree say that they are now.
    by_destination: BTreeMap<StackPath, Vec<StackIndex>>,
    /// By id, in lower case.
    by_id: BTreeMap<String, StackIndex>,
}

impl<'l> Protections<'l> {
    pub(super) fn new(loaded: &'l Loaded) -> Self {
        Protections {
            loaded,
            head: OnceCell::new(),
        }
    }

    /// Returns the rule that protects a stack of the tree, if one does. A change that lifts the protection
    /// counts once it is committed: HEAD decides too, wherever the stack is there; if it is not, what is on
    /// record of the stack does. That counts as well where files of HEAD cannot be read: links are not followed
    /// in a commit.
    pub(super) fn of(&self, stack: StackIndex, recorded: Option<&Entry>) -> Option<Protection> {
        let project = &self.loaded.project;
        let of_tree = Protection::of_tree(project, stack);
        of_tree.or_else(|| {
            let head = self.head.get_or_init(|| self.load_head()).as_ref();
            let there = head.map(|head| head.stacks(project, stack));
            match there.as_deref() {
                None | Some([]) => Protection::on_record(recorded?),
                Some(there) => {
                    let head = &head?.project;
                    let mut there = there.iter();
                    let of_head = there.find_map(|&it| Protection::of_head(head, it));
                    of_head.or_else(|| {
                        let recorded = recorded.filter(|_| !head.broken.is_empty())?;
                        Protection::on_record(recorded)
                    })
                }
            }
        })
    }

    /// Returns the project of HEAD; none if there is no HEAD, or if it cannot be read.
    fn load_head(&self) -> Option<Head> {
        let root = &self.loaded.project.root;
        let repository = Repository::open(root).ok()?;
        let head = repository.commit("HEAD").ok()??;
        let tree = CommitTree::new(repository, head);
        let project = Project::load_tree(root, &tree, &mut Problems::default()).ok()?;
        let moves = &self.loaded.project.moves;
        let paths = project.stacks.iter().map(|(_, stack)| &stack.path);
        let mut by_destination: BTreeMap<StackPath, Vec<StackIndex>> = BTreeMap::new();
        for (from, to) in moves.destinations(paths) {
            if let Some(stack) = project.stacks.find(from) {
                by_destination.entry(to).or_default().push(stack);
            }
        }
        let ids = project.stacks.iter();
        let ids = ids.filter_map(|(stack, it)| Some((it.id.as_ref()?.value.to_lowercase(), stack)));
        Some(Head {
            by_id: ids.collect(),
            by_destination,
            project,
        })
    }
}

impl Head {
    /// Returns the stacks of HEAD that a stack of the tree may be: at its path, with its id, or moved to it.
    fn stacks(&self, project: &Project, stack: StackIndex) -> Vec<StackIndex> {
        let stack = &project.stacks[stack];
        let id = stack.id.as_ref().map(|id| id.value.to_lowercase());
        let by_id = id.and_then(|id| self.by_id.get(&id).copied());
        let moved = self.by_destination.get(&stack.path).into_iter().flatten();
        let at_path = self.project.stacks.find(&stack.path);
        at_path
            .into_iter()
            .chain(by_id)
            .chain(moved.copied())
            .collect()
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
        let recorded = |path: &StackPath| document?.stacks.get(path.current().as_str());
        let pairs = document.map(|document| Pairs::new(&self.project.stacks, document));
        let protected = entries.filter_map(|entry| {
            let of_gone = || {
                let recorded = recorded(&entry.stack)?;
                Protection::of_gone(&self.project, &entry.stack, recorded)
            };
            let of_tree = |stack: StackIndex| {
                let key = pairs.as_ref().and_then(|pairs| pairs.key(stack));
                protections.of(stack, key.and_then(|key| document?.stacks.get(key)))
            };
            let here = self.project.stacks.find(&entry.stack.current());
            let protection = here.map_or_else(of_gone, of_tree);
            Some(Protected {
                stack: entry.stack.clone(),
                because: entry.reason.text.clone(),
                protection: protection?,
            })
        });
        protected.collect()
    }

    /// Returns the protected stacks that a run would destroy, given these.
    pub(super) fn protected_in_run(&self, destroyed: Vec<(StackIndex, String)>) -> Vec<Protected> {
        let protections = Protections::new(self);
        let protected = destroyed.into_iter().filter_map(|(stack, because)| {
            Some(Protected {
                stack: self.project.stacks[stack].path.clone(),
                because,
                protection: protections.of(stack, None)?,
            })
        });
        protected.collect()
    }

    /// Returns the stacks that a run would destroy, and why: those whose commands are known to destroy what a
    /// stack has built, or are recorded as such.
    ///
    /// # Errors
    ///
    /// If the patterns of such commands are wrong.
    pub(super) fn destroyed_in_run(
        &self,
        run: &PreparedRun,
        command: &RunCommand,
    ) -> Result<Vec<(StackIndex, String)>> {
        let host = |name: &str| std::env::var(name).ok();
        let is_destroy = run.recording() == Some(Recorded::Destroy);
        let is_protected =
            |&stack: &StackIndex| Protection::of_tree(&self.project, stack).is_some();
        let patterns = match &self.project.settings.state {
            None => RecordPatterns::built_in(),
            Some(block) => match block.patterns(&host) {
                Ok(patterns) => patterns,
                Err(problems) if run.sequence.iter().any(is_protected) => {
                    console::diagnostics(problems.iter(), &self.project.sources);
                    let error = anyhow::anyhow!("the configuration of the state is wrong");
                    return Err(ProgramError::new(ErrorKind::Configuration, error));
                }
                // A run without a record needs none of them.
                Err(_) => RecordPatterns::built_in(),
            },
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
        Ok(destroying.collect())
    }
}
