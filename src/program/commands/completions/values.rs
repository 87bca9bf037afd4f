//! The names in a project: stacks, tags, runs, policies, modules.
//!
//! Unreadable files are silently ignored. Names with control characters are left out: no shell
//! could show or type them.

use std::borrow::Cow;
use std::path::PathBuf;

use clap_complete::engine::CompletionCandidate;
use orch::folder::GuardedFolder;
use orch::path::{KeyFilter, ProjectPath};
use orch::printable::{command_line, printable};
use orch::project::outline::{Outline, OutlineEntry, OutlineKind};
use orch::project::tag::tag_problem;
use orch::record::journal::Runs;

use crate::program::commands::{find_project, working_directory};

/// With more stacks than this, the candidates are the directories above them.
const MAX_STACKS: usize = 100;

/// The most runs with a description, which requires reading their journals.
const MAX_EXPLAINED: usize = 10;

pub(super) struct CompletionValue {
    text: String,
    help: Option<String>,
}

impl CompletionValue {
    pub(super) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        CompletionValue { text, help: None }
    }

    pub(super) fn help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    pub(super) fn into_candidate(self) -> CompletionCandidate {
        let help = self.help.map(|help| printable(&help).into_owned().into());
        CompletionCandidate::new(self.text).help(help)
    }
}

/// The working directory of the typed command line.
pub(super) struct TypedPlace {
    chdir: Vec<PathBuf>,
}

impl TypedPlace {
    /// Takes the directories of `-C`, and whether `--root` is given.
    pub(super) fn new((mut chdir, root): (Vec<PathBuf>, bool)) -> Self {
        if root && let Ok(found) = find_project(&chdir) {
            chdir = vec![found.root];
        }
        TypedPlace { chdir }
    }

    /// Returns the directory that file paths are relative to.
    pub(super) fn working_directory(&self) -> Option<PathBuf> {
        working_directory(&self.chdir).ok()
    }

    /// Returns the stacks whose paths begin with the typed text.
    pub(super) fn stacks(&self, typed: &str) -> Vec<CompletionValue> {
        self.paths(typed, |_| true)
    }

    /// Returns the stacks whose paths, read as globs, match themselves.
    pub(super) fn globs(&self, typed: &str) -> Vec<CompletionValue> {
        self.paths(typed, |directory| {
            !directory.contains(['*', '?', '[', ']', '{', '}', '\\', '!'])
        })
    }

