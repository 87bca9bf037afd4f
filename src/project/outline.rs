//! The names in a project, read lazily.
//!
//! Completion runs while the user types, so it cannot wait until the whole project is loaded: if there are many
//! stacks, it only needs the directories that lead to them. Files that cannot be read are ignored; problems are not
//! reported.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::language::parse::parse;
use crate::language::syntax::{Block, Body};
use crate::path::{ProjectPath, StackPath};
use crate::project::discover::{
    CONFIGURATION, ParsedFile, SourceTree, declares_root, is_configuration, is_skip_mark, read_text,
};
use crate::project::load::pool;
use crate::project::stack::{self, Declared, FOR_EACH, Stack};
use crate::source::FileId;

/// Why a lock is never poisoned.
const NO_PANIC: &str = "no task panics while it holds this";

/// The names of a project on disk.
pub struct Outline<'r> {
    root: &'r Path,
}

/// A stack, or a directory that leads to stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineEntry {
    pub path: StackPath,
    pub kind: OutlineKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutlineKind {
    /// A stack with its description, if it has one; or all instances in a directory, without one.
    Stack(Option<String>),
    Directory,
}

struct Directory {
    path: ProjectPath,
    files: Vec<ParsedFile>,
    /// The names of its subdirectories, sorted.
    names: Vec<String>,
}

impl<'r> Outline<'r> {
    /// Returns the outline of the project at `root`, which is absolute and free of links.
    pub fn new(root: &'r Path) -> Self {
        Outline { root }
    }

    /// Returns the stacks at or below a directory whose paths from there begin with `beginning`, which has no `/`, in
    /// path order. The paths of instances in the directory itself begin with `[`. If there are more than `max`,
    /// returns instead the nearest places that lead to all of them; a directory then includes its instances.
    pub fn stacks(
        &self,
        directory: &ProjectPath,
        beginning: &str,
        max: usize,
    ) -> Vec<OutlineEntry> {
        let Some(mut base) = self.reach(directory) else {
            return Vec::new();
        };
        let mut own = self.begun_instances(&base, beginning);
        base.names.retain(|name| name.starts_with(beginning));
        let mut found = own.clone();
        if beginning.is_empty() {
            found.extend(self.stacks_at(&base));
        }
        if self.collect(&base, max.max(own.len()), &mut found) {
            found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
            return found;
        }
        loop {
            let mut places = std::mem::take(&mut own);
            if beginning.is_empty() || base.path != *directory {
                places.extend(self.place_at(&base));
            }
            let mut only = None;
            for child in self.children(&base) {
                places.extend(self.place_at(&child));
                if !self.collect(&child, 0, &mut Vec::new()) {
                    places.push(OutlineEntry {
                        path: child.path.clone().into(),
                        kind: OutlineKind::Directory,
                    });
                    only = Some(child);
                }
            }
            match (only, places.len()) {
                // One directory leads to all of them.
                (Some(child), 1) => base = child,
                _ => return places,
            }
        }
    }

    /// Returns the instances whose keys the user has begun to type, with quotes, or without them if a
    /// shell has removed them.
    fn begun_instances(&self, base: &Directory, beginning: &str) -> Vec<OutlineEntry> {
        let is_begun = |rest: &str, place: &OutlineEntry| {
            let key = place.path.key();
            key.is_some_and(|key| {
                format!("[\"{key}\"]").starts_with(rest) || format!("[{key}]").starts_with(rest)
            })
        };
        let begun = |name: &str| {
            beginning
                .strip_prefix(name)
                .filter(|it| it.starts_with('['))
        };
        let mut found = Vec::new();
        if let Some(rest) = begun("") {
            let here = self.stacks_at(base);
            found.extend(here.filter(|place| is_begun(rest, place)));
        }
        for name in &base.names {
            if let Some(rest) = begun(name)
                && let Some(child) = self.read(base.path.join(name), may_be_stack)
            {
                let there = self.stacks_at(&child);
                found.extend(there.filter(|place| is_begun(rest, place)));
            }
        }
        found
    }

