//! The tree of the project as inputs see it: links, what a change touches, module directories.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, RwLock};

use super::covered::Known;
use super::hidden::Hidden;
use super::problems::InputProblems;
use super::terraform::pattern_of_set;
use crate::change::{ChangedFiles, Place, Use, UseKind};
use crate::git::{ChangedFile, FileChange};
use crate::path::ProjectPath;
use crate::pattern::Pattern;
use crate::project::discover::{Listed, Listing};

/// Links on the way to one file, as the system limits them.
const MAX_LINKS: usize = 40;

/// The longest path that is looked at; no file has a longer one.
pub(super) const MAX_PATH_BYTES: usize = 4096;

/// A directory and a pattern below it.
type Set = (ProjectPath, Box<str>);

/// Looks at the tree; shared by all threads.
pub(crate) struct Tree<'a> {
    pub(super) root: &'a Path,
    pub(super) listing: &'a Listing,
    pub(super) changed: &'a ChangedFiles,
    pub(super) problems: &'a InputProblems,
    /// Whether nodes are to record all of their inputs.
    pub(super) records: bool,
    /// Directories that have links, by path.
    pub(super) links: Vec<(&'a ProjectPath, &'a Listed)>,
    /// By lexical path: thousands of stacks name one module.
    modules: RwLock<HashMap<ProjectPath, Arc<Module<'a>>>>,
    /// By directory and pattern.
    sets: RwLock<HashMap<Set, Option<Touch<'a>>>>,
    /// By link, and by directory that has some.
    pub(super) covered: Known<'a>,
    pub(super) hidden: Hidden,
}

/// Where a path leads, by way of which links.
pub(super) struct Way {
    /// The links, in the order in which they are met.
    pub(super) links: Vec<ProjectPath>,
    /// The place without links; `None` if they lead out of the project or nowhere. What exists
    /// there is not known.
    pub(super) end: Option<ProjectPath>,
}

impl Way {
    /// Says whether there is no end because there are too many links.
    pub(super) fn is_circle(&self) -> bool {
        self.links.len() > MAX_LINKS
    }
}

/// A changed file that is met on the way to an input.
#[derive(Clone)]
pub(crate) struct Touch<'a> {
    pub(crate) file: &'a ChangedFile,
    /// The links that lead there.
    pub(crate) links: Vec<Use>,
}

impl<'a> Touch<'a> {
    /// A changed file that is met without a link.
    pub(crate) fn direct(file: &'a ChangedFile) -> Self {
        let links = Vec::new();
        Touch { file, links }
    }
}

/// A module directory.
pub(super) struct Module<'a> {
    /// What changed in it, or on the way to it.
    pub(super) touch: Option<Touch<'a>>,
    /// The directory without links.
    pub(super) directory: Result<ProjectPath, Absent>,
}

/// Why there is no module.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    Outside,
    Missing,
}

impl<'a> Tree<'a> {
    /// Starts to look.
    pub(crate) fn new(
        root: &'a Path,
        listing: &'a Listing,
        changed: &'a ChangedFiles,
        problems: &'a InputProblems,
    ) -> Self {
        Tree {
            root,
            listing,
            changed,
            problems,
            records: false,
            links: listing.with_links(),
            modules: RwLock::default(),
            sets: RwLock::default(),
            covered: RwLock::default(),
            hidden: RwLock::default(),
        }
    }

    /// Makes nodes record all of their inputs.
    pub(crate) fn recording(self) -> Self {
        Tree {
            records: true,
            ..self
        }
    }

    /// Returns the place that a relative path leads to from a directory, which may be by way of the
    /// directories around the project.
    pub(super) fn resolve(&self, directory: &ProjectPath, written: &str) -> Option<ProjectPath> {
        let inside = directory.resolve(written).ok();
        inside.or_else(|| {
            let host = directory.to_host(self.root);
            self.resolve_by_detour(&format!("{}/{written}", host.to_str()?))
        })
    }

    /// Returns the place in the project that an absolute path of this machine leads to.
    pub(super) fn resolve_by_detour(&self, written: &str) -> Option<ProjectPath> {
        if !written.starts_with('/') {
            return None;
        }
        let place = ProjectPath::root().resolve(written).ok()?;
        let root = self.root.to_str()?.trim_end_matches('/');
        let inside = place.as_str().strip_prefix(root)?;
        let is_inside = inside.starts_with('/');
        is_inside.then(|| ProjectPath::from_normal(inside))
    }

