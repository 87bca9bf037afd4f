//! The digest of what lies at a place: a file, a directory with everything below it, or what a pattern
//! matches; and of what links there lead to.
//!
//! A place has the same digest twice if nothing has changed there that [`Tree`] would find among changed
//! files.

use std::collections::{HashMap, HashSet};
use std::sync::RwLock;

use sha2::{Digest as _, Sha256};

use super::present::{PresentFile, PresentFiles};
use crate::change::cause::InputLocation;
use crate::change::inputs::{Tree, moved};
use crate::path::ProjectPath;
use crate::pattern::Pattern;

/// The digest of a part of what a stack depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartDigest {
    pub(super) hash: [u8; 32],
    /// Whether something there is not committed.
    pub(super) is_dirty: bool,
}

/// A digest in the making.
#[derive(Default)]
pub(super) struct PartHasher {
    hasher: Sha256,
    is_dirty: bool,
}

impl PartHasher {
    pub(super) fn text(&mut self, text: &str) {
        self.hasher.update(text.len().to_le_bytes());
        self.hasher.update(text.as_bytes());
    }

    pub(super) fn file(&mut self, file: &PresentFile) {
        self.is_dirty |= !file.is_committed;
        if let Some(line) = file.line() {
            self.text(&line);
        }
    }

    pub(super) fn part(&mut self, part: &PartDigest) {
        self.is_dirty |= part.is_dirty;
        self.hasher.update(part.hash);
    }

    pub(super) fn finish(self) -> PartDigest {
        PartDigest {
            hash: self.hasher.finalize().into(),
            is_dirty: self.is_dirty,
        }
    }
}

/// Digests places, each once; shared by all threads.
pub(super) struct Places<'a> {
    tree: &'a Tree<'a>,
    files: &'a PresentFiles,
    known: RwLock<HashMap<InputLocation, PartDigest>>,
}

impl<'a> Places<'a> {
    pub(super) fn new(tree: &'a Tree<'a>, files: &'a PresentFiles) -> Self {
        Places {
            tree,
            files,
            known: RwLock::default(),
        }
    }

    /// Returns the digest of a place.
    pub(super) fn digest(&self, place: &InputLocation) -> PartDigest {
        let known = self.known.read().expect("no task panics");
        if let Some(part) = known.get(place) {
            return *part;
        }
        drop(known);
        let mut hasher = PartHasher::default();
        match place {
            InputLocation::Path(path) => self.path(path, &mut hasher),
            InputLocation::Matching(pattern) => self.matching(pattern, &mut hasher),
        }
        let part = hasher.finish();
        let mut known = self.known.write().expect("no task panics");
        known.insert(place.clone(), part);
        part
    }

    /// Adds what lies at a path or below it, and where links on the way and below lead.
    fn path(&self, path: &ProjectPath, hasher: &mut PartHasher) {
        let way = self.tree.links().follow(path);
        self.at(&way.links, hasher);
        let Some(end) = way.end else {
            return;
        };
        self.around(&end, hasher);
        // A link to a directory that contains it does not say what of that directory is used.
        if !way.links.is_empty() && path.is_at_or_below(&end) {
            return;
        }
        self.whole(&end, hasher);
        self.behind_links(&end, hasher);
    }

    fn at(&self, paths: &[ProjectPath], hasher: &mut PartHasher) {
        for path in paths {
            if let Some(file) = self.files.at(path.as_str()) {
                hasher.file(file);
            }
        }
    }

    /// Adds what should be a directory above a path but is a submodule.
    fn around(&self, path: &ProjectPath, hasher: &mut PartHasher) {
        let above = path.ancestors().find_map(|above| self.files.at(above));
        if let Some(file) = above {
            hasher.file(file);
        }
    }

    fn whole(&self, path: &ProjectPath, hasher: &mut PartHasher) {
        self.at(std::slice::from_ref(path), hasher);
        for file in self.files.below(path) {
            hasher.file(file);
        }
    }

    /// Adds where links in a directory lead, directly or through further links; each link once, so that
    /// circles end.
    fn behind_links(&self, directory: &ProjectPath, hasher: &mut PartHasher) {
        let mut seen = HashSet::new();
        let mut open = vec![directory.clone()];
        while let Some(directory) = open.pop() {
            for link in self.tree.links().links_below(&directory) {
                if !seen.insert(link.clone()) {
                    continue;
                }
                let way = self.tree.links().follow(&link);
                self.at(&way.links, hasher);
                let Some(end) = way.end else {
                    continue;
                };
                self.around(&end, hasher);
                if !link.is_at_or_below(&end) {
                    self.whole(&end, hasher);
                    open.push(end);
                }
            }
        }
    }

    /// Adds what a pattern matches, where links on the way to its directory lead, and what it matches
    /// behind links.
    fn matching(&self, pattern: &Pattern, hasher: &mut PartHasher) {
        self.at(&[ProjectPath::from_normal(&pattern.to_string())], hasher);
        let way = self.tree.links().follow(pattern.directory());
        self.at(&way.links, hasher);
        let Some(end) = way.end else {
            return;
        };
        let moved_pattern = if way.links.is_empty() {
            None
        } else {
            Pattern::new(&end, pattern.rest()).ok()
        };
        let pattern = moved_pattern.as_ref().unwrap_or(pattern);
        self.around(&end, hasher);
        self.at(std::slice::from_ref(&end), hasher);
        for file in self.files.below(&end) {
            if is_match(pattern, &file.path, file) {
                hasher.file(file);
            }
        }
        // Each directory with the path that the pattern sees.
        let mut open = vec![(end.clone(), end)];
        let mut seen = HashSet::new();
        while let Some((directory, name)) = open.pop() {
            for link in self.tree.links().links_below(&directory) {
                let name = moved(&link, &directory, &name);
                let is_covered = name.as_str().len() <= ProjectPath::MAX_BYTES
                    && (pattern.matches(&name) || pattern.may_match_below(&name));
                if !is_covered || !seen.insert(link.clone()) {
                    continue;
                }
                let way = self.tree.links().follow(&link);
                self.at(&way.links, hasher);
                let Some(end) = way.end else {
                    continue;
                };
                self.around(&end, hasher);
                let own = self.files.at(end.as_str()).into_iter();
                let is_around = link.is_at_or_below(&end);
                let below = self.files.below(&end).filter(|_| !is_around);
                for file in own.chain(below) {
                    if is_match(pattern, &moved(&file.path, &end, &name), file) {
                        hasher.file(file);
                    }
                }
                if !is_around {
                    open.push((end, name));
                }
            }
        }
    }
}

fn is_match(pattern: &Pattern, name: &ProjectPath, file: &PresentFile) -> bool {
    pattern.matches(name) || file.is_repository() && pattern.may_match_below(name)
}
