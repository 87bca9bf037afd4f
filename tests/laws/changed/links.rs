//! What is found at a place, or matches there, by way of whatever links.

use super::paths::{above, below, is_at_or_below, join, matches, parent, resolve};
use super::rules::{Paths, Tree};

/// What can alter something.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// Whatever is found there: a change of it, of something below it, or of something above it that
    /// is or was no directory.
    Place(String),
    /// A change of exactly this, or of something above it.
    Above(String),
    /// All files below a directory that match when the directory is called by that name.
    Glob {
        directory: String,
        name: String,
        pattern: String,
    },
}

impl What {
    /// Returns whether it takes in a file that has changed. Patterns also take in what a link may have led to that is
    /// no link any more.
    pub(super) fn takes(&self, file: &str, was_link: bool) -> bool {
        match self {
            What::Place(place) => is_at_or_below(file, place) || is_at_or_below(place, file),
            What::Above(place) => is_at_or_below(place, file),
            What::Glob {
                directory,
                name,
                pattern,
            } => below(file, directory).is_some_and(|rest| {
                let name = join(name, rest);
                matches(pattern, &name) || was_link && reaches_below(pattern, &name)
            }),
        }
    }
}

/// Returns whether a pattern could match something below a name.
fn reaches_below(pattern: &str, name: &str) -> bool {
    pattern.contains("**") || pattern.split('/').count() > name.split('/').count()
}

/// The way to a place: the links on it, and where it ends, free of links.
pub(super) struct Way {
    links: Vec<String>,
    pub(super) end: Option<String>,
}

impl Way {
    /// Whatever can alter what is found at the place that this is the way to. A link to a directory
    /// around the place does not say what is used of that directory.
    fn stops(&self, place: &str) -> Vec<What> {
        let stops = self.links.iter().chain(&self.end).map(|stop| {
            if is_at_or_below(place, stop) {
                What::Above(stop.clone())
            } else {
                What::Place(stop.clone())
            }
        });
        stops.collect()
    }

    /// Where the links lead from a place, unless that is around it.
    fn elsewhere(&self, place: &str) -> Option<&String> {
        let is_around = |end: &&String| !self.links.is_empty() && is_at_or_below(place, end);
        self.end.as_ref().filter(|end| !is_around(end))
    }
}

impl Tree<'_> {
    pub(super) fn way(&self, place: &str) -> Way {
        let mut links = Vec::new();
        let mut here = place.to_owned();
        for _ in 0..40 {
            let all = self.0.iter();
            let mut met = all.filter_map(|(path, file)| Some((path, file.link()?)));
            let Some((link, target)) = met.find(|(link, _)| is_at_or_below(&here, link)) else {
                let end = Some(here);
                return Way { links, end };
            };
            links.push(link.clone());
            let rest = &here[link.len()..];
            match resolve(parent(link), target) {
                Some(target) if target.is_empty() => here = rest.trim_start_matches('/').to_owned(),
                Some(target) => here = format!("{target}{rest}"),
                None => break,
            }
        }
        Way { links, end: None }
    }

    /// The links at or below a directory, where they count.
    pub(super) fn links(&self, directory: &str) -> impl Iterator<Item = &str> {
        let files = self.0.iter().filter(|(_, file)| file.link().is_some());
        let links = files.map(|(path, _)| path.as_str());
        let links = links.filter(|path| !self.is_foreign(parent(path)));
        links.filter(move |path| below(path, directory).is_some())
    }

    /// Whatever can alter what is found at a place, and where links below it lead.
    pub(super) fn found_at(&self, place: &str) -> Vec<What> {
        let way = self.way(place);
        let mut all = vec![What::Place(place.to_owned())];
        all.extend(way.stops(place));
        if let Some(end) = way.elsewhere(place) {
            all.extend(self.covered(end));
        }
        all
    }

    /// What can alter where links in a directory lead, and the links there, and so on.
    pub(super) fn covered(&self, directory: &str) -> Vec<What> {
        let mut all = Vec::new();
        let mut open = vec![directory.to_owned()];
        let mut seen = Paths::new();
        while let Some(directory) = open.pop() {
            for link in self.links(&directory) {
                if seen.insert(link.to_owned()) {
                    let way = self.way(link);
                    all.extend(way.stops(link));
                    open.extend(way.elsewhere(link).cloned());
                }
            }
        }
        all
    }

    /// Whatever can alter which files match below a place.
    pub(super) fn matched(&self, place: &str, pattern: &str) -> Vec<What> {
        let names: Vec<&str> = pattern.split('/').collect();
        let is_literal = |name: &&&str| !name.contains(['*', '?', '{']);
        let n_literal = names
            .iter()
            .take_while(is_literal)
            .count()
            .min(names.len() - 1);
        let place = names[..n_literal]
            .iter()
            .fold(place.to_owned(), |place, name| join(&place, name));
        let pattern = names[n_literal..].join("/");
        let glob = |directory: &str, name: &str| What::Glob {
            directory: directory.to_owned(),
            name: name.to_owned(),
            pattern: pattern.clone(),
        };
        let way = self.way(&place);
        let mut all = vec![What::Above(place.clone()), glob(&place, "")];
        all.extend(way.links.iter().cloned().map(What::Above));
        all.extend(way.end.iter().cloned().map(What::Above));
        // Directories that are reached, and the names that they are reached by.
        let mut open: Vec<(String, String)> = Vec::new();
        open.extend(way.end.map(|end| (end, String::new())));
        let mut seen = Vec::new();
        while let Some((directory, name)) = open.pop() {
            all.push(glob(&directory, &name));
            for link in self.links(&directory) {
                let rest = below(link, &directory).expect("it lies there");
                let name = join(&name, rest);
                let is_match = matches(&pattern, &name);
                if !is_match && !reaches_below(&pattern, &name)
                    || seen.contains(&(link, name.clone()))
                {
                    continue;
                }
                seen.push((link, name.clone()));
                if seen.len() > 200 {
                    break;
                }
                let way = self.way(link);
                all.extend(way.links.iter().cloned().map(What::Above));
                if let Some(end) = &way.end {
                    let places = above(end).into_iter().map(str::to_owned);
                    all.extend(places.map(What::Above));
                    all.extend(is_match.then(|| What::Above(end.clone())));
                }
                open.extend(way.elsewhere(link).map(|end| (end.clone(), name)));
            }
        }
        all
    }
}
