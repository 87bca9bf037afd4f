//! Compares the command that destroys a removed stack with those of stacks that are not removed.
//! These are in the working tree, on the default branch, or recorded but not in this commit. If a
//! driver reports no backend, equal commands may destroy the same resources.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use super::removals::{BlockedRemoval, Removals};
use super::subjects::{Drivers, tools_on_path};
use crate::change::base::{BaseQuery, default_tip};
use crate::change::{EntryIndex, moved_or_removed};
use crate::context::Context;
use crate::diagnostic::Diagnostic;
use crate::driver::{Driver, driver_of};
use crate::git::{CommitId, CommitTree, Repository};
use crate::path::StackPath;
use crate::plan::DestroyCommand;
use crate::plan::removal::is_only_forgotten;
use crate::plan::stack::RemovedCode;
use crate::project::discover::Listing;
use crate::project::environment::Environments;
use crate::project::host::host_environment;
use crate::project::stack::{StackIndex, StackMode};
use crate::project::{Problems, Project};
use crate::state::document::{Document, Entry};

/// The fix if a commit's code is unusable.
pub(super) const BRING_BACK: &str =
    "restore its directory, run `orch destroy` there, and delete it again";

pub(super) struct OtherStacks {
    /// The default branch; `None` if they are recorded stacks.
    branch: Option<String>,
    /// The recorded ones, each with its driver.
    recorded: Vec<(StackPath, Option<String>)>,
    /// The commit's project, or why it cannot be loaded.
    project: Result<Project, String>,
}

impl Removals<'_> {
    /// Reads the stacks of the default branch, unless HEAD is on it, and the recorded stacks that
    /// this commit lacks.
    pub(super) fn elsewhere(
        &self,
        context: &Context,
        document: Option<&Document>,
    ) -> Vec<OtherStacks> {
        let mut all: Vec<OtherStacks> = context.default_branch().into_iter().collect();
        let mut by_commit: BTreeMap<Option<CommitId>, Vec<(StackPath, Option<String>)>> =
            BTreeMap::new();
        for key in self.absent() {
            let entry = document.and_then(|document| document.stacks.get(key));
            let (Some(path), Some(entry)) = (StackPath::parse(key), entry) else {
                continue;
            };
            let driver = entry
                .driver
                .as_deref()
                .and_then(|name| Driver::named(&context.project, name));
            let is_of_tool = driver.is_some_and(|driver| driver.tool.is_some());
            if !is_of_tool && !is_only_forgotten(entry) {
                let stacks = by_commit.entry(last_commit(entry)).or_default();
                stacks.push((path, entry.driver.clone()));
            }
        }
        all.extend(by_commit.into_iter().map(|(commit, recorded)| {
            let none = || Err("no commit is recorded for it".to_owned());
            OtherStacks {
                branch: None,
                recorded,
                project: commit.map_or_else(none, |commit| context.project_at(&commit)),
            }
        }));
        all
    }
}

fn last_commit(entry: &Entry) -> Option<CommitId> {
    let applied = entry.applied.as_ref();
    let last = || entry.last.as_ref()?.commit.as_deref();
    let commit = applied.and_then(|it| it.seen.as_deref().or(it.commit.as_deref()));
    CommitId::new(commit.or_else(last)?)
}

impl Context {
    /// Returns the stacks of the default branch, unless HEAD is on it.
    fn default_branch(&self) -> Option<OtherStacks> {
        let query = BaseQuery::of(&self.project.settings);
        let repository = &self.git.known()?.repository;
        let (branch, project) = match default_tip(repository, &query) {
            Ok(tip) if repository.commit("HEAD").ok().flatten() == Some(tip.commit.clone()) => {
                return None;
            }
            Ok(tip) => (tip.branch, self.project_at(&tip.commit)),
            Err(unknown) => ("the default branch".to_owned(), Err(unknown.to_string())),
        };
        Some(OtherStacks {
            branch: Some(branch),
            recorded: Vec::new(),
            project,
        })
    }

    fn project_at(&self, commit: &CommitId) -> Result<Project, String> {
        let own = Repository::open(&self.project.root).map_err(|error| error.to_string())?;
        let found = own.commit(commit.as_str());
        if found.map_err(|error| error.to_string())?.as_ref() != Some(commit) {
            return Err(format!("commit {} is not in this clone", commit.short()));
        }
        let tree = CommitTree::new(own, commit.clone());
        let project = Project::load_tree(&self.project.root, &tree, &mut Problems::default())
            .map_err(|error| error.to_string())?;
        match project.broken.first() {
            Some(file) => Err(format!(
                "`{}` of commit {} cannot be parsed",
                file.relative(),
                commit.short()
            )),
            None => Ok(project),
        }
    }
}

