//! Digests of places: a file, a directory with everything below it, or the matches of a pattern, including
//! the targets of links.
//!
//! The digest of a place changes exactly if [`Tree`] would find a change there.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, RwLock};

use super::configuration::Configuration;
use super::ignore_filter::IgnoreFilter;
use super::part::{KnownDigests, PartDigest, PartHasher};
use super::present::{PresentFile, PresentFiles};
use crate::change::cause::InputLocation;
use crate::change::inputs::{Tree, moved};
use crate::path::ProjectPath;
use crate::pattern::FilePattern;

/// Digests each place once; shared by all threads.
pub(super) struct PlaceDigests<'a> {
    tree: &'a Tree<'a>,
    files: &'a PresentFiles,
    configuration: Configuration<'a>,
    known: KnownDigests,
    /// The files of places, needed only if some are ignored.
    reached: RwLock<HashMap<InputLocation, Arc<[&'a PresentFile]>>>,
}

impl<'a> PlaceDigests<'a> {
    pub(super) fn new(
        tree: &'a Tree<'a>,
        files: &'a PresentFiles,
        configuration: Configuration<'a>,
    ) -> Self {
        PlaceDigests {
            tree,
            files,
            configuration,
            known: RwLock::default(),
            reached: RwLock::default(),
        }
    }

    pub(super) fn digest(&self, place: &InputLocation) -> PartDigest {
        Self::once(&self.known, place, || {
            let mut hasher = PartHasher::default();
            for file in self.found_at(place) {
                hasher.file(file);
            }
            hasher.finish()
        })
    }

    /// Returns the digest of a place without ignored files.
    pub(super) fn part(
        &self,
        place: &InputLocation,
        sieve: Option<&IgnoreFilter<'_>>,
    ) -> PartDigest {
        let Some(sieve) = sieve else {
            return self.digest(place);
        };
        let make = || {
            let mut hasher = PartHasher::default();
            for file in self.files_at(place).iter() {
                if !sieve.drops(&file.path) {
                    hasher.file(file);
                }
            }
            hasher.finish()
        };
        if self.reaches(place, sieve) {
            make()
        } else {
            Self::once(&sieve.view.places, place, make)
        }
    }

    fn once(
        known: &KnownDigests,
        place: &InputLocation,
        make: impl FnOnce() -> PartDigest,
    ) -> PartDigest {
        if let Some(part) = known.read().expect("no task panics").get(place) {
            return *part;
        }
        let part = make();
        let mut known = known.write().expect("no task panics");
        known.insert(place.clone(), part);
        part
    }

    /// Returns whether a place reaches an ignored file of the stack's directory.
    pub(super) fn reaches(&self, place: &InputLocation, sieve: &IgnoreFilter<'_>) -> bool {
        let files = self.files_at(place);
        files.iter().any(|file| sieve.is_inside(&file.path))
    }

    /// Returns the digest of the configuration files at a place by their canonical texts, without ignored
    /// files.
    pub(super) fn configuration_digest(
        &self,
        place: &InputLocation,
        sieve: Option<&IgnoreFilter<'_>>,
    ) -> PartDigest {
        let mut hasher = PartHasher::default();
        let nothing = BTreeSet::new();
        let variables = sieve.map_or(&nothing, |sieve| sieve.list.variables());
        for file in self.found_at(place) {
            if !sieve.is_some_and(|sieve| sieve.drops(&file.path)) {
                self.add_canonical(file, variables, &mut hasher);
            }
        }
        hasher.finish()
    }

    /// Adds a file, by its canonical text if it is a configuration file.
    pub(super) fn add_canonical(
        &self,
        file: &PresentFile,
        variables: &BTreeSet<String>,
        hasher: &mut PartHasher,
    ) {
        match self.configuration.of(&file.path, variables) {
            Some(said) => hasher.add_canonical(file, &said),
            None => hasher.file(file),
        }
    }

    /// Returns the files at a place, found once.
    pub(super) fn files_at(&self, place: &InputLocation) -> Arc<[&'a PresentFile]> {
        let known = self.reached.read().expect("no task panics");
        if let Some(files) = known.get(place) {
            return Arc::clone(files);
        }
        drop(known);
        let files: Arc<[&PresentFile]> = self.found_at(place).into();
        let mut known = self.reached.write().expect("no task panics");
        known.insert(place.clone(), Arc::clone(&files));
        files
    }