    /// Follows the links on the way to a path. The listing knows most of what is no link.
    pub(super) fn follow(&self, path: &ProjectPath) -> Way {
        let mut way = Way {
            links: Vec::new(),
            end: None,
        };
        if path.as_str().len() > MAX_PATH_BYTES || !self.has_links(path) {
            way.end = Some(path.clone());
            return way;
        }
        let mut rest: Vec<String> = path.components().map(str::to_owned).collect();
        rest.reverse();
        let mut here = ProjectPath::root();
        while let Some(name) = rest.pop() {
            if name == ".." {
                let Some(parent) = here.parent() else {
                    return way;
                };
                here = parent;
                continue;
            }
            let Some(target) = self.link_target(here.as_str(), &name) else {
                here = here.join(&name);
                continue;
            };
            way.links.push(here.join(&name));
            if way.links.len() > MAX_LINKS {
                return way;
            }
            let inside = if target.is_absolute() {
                let inside = target.strip_prefix(self.root).map(Path::to_path_buf);
                // The root is free of links; what an absolute target is written with need not be.
                let inside = inside.ok().or_else(|| {
                    let target = dunce::canonicalize(&target).ok()?;
                    target.strip_prefix(self.root).map(Path::to_path_buf).ok()
                });
                let Some(inside) = inside else {
                    return way;
                };
                here = ProjectPath::root();
                inside
            } else {
                target
            };
            for component in inside.components().rev() {
                match component {
                    Component::Normal(name) => rest.push(name.to_string_lossy().into_owned()),
                    Component::ParentDir => rest.push("..".to_owned()),
                    Component::CurDir => {}
                    Component::RootDir | Component::Prefix(_) => return way,
                }
            }
        }
        way.end = Some(here);
        way
    }

    fn has_links(&self, path: &ProjectPath) -> bool {
        let text = path.as_str();
        let mut end = 0;
        path.components().any(|name| {
            let directory = if end == 0 { "/" } else { &text[..end] };
            end += 1 + name.len();
            self.link_target(directory, name).is_some()
        })
    }

    /// Returns where the entry of a directory leads if it is a link.
    fn link_target(&self, directory: &str, name: &str) -> Option<PathBuf> {
        if let Some(listed) = self.listing.get(directory)
            && !listed.has_link(name)
        {
            return None;
        }
        let mut host = self.root.to_path_buf();
        host.extend(directory.split('/').filter(|name| !name.is_empty()));
        fs::read_link(host.join(name)).ok()
    }

