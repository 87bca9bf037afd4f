//! The names that a project has: stacks, tags, runs.
//!
//! What cannot be read has no names, and nothing says why. Names with control characters are left out:
//! no shell could show or type them.

use std::borrow::Cow;
use std::path::PathBuf;

use clap_complete::engine::CompletionCandidate;
use orch::path::ProjectPath;
use orch::printable::{command_line, printable};
use orch::project::stack::Stacks;
use orch::project::tag::tag_problem;
use orch::project::{Problems, Project};
use orch::record::journal::{RecordFolder, Runs};

use crate::program::commands::{LocatedProject, find_project, working_directory};

/// With more stacks than this, the candidates are the directories that lead to them.
const MAX_STACKS: usize = 100;

/// How many runs are explained, for which their journals are read.
const MAX_EXPLAINED: usize = 10;

/// A possible value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Value {
    text: String,
    help: Option<String>,
}

impl Value {
    pub(super) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Value { text, help: None }
    }

    /// Adds what it means.
    pub(super) fn help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    pub(super) fn into_candidate(self) -> CompletionCandidate {
        let help = self.help.map(|help| printable(&help).into_owned().into());
        CompletionCandidate::new(self.text).help(help)
    }
}

/// Where the command line is typed.
#[derive(Debug)]
pub(super) struct Surroundings {
    chdir: Vec<PathBuf>,
}

impl Surroundings {
    /// Takes the directories of `-C`, and whether `--root` is given.
    pub(super) fn new((mut chdir, root): (Vec<PathBuf>, bool)) -> Self {
        if root && let Ok(found) = find_project(&chdir) {
            chdir = vec![found.root];
        }
        Surroundings { chdir }
    }

    /// Returns the directory that paths of files are relative to.
    pub(super) fn working_directory(&self) -> Option<PathBuf> {
        working_directory(&self.chdir).ok()
    }

    fn project(&self) -> Option<(Stacks, ProjectPath)> {
        let LocatedProject {
            root, directory, ..
        } = find_project(&self.chdir).ok()?;
        let project = Project::load(&root, &mut Problems::default()).ok()?;
        Some((project.stacks, directory))
    }

    /// Returns the stacks whose paths begin like what was typed.
    pub(super) fn stacks(&self, typed: &str) -> Vec<Value> {
        self.paths(typed, |_| true)
    }

    /// Returns the stacks whose paths are also globs that match them.
    pub(super) fn globs(&self, typed: &str) -> Vec<Value> {
        self.paths(typed, |path| {
            !path.contains(['*', '?', '[', ']', '{', '}', '\\', '!'])
        })
    }

    fn paths(&self, typed: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<Value> {
        let Some((stacks, directory)) = self.project() else {
            return Vec::new();
        };
        let wanted = stack_paths(&stacks, &directory, typed).into_iter();
        wanted.filter(|value| is_wanted(&value.text)).collect()
    }

    /// Returns the filters that a tag more would make of what was typed.
    pub(super) fn tag_filters(&self, typed: &str) -> Vec<Value> {
        self.tags(typed, &[',', ':'], "")
    }

    /// Returns the lists that a tag more would make of what was typed.
    pub(super) fn tag_lists(&self, typed: &str) -> Vec<Value> {
        self.tags(typed, &[','], "")
    }

    /// Returns the beginnings of limits.
    pub(super) fn tag_limits(&self, typed: &str) -> Vec<Value> {
        self.tags(typed, &[], "=")
    }

    fn tags(&self, typed: &str, separators: &[char], end: &str) -> Vec<Value> {
        let start = typed.rfind(separators).map_or(0, |at| at + 1);
        let (before, begun) = typed.split_at(start);
        let Some((stacks, _)) = self.project() else {
            return Vec::new();
        };
        let tags = stacks
            .tags()
            .filter(|tag| !tag.is_empty() && tag.starts_with(begun) && tag_problem(tag).is_none());
        let value = |tag: &str| {
            let help = match stacks.with_tag(tag).len() {
                1 => "1 stack".to_owned(),
                n => format!("{n} stacks"),
            };
            Value::new(format!("{before}{tag}{end}")).help(Some(help))
        };
        tags.map(value).collect()
    }

    /// Returns the runs on record, the newest first.
    pub(super) fn runs(&self, typed: &str) -> Vec<Value> {
        let runs = find_project(&self.chdir).ok().and_then(|found| {
            let folder = RecordFolder::find(&found.root).ok()??;
            Runs::find(folder).ok()
        });
        runs.map(|runs| run_names(&runs, typed)).unwrap_or_default()
    }
}

/// Returns the paths of stacks that begin like what was typed, relative in the same way. If there are
/// too many, those of the directories that lead to them, which end in `/`.
fn stack_paths(stacks: &Stacks, directory: &ProjectPath, typed: &str) -> Vec<Value> {
    let (folder, name) = typed.split_at(typed.rfind('/').map_or(0, |slash| slash + 1));
    if name == ".." {
        return vec![Value::new(format!("{typed}/"))];
    }
    let Ok(base) = directory.resolve(folder) else {
        return Vec::new();
    };
    let below = stacks.at_or_below(&base).filter_map(|stack| {
        let path = &stacks[stack].path;
        let text = match path.relative_to(&base).as_str() {
            "." if folder.is_empty() => ".".to_owned(),
            "." => folder.to_owned(),
            below => format!("{folder}{below}"),
        };
        let is_wanted = text.starts_with(typed) && matches!(printable(&text), Cow::Borrowed(_));
        is_wanted.then(|| Value::new(text).help(stacks[stack].description.clone()))
    });
    let found: Vec<Value> = below.collect();
    let mut length = typed.len();
    while found.len() > MAX_STACKS {
        let mut directories: Vec<Value> = Vec::new();
        for Value { text, .. } in &found {
            let slash = text[length..].find('/').map(|at| length + at + 1);
            let directory = Value::new(&text[..slash.unwrap_or(text.len())]);
            if directories.last() != Some(&directory) {
                directories.push(directory);
            }
        }
        match directories.as_slice() {
            // One directory leads to all of them.
            [only] if only.text.ends_with('/') => length = only.text.len(),
            _ => return directories,
        }
    }
    found
}

/// Returns the names of runs that begin like what was typed.
fn run_names(runs: &Runs, typed: &str) -> Vec<Value> {
    let explained = |age: usize, id: &str| {
        let brief = (age < MAX_EXPLAINED).then(|| runs.brief(id).ok()).flatten();
        brief.map(|brief| {
            let command = brief.header.command.into_iter().map(|word| word.0);
            let command = command_line(&command.collect::<Vec<_>>());
            format!("{}: {command}", brief.state.word())
        })
    };
    let ids = || runs.ids().iter().enumerate();
    let by_age = ids().filter_map(|(age, id)| match age {
        0 => Some(("last".to_owned(), age, id)),
        _ if typed.starts_with("last") => Some((format!("last~{age}"), age, id)),
        _ => None,
    });
    let by_id = ids().map(|(age, id)| (id.clone(), age, id));
    let names = by_age.chain(by_id);
    let begun = names.filter(|(name, ..)| name.starts_with(typed));
    begun
        .map(|(name, age, id)| Value::new(name).help(explained(age, id)))
        .collect()
}
