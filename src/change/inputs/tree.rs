//! The tree of the project as inputs see it: touched places, and module directories.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock, RwLock};

use super::follow::{Links, ResolvedPath};
use super::linked_changes::{ChangedInput, LinkedChanges, link_use};
use super::problems::InputProblems;
use crate::change::cause::{InputLocation, Use};
use crate::change::files::ChangedFiles;
use crate::git::ChangedFile;
use crate::on_disk::if_there;
use crate::path::ProjectPath;
use crate::pattern::FilePattern;
use crate::project::Project;
use crate::project::discover::{Listing, is_configuration};
use crate::project::namespaces::{NamespaceInputs, ProjectNamespaces};

/// A directory and a pattern below it.
type FileSet = (ProjectPath, Box<str>);

/// Answers questions about the tree; shared by all threads.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of some commands"
)]
pub(in crate::change) struct Tree<'a> {
    pub(super) problems: &'a InputProblems,
    pub(super) records: bool,
    /// Whether nodes collect the calls of modules outside of the project.
    pub(super) takes_calls: bool,
    /// Whether the data of other stacks that Terragrunt files use is looked for.
    pub(super) finds_data: bool,
    /// Whether changed Terraform files are checked even if no candidate uses them.
    pub(in crate::change) checks: bool,
    /// The project whose environment sets variables of Terraform, if that matters.
    project: Option<&'a Project>,
    /// What environments are computed from: without host variables, and with their names as values.
    environments: OnceLock<[NamespaceInputs<'a>; 2]>,
    covered: LinkedChanges<'a>,
    /// By path as written: thousands of stacks name one module.
    modules: RwLock<HashMap<ProjectPath, Arc<ModuleDirectory<'a>>>>,
    /// By directory and pattern.
    sets: RwLock<HashMap<FileSet, Option<ChangedInput<'a>>>>,
}

pub(super) struct ModuleDirectory<'a> {
    pub(super) touch: Option<ChangedInput<'a>>,
    /// The directory without links.
    pub(super) directory: Result<ProjectPath, NoModule>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NoModule {
    Outside,
    Missing,
}

impl<'a> Tree<'a> {
    pub(in crate::change) fn new(
        root: &'a Path,
        listing: &'a Listing,
        changed: &'a ChangedFiles,
        problems: &'a InputProblems,
    ) -> Self {
        Tree {
            problems,
            records: false,
            takes_calls: false,
            finds_data: false,
            checks: true,
            project: None,
            environments: OnceLock::new(),
            covered: LinkedChanges::new(Links::new(root, listing), changed),
            modules: RwLock::default(),
            sets: RwLock::default(),
        }
    }

    pub(in crate::change) fn recording(self) -> Self {
        Tree {
            records: true,
            ..self
        }
    }

    pub(in crate::change) fn taking_calls(self) -> Self {
        Tree {
            takes_calls: true,
            ..self
        }
    }

    pub(in crate::change) fn finding_data(self) -> Self {
        Tree {
            finds_data: true,
            ..self
        }
    }

    pub(in crate::change) fn of(self, project: &'a Project) -> Self {
        Tree {
            project: Some(project),
            ..self
        }
    }

