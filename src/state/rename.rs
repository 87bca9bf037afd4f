//! Changes the keys of entries, and references to them.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use super::document::{Document, Entry};
use crate::path::{KeyFilter, StackPath};

struct MovedEntry {
    path: StackPath,
    key: String,
    /// The new key as a path, if it is one.
    to: Option<StackPath>,
}

struct RenamedEntries<'m> {
    /// Each entry that is, by the directories that it lies in or below.
    from: HashMap<&'m str, Vec<&'m MovedEntry>>,
    /// How many of them lie in or below each directory now.
    to: HashMap<&'m str, usize>,
    /// How many entries that are called as before lie in or below each directory.
    staying: HashMap<&'m str, usize>,
    /// The new references by old ones: many stacks have the same.
    known: RefCell<HashMap<String, Option<Vec<String>>>>,
}

impl Document {
    /// Renames entries, all at once. An entry keeps its key if its new key belongs to one that is not renamed.
    /// References of entries are renamed too, as far as they are paths.
    pub fn rename(&mut self, mut keys: BTreeMap<String, String>) {
        loop {
            let is_free = |new: &String| !self.stacks.contains_key(new) || keys.contains_key(new);
            let blocked = keys.iter().find(|(_, new)| !is_free(new));
            let Some(blocked) = blocked.map(|(old, _)| old.clone()) else {
                break;
            };
            keys.remove(&blocked);
        }
        keys.retain(|old, _| self.stacks.contains_key(old));
        if keys.is_empty() {
            return;
        }
        let (mut moved, mut staying) = (Vec::new(), Vec::new());
        for old in self.stacks.keys() {
            // Only stack paths can be referenced.
            let Some(path) = StackPath::parse(old) else {
                continue;
            };
            match keys.get(old) {
                Some(key) => moved.push(MovedEntry {
                    path,
                    key: key.clone(),
                    to: StackPath::parse(key),
                }),
                None => staying.push(path),
            }
        }
        let renamed = RenamedEntries::new(&moved, &staying);
        for entry in self.stacks.values_mut() {
            renamed.follow(&mut entry.after);
            renamed.follow(&mut entry.before);
            for used in &mut entry.uses {
                if let Some(now) = keys.get(used) {
                    used.clone_from(now);
                }
            }
            entry.follow_names(&keys);
        }
        let found: Vec<(String, (String, Entry))> = keys
            .into_iter()
            .filter_map(|(old, new)| {
                let entry = self.stacks.remove(&old)?;
                Some((new, (self.keys_as_read.remove(&old).unwrap_or(old), entry)))
            })
            .collect();
        for (key, (as_read, entry)) in found {
            self.keys_as_read.insert(key.clone(), as_read);
            self.stacks.insert(key, entry);
        }
    }

    /// Returns the key under which an entry was read, which [`Self::rename`] may have changed.
    pub fn key_as_read<'k>(&'k self, key: &'k str) -> &'k str {
        self.renamed_from(key).unwrap_or(key)
    }

    /// Returns the key under which a renamed entry was read.
    pub fn renamed_from(&self, key: &str) -> Option<&str> {
        self.keys_as_read.get(key).map(String::as_str)
    }

    /// Returns the keys of renamed entries, each with the one under which it was read.
    pub fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        let keys = self.keys_as_read.iter();
        keys.map(|(key, as_read)| (key.as_str(), as_read.as_str()))
    }
}

impl Entry {
    fn follow_names(&mut self, keys: &BTreeMap<String, String>) {
        let output = |named: String| {
            let now = named.rsplit_once('#').and_then(|(stack, output)| {
                let stack = keys.get(stack)?;
                Some(format!("{stack}#{output}"))
            });
            now.unwrap_or(named)
        };
        if let Some(rule) = &mut self.lifecycle.replace_triggered_by {
            let triggers = std::mem::take(&mut rule.value).into_iter();
            rule.value = triggers.map(output).collect();
        }
        if let Some(applied) = &mut self.applied {
            let triggers = std::mem::take(&mut applied.triggered_by)
                .into_iter()
                .map(|(named, digest)| (output(named), digest));
            applied.triggered_by = triggers.collect();
        }
        let applied = self.applied.iter_mut().map(|it| &mut it.generations);
        let deposed = self.deposed.iter_mut().map(|it| &mut it.generations);
        for generations in applied.chain(deposed) {
            let named = std::mem::take(generations)
                .into_iter()
                .map(|(key, it)| (keys.get(&key).cloned().unwrap_or(key), it));
            generations.extend(named);
        }
    }
}

impl<'m> RenamedEntries<'m> {
    fn new(moved: &'m [MovedEntry], staying: &'m [StackPath]) -> Self {
        let mut from: HashMap<&str, Vec<&MovedEntry>> = HashMap::with_capacity(moved.len());
        for entry in moved {
            for place in places(&entry.path) {
                from.entry(place).or_default().push(entry);
            }
        }
        RenamedEntries {
            from,
            to: count_places(moved.iter().filter_map(|entry| entry.to.as_ref())),
            staying: count_places(staying.iter()),
            known: RefCell::default(),
        }
    }

    /// Makes references match the same stacks as before.
    fn follow(&self, references: &mut Vec<String>) {
        if references.iter().all(|written| self.now(written).is_none()) {
            return;
        }
        let mut all = Vec::with_capacity(references.len());
        for written in references.drain(..) {
            let now = self.now(&written);
            for reference in now.unwrap_or_else(|| vec![written]) {
                if !all.contains(&reference) {
                    all.push(reference);
                }
            }
        }
        *references = all;
    }