struct StackSource<'s> {
    project: &'s Project,
    environments: Environments<'s>,
    /// The default branch, if the stack is there.
    branch: Option<&'s str>,
    stacks: Vec<OtherStack<'s>>,
}

struct OtherStack<'s> {
    stack: StackIndex,
    driver: Driver<'s>,
    /// Its command, or why that is unknown.
    command: Result<DestroyCommand, String>,
}

impl<'s> StackSource<'s> {
    fn new(
        project: &'s Project,
        environments: Environments<'s>,
        branch: Option<&'s str>,
        stacks: impl Iterator<Item = (StackIndex, Option<Driver<'s>>)>,
    ) -> Self {
        let managed = stacks.filter(|(stack, _)| project.stacks[*stack].mode == StackMode::Manage);
        let others = managed.filter_map(|(stack, driver)| {
            let driver = driver?;
            let namespaces = environments.namespaces().of_stack(stack);
            let words = driver.destroy_words(&namespaces).transpose()?;
            let path = &project.stacks[stack].path;
            let command = words.map(|words| DestroyCommand::new(&words, &project.root, path));
            Some(OtherStack {
                stack,
                driver,
                command: command.map_err(first_message),
            })
        });
        let stacks = others.collect();
        StackSource {
            project,
            environments,
            branch,
            stacks,
        }
    }
}

pub(super) struct DestroyCommands<'s> {
    context: &'s Context,
    document: Option<&'s Document>,
    elsewhere: &'s [OtherStacks],
    sources: OnceCell<Vec<StackSource<'s>>>,
}

impl<'s> DestroyCommands<'s> {
    pub(super) fn new(
        context: &'s Context,
        document: Option<&'s Document>,
        elsewhere: &'s [OtherStacks],
    ) -> Self {
        DestroyCommands {
            context,
            document,
            elsewhere,
            sources: OnceCell::new(),
        }
    }

    fn sources(&self) -> &[StackSource<'s>] {
        self.sources.get_or_init(|| {
            let project = &self.context.project;
            let drivers = Drivers::new(self.context, self.document);
            let stacks = project
                .stacks
                .iter()
                .map(|(stack, _)| (stack, drivers.of(stack)));
            let here = StackSource::new(project, self.context.evaluator(), None, stacks);
            let elsewhere = self
                .elsewhere
                .iter()
                .filter_map(|it| self.source(it, it.project.as_ref().ok()?));
            std::iter::once(here).chain(elsewhere).collect()
        })
    }

