//! Resolves symbolic links, and lists them.
//!
//! This module does not know what changed.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, RwLock};

use walkdir::{DirEntry, WalkDir};

use crate::path::ProjectPath;
use crate::project::discover::{DirectoryListing, Listing, is_cache};

/// The maximum number of links on the way to one file, as in the operating system.
const MAX_LINKS: usize = 40;

/// The links of the project; shared by all threads.
pub(in crate::change) struct Links<'a> {
    pub(super) root: &'a Path,
    pub(super) listing: &'a Listing,
    /// The directories with links, by path.
    pub(in crate::change) listed: Vec<(&'a ProjectPath, &'a DirectoryListing)>,
    /// The links in and below each directory that the walk skipped, by path.
    left_out: RwLock<HashMap<ProjectPath, Arc<[ProjectPath]>>>,
}

/// The target of a path, and the links on the way.
pub(in crate::change) struct ResolvedPath {
    /// In the order in which they are followed.
    pub(in crate::change) links: Vec<ProjectPath>,
    /// The path without links, which may not exist; `None` if it leaves the project or the links form a
    /// cycle.
    pub(in crate::change) end: Option<ProjectPath>,
}

impl ResolvedPath {
    /// Returns whether there are too many links.
    pub(super) fn is_circle(&self) -> bool {
        self.links.len() > MAX_LINKS
    }
}

impl<'a> Links<'a> {
    pub(super) fn new(root: &'a Path, listing: &'a Listing) -> Self {
        Links {
            root,
            listing,
            listed: listing.with_links(),
            left_out: RwLock::default(),
        }
    }

    /// Returns the place in the project of a path from a directory: relative, possibly through directories
    /// above the project, or absolute on this machine.
    pub(super) fn resolve(&self, directory: &ProjectPath, written: &str) -> Option<ProjectPath> {
        if written.starts_with('/') {
            return self.resolve_by_detour(written);
        }
        let inside = directory.resolve(written).ok();
        inside.or_else(|| {
            let host = directory.to_host(self.root);
            self.resolve_by_detour(&format!("{}/{written}", host.to_str()?))
        })
    }

    /// Returns the place in the project of an absolute path on this machine.
    pub(super) fn resolve_by_detour(&self, written: &str) -> Option<ProjectPath> {
        if !written.starts_with('/') {
            return None;
        }
        let location = ProjectPath::root().resolve(written).ok()?;
        let root = self.root.to_str()?.trim_end_matches('/');
        let inside = location.as_str().strip_prefix(root)?;
        let is_inside = inside.starts_with('/');
        is_inside.then(|| ProjectPath::from_normal(inside))
    }

    /// Resolves the links on the way to a path. The listing answers for most paths without links.
    pub(in crate::change) fn follow(&self, path: &ProjectPath) -> ResolvedPath {
        let mut way = ResolvedPath {
            links: Vec::new(),
            end: None,
        };
        if path.as_str().len() > ProjectPath::MAX_BYTES || !self.has_links(path) {
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
                // The root has no links; an absolute target may have some.
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

    pub(super) fn has_links(&self, path: &ProjectPath) -> bool {
        let text = path.as_str();
        let mut end = 0;
        path.components().any(|name| {
            let directory = if end == 0 { "/" } else { &text[..end] };
            end += 1 + name.len();
            self.link_target(directory, name).is_some()
        })
    }

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

    /// Returns the links in a directory, then those below it, and last those in directories that the walk
    /// skipped.
    pub(in crate::change) fn links_below(
        &self,
        directory: &ProjectPath,
    ) -> impl Iterator<Item = ProjectPath> + use<'a, '_> {
        let prefix = directory.prefix_of_below();
        let own = self
            .listed
            .binary_search_by(|(path, _)| (*path).cmp(directory));
        let own = own.ok().map(|own| &self.listed[own]);
        let start = self
            .listed
            .partition_point(|(path, _)| *path.as_str() < *prefix);
        let below = self.listed[start..]
            .iter()
            .take_while(move |(path, _)| path.as_str().starts_with(&prefix));
        // As texts, the root's own entries are below `/` too.
        let own = own.filter(|(path, _)| !path.is_root());
        let listed = own.into_iter().chain(below);
        let listed = listed.flat_map(|&(directory, listed)| links_in(directory, listed));
        listed.chain(self.links_left_out(directory))
    }

    /// Returns the links below a directory that the walk skipped.
    fn links_left_out(&self, directory: &ProjectPath) -> Vec<ProjectPath> {
        let left_out = self.listing.left_out();
        if left_out.is_empty() {
            return Vec::new();
        }
        let is_left_out = |path: &str| {
            let found = left_out.binary_search_by(|known| known.as_str().cmp(path));
            found.is_ok()
        };
        if is_left_out(directory.as_str()) || directory.ancestors().any(is_left_out) {
            return self.links_on_disk(directory).to_vec();
        }
        let start = left_out.partition_point(|path| path < directory);
        let below = left_out[start..].iter();
        let prefix = directory.as_str();
        let below = below.take_while(|path| path.as_str().starts_with(prefix));
        below
            .filter(|path| path.is_at_or_below(directory))
            .flat_map(|path| self.links_on_disk(path).to_vec())
            .collect()
    }

    /// Returns the links in and below a directory on disk, searched once.
    pub(in crate::change) fn links_on_disk(&self, directory: &ProjectPath) -> Arc<[ProjectPath]> {
        let known = self.left_out.read().expect("no task panics");
        if let Some(links) = known.get(directory) {
            return links.clone();
        }
        drop(known);
        let is_wanted = |entry: &DirEntry| !is_cache(entry.file_name());
        let entries = WalkDir::new(directory.to_host(self.root))
            .min_depth(1)
            .into_iter()
            .filter_entry(is_wanted);
        let mut links: Vec<ProjectPath> = entries
            .flatten()
            .filter(DirEntry::path_is_symlink)
            .filter_map(|entry| ProjectPath::from_host(self.root, entry.path()))
            .collect();
        links.sort_unstable();
        let links: Arc<[ProjectPath]> = links.into();
        let mut known = self.left_out.write().expect("no task panics");
        known.insert(directory.clone(), links.clone());
        links
    }
}

pub(in crate::change) fn links_in(
    directory: &ProjectPath,
    listed: &DirectoryListing,
) -> impl Iterator<Item = ProjectPath> {
    let names = listed.links.iter();
    names.map(|name| directory.join(&name.to_string_lossy()))
}