    /// Returns the new form of a reference; `None` if it is unchanged.
    fn now(&self, written: &str) -> Option<Vec<String>> {
        if let Some(known) = self.known.borrow().get(written) {
            return known.clone();
        }
        let found = self.found(written);
        let mut known = self.known.borrow_mut();
        known.insert(written.to_owned(), found.clone());
        found
    }

    fn found(&self, written: &str) -> Option<Vec<String>> {
        let (place, filter) = KeyFilter::split(written);
        let below = self.from.get(place)?.iter();
        let is_named = |path: &StackPath| match &filter {
            None => true,
            Some(filter) => path.directory().as_str() == place && filter.matches(path.key()),
        };
        let named: Vec<_> = below.filter(|entry| is_named(&entry.path)).collect();
        if named.is_empty() {
            return None;
        }
        if filter.is_none() && !self.staying.contains_key(place) {
            // All of it has moved. If the new place holds nothing else, its path matches it.
            let mut places = named.iter().map(|entry| {
                let below = entry.path.as_str().strip_prefix(place)?;
                entry.key.strip_suffix(below)
            });
            let to = places.next().flatten().filter(|to| !to.is_empty());
            if let Some(to) = to
                && places.all(|place| place == Some(to))
                && self.to.get(to) == Some(&named.len())
                && !self.staying.contains_key(to)
            {
                return Some(vec![to.to_owned()]);
            }
        }
        let is_one = matches!(filter, Some(KeyFilter::One(_)));
        let stays = !is_one && self.staying.contains_key(place);
        let own = stays.then(|| written.to_owned());
        let others = named.into_iter().map(|entry| entry.key.clone());
        Some(own.into_iter().chain(others).collect())
    }
}

/// Returns the directories that a stack lies in or below.
fn places(path: &StackPath) -> impl Iterator<Item = &str> {
    let directory = path.directory();
    std::iter::once(directory.as_str()).chain(directory.ancestors())
}

/// Returns how many of some stacks lie in or below each directory.
fn count_places<'p>(paths: impl Iterator<Item = &'p StackPath>) -> HashMap<&'p str, usize> {
    let mut counts = HashMap::new();
    for path in paths {
        for place in places(path) {
            *counts.entry(place).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the references of an entry after a move of stacks with these keys.
    fn after(keys: &[&str], moves: &[(&str, &str)], references: &[&str]) -> Vec<String> {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let text = r#"{"format":1,"project":"p","namespace":"n","root":"","lineage":"l","serial":1,
            "lock":null,"stacks":{},"history":[]}"#;
        let mut document = Document::parse(text.as_bytes()).unwrap();
        for &key in keys {
            document.stacks.insert(key.to_owned(), Entry::default());
        }
        let user = Entry {
            after: texts(references),
            before: texts(references),
            ..Entry::default()
        };
        document.stacks.insert("/user".to_owned(), user);
        let moves = moves.iter();
        document.rename(moves.map(|&(a, b)| (a.to_owned(), b.to_owned())).collect());
        let user = &document.stacks["/user"];
        assert_eq!(user.after, user.before);
        user.after.clone()
    }

    #[test]
    fn references_follow_what_they_name() {
        type Case<'a> = (
            &'a [&'a str],
            &'a [(&'a str, &'a str)],
            &'a [&'a str],
            &'a [&'a str],
        );
        let cases: [Case<'_>; 11] = [
            (
                &["/a"],
                &[("/a", "/b/c")],
                &["/a", "/x", "tag:/a"],
                &["/b/c", "/x", "tag:/a"],
            ),
            // At the same time.
            (
                &["/a", "/b"],
                &[("/a", "/b"), ("/b", "/a")],
                &["/a"],
                &["/b"],
            ),
            (
                &["/a", "/b"],
                &[("/a", "/b"), ("/b", "/a")],
                &["/a", "/b"],
                &["/b", "/a"],
            ),
            // Entries below a directory move with it, or not.
            (
                &["/e/a", "/e/b"],
                &[("/e/a", "/f/a"), ("/e/b", "/f/b")],
                &["/e", "/e/b"],
                &["/f", "/f/b"],
            ),
            (
                &["/e/a", "/e/b"],
                &[("/e/a", "/f/a")],
                &["/e"],
                &["/e", "/f/a"],
            ),
            (&["/e/a", "/f/b"], &[("/e/a", "/f/a")], &["/e"], &["/f/a"]),
            (&["/e/a"], &[("/e/a", "/a")], &["/e"], &["/a"]),
            (&["/ea", "/e"], &[("/ea", "/z")], &["/e"], &["/e"]),
            // Instances.
            (
                &[r#"/a["x"]"#, r#"/a["y"]"#],
                &[(r#"/a["x"]"#, r#"/b["x"]"#), (r#"/a["y"]"#, r#"/b["y"]"#)],
                &["/a", r#"/a["x"]"#],
                &["/b", r#"/b["x"]"#],
            ),
            (
                &[r#"/a["x"]"#, r#"/a["y"]"#],
                &[(r#"/a["x"]"#, "/b")],
                &["/a[*]", r#"/a["y"]"#],
                &["/a[*]", "/b", r#"/a["y"]"#],
            ),
            // It is not recorded.
            (&["/a"], &[("/b", "/c")], &["/b"], &["/b"]),
        ];
        for (keys, moves, references, expected) in cases {
            assert_eq!(
                after(keys, moves, references),
                expected,
                "{moves:?} {references:?}"
            );
        }
    }
}
