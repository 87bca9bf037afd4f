//! `orch state import` and `export`

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use orch::error::ErrorKind;
use orch::exit::ExitStatus;
use orch::git::{CommitId, Repository};
use orch::path::{ProjectPath, StackPath};
use orch::plan::planner::Commits;
use orch::printable::printable;
use orch::project::Project;
use orch::report::write_recorded_graph_json;
use orch::selection::recorded;
use orch::state::cfngin::{self, CfnginError, Graph};
use orch::state::clock::Clock as _;
use orch::state::document::{Applied, Document, Entry};
use serde_json::Map;

use super::existing::{ExistingStacks, Verification, find_existing};
use super::write::each;
use super::{Format, State, WriteArgs};
use crate::program::commands::working_directory;
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Record the stacks of a `CFNgin` persistent graph as applied
///
/// Download the graph first: `CFNgin` keeps it at `s3://BUCKET/persistent_graphs/NAMESPACE/KEY.json` or,
/// according to its documentation, at
/// `s3://BUCKET/NAMESPACE/persistent_graphs/NAMESPACE/KEY.json`. It lists by name what each stack runs
/// after, as in `{"app": ["network"]}`. A name that no stack has is recorded as the path `/NAME`. What is
/// already on record stays as it is.
///
/// Asks the tools of imported stacks that are in the working tree for a plan, and refuses stacks of which nothing
/// exists. Names those that it cannot verify. orch also refuses names that are listed nowhere, and cycles.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The downloaded graph
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,

    /// The commit that is known to be applied
    ///
    /// Its stacks count, too, where a name is looked up. When a stack is removed, its code destroys it.
    #[arg(long, value_name = "REV")]
    pub(super) commit: Option<String>,

    /// Record the stacks without asking their tools
    #[arg(long)]
    pub(super) no_verify: bool,

    #[command(flatten)]
    pub(super) write: WriteArgs,
}

/// Print the graph of the stacks on record
///
/// It shows what each stack ran after when it was last applied, even if the stack has changed since or is
/// gone.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The format of the graph
    #[arg(long, value_enum)]
    pub(super) format: GraphFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// The persistent graph of `CFNgin`, by name: `{"app": ["network"]}`. No two stacks on record may
    /// have the same name
    Cfngin,
    /// For other programs: the path and name of each stack, and the paths of what it runs after
    Json,
}

impl GraphFormat {
    pub(super) fn refusal(self) -> Format {
        match self {
            GraphFormat::Cfngin => Format::Text,
            GraphFormat::Json => Format::Json,
        }
    }
}

fn refused(error: CfnginError) -> ProgramError {
    ProgramError::new(ErrorKind::Refused, error.into())
}

pub(super) fn export(state: &State, args: &ExportArgs) -> Result<ExitStatus> {
    let document = state.read()?;
    state.check_stacks(&document)?;
    let dependencies = recorded::dependencies(&document);
    let mut out = console::stdout();
    match args.format {
        GraphFormat::Cfngin => {
            let name = |key: &str| {
                let entry = document.stacks.get(key);
                entry.map_or_else(String::new, |entry| entry.name.clone())
            };
            let graph = cfngin::graph(&dependencies, name).map_err(refused)?;
            serde_json::to_writer_pretty(&mut out, &graph).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        GraphFormat::Json => {
            let address = state.opened.backend.address();
            write_recorded_graph_json(&mut out, &address, &document, &dependencies)?;
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

pub(super) fn import(chdir: &[PathBuf], state: &State, args: &ImportArgs) -> Result<ExitStatus> {
    let shown = args.file.display();
    let file = working_directory(chdir)?.join(&args.file);
    let text = fs::read(file).with_context(|| format!("failed to read `{shown}`"))?;
    let graph = cfngin::read(&text).map_err(|error| {
        refused(error).hint(format!("check whether `{shown}` is the file that you mean"))
    })?;
    let mut names: BTreeSet<&str> = graph
        .iter()
        .flat_map(|(name, before)| [name].into_iter().chain(before))
        .map(String::as_str)
        .collect();
    let commit = args
        .commit
        .as_deref()
        .map(|revision| commit(state, revision));
    let commit = commit.transpose()?;
    let mut keys = named(&state.loaded.project, &names)?;
    if let Some((repository, commit)) = &commit {
        names.retain(|name| !keys.contains_key(name));
        keys.extend(named_in(state, repository, commit, &names)?);
        for name in names.iter().filter(|name| !keys.contains_key(*name)) {
            console::note(&format!(
                "commit {} has no stack called `{}`, so nothing will prove that it was removed",
                commit.short(),
                printable(name)
            ));
        }
    }
    let imported = Imported {
        graph: &graph,
        keys: &keys,
        commit: commit.as_ref().map(|(_, commit)| commit.as_str()),
    };
    let existing = imported.existing(chdir, state, args.no_verify)?;
    let edit = state.edit("import", &args.write);
    state.change(
        &edit,
        args.write.format,
        each("imported"),
        |document, now| {
            let keys = imported.record(document, now)?;
            for key in &keys {
                let known = StackPath::parse(key).and_then(|path| existing.stacks.get(&path));
                if let (Some(known), Some(entry)) = (known, document.stacks.get_mut(key)) {
                    entry.driver = Some(known.driver.clone());
                    entry.backend.clone_from(&known.backend);
                }
            }
            Ok(keys)
        },
    )
}

/// Returns the keys of the stacks of a project that have some names.
fn named<'n>(project: &Project, names: &BTreeSet<&'n str>) -> Result<BTreeMap<&'n str, String>> {
    let stacks = project.stacks.iter();
    let stacks = stacks.map(|(_, stack)| (stack.path.as_str(), stack.name.as_str()));
    let stacks = stacks.filter_map(|(path, name)| Some((path.to_owned(), *names.get(name)?)));
    cfngin::keys(names, stacks).map_err(refused)
}

/// Returns the keys of the stacks of a commit that have some names.
fn named_in<'n>(
    state: &State,
    repository: &Repository,
    commit: &CommitId,
    names: &BTreeSet<&'n str>,
) -> Result<BTreeMap<&'n str, String>> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut commits = Commits::default();
    commits.check_out_of(&state.loaded, repository, [commit.clone()])?;
    let code = commits.code(commit).map_err(|why| {
        let why = printable(&why);
        ProgramError::refused(format!(
            "the stacks of commit {} are unknown: {why}",
            commit.short()
        ))
        .hint("name another commit with `--commit`")
    })?;
    named(&code.project, names)
}