    fn source(&self, of: &'s OtherStacks, project: &'s Project) -> Option<StackSource<'s>> {
        // Tool files are not read: their drivers have no commands.
        let listing = Listing::default();
        let on_path = tools_on_path();
        let stacks = project
            .stacks
            .iter()
            .filter(|(_, stack)| {
                let mut recorded = of.recorded.iter();
                of.branch.is_some() || recorded.any(|(path, _)| *path == stack.path)
            })
            .map(|(index, stack)| {
                let entries = self.document.map(|document| &document.stacks);
                let entry = entries.and_then(|entries| entries.get(stack.path.as_str()));
                let recorded = entry.and_then(|entry| entry.driver.as_deref());
                let driver = driver_of(project, &listing, index, recorded, on_path);
                (index, driver)
            });
        let environments = Environments::new(project, host_environment());
        let source = StackSource::new(project, environments, of.branch.as_deref(), stacks);
        (!source.stacks.is_empty()).then_some(source)
    }

    /// Returns why the resources of a removed stack may belong to another one: its driver reports
    /// no backend, and the same command destroys both. A `removed` block resolves that.
    pub(super) fn why_unclear(&self, code: RemovedCode<'_, '_>) -> Option<BlockedRemoval> {
        let namespaces = code.code.environments.namespaces().of_stack(code.stack);
        let own = match code.driver.destroy_words(&namespaces) {
            Ok(Some(words)) => words,
            // Reported elsewhere.
            Ok(None) => return None,
            Err(found) => {
                return Some(BlockedRemoval {
                    why: first_message(found),
                    fix: BRING_BACK.to_owned(),
                });
            }
        };
        let own = OwnCommand {
            code,
            command: DestroyCommand::new(&own, &code.code.project.root, code.path),
            by_driver: RefCell::default(),
        };
        for source in self.sources() {
            for other in &source.stacks {
                let path = &source.project.stacks[other.stack].path;
                let blocked = match own.is_same(source, other) {
                    Ok(false) => continue,
                    Ok(true) => self.blocked(&own, path, source.branch, None),
                    Err(why) => self.blocked(&own, path, source.branch, Some(&why)),
                };
                return Some(blocked);
            }
        }
        self.why_unknown(&own)
    }

    /// Returns why the command of a recorded stack outside this commit is unknown.
    fn why_unknown(&self, own: &OwnCommand<'_, '_>) -> Option<BlockedRemoval> {
        self.elsewhere.iter().find_map(|elsewhere| {
            let branch = elsewhere.branch.as_deref();
            if let (Some(branch), Err(why)) = (branch, &elsewhere.project) {
                return Some(BlockedRemoval {
                    why: format!(
                        "its driver `{}` has no `backend`, and the stacks of {branch} are unknown: {why}",
                        own.code.driver.name
                    ),
                    fix: TELL_APART.to_owned(),
                });
            }
            let mut stacks = elsewhere.recorded.iter().filter(|(_, driver)| {
                let driver = driver.as_deref();
                driver.is_none_or(|driver| driver == own.code.driver.name)
            }).map(|(path, _)| path);
            let (path, why) = match &elsewhere.project {
                Err(why) => (stacks.next()?, why.clone()),
                Ok(project) => {
                    let path = stacks.find(|path| project.stacks.find(path).is_none())?;
                    (path, "its commit lacks it".to_owned())
                }
            };
            Some(self.blocked(own, path, branch, Some(&why)))
        })
    }

    /// Returns why another stack blocks a removal: its command is the same, or unknown.
    fn blocked(
        &self,
        own: &OwnCommand<'_, '_>,
        other: &StackPath,
        branch: Option<&str>,
        unknown: Option<&str>,
    ) -> BlockedRemoval {
        let stacks = &self.context.project.stacks;
        let here = stacks.find(other);
        let place = match (here, branch) {
            (Some(_), _) => String::new(),
            (None, Some(branch)) => format!(", which {branch} has,"),
            (None, None) => ", which is recorded,".to_owned(),
        };
        let name = own.code.driver.name;
        let why = match unknown {
            None => format!(
                "its `destroy` command also destroys {other}{}, and its driver `{name}` has no `backend`",
                place.trim_end_matches(',')
            ),
            Some(why) => format!(
                "its driver `{name}` has no `backend`, and the `destroy` command of {other}{place} is unknown: {why}"
            ),
        };
        let pairs = self
            .document
            .map(|document| EntryIndex::new(stacks, document));
        let key = here.and_then(|stack| pairs.as_ref()?.key(stack));
        let answer = match (here, branch) {
            (None, Some(branch)) => format!(
                "merge {branch} into this branch; if this branch deletes {other}, merge the deletion first"
            ),
            _ => moved_or_removed(
                own.code.path.as_str(),
                other.as_str(),
                here.is_none() || key.is_some(),
            ),
        };
        BlockedRemoval {
            why,
            fix: format!("{answer}\n{TELL_APART}"),
        }
    }
}

const TELL_APART: &str =
    "to tell other stacks apart, add `backend` to the driver; see `orch help drivers`";

pub(super) fn first_message(found: Vec<Diagnostic>) -> String {
    let first = found.into_iter().next();
    first.map_or_else(String::new, |first| first.message)
}

struct OwnCommand<'c, 'p> {
    /// The code of a removed stack whose driver reports no backend.
    code: RemovedCode<'c, 'p>,
    command: DestroyCommand,
    /// Its commands with the drivers of other projects; `None` if they cannot be evaluated.
    by_driver: RefCell<BTreeMap<(*const Project, String), Option<DestroyCommand>>>,
}

impl OwnCommand<'_, '_> {
    /// Returns whether the same command destroys another stack. The driver may have changed since,
    /// so both stacks are also compared with the same version of it.
    fn is_same(&self, source: &StackSource<'_>, other: &OtherStack<'_>) -> Result<bool, String> {
        let command = other.command.as_ref().map_err(Clone::clone)?;
        if command.is_same(&self.command) {
            return Ok(true);
        }
        let (code, name) = (self.code, other.driver.name);
        let may_be_driver = name == code.driver.name
            || !code.code.project.drivers.contains_key(name)
            || !source.project.drivers.contains_key(code.driver.name);
        if !may_be_driver {
            return Ok(false);
        }
        let mut by_driver = self.by_driver.borrow_mut();
        let key = (std::ptr::from_ref(source.project), name.to_owned());
        let own = by_driver.entry(key).or_insert_with(|| {
            let namespaces = code.code.environments.namespaces().of_stack(code.stack);
            let words = other.driver.destroy_words(&namespaces).ok().flatten()?;
            Some(DestroyCommand::new(
                &words,
                &code.code.project.root,
                code.path,
            ))
        });
        if let Some(own) = own {
            return Ok(command.is_same(own));
        }
        let namespaces = source.environments.namespaces().of_stack(other.stack);
        let words = code.driver.destroy_words(&namespaces);
        let path = &source.project.stacks[other.stack].path;
        let command = words
            .map_err(first_message)?
            .map(|it| DestroyCommand::new(&it, &source.project.root, path));
        Ok(command.is_some_and(|command| command.is_same(&self.command)))
    }
}
