//! What is asked of `orch`, what it answers, and what the model expects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::generate::{Switches, WantedBase};
use super::links::What;
use super::paths::parent;
use super::repository::Repository;
use super::rules::{Input, Paths, Tree, place_of, read};
use super::texts::{Configuration, File, Item, Snapshot, StackBlock, quoted, said};
use crate::model::literal;

/// A question.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) arguments: Vec<String>,
    /// The commits that are right as a base.
    pub(super) bases: BTreeSet<usize>,
}

impl Asked {
    pub(super) fn new(repository: &Repository, base: WantedBase, switches: Switches) -> Self {
        let mut arguments = vec!["--changed".to_owned()];
        let named = match base {
            WantedBase::Usual => None,
            WantedBase::Head => Some(repository.head()),
            WantedBase::Commit(n) => Some(n % repository.commits.len()),
        };
        if let Some(commit) = named {
            arguments.extend(["--base".to_owned(), repository.commits[commit].id.clone()]);
        }
        let all = [
            (switches.untracked, "git-untracked"),
            (switches.uncommitted, "git-uncommitted"),
        ];
        for (_, name) in all.iter().filter(|(is_on, _)| !is_on) {
            arguments.push(format!("--disable-change-detection={name}"));
        }
        Asked {
            arguments,
            bases: named.map_or_else(|| repository.usual_bases(), |commit| [commit].into()),
        }
    }

    fn document(&self, repository: &Repository) -> (Option<i32>, Value) {
        let mut command = repository.orch();
        let output = command
            .args(["list", "--format", "json"])
            .args(&self.arguments)
            .output()
            .unwrap();
        let document = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), document)
    }

    /// The stacks that count as changed, for whatever reason.
    pub(super) fn stacks(&self, repository: &Repository) -> Paths {
        let (_, document) = self.document(repository);
        let stacks = document["stacks"].as_array().unwrap().iter();
        stacks.map(|stack| relative(&path(stack))).collect()
    }

    pub(super) fn list(&self, repository: &Repository) -> Answer {
        let (status, document) = self.document(repository);
        let list = |name: &str| document[name].as_array().cloned().unwrap_or_default();
        let changed = list("stacks").into_iter().map(|stack| {
            let reasons = stack["reasons"].as_array().unwrap();
            let reason = reasons.iter().find(|reason| reason["kind"] == "changed");
            (path(&stack), reason.unwrap().clone())
        });
        Answer {
            status: status.expect("orch ends by itself"),
            base: document["base"]["commit"].as_str().map(str::to_owned),
            changed: changed.collect(),
            removed: list("removed")
                .iter()
                .map(|stack| relative(&path(stack)))
                .collect(),
        }
    }
}

fn path(stack: &Value) -> String {
    stack["path"].as_str().unwrap().to_owned()
}

fn relative(path: &str) -> String {
    path.trim_start_matches('/').to_owned()
}

/// An answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) status: i32,
    pub(super) base: Option<String>,
    /// The reason for each stack.
    changed: BTreeMap<String, Value>,
    removed: Paths,
}

impl Answer {
    pub(super) fn base(&self, repository: &Repository) -> Option<usize> {
        let base = self.base.as_ref()?;
        repository
            .commits
            .iter()
            .position(|commit| commit.id == *base)
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.changed.keys().cloned().collect()
    }

    pub(super) fn stacks(&self) -> Paths {
        self.changed.keys().map(|path| relative(path)).collect()
    }

    pub(super) fn removed(&self) -> &Paths {
        &self.removed
    }
}

