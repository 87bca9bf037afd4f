//! References that name nothing, and why.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::fs;

use crate::change::Baseline;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::path::{KeyFilter, ProjectPath, StackPath};
use crate::project::Project;
use crate::project::tag::TagFilter;
use crate::source::{Span, Spanned};

#[derive(Debug)]
pub(super) struct Dangling {
    pub(super) path: ProjectPath,
    /// The instances that the reference names, if it has a key in brackets.
    pub(super) key: Option<KeyFilter>,
    pub(super) span: Span,
    /// The text of the diagnostic: instances share the place, and each may name another path.
    pub(super) message: String,
}

/// Adds a note to the diagnostics of references that name a stack removed since the base.
pub(super) fn note_removed(
    dangling: &[Dangling],
    since: &Baseline,
    diagnostics: &mut [Diagnostic],
) {
    let mut removed: BTreeMap<&str, Vec<&StackPath>> = BTreeMap::new();
    for stack in &since.removed {
        let here = removed.entry(stack.directory().as_str());
        here.or_default().push(stack);
    }
    let mut notes: HashMap<(Span, &str), String> = HashMap::new();
    for Dangling {
        path,
        key,
        span,
        message,
    } in dangling
    {
        let place = (*span, message.as_str());
        let below = path.prefix_of_below();
        let mut from_below = removed.range(below.as_str()..).map(|(path, _)| path);
        let commit = &since.base;
        let here = removed.get(path.as_str()).into_iter().flatten();
        let is_meant = |stack: &&&StackPath| {
            let mut key = key.iter();
            key.all(|key| key.matches(stack.key()))
        };
        let here: Vec<_> = here.filter(is_meant).collect();
        if let [only] = here.as_slice() {
            let note = format!("the stack `{only}` was removed since the base {commit}");
            notes.insert(place, note);
        } else if !here.is_empty() {
            let note = format!("the instances of `{path}` were removed since the base {commit}");
            notes.insert(place, note);
        } else if key.is_none() && from_below.next().is_some_and(|it| it.starts_with(&below)) {
            let note = format!("the stacks below `{path}` were removed since the base {commit}");
            notes.insert(place, note);
        }
    }
    for diagnostic in diagnostics {
        if let [label, ..] = diagnostic.labels.as_slice()
            && let Some(note) = notes.remove(&(label.span, &*diagnostic.message))
        {
            diagnostic.notes.push(note);
        }
    }
}

pub(super) fn names_nothing(
    project: &Project,
    kind: impl Display,
    entry: &Spanned<String>,
    label: &str,
) -> Diagnostic {
    let message = format!("`{}` in `{kind}` matches no stack", entry.value);
    unknown(project, message).label(entry.span, label)
}

/// Returns the diagnostic for something that names what the project lacks.
pub(super) fn unknown(project: &Project, message: String) -> Diagnostic {
    let mut diagnostic = Diagnostic::warning(Code::UnknownReference, message);
    if project.settings.strict_references {
        diagnostic.severity = Severity::Error;
        diagnostic = diagnostic.note("the project sets `references = \"strict\"`");
    }
    diagnostic
}

/// Parses what follows `tag:` in an entry.
pub(super) fn tag_filter(text: &str, entry: &Spanned<String>) -> Result<TagFilter, Diagnostic> {
    TagFilter::parse(text).map_err(|bad| {
        let message = format!("`{}` is not a tag filter", entry.value);
        Diagnostic::error(Code::InvalidTag, message)
            .label(entry.span, bad.to_string())
            .help("write `tag:a:b` for both tags, `tag:a,b` for either")
    })
}

/// Returns why a path matches no stack.
pub(super) fn why_nothing(project: &Project, path: &ProjectPath) -> &'static str {
    let mut empty = project.without_instances.iter();
    match fs::symlink_metadata(path.to_host(&project.root)) {
        Err(_) => "no such directory",
        Ok(metadata) if metadata.is_symlink() => "a symbolic link, which is not followed",
        Ok(metadata) if metadata.is_file() => "a file, and a reference names directories",
        Ok(_) if empty.any(|it| it.directory == *path) => "its `for_each` is empty",
        Ok(_) => "no stack at or below this directory",
    }
}
