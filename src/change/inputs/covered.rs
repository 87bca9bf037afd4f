//! The links that lie in a directory, or that a pattern matches, and what changed where they lead.

use std::collections::{HashMap, HashSet};
use std::sync::RwLock;

use super::links::links_in;
use super::tree::{MAX_PATH_BYTES, Touch, Tree, Way, link_use};
use crate::change::Use;
use crate::git::{ChangedFile, FileChange};
use crate::path::ProjectPath;
use crate::pattern::Pattern;

/// Links of a chain that are told.
const MAX_TOLD: usize = 256;

/// What is known of links and of directories that cover some: what changed where they lead.
pub(super) type Known<'a> = RwLock<HashMap<ProjectPath, Option<Touch<'a>>>>;

/// A directory that links lead to.
struct Reached {
    directory: ProjectPath,
    /// What the pattern takes it for.
    name: ProjectPath,
    /// The links that lead here from the directory before.
    links: Vec<ProjectPath>,
    /// The index of the directory before; one's own for the first.
    from: usize,
}

impl<'a> Tree<'a> {
    /// Returns the change that links in a directory or below it lead to, by way of whatever further
    /// links lie there.
    pub(super) fn touch_covered(&self, directory: &ProjectPath) -> Option<Touch<'a>> {
        self.links_below(directory).next()?;
        let known = self.covered.read().expect("no task panics");
        if let Some(touch) = known.get(directory) {
            return touch.clone();
        }
        drop(known);
        let mut seen = HashSet::new();
        let touch = self.search(directory, None, &mut seen);
        let mut known = self.covered.write().expect("no task panics");
        if touch.is_none() {
            // No link that was met leads to a change, then.
            known.extend(seen.into_iter().map(|link| (link, None)));
        }
        known.insert(directory.clone(), touch.clone());
        touch
    }

    /// Returns the change that links lead to which a pattern matches, or below which it does.
    pub(super) fn touch_covered_by(&self, pattern: &Pattern) -> Option<Touch<'a>> {
        self.search(pattern.directory(), Some(pattern), &mut HashSet::new())
    }

    /// Goes through the links in a directory, then through those where they lead; each once, so that
    /// circles end.
    fn search(
        &self,
        directory: &ProjectPath,
        pattern: Option<&Pattern>,
        seen: &mut HashSet<ProjectPath>,
    ) -> Option<Touch<'a>> {
        let mut reached = vec![Reached {
            directory: directory.clone(),
            name: directory.clone(),
            links: Vec::new(),
            from: 0,
        }];
        let mut next = 0;
        while next < reached.len() {
            let directory = reached[next].directory.clone();
            for link in self.links_below(&directory) {
                let name = match pattern {
                    None => link.clone(),
                    Some(_) => replace(&link, &directory, &reached[next].name),
                };
                let is_covered = |pattern: &Pattern| {
                    name.as_str().len() <= MAX_PATH_BYTES
                        && (pattern.matches(&name) || pattern.may_match_below(&name))
                };
                if seen.contains(&link) || !pattern.is_none_or(is_covered) {
                    continue;
                }
                seen.insert(link.clone());
                if pattern.is_none() && self.is_known_to_lead_nowhere(&link) {
                    continue;
                }
                let way = self.follow(&link);
                let found = match pattern {
                    None => self.touch_beyond(&link, &way),
                    Some(pattern) => self.touch_matched(pattern, &name, &link, &way),
                };
                if let Some(touch) = found {
                    let links = chain(&reached, next).chain(touch.links);
                    return Some(Touch {
                        file: touch.file,
                        links: links.take(MAX_TOLD).collect(),
                    });
                }
                // A link to a directory around it does not say what is used of that directory.
                if let Some(end) = way.end
                    && !link.is_at_or_below(&end)
                {
                    reached.push(Reached {
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
        let known = self.covered.read().expect("no task panics");
        matches!(known.get(link), Some(None))
    }

    /// Returns the change of what a pattern matches at a link or below it.
    fn touch_matched(
        &self,
        pattern: &Pattern,
        name: &ProjectPath,
        link: &ProjectPath,
        way: &Way,
    ) -> Option<Touch<'a>> {
        // What a changed link led to before is not known: there may have been something to match.
        let passed = |count: usize| way.links[..count].iter().map(link_use).collect();
        let mut stops = way.links.iter().enumerate();
        let by_link =
            stops.find_map(|(count, stop)| Some((self.changed.at(stop.as_str())?, count)));
        if let Some((file, count)) = by_link {
            let links = passed(count);
            return Some(Touch { file, links });
        }
        let end = way.end.as_ref()?;
        let matches = |file: &&ChangedFile| {
            let inside = replace(&file.path, end, name);
            pattern.matches(&inside)
                || file.change == FileChange::Repository && pattern.may_match_below(&inside)
        };
        let at_end = self.changed.touching_above(end);
        let at_end = at_end.filter(|file| file.path != *end || matches(file));
        let below = || {
            let mut below = self.changed.below(end);
            below.find(|file| !link.is_at_or_below(end) && matches(file))
        };
        let file = at_end.or_else(below)?;
        let links = passed(way.links.len());
        Some(Touch { file, links })
    }

    /// Returns the links in a directory, then those below it, and at last those that the walk has not
    /// seen.
    pub(super) fn links_below(
        &self,
        directory: &ProjectPath,
    ) -> impl Iterator<Item = ProjectPath> + use<'a, '_> {
        let prefix = directory.prefix_of_below();
        let own = self
            .links
            .binary_search_by(|(path, _)| (*path).cmp(directory));
        let own = own.ok().map(|own| &self.links[own]);
        let start = self
            .links
            .partition_point(|(path, _)| *path.as_str() < *prefix);
        let below = self.links[start..].iter();
        let below = below.take_while(move |(path, _)| path.as_str().starts_with(&prefix));
        // The root's own are below `/` as well, as text.
        let own = own.filter(|(path, _)| !path.is_root());
        let listed = own.into_iter().chain(below);
        let listed = listed.flat_map(|&(directory, listed)| links_in(directory, listed));
        listed.chain(self.hidden_links(directory))
    }
}

/// Returns the links from the first directory to that of an index.
fn chain(reached: &[Reached], mut index: usize) -> impl Iterator<Item = Use> {
    let mut ways = Vec::new();
    while index != 0 && ways.len() < MAX_TOLD {
        ways.push(&reached[index].links);
        index = reached[index].from;
    }
    ways.into_iter().rev().flatten().map(link_use)
}

/// Returns a path at or below one directory as if it were in another.
fn replace(path: &ProjectPath, from: &ProjectPath, to: &ProjectPath) -> ProjectPath {
    let rest = &path.as_str()[from.as_str().trim_end_matches('/').len()..];
    match rest {
        "" | "/" => to.clone(),
        rest => to.join(&rest[1..]),
    }
}