/// What the model says.
pub(super) struct Expected {
    /// What differs, with how far that has come.
    pub(super) files: BTreeMap<String, &'static str>,
    /// The configuration files that differ and say the same.
    pub(super) same: Paths,
    /// What was a link and is none any more.
    pub(super) earlier_links: Paths,
    /// The stacks that changed, each with the files that it owns and those that it depends on.
    pub(super) changed: BTreeMap<String, BTreeSet<(&'static str, String)>>,
    pub(super) removed: Paths,
}

impl Expected {
    pub(super) fn new(repository: &Repository, base: usize, switches: Switches) -> Self {
        let tree = Tree(&repository.working);
        let base = &repository.commits[base].files;
        let files = changed_files(repository, base, switches);
        let was_link = |file: &&String| {
            let change = first_change(repository, base, file);
            let is_link = |file: Option<&File>| file.is_some_and(|it| it.link().is_some());
            change.is_some_and(|(before, after)| is_link(before) && !is_link(after))
        };
        let earlier_links = files.keys().filter(was_link).cloned().collect::<Paths>();
        let mut counted = files.clone();
        counted.retain(|file, _| !tree.is_ignored(file));
        let counted_tree = counted_tree(repository, switches);
        let mut same: Paths = counted.keys().cloned().collect();
        // That git tells of a file counts, even if it is gone from the working tree.
        let is_known = |file: &String| {
            let left = first_change(repository, base, file).and_then(|(_, left)| left);
            counted_tree.contains_key(file) || left.is_none()
        };
        // `orch` reads the working tree without hidden directories, or HEAD.
        let is_read = |file: &String| {
            let here = repository.working.get(file);
            counted_tree.get(file) != here || here.is_none() || !tree.is_hidden(parent(file))
        };
        same.retain(|file| {
            is_known(file) && is_read(file) && says_the_same(file, base, &counted_tree)
        });
        let mut changed: BTreeMap<String, BTreeSet<_>> = BTreeMap::new();
        for file in counted.keys().filter(|file| !same.contains(*file)) {
            for owner in tree.owner(file).iter().flat_map(|it| tree.declared(it)) {
                changed
                    .entry(owner)
                    .or_default()
                    .insert(("own", file.clone()));
            }
        }
        for (stack, inputs) in tree.inputs().unwrap_or_default() {
            for Input { rule, what } in inputs {
                let taken = counted
                    .keys()
                    .filter(|file| what.takes(file, earlier_links.contains(*file)));
                for file in taken.filter(|file| rule != "import" || !same.contains(*file)) {
                    changed
                        .entry(stack.clone())
                        .or_default()
                        .insert((rule, file.clone()));
                }
            }
        }
        let earlier = without(&repository.working, base, &counted);
        let earlier = Tree(&earlier);
        for stack in tree.stacks().difference(&earlier.stacks()) {
            let (own, _) = place_of(stack);
            let marks = earlier.hiding(own).into_iter();
            for mark in marks.filter(|it| counted.contains_key(*it) && parent(it) != own) {
                let reasons = changed.entry(stack.clone()).or_default();
                reasons.insert(("hidden", mark.to_owned()));
            }
        }
        let mut removed = Tree(base).stacks();
        let alive = tree.stacks();
        let left = Tree(&counted_tree).stacks();
        removed.retain(|stack| !alive.contains(stack) && !left.contains(stack));
        Expected {
            files,
            same,
            earlier_links,
            changed,
            removed,
        }
    }

    pub(super) fn stacks(&self) -> Paths {
        self.changed.keys().cloned().collect()
    }
}

/// Returns whether a file is one of configuration and says the same, which counts only for what reads its bytes.
fn says_the_same(file: &str, base: &Snapshot, now: &Snapshot) -> bool {
    let meaning = |at: &Snapshot| match at.get(file) {
        None => Some(Configuration::default()),
        Some(file) => file.meaning(),
    };
    let (Some(then), Some(here)) = (meaning(base), meaning(now)) else {
        return false;
    };
    is_configuration(file) && then == here
}

/// Returns whether `orch` reads a file as configuration, judged by its name.
fn is_configuration(file: &str) -> bool {
    [".tm", ".tm.hcl", ".orch.hcl"]
        .iter()
        .any(|ending| file.ends_with(ending))
}

/// What the first change of a file since the base found, and what it left.
fn first_change<'r>(
    repository: &'r Repository,
    base: &'r Snapshot,
    path: &str,
) -> Option<(Option<&'r File>, Option<&'r File>)> {
    let head = &repository.commits[repository.head()].files;
    let stages = [base, head, &repository.index, &repository.working].map(|it| it.get(path));
    let mut steps = stages.windows(2).map(|pair| (pair[0], pair[1]));
    steps.find(|step| match step {
        (Some(before), Some(after)) => before.differs(after),
        (before, after) => before.is_some() || after.is_some(),
    })
}

