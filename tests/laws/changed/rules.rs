//! The rules by which a stack has changed, by brute force: everything that a stack depends on, held
//! against everything that differs.

use std::collections::{BTreeMap, BTreeSet};

use super::links::What;
use super::paths::{above, basename, below, is_at_or_below, join, matches, parent, resolve};
use super::texts::{Configuration, File, ForEach, From, Item, Snapshot, StackBlock, Text, said};
use crate::model::{shown, split_key};

pub(super) type Paths = BTreeSet<String>;

/// A configuration that `orch` refuses.
pub(super) struct Refused(pub(super) String);

/// The directory of a stack, and its key.
pub(super) fn place_of(stack: &str) -> (&str, Option<&str>) {
    match split_key(stack) {
        Some((directory, key)) => (directory, key),
        None => (stack, None),
    }
}

/// Something that a stack depends on, by the rule of that name.
#[derive(Debug, Clone)]
pub(super) struct Input {
    pub(super) rule: &'static str,
    pub(super) what: What,
}

/// The directories of a chain, without the root.
fn at_or_above(directory: &str) -> impl Iterator<Item = &str> {
    let chain = std::iter::once(directory).chain(above(directory));
    chain.filter(|path| !path.is_empty())
}

/// Returns whether a file keeps its directory out of the project.
fn is_mark(file: &str) -> bool {
    matches!(basename(file), ".tmskip" | ".orchskip")
}

/// What functions in the block of a stack read, apart from its description, which is no input.
pub(super) fn read(stack: &str, block: &StackBlock) -> Vec<What> {
    let (directory, _) = place_of(stack);
    let read = match &block.for_each {
        Some(ForEach::File(path)) => resolve(directory, path),
        _ => None,
    };
    read.into_iter().map(What::Place).collect()
}

/// A tree, and what it says.
pub(super) struct Tree<'a>(pub(super) &'a Snapshot);

impl<'a> Tree<'a> {
    fn is_directory(&self, path: &str) -> bool {
        path.is_empty() || self.0.keys().any(|file| below(file, path).is_some())
    }

    fn files_in(&self, directory: &str) -> impl Iterator<Item = (&'a str, &'a File)> {
        let files = self.0.iter().map(|(path, file)| (path.as_str(), file));
        files.filter(move |(path, _)| parent(path) == directory)
    }

    pub(super) fn configurations(
        &self,
        directory: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Configuration)> {
        self.files_in(directory)
            .filter_map(|(path, file)| Some((path, file.configuration()?)))
    }

    fn directories(&self) -> Paths {
        let mut all: Paths = Paths::from([String::new()]);
        for file in self.0.keys() {
            all.extend(above(file).into_iter().map(str::to_owned));
        }
        all
    }

    /// Returns whether a directory is out of the project.
    pub(super) fn is_hidden(&self, directory: &str) -> bool {
        at_or_above(directory).any(|path| self.is_left_out(path) || self.is_project(path))
    }

    /// Returns whether a directory lies in a project of its own.
    pub(super) fn is_foreign(&self, directory: &str) -> bool {
        at_or_above(directory).any(|path| {
            let mut around = at_or_above(path);
            self.is_project(path) && !around.any(|path| self.is_left_out(path))
        })
    }

    fn is_left_out(&self, directory: &str) -> bool {
        let mut files = self.files_in(directory);
        basename(directory).starts_with('.') || files.any(|(file, _)| is_mark(file))
    }