    pub fn has_state(&self) -> bool {
        let root = self.read(ProjectPath::root(), |text| text.contains("state"));
        let files = root.into_iter().flat_map(|root| root.files);
        files
            .map(|file| file.body)
            .any(|body| has_block(&body, &["orch", "config", "state"]))
    }

    pub fn tags(&self) -> BTreeSet<String> {
        let tags = Mutex::<BTreeSet<String>>::default();
        let may_matter = |text: &str| {
            text.contains("root")
                || text.contains("tags")
                    && written_tags(text).is_none_or(|written| {
                        let known = tags.lock().expect(NO_PANIC);
                        written.iter().any(|tag| !known.contains(*tag))
                    })
        };
        self.each_directory(&may_matter, &|directory| {
            for stack in self.declared(directory, "tags") {
                let own = stack.tags().map(str::to_owned);
                tags.lock().expect(NO_PANIC).extend(own);
            }
        });
        tags.into_inner().expect(NO_PANIC)
    }

    /// Returns the last labels of the top-level blocks of a kind: the names of policies or modules.
    pub fn labels(&self, kind: &str) -> BTreeSet<String> {
        let labels = Mutex::<BTreeSet<String>>::default();
        let may_matter = |text: &str| text.contains("root") || text.contains(kind);
        self.each_directory(&may_matter, &|directory| {
            for file in &directory.files {
                let last = |block: &Block| block.labels.last().map(|label| label.text.to_string());
                let named = file.body.blocks(kind).filter_map(last);
                labels.lock().expect(NO_PANIC).extend(named);
            }
        });
        labels.into_inner().expect(NO_PANIC)
    }

    /// Calls a function with each directory of the project, on many threads and in any order.
    fn each_directory(
        &self,
        may_matter: &(dyn Fn(&str) -> bool + Sync),
        visit: &(dyn Fn(&Directory) + Sync),
    ) {
        if let Ok(pool) = pool() {
            pool.scope(|scope| self.visit_below(ProjectPath::root(), scope, may_matter, visit));
        }
    }