/// Returns the files as they would be without some changes since the base.
fn without(
    working: &Snapshot,
    base: &Snapshot,
    changes: &BTreeMap<String, &'static str>,
) -> Snapshot {
    let mut earlier = working.clone();
    for path in changes.keys() {
        match base.get(path) {
            Some(file) => drop(earlier.insert(path.clone(), file.clone())),
            None => drop(earlier.remove(path)),
        }
    }
    earlier
}

/// Returns what differs, by path, with how far that has come.
fn changed_files(
    repository: &Repository,
    base: &Snapshot,
    switches: Switches,
) -> BTreeMap<String, &'static str> {
    let head = &repository.commits[repository.head()].files;
    let (index, working) = (&repository.index, &repository.working);
    let differs = |a: &Snapshot, b: &Snapshot, path: &String| match (a.get(path), b.get(path)) {
        (Some(a), Some(b)) => a.differs(b),
        (None, None) => false,
        _ => true,
    };
    let mut changed = BTreeMap::new();
    for path in [base, head, index, working]
        .into_iter()
        .flat_map(Snapshot::keys)
    {
        let is_untracked = !index.contains_key(path)
            && working.contains_key(path)
            && !repository.is_git_ignored(path);
        let is_uncommitted =
            differs(head, index, path) || index.contains_key(path) && differs(index, working, path);
        if differs(base, head, path) {
            changed.insert(path.clone(), "committed");
        } else if switches.uncommitted && is_uncommitted {
            changed.insert(path.clone(), "uncommitted");
        } else if switches.untracked && is_untracked {
            changed.insert(path.clone(), "untracked");
        }
    }
    changed
}

/// The tree as far as it counts.
fn counted_tree(repository: &Repository, switches: Switches) -> Snapshot {
    let head = &repository.commits[repository.head()].files;
    let mut counted = head.clone();
    for path in repository.index.keys().chain(head.keys()) {
        if switches.uncommitted {
            match repository.working.get(path) {
                Some(file) => drop(counted.insert(path.clone(), file.clone())),
                None => drop(counted.remove(path)),
            }
        }
    }
    for (path, file) in &repository.working {
        let is_untracked = !repository.index.contains_key(path) && !repository.is_git_ignored(path);
        if switches.untracked && is_untracked {
            counted.insert(path.clone(), file.clone());
        }
    }
    counted
}

/// Checks that what `orch` says of each stack is so.
pub(super) fn check_reasons(
    answer: &Answer,
    expected: &Expected,
    repository: &Repository,
) -> Result<(), String> {
    for (stack, reason) in &answer.changed {
        let stack = relative(stack);
        let file = reason["file"].as_str().unwrap();
        let rule = reason["rule"].as_str().unwrap();
        let told = |what: &str| format!("{what}: {stack} by {reason}");
        let reasons = &expected.changed[&stack];
        if !reasons
            .iter()
            .any(|known| *known == (rule, file.to_owned()))
        {
            return Err(told("not a reason"));
        }
        let is_own = reasons.iter().any(|(rule, _)| *rule == "own");
        if is_own != (rule == "own") {
            return Err(told("not the plainest reason"));
        }
        if reason["state"].as_str() != Some(expected.files[file]) {
            return Err(told("not the state"));
        }
        let via = reason["via"].as_array().unwrap();
        check_way(&stack, via, file, expected, repository).map_err(|problem| told(&problem))?;
    }
    Ok(())
}

