//! The changes behind links in a directory or behind links that a pattern matches.

use std::collections::{HashMap, HashSet};
use std::sync::RwLock;

use super::follow::{Links, ResolvedPath};
use crate::change::cause::{Location, Use, UseKind};
use crate::change::files::ChangedFiles;
use crate::git::ChangedFile;
use crate::path::ProjectPath;
use crate::pattern::FilePattern;

/// The maximum number of links reported for a chain.
const MAX_TOLD: usize = 256;

/// A changed file on the way to an input.
#[derive(Clone)]
pub(in crate::change) struct ChangedInput<'a> {
    pub(in crate::change) file: &'a ChangedFile,
    pub(in crate::change) links: Vec<Use>,
}

impl<'a> ChangedInput<'a> {
    /// Returns a touch by a changed file that is reached without links.
    pub(in crate::change) fn direct(file: &'a ChangedFile) -> Self {
        let links = Vec::new();
        ChangedInput { file, links }
    }
}

/// Finds changes behind links; shared by all threads.
pub(super) struct LinkedChanges<'a> {
    pub(super) links: Links<'a>,
    pub(super) changed: &'a ChangedFiles,
    /// The changes behind links, by link and by directory with links.
    known: RwLock<HashMap<ProjectPath, Option<ChangedInput<'a>>>>,
}

/// A directory that links lead to.
struct LinkedDirectory {
    directory: ProjectPath,
    /// The path that the pattern sees.
    name: ProjectPath,
    /// The links from the previous directory.
    links: Vec<ProjectPath>,
    /// The index of the previous directory; the first has its own.
    from: usize,
}

impl<'a> LinkedChanges<'a> {
    pub(super) fn new(links: Links<'a>, changed: &'a ChangedFiles) -> Self {
        LinkedChanges {
            links,
            changed,
            known: RwLock::default(),
        }
    }