/// Returns the commit that a revision names, and the repository that has it.
fn commit(state: &State, revision: &str) -> Result<(Repository, CommitId)> {
    let repository = Repository::open(&state.loaded.project.root);
    let repository = repository.context("failed to open the git repository")?;
    let commit = repository.commit(revision);
    let commit = commit.with_context(|| format!("failed to look up `{revision}`"))?;
    let commit = commit.ok_or_else(|| {
        ProgramError::refused(format!("no commit `{revision}` is in this clone"))
            .hint("fetch it, or check the name")
    })?;
    Ok((repository, commit))
}

/// A graph that is about to be recorded.
struct Imported<'a> {
    graph: &'a Graph,
    /// The stacks that names mean here.
    keys: &'a BTreeMap<&'a str, String>,
    commit: Option<&'a str>,
}

impl Imported<'_> {
    fn key(&self, name: &str) -> Result<String> {
        if let Some(key) = self.keys.get(name) {
            return Ok(key.clone());
        }
        let path = ProjectPath::root().resolve(name.trim_start_matches('/'));
        match path {
            Ok(path) if !path.is_root() && StackPath::parse(path.as_str()).is_some() => {
                Ok(path.as_str().to_owned())
            }
            _ => Err(ProgramError::refused(format!(
                "no stack here has the name `{}`, and it cannot be recorded as a path",
                printable(name)
            ))),
        }
    }

    /// Asks the tools of the stacks that would be added and are here.
    fn existing(
        &self,
        chdir: &[PathBuf],
        state: &State,
        is_unverified: bool,
    ) -> Result<ExistingStacks> {
        let loaded = &state.loaded;
        let mut document = state.read()?;
        for name in self.graph.keys() {
            let key = self.key(name)?;
            if document.stacks.contains_key(&key) {
                let key = printable(&key);
                console::note(&format!(
                    "`{key}` is already in the state and is kept as it is"
                ));
            }
        }
        let mut stacks = Vec::new();
        let mut elsewhere = Vec::new();
        for key in self.record(&mut document, state.clock.now())? {
            let path = StackPath::parse(&key);
            match path
                .as_ref()
                .and_then(|path| loaded.project.stacks.find(path))
            {
                Some(stack) => stacks.push(stack),
                None => elsewhere.extend(path),
            }
        }
        if is_unverified {
            console::note("nothing was verified with the tools (`--no-verify`)");
            return find_existing(chdir, loaded, &stacks, Verification::Nobody);
        }
        let verification = Verification::Tools(NonZeroUsize::MIN);
        let mut existing = find_existing(chdir, loaded, &stacks, verification)?;
        existing.check_existence()?;
        for path in elsewhere {
            existing.leave_unverified("not in the working tree", path);
        }
        existing.note_unverified();
        Ok(existing)
    }

    /// Adds the stacks to the document; returns the new keys.
    fn record(&self, document: &mut Document, now: Timestamp) -> Result<Vec<String>> {
        let mut names: BTreeMap<String, &str> = BTreeMap::new();
        for name in self.graph.keys() {
            if let Some(other) = names.insert(self.key(name)?, name) {
                let [other, name] = [other, name].map(printable);
                return Err(ProgramError::refused(format!(
                    "`{other}` and `{name}` are the same stack"
                ))
                .hint("merge their lists in the file"));
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

    /// Returns the keys of what a stack runs after. All of it is in the file, in the tree or on record: else an order
    /// would be lost.
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
                return Err(ProgramError::refused(format!(
                    "`{name}` runs after `{before}`, which is neither in the file, nor a stack here, nor in the state"
                ))
                .hint(format!(
                    "add `{before}` to the file with what it runs after, or remove it from the list of `{name}`"
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

/// Refuses stacks that run after each other in a cycle.
fn cyclic(keys: &[&str]) -> ProgramError {
    let keys = keys.iter().chain(keys.first());
    let keys: Vec<_> = keys.map(|key| printable(key)).collect();
    ProgramError::refused(format!(
        "the imported stacks would wait for each other in a cycle: {}",
        keys.join(" → ")
    ))
    .hint("correct the order in the file")
}