    /// Returns the project, and what its environment is computed from: without the variables of the machine,
    /// and with their names in place of values. Values that differ depend on the machine.
    pub(super) fn environments(&self) -> Option<(&'a Project, [&NamespaceInputs<'a>; 2])> {
        let project = self.project?;
        let bases = self.environments.get_or_init(|| {
            let new = || ProjectNamespaces::new(project, std::iter::empty());
            [new().comparable(), new().portable()].map(|it| it.basis().clone())
        });
        Some((project, bases.each_ref()))
    }

    pub(super) fn root(&self) -> &'a Path {
        self.covered.links.root
    }

    pub(in crate::change) fn listing(&self) -> &'a Listing {
        self.covered.links.listing
    }

    pub(super) fn changed(&self) -> &'a ChangedFiles {
        self.covered.changed
    }

    pub(in crate::change) fn links(&self) -> &Links<'a> {
        &self.covered.links
    }

    /// Returns the change that alters what is found at a path: there, at a link on the way, or behind a link
    /// below.
    pub(in crate::change) fn touch(&self, path: &ProjectPath) -> Option<ChangedInput<'a>> {
        self.touch_by_way(path, &self.links().follow(path))
    }

    /// Returns the links that are named like configuration files and lead to a change, with their targets.
    pub(in crate::change) fn changed_configuration_links(
        &self,
    ) -> BTreeMap<ProjectPath, ProjectPath> {
        let listed = self.links().listed.iter();
        let links = listed.flat_map(|(directory, listed)| {
            let names = listed.links.iter().filter(|name| is_configuration(name));
            names.filter_map(|name| Some(directory.join(name.to_str()?)))
        });
        let changed = links.filter_map(|link| {
            let end = self.changed_end(&link)?;
            Some((link, end))
        });
        changed.collect()
    }

    /// Returns the changed file that links on the way to a path lead to.
    pub(in crate::change) fn changed_end(&self, path: &ProjectPath) -> Option<ProjectPath> {
        let end = self.links().follow(path).end?;
        let is_changed = end != *path && self.changed().at(end.as_str()).is_some();
        is_changed.then_some(end)
    }

    fn touch_by_way(&self, path: &ProjectPath, way: &ResolvedPath) -> Option<ChangedInput<'a>> {
        let direct = self.changed().touching(path).map(ChangedInput::direct);
        direct
            .or_else(|| self.covered.touch_beyond(path, way))
            .or_else(|| {
                let end = way.end.as_ref()?;
                let is_around = !way.links.is_empty() && path.is_at_or_below(end);
                let covered = if is_around {
                    None
                } else {
                    self.covered.touch(end)
                }?;
                let mut links: Vec<Use> = way.links.iter().map(link_use).collect();
                links.extend(covered.links);
                Some(ChangedInput { links, ..covered })
            })
    }

    /// Returns the change of a file that a pattern matches, or of the file with exactly that name.
    pub(in crate::change) fn touch_matching(
        &self,
        pattern: &FilePattern,
    ) -> Option<ChangedInput<'a>> {
        let named = || self.changed().at(&pattern.to_string());
        let direct = self
            .matching(pattern)
            .or_else(named)
            .map(ChangedInput::direct);
        direct.or_else(|| self.find_by_links(pattern))
    }

    /// Returns the change of a file that a `fileset` pattern matches below a directory.
    fn touch_set(&self, directory: &ProjectPath, pattern: &str) -> Option<ChangedInput<'a>> {
        let is_quiet = |directory| {
            let is_touched = self.changed().touching(directory).is_some();
            !is_touched && self.links().links_below(directory).next().is_none()
        };
        if !pattern.contains("..") && is_quiet(directory) && !self.links().has_links(directory) {
            return None;
        }
        let key = (directory.clone(), Box::from(pattern));
        let known = self.sets.read().expect("no task panics").get(&key).cloned();
        known.unwrap_or_else(|| {
            let found = pattern_of_set(directory, pattern).and_then(|pattern| {
                let direct = self.matching(&pattern).map(ChangedInput::direct);
                direct.or_else(|| self.find_by_links(&pattern))
            });
            let mut sets = self.sets.write().expect("no task panics");
            sets.insert(key, found.clone());
            found
        })
    }

    /// Returns the change of a file that a function reads, or of a file that `fileset` finds.
    pub(in crate::change) fn touch_read(
        &self,
        path: &ProjectPath,
        pattern: Option<&str>,
    ) -> Option<ChangedInput<'a>> {
        match pattern {
            Some(pattern) => self.touch_set(path, pattern),
            None => self.touch(path),
        }
    }

    /// Returns the change of a file that a pattern matches, or of something else in the place of a directory
    /// above it. A submodule is one change, as is a deleted link.
    fn matching(&self, pattern: &FilePattern) -> Option<&'a ChangedFile> {
        let is_inside = |file: &ChangedFile| {
            file.change.may_hide_files() && pattern.may_match_below(&file.path)
        };
        let directory = pattern.directory();
        let mut below = self.changed().below(directory);
        below
            .find(|file| pattern.matches(&file.path) || is_inside(file))
            .or_else(|| self.changed().touching_above(directory))
    }

    /// Returns the change behind links on the way to, or in, the directory of a pattern.
    fn find_by_links(&self, pattern: &FilePattern) -> Option<ChangedInput<'a>> {
        let way = self.links().follow(pattern.directory());
        if way.links.is_empty() {
            return self.covered.touch_matching(pattern);
        }
        let passed = |count: usize| way.links[..count].iter().map(link_use);
        let mut links = way.links.iter().enumerate();
        let by_link = links.find_map(|(count, link)| {
            let file = self.changed().at(link.as_str())?;
            Some(ChangedInput {
                file,
                links: passed(count).collect(),
            })
        });
        by_link.or_else(|| {
            let pattern = FilePattern::new(way.end.as_ref()?, pattern.rest()).ok()?;
            let direct = self.matching(&pattern).map(ChangedInput::direct);
            let touch = direct.or_else(|| self.covered.touch_matching(&pattern))?;
            let links = passed(way.links.len()).chain(touch.links).collect();
            Some(ChangedInput { links, ..touch })
        })
    }

    /// Returns the module of a directory, examined once.
    pub(super) fn module(&self, directory: &ProjectPath) -> Arc<ModuleDirectory<'a>> {
        let known = self.modules.read().expect("no task panics");
        if let Some(module) = known.get(directory) {
            return module.clone();
        }
        drop(known);
        let way = self.links().follow(directory);
        let module = Arc::new(ModuleDirectory {
            touch: self
                .touch_by_way(directory, &way)
                .or_else(|| self.covered.touch(way.end.as_ref()?)),
            directory: match way.end {
                None => Err(NoModule::Outside),
                Some(end) if self.is_directory(&end) => Ok(end),
                Some(_) => Err(NoModule::Missing),
            },
        });
        let mut known = self.modules.write().expect("no task panics");
        known.insert(directory.clone(), module.clone());
        module
    }

    fn is_directory(&self, path: &ProjectPath) -> bool {
        if self.listing().get(path.as_str()).is_some() {
            return true;
        }
        let found = if_there(fs::metadata(path.to_host(self.root()))).unwrap_or_else(|error| {
            self.problems.unreadable(path, error);
            None
        });
        found.is_some_and(|it| it.is_dir())
    }
}

/// Returns the place that a function reads, if the path can be understood.
pub(in crate::change) fn place_read(
    path: ProjectPath,
    pattern: Option<&str>,
) -> Option<InputLocation> {
    match pattern {
        Some(pattern) => pattern_of_set(&path, pattern).map(InputLocation::Matching),
        None => Some(InputLocation::Path(path)),
    }
}

/// Returns the pattern of `fileset`, if it is valid.
fn pattern_of_set(directory: &ProjectPath, pattern: &str) -> Option<FilePattern> {
    // A leading slash has no meaning here: the pattern continues from the directory.
    FilePattern::new(directory, pattern.trim_start_matches('/')).ok()
}