    pub(super) fn touch_beyond(
        &self,
        path: &ProjectPath,
        way: &ResolvedPath,
    ) -> Option<ChangedInput<'a>> {
        if way.links.is_empty() {
            return None;
        }
        let mut stops = way.links.iter().chain(&way.end).enumerate();
        stops.find_map(|(passed, stop)| {
            // A link to an ancestor does not say which part of it is used.
            let file = if path.is_at_or_below(stop) {
                self.changed.touching_above(stop)?
            } else {
                self.changed.touching(stop)?
            };
            let links = way.links[..passed].iter().map(link_use).collect();
            Some(ChangedInput { file, links })
        })
    }

    /// Returns the change behind links in or below a directory, directly or through further links.
    pub(super) fn touch(&self, directory: &ProjectPath) -> Option<ChangedInput<'a>> {
        self.links.links_below(directory).next()?;
        let known = self.known.read().expect("no task panics");
        if let Some(touch) = known.get(directory) {
            return touch.clone();
        }
        drop(known);
        let mut seen = HashSet::new();
        let touch = self.search(directory, None, &mut seen);
        let mut known = self.known.write().expect("no task panics");
        if touch.is_none() {
            // None of these links leads to a change.
            known.extend(seen.into_iter().map(|link| (link, None)));
        }
        known.insert(directory.clone(), touch.clone());
        touch
    }

    /// Returns the change behind links that a pattern matches, or below which it matches.
    pub(super) fn touch_matching(&self, pattern: &FilePattern) -> Option<ChangedInput<'a>> {
        self.search(pattern.directory(), Some(pattern), &mut HashSet::new())
    }

    /// Visits the links in a directory, then those in their targets, each once, so that cycles end.
    fn search(
        &self,
        directory: &ProjectPath,
        pattern: Option<&FilePattern>,
        seen: &mut HashSet<ProjectPath>,
    ) -> Option<ChangedInput<'a>> {
        let mut reached = vec![LinkedDirectory {
            directory: directory.clone(),
            name: directory.clone(),
            links: Vec::new(),
            from: 0,
        }];
        let mut next = 0;
        while next < reached.len() {
            let directory = reached[next].directory.clone();
            for link in self.links.links_below(&directory) {
                let name = match pattern {
                    None => link.clone(),
                    Some(_) => moved(&link, &directory, &reached[next].name),
                };
                let is_covered = |pattern: &FilePattern| {
                    name.as_str().len() <= ProjectPath::MAX_BYTES
                        && (pattern.matches(&name) || pattern.may_match_below(&name))
                };
                if seen.contains(&link) || !pattern.is_none_or(is_covered) {
                    continue;
                }
                seen.insert(link.clone());
                if pattern.is_none() && self.is_known_to_lead_nowhere(&link) {
                    continue;
                }
                let way = self.links.follow(&link);
                let found = match pattern {
                    None => self.touch_beyond(&link, &way),
                    Some(pattern) => self.touch_matched(pattern, &name, &link, &way),
                };
                if let Some(touch) = found {
                    let links = chain(&reached, next).chain(touch.links);
                    return Some(ChangedInput {
                        file: touch.file,
                        links: links.take(MAX_TOLD).collect(),
                    });
                }
                // A link to an ancestor does not say which part of it is used.
                if let Some(end) = way.end
                    && !link.is_at_or_below(&end)
                {
                    reached.push(LinkedDirectory {
                        directory: end,
                        name,
                        links: way.links,
                        from: next,
                    });
                }
            }
            next += 1;
        }
        None
    }

    fn is_known_to_lead_nowhere(&self, link: &ProjectPath) -> bool {
        let known = self.known.read().expect("no task panics");
        matches!(known.get(link), Some(None))
    }

    /// Returns the change that a pattern matches at or below a link.
    fn touch_matched(
        &self,
        pattern: &FilePattern,
        name: &ProjectPath,
        link: &ProjectPath,
        way: &ResolvedPath,
    ) -> Option<ChangedInput<'a>> {
        // The old target of a changed link is unknown; the pattern may have matched there.
        let passed = |count: usize| way.links[..count].iter().map(link_use).collect();
        let mut stops = way.links.iter().enumerate();
        let by_link =
            stops.find_map(|(count, stop)| Some((self.changed.at(stop.as_str())?, count)));
        if let Some((file, count)) = by_link {
            let links = passed(count);
            return Some(ChangedInput { file, links });
        }
        let end = way.end.as_ref()?;
        let matches = |file: &&ChangedFile| {
            let inside = moved(&file.path, end, name);
            pattern.matches(&inside)
                || file.change.may_hide_files() && pattern.may_match_below(&inside)
        };
        let at_end = self
            .changed
            .touching_above(end)
            .filter(|file| file.path != *end || matches(file));
        let below = || {
            let mut below = self.changed.below(end);
            below.find(|file| !link.is_at_or_below(end) && matches(file))
        };
        let file = at_end.or_else(below)?;
        let links = passed(way.links.len());
        Some(ChangedInput { file, links })
    }
}

/// Returns the links from the first directory to the one at an index.
fn chain(reached: &[LinkedDirectory], mut index: usize) -> impl Iterator<Item = Use> {
    let mut ways = Vec::new();
    while index != 0 && ways.len() < MAX_TOLD {
        ways.push(&reached[index].links);
        index = reached[index].from;
    }
    ways.into_iter().rev().flatten().map(link_use)
}

/// Returns a path at or below one directory as if it were in another.
pub(in crate::change) fn moved(
    path: &ProjectPath,
    from: &ProjectPath,
    to: &ProjectPath,
) -> ProjectPath {
    let rest = &path.as_str()[from.as_str().trim_end_matches('/').len()..];
    match rest {
        "" | "/" => to.clone(),
        rest => to.join(&rest[1..]),
    }
}

/// Returns a link as a step.
pub(super) fn link_use(link: &ProjectPath) -> Use {
    Use {
        kind: UseKind::Link,
        location: Location {
            file: link.clone(),
            line: None,
        },
    }
}