    /// Returns the change that alters what is found at a path: there, at a link on the way, or where
    /// a link below leads.
    pub(crate) fn touch(&self, path: &ProjectPath) -> Option<Touch<'a>> {
        self.touch_by_way(path, &self.follow(path))
    }

    fn touch_by_way(&self, path: &ProjectPath, way: &Way) -> Option<Touch<'a>> {
        let direct = self.changed.touching(path).map(Touch::direct);
        direct.or_else(|| self.touch_beyond(path, way)).or_else(|| {
            let end = way.end.as_ref()?;
            let is_around = !way.links.is_empty() && path.is_at_or_below(end);
            let covered = if is_around {
                None
            } else {
                self.touch_covered(end)
            }?;
            let mut links: Vec<Use> = way.links.iter().map(link_use).collect();
            links.extend(covered.links);
            Some(Touch { links, ..covered })
        })
    }

    /// Returns the change of what links on the way to a path lead to.
    pub(super) fn touch_beyond(&self, path: &ProjectPath, way: &Way) -> Option<Touch<'a>> {
        if way.links.is_empty() {
            return None;
        }
        let mut stops = way.links.iter().chain(&way.end).enumerate();
        stops.find_map(|(passed, stop)| {
            // A link to a directory around it does not say what is used of that directory.
            let file = if path.is_at_or_below(stop) {
                self.changed.touching_above(stop)?
            } else {
                self.changed.touching(stop)?
            };
            let links = way.links[..passed].iter().map(link_use).collect();
            Some(Touch { file, links })
        })
    }

    /// Returns the change of a file that a pattern matches, or of the file of that very name.
    pub(crate) fn touch_matching(&self, pattern: &Pattern) -> Option<Touch<'a>> {
        let named = || self.changed.at(&pattern.to_string());
        let direct = self.matching(pattern).or_else(named).map(Touch::direct);
        direct.or_else(|| self.find_by_links(pattern))
    }

    /// Returns the change of a file that a pattern below a directory matches, as `fileset` takes it.
    pub(super) fn touch_set(&self, directory: &ProjectPath, pattern: &str) -> Option<Touch<'a>> {
        let is_quiet = |directory| {
            let is_touched = self.changed.touching(directory).is_some();
            !is_touched && self.links_below(directory).next().is_none()
        };
        if !pattern.contains("..") && is_quiet(directory) && !self.has_links(directory) {
            return None;
        }
        let key = (directory.clone(), Box::from(pattern));
        let known = self.sets.read().expect("no task panics").get(&key).cloned();
        known.unwrap_or_else(|| {
            let found = pattern_of_set(directory, pattern).and_then(|pattern| {
                let direct = self.matching(&pattern).map(Touch::direct);
                direct.or_else(|| self.find_by_links(&pattern))
            });
            let mut sets = self.sets.write().expect("no task panics");
            sets.insert(key, found.clone());
            found
        })
    }

    /// Returns the change of a file that a pattern matches, or of what should be a directory above
    /// such files. A submodule is one change, whatever lies in it.
    fn matching(&self, pattern: &Pattern) -> Option<&'a ChangedFile> {
        let is_inside = |file: &ChangedFile| {
            file.change == FileChange::Repository && pattern.may_match_below(&file.path)
        };
        let directory = pattern.directory();
        let mut below = self.changed.below(directory);
        below
            .find(|file| pattern.matches(&file.path) || is_inside(file))
            .or_else(|| self.changed.touching_above(directory))
    }

    /// Returns the change that links on the way to the directory of a pattern, or in it, lead to.
    fn find_by_links(&self, pattern: &Pattern) -> Option<Touch<'a>> {
        let way = self.follow(pattern.directory());
        if way.links.is_empty() {
            return self.touch_covered_by(pattern);
        }
        let passed = |count: usize| way.links[..count].iter().map(link_use);
        let mut links = way.links.iter().enumerate();
        let by_link = links.find_map(|(count, link)| {
            let file = self.changed.at(link.as_str())?;
            Some(Touch {
                file,
                links: passed(count).collect(),
            })
        });
        by_link.or_else(|| {
            let pattern = Pattern::new(way.end.as_ref()?, pattern.rest()).ok()?;
            let direct = self.matching(&pattern).map(Touch::direct);
            let touch = direct.or_else(|| self.touch_covered_by(&pattern))?;
            let links = passed(way.links.len()).chain(touch.links).collect();
            Some(Touch { links, ..touch })
        })
    }

    /// Returns the module of a directory, looked at once.
    pub(super) fn module(&self, directory: &ProjectPath) -> Arc<Module<'a>> {
        let known = self.modules.read().expect("no task panics");
        if let Some(module) = known.get(directory) {
            return module.clone();
        }
        drop(known);
        let way = self.follow(directory);
        let module = Arc::new(Module {
            touch: self
                .touch_by_way(directory, &way)
                .or_else(|| self.touch_covered(way.end.as_ref()?)),
            directory: match way.end {
                None => Err(Absent::Outside),
                Some(end) if self.is_directory(&end) => Ok(end),
                Some(_) => Err(Absent::Missing),
            },
        });
        let mut known = self.modules.write().expect("no task panics");
        known.insert(directory.clone(), module.clone());
        module
    }

    fn is_directory(&self, path: &ProjectPath) -> bool {
        self.listing.get(path.as_str()).is_some() || path.to_host(self.root).is_dir()
    }
}

/// Returns the step that a link is.
pub(super) fn link_use(link: &ProjectPath) -> Use {
    Use {
        kind: UseKind::Link,
        place: Place {
            file: link.clone(),
            line: None,
        },
    }
}