    fn paths(&self, typed: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<CompletionValue> {
        let Ok(found) = find_project(&self.chdir) else {
            return Vec::new();
        };
        let outline = Outline::new(&found.root);
        stack_paths(&outline, &found.directory, typed, is_wanted)
    }

    /// Returns the filters that extend the typed text by one tag.
    pub(super) fn tag_filters(&self, typed: &str) -> Vec<CompletionValue> {
        self.tags(typed, &[',', ':'], "")
    }

    /// Returns the lists that extend the typed text by one tag.
    pub(super) fn tag_lists(&self, typed: &str) -> Vec<CompletionValue> {
        self.tags(typed, &[','], "")
    }

    /// Returns the beginnings of limits: tags with `=`.
    pub(super) fn tag_limits(&self, typed: &str) -> Vec<CompletionValue> {
        self.tags(typed, &[], "=")
    }

    fn tags(&self, typed: &str, separators: &[char], end: &str) -> Vec<CompletionValue> {
        let start = typed.rfind(separators).map_or(0, |at| at + 1);
        let (before, begun) = typed.split_at(start);
        let Ok(found) = find_project(&self.chdir) else {
            return Vec::new();
        };
        let tags = Outline::new(&found.root).tags().into_iter();
        let is_wanted = |tag: &str| tag.starts_with(begun) && tag_problem(tag).is_none();
        let tags = tags.filter(|tag| !tag.is_empty() && is_wanted(tag));
        let value = |tag: String| CompletionValue::new(format!("{before}{tag}{end}"));
        tags.map(value).collect()
    }

    pub(super) fn policies(&self, typed: &str) -> Vec<CompletionValue> {
        self.labels("policy", typed, "")
    }

    /// Returns the beginnings of module releases.
    pub(super) fn releases(&self, typed: &str) -> Vec<CompletionValue> {
        self.labels("module", typed, "@")
    }

    fn labels(&self, kind: &str, typed: &str, end: &str) -> Vec<CompletionValue> {
        let Ok(found) = find_project(&self.chdir) else {
            return Vec::new();
        };
        let names = Outline::new(&found.root).labels(kind).into_iter();
        let is_wanted =
            |name: &String| name.starts_with(typed) && matches!(printable(name), Cow::Borrowed(_));
        let names = names.filter(|name| !name.is_empty() && is_wanted(name));
        names.map(|name| CompletionValue::new(name + end)).collect()
    }

    /// Returns the base that is not a revision, if the project has a state.
    pub(super) fn bases(&self, typed: &str) -> Vec<CompletionValue> {
        let has_state = || {
            let found = find_project(&self.chdir);
            found.is_ok_and(|found| Outline::new(&found.root).has_state())
        };
        if !"applied".starts_with(typed) || !has_state() {
            return Vec::new();
        }
        let help = "what each stack was last applied from";
        vec![CompletionValue::new("applied").help(Some(help.to_owned()))]
    }

    /// Returns the recorded runs, newest first.
    pub(super) fn runs(&self, typed: &str) -> Vec<CompletionValue> {
        let runs = find_project(&self.chdir).ok().and_then(|found| {
            let folder = GuardedFolder::find(&found.root).ok()??;
            Runs::find(folder).ok()
        });
        runs.map(|runs| run_names(&runs, typed)).unwrap_or_default()
    }
}

/// Returns the stack paths that begin with the typed text, in its relative form, if the part before
/// the key passes `is_wanted`. If there are too many, returns the directories above them, ending in
/// `/`.
fn stack_paths(
    outline: &Outline<'_>,
    directory: &ProjectPath,
    typed: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<CompletionValue> {
    let (mut folder, mut name) = typed.split_at(typed.rfind('/').map_or(0, |slash| slash + 1));
    if name == ".." {
        return vec![CompletionValue::new(format!("{typed}/"))];
    }
    if name.starts_with(".[") {
        (folder, name) = typed.split_at(folder.len() + 1);
    }
    let Ok(base) = directory.resolve(folder) else {
        return Vec::new();
    };
    let value = |OutlineEntry { path, kind }: OutlineEntry| {
        let below = path.relative_to(&base);
        let text = match below.strip_prefix('.') {
            // The directory itself, or an instance in it.
            Some(_) if typed.is_empty() => below,
            Some(key) => format!("{folder}{key}"),
            None => format!("{folder}{below}"),
        };
        let key = path.key().cloned();
        let key = key.map_or_else(String::new, |key| KeyFilter::One(key).to_string());
        let before = text.strip_suffix(&key).unwrap_or(&text);
        let is_printable = matches!(printable(&text), Cow::Borrowed(_));
        (is_printable && is_wanted(before)).then(|| match kind {
            OutlineKind::Stack(description) => CompletionValue::new(text).help(description),
            OutlineKind::Directory => CompletionValue::new(format!("{text}/")),
        })
    };
    let places = outline.stacks(&base, name, MAX_STACKS).into_iter();
    places.filter_map(value).collect()
}

/// Returns the names of runs that begin with the typed text.
fn run_names(runs: &Runs, typed: &str) -> Vec<CompletionValue> {
    let explained = |age: usize, id: &str| {
        let brief = (age < MAX_EXPLAINED).then(|| runs.brief(id).ok()).flatten();
        brief.map(|brief| {
            let command = brief.header.command.into_iter().map(|word| word.0);
            let command = command_line(&command.collect::<Vec<_>>());
            format!("{}: {command}", brief.state.word())
        })
    };
    let ids = runs.ids().iter().enumerate();
    let by_age = runs.by_age().enumerate().filter_map(|(age, id)| match age {
        0 => Some(("last".to_owned(), age, id)),
        _ if typed.starts_with("last") => Some((format!("last~{age}"), age, id)),
        _ => None,
    });
    let by_id = ids.map(|(age, id)| (id.clone(), age, id.as_str()));
    let names = by_age.chain(by_id);
    let begun = names.filter(|(name, ..)| name.starts_with(typed));
    begun
        .map(|(name, age, id)| CompletionValue::new(name).help(explained(age, id)))
        .collect()
}