    fn visit_below<'s>(
        &'s self,
        path: ProjectPath,
        scope: &rayon::Scope<'s>,
        may_matter: &'s (dyn Fn(&str) -> bool + Sync),
        visit: &'s (dyn Fn(&Directory) + Sync),
    ) {
        let Some(directory) = self.read(path, may_matter) else {
            return;
        };
        for name in &directory.names {
            let path = directory.path.join(name);
            scope.spawn(move |scope| self.visit_below(path, scope, may_matter, visit));
        }
        visit(&directory);
    }

    /// Reads a directory, unless a directory above it is left out of the project.
    fn reach(&self, path: &ProjectPath) -> Option<Directory> {
        let mut directory = self.read(ProjectPath::root(), may_be_stack)?;
        for name in path.components() {
            if !directory.names.iter().any(|known| known == name) {
                return None;
            }
            directory = self.read(directory.path.join(name), may_be_stack)?;
        }
        Some(directory)
    }

    /// Reads a directory, and parses only the files that may matter, since parsing takes longest.
    /// `None` if the directory does not belong to the project.
    fn read(&self, path: ProjectPath, may_matter: impl Fn(&str) -> bool) -> Option<Directory> {
        let mut names = Vec::new();
        let mut files = Vec::new();
        let mut is_marked = false;
        for entry in fs::read_dir(path.to_host(self.root)).ok()?.flatten() {
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                let name = name.into_string().ok();
                names.extend(name.filter(|name| !name.starts_with('.')));
            } else if is_skip_mark(&name) {
                is_marked = true;
            } else if is_configuration(&name) {
                files.push((entry.path(), kind.is_file()));
            }
        }
        if is_marked {
            // The configuration of the root always applies.
            if !path.is_root() {
                return None;
            }
            names.clear();
        }
        files.sort_unstable();
        let files: Vec<ParsedFile> = files
            .iter()
            .filter_map(|(host, is_plain)| {
                let text = read_text(host, *is_plain, Some(self.root), &CONFIGURATION).ok()?;
                if !may_matter(&text) {
                    return None;
                }
                Some(ParsedFile {
                    path: ProjectPath::from_host(self.root, host)?,
                    body: Arc::new(parse(FileId(0), &text).ok()?),
                })
            })
            .collect();
        if !path.is_root() && files.iter().any(|file| declares_root(&file.body)) {
            return None;
        }
        names.sort_unstable();
        Some(Directory { path, files, names })
    }

    fn children(&self, directory: &Directory) -> impl Iterator<Item = Directory> {
        let paths = directory.names.iter().map(|name| directory.path.join(name));
        paths.filter_map(|path| self.read(path, may_be_stack))
    }

    /// Collects all stacks below a directory. Stops and returns false if there are more than
    /// `max`.
    fn collect(&self, directory: &Directory, max: usize, found: &mut Vec<OutlineEntry>) -> bool {
        for child in self.children(directory) {
            found.extend(self.stacks_at(&child));
            if found.len() > max || !self.collect(&child, max, found) {
                return false;
            }
        }
        true
    }

    fn stacks_at(&self, directory: &Directory) -> impl Iterator<Item = OutlineEntry> + use<> {
        let mut stacks = self.declared(directory, "description");
        stacks.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        stacks.into_iter().map(|stack| OutlineEntry {
            path: stack.path,
            kind: OutlineKind::Stack(stack.description),
        })
    }

    /// Returns the stack in a directory, or one place for all its instances.
    fn place_at(&self, directory: &Directory) -> Option<OutlineEntry> {
        let mut stacks = self.stacks_at(directory);
        let first = stacks.next()?;
        if first.path.key().is_none() {
            return Some(first);
        }
        Some(OutlineEntry {
            path: directory.path.clone().into(),
            kind: OutlineKind::Stack(None),
        })
    }

    /// Returns the stacks of a directory, with one of their attributes, in any order.
    fn declared(&self, directory: &Directory, attribute: &str) -> Vec<Stack> {
        let files = SourceTree::on_disk(self.root);
        let attributes = [FOR_EACH, attribute];
        match stack::declared_with(&directory.files, &attributes, &directory.path, &files) {
            Some(Declared::Stack(stack)) => vec![*stack],
            Some(Declared::Instances { stacks, .. }) => stacks,
            Some(Declared::Unknown) | None => Vec::new(),
        }
    }
}

/// Returns whether a file may declare a stack, or the root of another project.
fn may_be_stack(text: &str) -> bool {
    text.contains("stack") || text.contains("root")
}

/// Returns the tags of a file that contains `tags` once, followed by a plain list of strings. `None` if the file
/// needs the parser. They may belong to something other than a stack.
fn written_tags(text: &str) -> Option<Vec<&str>> {
    let (_, list) = text.split_once("tags")?;
    let (list, rest) = list.split_once(']')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=[,\"-_./ \t\r\n".contains(c);
    if rest.contains("tags") || list.contains("//") || !list.chars().all(is_plain) {
        return None;
    }
    Some(list.split('"').skip(1).step_by(2).collect())
}

/// Returns whether a body has a block with the last of these names in blocks with the others.
fn has_block(body: &Body, names: &[&str]) -> bool {
    let Some((name, inner)) = names.split_first() else {
        return true;
    };
    body.blocks(name).any(|block| has_block(&block.body, inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_without_parsing_only_where_that_is_safe() {
        let table: [(&str, Option<&[&str]>); 8] = [
            (
                "stack {\n  tags = [\"a\", \"b/c\",\n]\n}",
                Some(&["a", "b/c"]),
            ),
            ("stack {\n  tags = []\n}", Some(&[])),
            ("stack {}", None),
            ("stack { tags = [\"a${1}\"] }", None),
            ("stack { tags = [\"a\", # \"\n\"b\"] }", None),
            ("stack { tags = [\"a\", // \"\n\"b\"] }", None),
            ("# tags]\nstack { tags = [\"a\"] }", None),
            ("stack { tags = local.all }", None),
        ];
        for (text, expected) in table {
            assert_eq!(written_tags(text).as_deref(), expected, "{text}");
        }
    }
}