/// Goes from a stack to a file by the steps that are told.
fn check_way(
    stack: &str,
    via: &[Value],
    file: &str,
    expected: &Expected,
    repository: &Repository,
) -> Result<(), String> {
    let tree = Tree(&repository.working);
    let (own, _) = place_of(stack);
    let mut directory = own.to_owned();
    // Where the last step leads.
    let mut whats = Vec::new();
    for step in via {
        let kind = step["kind"].as_str().unwrap();
        let place = step["file"].as_str().unwrap();
        let line = step["line"]
            .as_u64()
            .and_then(|line| usize::try_from(line).ok());
        if kind == "hidden" && place == file {
            return Ok(());
        }
        let text = repository.working.get(place).ok_or("no such file")?;
        match kind {
            "watch" | "import" | "attribute" => {
                let lines = text.render();
                let line = lines
                    .lines()
                    .nth(line.ok_or("no line")? - 1)
                    .ok_or("no such line")?;
                if parent(place) != own && kind != "import" {
                    return Err("not the file of the stack".to_owned());
                }
                let configuration = text.configuration().ok_or("no configuration")?;
                let is_written = match (kind, &configuration.stack) {
                    ("import", _) => {
                        let mut imported = configuration.imports.iter();
                        imported.any(|source| line.contains(&quoted(source)))
                    }
                    (_, None) => return Err("no stack".to_owned()),
                    ("watch", Some(block)) => {
                        whats = watched(&tree, stack, block);
                        let mut watched = block.watch.iter();
                        watched.any(|entry| {
                            let is_plain = block.for_each.is_none();
                            let entry = if is_plain {
                                said(entry, None)
                            } else {
                                (*entry).to_owned()
                            };
                            line.contains(&literal(&entry))
                        })
                    }
                    (_, Some(block)) => {
                        whats = read(stack, block);
                        line.contains("tm_file(")
                    }
                };
                if !is_written {
                    return Err("not written there".to_owned());
                }
                if kind == "import" {
                    return Ok(());
                }
            }
            // What a function in an attribute reads; the step follows that of the attribute.
            "read" if text.configuration().is_some() => {}
            "link" => {
                text.link().ok_or("not a link")?;
                whats = tree.found_at(place);
            }
            _ => {
                let detail = step["detail"].as_str().unwrap();
                let found = tree.terraform(&directory).find(|(path, _)| *path == place);
                let (_, items) = found.ok_or("not a file of the module")?;
                let is_meant = |item: &Item| match item {
                    Item::Module(source) | Item::Calling(source, _) => {
                        detail.starts_with(&format!("module {source} ("))
                    }
                    Item::ByVariable(_) => is_read_by(detail, "file"),
                    Item::Read { function, .. } => is_read_by(detail, function),
                    Item::Set { .. } => is_read_by(detail, "fileset"),
                };
                let meant = items
                    .iter()
                    .filter(|(at, item)| *at == line && is_meant(item));
                let meant: Vec<&Item> = meant.map(|(_, item)| *item).collect();
                if let (Some(line), [item]) = (line, &*meant) {
                    check_line(&text_of(place, repository)?, line, item)?;
                }
                let taken = meant
                    .iter()
                    .flat_map(|item| tree.taken(item, &directory, own));
                whats = taken.collect();
                let module = meant.iter().find_map(|item| tree.module(item, &directory));
                directory = module.unwrap_or(directory);
            }
        }
    }
    let was_link = expected.earlier_links.contains(file);
    let is_there = via.is_empty() || whats.iter().any(|what| what.takes(file, was_link));
    is_there
        .then_some(())
        .ok_or_else(|| "the way leads elsewhere".to_owned())
}

fn is_read_by(detail: &str, function: &str) -> bool {
    detail.starts_with(&format!("read by {function} ("))
}

/// What a stack watches.
fn watched(tree: &Tree, stack: &str, block: &StackBlock) -> Vec<What> {
    let (directory, key) = place_of(stack);
    let entries = block.watch.iter().map(|entry| said(entry, key));
    let found = entries.map(|entry| tree.watched(directory, &entry));
    found.flatten().flatten().collect()
}

/// The text of a file, by way of links.
fn text_of(path: &str, repository: &Repository) -> Result<String, String> {
    let end = Tree(&repository.working).way(path).end;
    let file = end.and_then(|end| repository.working.get(&end));
    file.map(File::render).ok_or_else(|| "no text".to_owned())
}

/// Checks that something is written in a line.
fn check_line(text: &str, line: usize, item: &Item) -> Result<(), String> {
    let written = match item {
        Item::Module(source) | Item::Calling(source, _) => format!("source = {}", quoted(source)),
        Item::ByVariable(_) => "file(".to_owned(),
        Item::Read { function, .. } => format!("{function}("),
        Item::Set { pattern, .. } => quoted(pattern),
    };
    let found = text
        .lines()
        .nth(line - 1)
        .is_some_and(|line| line.contains(&written));
    found
        .then_some(())
        .ok_or_else(|| format!("line {line} does not say {written}"))
}