    /// The files that keep a directory out of the project.
    pub(super) fn hiding(&self, directory: &str) -> Vec<&'a str> {
        let mut all = Vec::new();
        for path in at_or_above(directory) {
            let marks = self.files_in(path).map(|(file, _)| file);
            all.extend(marks.filter(|file| is_mark(file)));
            let roots = self.configurations(path);
            all.extend(roots.filter_map(|(file, it)| it.is_root.then_some(file)));
        }
        all
    }

    fn is_project(&self, directory: &str) -> bool {
        let mut configurations = self.configurations(directory);
        configurations.any(|(_, configuration)| configuration.is_root)
    }

    fn blocks(&self, directory: &str) -> impl Iterator<Item = &'a StackBlock> {
        let configurations = self.configurations(directory);
        configurations.filter_map(|(_, configuration)| configuration.stack.as_ref())
    }

    /// The stacks that a directory declares, unless it is hidden: one without a key, or its
    /// instances.
    pub(super) fn declared(&self, directory: &str) -> Paths {
        let keys = self
            .blocks(directory)
            .flat_map(|block| match &block.for_each {
                None => vec![None],
                Some(ForEach::Keys(keys)) => keys.iter().map(|&key| Some(key.to_owned())).collect(),
                Some(ForEach::File(path)) => {
                    let file = resolve(directory, path).and_then(|path| self.0.get(&path));
                    let text = file.filter(|file| file.text == Text::Plain);
                    let text = text.map(|file| file.render().trim().to_owned());
                    text.map(Some).into_iter().collect()
                }
            });
        keys.map(|key| shown(directory, key.as_deref())).collect()
    }

    /// All stacks.
    pub(super) fn stacks(&self) -> Paths {
        let directories = self.directories().into_iter();
        let shown = directories.filter(|directory| !self.is_hidden(directory));
        shown
            .flat_map(|directory| self.declared(&directory))
            .collect()
    }

    /// The nearest directory with stacks that a file lies in.
    pub(super) fn owner(&self, file: &str) -> Option<String> {
        let has_stacks = |path: &&str| !self.declared(path).is_empty() && !self.is_hidden(path);
        above(file).into_iter().find(has_stacks).map(str::to_owned)
    }

    /// Returns whether a file is never to count as changed.
    pub(super) fn is_ignored(&self, file: &str) -> bool {
        above(file).into_iter().any(|directory| {
            let rest = below(file, directory).expect("it is above");
            let mut configurations = self.configurations(directory);
            configurations.any(|(_, configuration)| {
                let mut patterns = configuration.ignore.iter();
                patterns.any(|pattern| {
                    let is_name = !pattern.trim_end_matches('/').contains('/');
                    let anywhere = if is_name { "**/" } else { "" };
                    let inside = if pattern.ends_with('/') { "**" } else { "" };
                    let pattern = pattern.trim_start_matches('/');
                    matches(&format!("{anywhere}{pattern}{inside}"), rest)
                })
            }) && !self.is_hidden(directory)
        })
    }

    /// Everything that each stack depends on, besides its own files.
    pub(super) fn inputs(&self) -> Result<BTreeMap<String, Vec<Input>>, Refused> {
        let mut all = BTreeMap::new();
        for directory in self.directories() {
            if self.is_hidden(&directory) {
                continue;
            }
            let mut imported = Paths::new();
            for (file, configuration) in self.configurations(&directory) {
                self.imported(&directory, file, configuration, &mut imported)?;
            }
            let stacks = self.declared(&directory);
            if stacks.is_empty() {
                continue;
            }
            let mut inputs = Vec::new();
            inputs.extend(imported.into_iter().map(|file| Input {
                rule: "import",
                what: What::Place(file),
            }));
            self.used(&directory, &directory, None, &mut Paths::new(), &mut inputs);
            for link in self.links("") {
                if self.owner(link).as_ref() == Some(&directory) {
                    let found = self.found_at(link).into_iter();
                    let rule = "link";
                    inputs.extend(found.map(|what| Input { rule, what }));
                }
            }
            for stack in stacks {
                let mut inputs = inputs.clone();
                inputs.extend(self.own_inputs(&stack)?);
                all.insert(stack, inputs);
            }
        }
        Ok(all)
    }

    /// The inputs that the block of a stack gives this instance alone.
    fn own_inputs(&self, stack: &str) -> Result<Vec<Input>, Refused> {
        let (directory, key) = place_of(stack);
        let mut inputs = Vec::new();
        for block in self.blocks(directory) {
            let mut entries = Paths::new();
            for entry in &block.watch {
                let entry = said(entry, key);
                let found = self.watched(directory, &entry)?.into_iter();
                let rule = "watch";
                inputs.extend(found.map(|what| Input { rule, what }));
                if !entries.insert(entry) {
                    return Err(Refused(format!("{stack} watches something twice")));
                }
            }
            let rule = "attribute";
            let read = read(stack, block).into_iter();
            inputs.extend(read.map(|what| Input { rule, what }));
        }
        Ok(inputs)
    }

    /// What an entry of `watch` takes in.
    pub(super) fn watched(&self, stack: &str, entry: &str) -> Result<Vec<What>, Refused> {
        let refused = || Refused(format!("{stack} watches {entry}"));
        let path = resolve(stack, entry).ok_or_else(refused)?;
        let way = self.way(&path);
        let end = way.end.as_deref();
        if end.is_some_and(|end| self.is_directory(end)) {
            return Err(refused());
        }
        let exists = end.is_some_and(|end| self.0.contains_key(end));
        if exists || !entry.contains(['*', '?', '{']) {
            return Ok(self.found_at(&path));
        }
        let names: Vec<&str> = path.split('/').collect();
        let literal = names
            .iter()
            .take_while(|name| !name.contains(['*', '?', '{']));
        let directory = names[..literal.count()].join("/");
        let pattern = below(&path, &directory).expect("it begins so");
        Ok(self.matched(&directory, pattern))
    }

    fn imported(
        &self,
        directory: &str,
        file: &str,
        configuration: &Configuration,
        imported: &mut Paths,
    ) -> Result<(), Refused> {
        for source in &configuration.imports {
            let refused = || Refused(format!("{file} imports {source} into {directory}"));
            let path = resolve(parent(file), source).ok_or_else(refused)?;
            let found = self.0.get(&path).and_then(File::configuration);
            let found = found.ok_or_else(refused)?;
            let is_above = is_at_or_below(directory, parent(&path));
            if found.stack.is_some() || is_above || !imported.insert(path.clone()) {
                return Err(refused());
            }
            self.imported(directory, &path, found, imported)?;
        }
        Ok(())
    }

    /// The Terraform files of a directory, which Terraform reads.
    pub(super) fn terraform(
        &self,
        directory: &str,
    ) -> impl Iterator<Item = (&'a str, Vec<(Option<usize>, &'a Item)>)> {
        self.files_in(directory).filter_map(|(path, _)| {
            let is_json = path.ends_with(".tf.json");
            let is_terraform = path.split('.').next_back() == Some("tf") || is_json;
            let text = self.0.get(&self.way(path).end?)?;
            is_terraform.then(|| (path, text.items(is_json)))
        })
    }

    /// Adds what the Terraform files of a directory use, for a stack.
    fn used(
        &self,
        directory: &str,
        stack: &str,
        rule: Option<&'static str>,
        seen: &mut Paths,
        inputs: &mut Vec<Input>,
    ) {
        if !seen.insert(directory.to_owned()) {
            return;
        }
        for (_, item) in self.terraform(directory).flat_map(|(_, items)| items) {
            let usual = match item {
                Item::Module(_) | Item::Calling(..) => "module",
                Item::Read { .. } | Item::Set { .. } | Item::ByVariable(_) => "read",
            };
            let rule = rule.unwrap_or(usual);
            let found = self.taken(item, directory, stack).into_iter();
            inputs.extend(found.map(|what| Input { rule, what }));
            if let Some(module) = self.module(item, directory) {
                self.used(&module, stack, Some(rule), seen, inputs);
            }
        }
    }

    /// The directory of the module that is named in a Terraform file of another directory.
    pub(super) fn module(&self, item: &Item, directory: &str) -> Option<String> {
        let (Item::Module(source) | Item::Calling(source, _)) = item else {
            return None;
        };
        let end = self.way(&resolve(directory, source)?).end?;
        self.is_directory(&end).then_some(end)
    }

    /// What an item of a Terraform file of a directory takes in, not counting what the files of a
    /// module name in turn.
    pub(super) fn taken(&self, item: &Item, directory: &str, stack: &str) -> Vec<What> {
        let (base, path) = match item {
            Item::ByVariable(path) => {
                let values = self.values(directory, stack).into_iter();
                let taken = values.map(|value| {
                    if let Some(value) = value {
                        let place = resolve(directory, &format!("{path}/{value}"))?;
                        return Some(self.found_at(&place));
                    }
                    // The whole directory, unless it counts anyway.
                    let place = resolve(directory, path)?;
                    let mut around = [directory, stack].into_iter();
                    let is_covered = around.any(|it| is_at_or_below(&place, it));
                    (!is_covered).then(|| self.matched(&place, "**"))
                });
                return taken.flatten().flatten().collect();
            }
            Item::Module(source) | Item::Calling(source, _) => (directory, source),
            Item::Read { from, path, .. } | Item::Set { from, path, .. } => match from {
                From::Module => (directory, path),
                From::Root | From::Bare => (stack, path),
            },
        };
        let Some(place) = resolve(base, path) else {
            return Vec::new();
        };
        if let Item::Set { pattern, .. } = item {
            return self.matched(&place, pattern);
        }
        let mut all = self.found_at(&place);
        if let Some(module) = self.module(item, directory) {
            all.extend(self.covered(&module));
        }
        all
    }

    /// The values that the variable has in the Terraform files of a directory, for a stack: what the stack sets for
    /// its own files, and what calls on the way from it pass; `None` if nothing sets it.
    fn values(&self, directory: &str, stack: &str) -> BTreeSet<Option<&'static str>> {
        if directory == stack {
            let file = self.0.get(&join(stack, "terraform.tfvars"));
            let value = file.and_then(|file| match &file.text {
                Text::Settings(value) => Some(*value),
                _ => None,
            });
            return [value].into();
        }
        let mut reached = vec![stack.to_owned()];
        let mut values = BTreeSet::new();
        let mut next = 0;
        while let Some(user) = reached.get(next).cloned() {
            next += 1;
            for (_, item) in self.terraform(&user).flat_map(|(_, items)| items) {
                let Some(module) = self.module(item, &user) else {
                    continue;
                };
                if module == directory {
                    values.insert(match item {
                        Item::Calling(_, value) => Some(*value),
                        _ => None,
                    });
                }
                if !reached.contains(&module) {
                    reached.push(module);
                }
            }
        }
        values
    }
}
