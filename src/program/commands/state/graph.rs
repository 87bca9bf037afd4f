//! `orch state import` and `export`

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use orch::git::{CommitId, Repository};
use orch::path::ProjectPath;
use orch::printable::printable;
use orch::project::Project;
use orch::report::write_recorded_graph_json;
use orch::selection::recorded;
use orch::state::cfngin::{self, CfnginError, Graph};
use orch::state::document::{Applied, Document, Entry};
use serde_json::Map;

use super::write::each;
use super::{Format, State, WriteArgs};
use crate::program::commands::commits::Commits;
use crate::program::commands::working_directory;
use crate::program::console;
use crate::program::error::{ErrorKind, ProgramError, Result};
use crate::program::exit::ExitStatus;

/// Record the stacks of a `CFNgin` persistent graph as applied
///
/// Download the graph first: `CFNgin` keeps it at `s3://BUCKET/persistent_graphs/NAMESPACE/KEY.json` or,
/// according to its documentation, at
/// `s3://BUCKET/NAMESPACE/persistent_graphs/NAMESPACE/KEY.json`. It lists by name what each stack runs
/// after, as in `{"app": ["network"]}`. A name that no stack has is recorded as the path `/NAME`. What is
/// already on record stays as it is.
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

/// The format of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// The persistent graph of `CFNgin`, by name: `{"app": ["network"]}`. No two stacks on record may
    /// have the same name
    Cfngin,
    /// For other programs: the path and name of each stack, and the paths of what it runs after
    Json,
}

impl GraphFormat {
    /// Returns the format of a refusal.
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
            let address = state.backend.address();
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
    let edit = state.edit("import", &args.write);
    state.change(
        &edit,
        args.write.format,
        each("imported"),
        |document, now| imported.record(document, now),
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
            Ok(path) if !path.is_root() => Ok(path.as_str().to_owned()),
            _ => Err(ProgramError::refused(format!(
                "no stack here has the name `{}`, and it cannot be recorded as a path",
                printable(name)
            ))),
        }
    }

    fn record(&self, document: &mut Document, now: Timestamp) -> Result<Vec<String>> {
        let mut new = Vec::new();
        for (name, before) in self.graph {
            let key = self.key(name)?;
            let after: Vec<String> = before
                .iter()
                .map(|name| self.key(name))
                .collect::<Result<_>>()?;
            if document.stacks.contains_key(&key) {
                let key = printable(&key);
                console::note(&format!("`{key}` is already on record and stays as it is"));
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
                plan: None,
                checks: None,
                other: Map::new(),
            };
            let entry = Entry {
                name: name.clone(),
                after,
                applied: Some(applied),
                ..Entry::default()
            };
            document.stacks.insert(key.clone(), entry);
            new.push(key);
        }
        Ok(new)
    }
}
