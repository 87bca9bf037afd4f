//! `orch state import`

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use jiff::Timestamp;
use serde_json::Map;

use super::existing::{ExistingStacks, NOTHING_VERIFIED, ToolCheck, find_existing};
use super::{ProjectState, WriteOptions};
use crate::command::RunTerminal;
use crate::context::Context;
use crate::error::{Error, ErrorContext as _, ErrorKind, Result};
use crate::git::{CommitId, Repository};
use crate::path::{ProjectPath, StackPath};
use crate::plan::planner::Commits;
use crate::printable::printable;
use crate::project::Project;
use crate::report::{DocumentChange, Written};
use crate::selection::recorded;
use crate::state::cfngin::{self, CfnginError, CfnginGraph};
use crate::state::clock::Clock as _;
use crate::state::document::{Applied, Document, Entry};

/// The `CFNgin` persistent graph to record as applied.
pub struct ImportRequest<'a> {
    pub file: &'a Path,
    /// The same file, as the user names it.
    pub shown: &'a Path,
    /// The applied revision, if known.
    pub commit: Option<&'a str>,
    /// `None` if no tool is asked.
    pub terminal: Option<&'a dyn RunTerminal>,
    pub options: &'a WriteOptions,
}

fn refused(error: CfnginError) -> Error {
    Error::new(ErrorKind::Refused, error)
}

/// Records the stacks of a graph as applied. The project has a listing.
pub fn import(context: &mut Context, request: &ImportRequest<'_>) -> Result<Written> {
    let shown = request.shown.display();
    let text = fs::read(request.file).context(format!("failed to read `{shown}`"))?;
    let graph = cfngin::read(&text)
        .map_err(|error| refused(error).hint(format!("check that `{shown}` is the right file")))?;
    let mut names: BTreeSet<&str> = graph
        .iter()
        .flat_map(|(name, before)| [name].into_iter().chain(before))
        .map(String::as_str)
        .collect();
    let commit = request
        .commit
        .map(|revision| commit(context, revision))
        .transpose()?;
    let mut keys = named(&context.project, &names)?;
    if let Some((repository, commit)) = &commit {
        names.retain(|name| !keys.contains_key(name));
        keys.extend(named_in(context, repository, commit, &names)?);
        for name in names.iter().filter(|name| !keys.contains_key(*name)) {
            context.notices.note(&format!(
                "commit {} has no stack `{}`, so its removal cannot be proved later",
                commit.short(),
                printable(name)
            ));
        }
    }
    let imported = ImportedGraph {
        graph: &graph,
        keys: &keys,
        commit: commit.as_ref().map(|(_, commit)| commit.as_str()),
    };
    let existing = imported.existing(context, request.terminal)?;
    let state = ProjectState::of(context)?;
    let edit = state.edit("import", request.options);
    state.change(&edit, DocumentChange::Each("imported"), |document, now| {
        let keys = imported.record(document, now)?;
        for key in &keys {
            let known = StackPath::parse(key).and_then(|path| existing.stacks.get(&path));
            if let (Some(known), Some(entry)) = (known, document.stacks.get_mut(key)) {
                entry.driver = Some(known.driver.clone());
                entry.backend.clone_from(&known.backend);
            }
        }
        Ok(keys)
    })
}

/// Returns the keys of a project's stacks by name.
fn named<'n>(project: &Project, names: &BTreeSet<&'n str>) -> Result<BTreeMap<&'n str, String>> {
    let stacks = project
        .stacks
        .iter()
        .map(|(_, stack)| (stack.path.as_str(), stack.name.as_str()))
        .filter_map(|(path, name)| Some((path.to_owned(), *names.get(name)?)));
    cfngin::keys(names, stacks).map_err(refused)
}

/// Returns the keys of a commit's stacks by name.
fn named_in<'n>(
    context: &Context,
    repository: &Repository,
    commit: &CommitId,
    names: &BTreeSet<&'n str>,
) -> Result<BTreeMap<&'n str, String>> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut commits = Commits::default();
    commits.check_out_of(context, repository, [commit.clone()])?;
    let code = commits.code(commit).map_err(|why| {
        let why = printable(&why);
        Error::refused(format!(
            "the stacks of commit {} are unknown: {why}",
            commit.short()
        ))
        .hint("name another commit with `--commit`")
    })?;
    named(&code.project, names)
}

fn commit(context: &Context, revision: &str) -> Result<(Repository, CommitId)> {
    let repository =
        Repository::open(&context.project.root).context("failed to open the git repository")?;
    let commit = repository
        .commit(revision)
        .context(format!("failed to look up `{revision}`"))?
        .ok_or_else(|| {
            Error::refused(format!("no commit `{revision}` is in this clone"))
                .hint("fetch it, or check the name")
        })?;
    Ok((repository, commit))
}

struct ImportedGraph<'a> {
    graph: &'a CfnginGraph,
    /// The stacks of this project, by name.
    keys: &'a BTreeMap<&'a str, String>,
    commit: Option<&'a str>,
}