    /// Returns the files at a place and the links to them, in the order in which they are found, possibly
    /// twice.
    fn found_at(&self, place: &InputLocation) -> Vec<&'a PresentFile> {
        let mut found = Vec::new();
        match place {
            InputLocation::Path(path) => self.path(path, &mut found),
            InputLocation::Matching(pattern) => self.matching(pattern, &mut found),
        }
        found
    }

    /// Adds the files at or below a path, and the targets of links on the way and below.
    fn path(&self, path: &ProjectPath, found: &mut Vec<&'a PresentFile>) {
        let way = self.tree.links().follow(path);
        self.at(&way.links, found);
        let Some(end) = way.end else {
            return;
        };
        self.around(&end, found);
        // A link to an ancestor does not say which part of it is used.
        if !way.links.is_empty() && path.is_at_or_below(&end) {
            return;
        }
        self.at_or_below(&end, found);
        self.behind_links(&end, found);
    }

    fn at(&self, paths: &[ProjectPath], found: &mut Vec<&'a PresentFile>) {
        for path in paths {
            if let Some(file) = self.files.at(path.as_str()) {
                found.push(file);
            }
        }
    }

    /// Adds a submodule that lies above a path.
    fn around(&self, path: &ProjectPath, found: &mut Vec<&'a PresentFile>) {
        let above = path.ancestors().find_map(|above| self.files.at(above));
        if let Some(file) = above {
            found.push(file);
        }
    }

    fn at_or_below(&self, path: &ProjectPath, found: &mut Vec<&'a PresentFile>) {
        self.at(std::slice::from_ref(path), found);
        for file in self.files.below(path) {
            found.push(file);
        }
    }

    /// Adds the targets of links in a directory, directly or through further links, each link once, so that
    /// cycles end.
    fn behind_links(&self, directory: &ProjectPath, found: &mut Vec<&'a PresentFile>) {
        let mut seen = HashSet::new();
        let mut open = vec![directory.clone()];
        while let Some(directory) = open.pop() {
            for link in self.tree.links().links_below(&directory) {
                if !seen.insert(link.clone()) {
                    continue;
                }
                let way = self.tree.links().follow(&link);
                self.at(&way.links, found);
                let Some(end) = way.end else {
                    continue;
                };
                self.around(&end, found);
                if !link.is_at_or_below(&end) {
                    self.at_or_below(&end, found);
                    open.push(end);
                }
            }
        }
    }

    /// Adds the matches of a pattern, also behind links, and the targets of links on the way to its
    /// directory.
    fn matching(&self, pattern: &FilePattern, found: &mut Vec<&'a PresentFile>) {
        self.at(&[ProjectPath::from_normal(&pattern.to_string())], found);
        let way = self.tree.links().follow(pattern.directory());
        self.at(&way.links, found);
        let Some(end) = way.end else {
            return;
        };
        let moved_pattern = if way.links.is_empty() {
            None
        } else {
            FilePattern::new(&end, pattern.rest()).ok()
        };
        let pattern = moved_pattern.as_ref().unwrap_or(pattern);
        self.around(&end, found);
        self.at(std::slice::from_ref(&end), found);
        for file in self.files.below(&end) {
            if is_match(pattern, &file.path, file) {
                found.push(file);
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
                self.at(&way.links, found);
                let Some(end) = way.end else {
                    continue;
                };
                self.around(&end, found);
                let own = self.files.at(end.as_str()).into_iter();
                let is_around = link.is_at_or_below(&end);
                let below = self.files.below(&end).filter(|_| !is_around);
                for file in own.chain(below) {
                    if is_match(pattern, &moved(&file.path, &end, &name), file) {
                        found.push(file);
                    }
                }
                if !is_around {
                    open.push((end, name));
                }
            }
        }
    }
}

fn is_match(pattern: &FilePattern, name: &ProjectPath, file: &PresentFile) -> bool {
    pattern.matches(name) || file.is_repository() && pattern.may_match_below(name)
}
