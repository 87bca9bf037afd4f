//! Links in directories that the walk left out: what lies there is no configuration, and yet part of
//! the stack or module around it.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use walkdir::{DirEntry, WalkDir};

use super::tree::Tree;
use crate::path::ProjectPath;
use crate::project::discover::is_cache;

/// By directory, the links in it and below, by path.
pub(super) type Hidden = RwLock<HashMap<ProjectPath, Arc<[ProjectPath]>>>;

impl Tree<'_> {
    /// Returns the links below a directory that the walk has not seen.
    pub(super) fn hidden_links(&self, directory: &ProjectPath) -> Vec<ProjectPath> {
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

    /// Returns the links in a directory and below, which is looked at once.
    pub(super) fn links_on_disk(&self, directory: &ProjectPath) -> Arc<[ProjectPath]> {
        let known = self.hidden.read().expect("no task panics");
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
        let mut known = self.hidden.write().expect("no task panics");
        known.insert(directory.clone(), links.clone());
        links
    }
}