impl ImportedGraph<'_> {
    fn key(&self, name: &str) -> Result<String> {
        if let Some(key) = self.keys.get(name) {
            return Ok(key.clone());
        }
        let path = ProjectPath::root().resolve(name.trim_start_matches('/'));
        match path {
            Ok(path) if !path.is_root() && StackPath::parse(path.as_str()).is_some() => {
                Ok(path.as_str().to_owned())
            }
            _ => Err(Error::refused(format!(
                "no stack has the name `{}`, and it is not a valid path",
                printable(name)
            ))),
        }
    }

    /// Asks the tools of the stacks that would be added and are in this commit.
    fn existing(
        &self,
        context: &mut Context,
        terminal: Option<&dyn RunTerminal>,
    ) -> Result<ExistingStacks> {
        let state = ProjectState::of(context)?;
        let (notices, here) = (&state.context.notices, &state.context.project.stacks);
        let mut document = state.opened.read_once()?;
        for name in self.graph.keys() {
            let key = self.key(name)?;
            if document.stacks.contains_key(&key) {
                let key = printable(&key);
                notices.note(&format!(
                    "`{key}` is already recorded, and is kept as it is"
                ));
            }
        }
        let mut stacks = Vec::new();
        let mut elsewhere = Vec::new();
        for key in self.record(&mut document, state.clock.now())? {
            let path = StackPath::parse(&key);
            match path.as_ref().and_then(|path| here.find(path)) {
                Some(stack) => stacks.push(stack),
                None => elsewhere.extend(path),
            }
        }
        let Some(terminal) = terminal else {
            notices.note(NOTHING_VERIFIED);
            return find_existing(context, &stacks, None);
        };
        let jobs = NonZeroUsize::MIN;
        let mut existing = find_existing(context, &stacks, Some(ToolCheck { terminal, jobs }))?;
        existing.check_existence()?;
        for path in elsewhere {
            existing.leave_unverified("not in the working tree", path);
        }
        existing.note_unverified(&context.notices);
        Ok(existing)
    }

    /// Adds the stacks to the document; returns the new keys.
    fn record(&self, document: &mut Document, now: Timestamp) -> Result<Vec<String>> {
        let mut names: BTreeMap<String, &str> = BTreeMap::new();
        for name in self.graph.keys() {
            if let Some(other) = names.insert(self.key(name)?, name) {
                let [other, name] = [other, name].map(printable);
                return Err(
                    Error::refused(format!("`{other}` and `{name}` are the same stack"))
                        .hint("merge their lists in the file"),
                );
            }
        }
        let mut new = Vec::new();
        for (key, &name) in &names {
            let after = self.after(name, &names, document)?;
            if document.stacks.contains_key(key) {
                continue;
            }
            let applied = Applied {
                serial: document.serial,
                run: None,
                at: now,
                command: None,
                commit: None,
                dirty: false,
                seen: self.commit.map(str::to_owned),
                inputs: None,
                triggers: Vec::new(),
                upstream: None,
                inputs_used: BTreeMap::new(),
                triggered_by: BTreeMap::new(),
                generations: BTreeMap::new(),
                plan: None,
                checks: None,
                other: Map::new(),
            };
            let entry = Entry {
                name: name.to_owned(),
                after,
                applied: Some(applied),
                ..Entry::default()
            };
            new.push((key.clone(), entry));
        }
        let keys: Vec<String> = new.iter().map(|(key, _)| key.clone()).collect();
        document.stacks.extend(new);
        if let Some(cycle) = recorded::cycle_among(document, &keys) {
            return Err(cyclic(&cycle));
        }
        Ok(keys)
    }

    /// Returns the keys of a stack's dependencies. Each must be in the file, the project or the
    /// state, or an order would be lost.
    fn after(
        &self,
        name: &str,
        names: &BTreeMap<String, &str>,
        document: &Document,
    ) -> Result<Vec<String>> {
        let mut after = Vec::new();
        for before in &self.graph[name] {
            let key = self.key(before)?;
            let is_here = self.keys.contains_key(before.as_str());
            if !names.contains_key(&key) && !is_here && !document.stacks.contains_key(&key) {
                let [name, before] = [name, before].map(printable);
                return Err(Error::refused(format!(
                    "`{name}` runs after `{before}`, which is not in the file, the project or the state"
                ))
                .hint(format!(
                    "add `{before}` to the file with its own dependencies, or remove it from those of `{name}`"
                )));
            }
            if names.get(&key) == Some(&name) {
                return Err(cyclic(&[&key]));
            }
            after.push(key);
        }
        Ok(after)
    }
}

fn cyclic(keys: &[&str]) -> Error {
    let keys: Vec<_> = keys
        .iter()
        .chain(keys.first())
        .map(|key| printable(key))
        .collect();
    Error::refused(format!(
        "the imported stacks would wait for each other in a cycle: {}",
        keys.join(" → ")
    ))
    .hint("correct the order in the file")
}
