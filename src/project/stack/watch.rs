//! The files of `watch`: files outside a stack's directory that belong to it.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use walkdir::WalkDir;

use super::Stacks;
use crate::diagnostic::{Code, Diagnostic};
use crate::path::ProjectPath;
use crate::pattern::{BadPattern, FilePattern};
use crate::project::discover::{FileKind, SourceTree};
use crate::source::Spanned;

/// An entry of `watch`, resolved in the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// One file, which need not exist: it may be deleted, or about to be created.
    File(ProjectPath),
    FilePattern(FilePattern),
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Watch::File(path) => write!(f, "{path}"),
            Watch::FilePattern(pattern) => write!(f, "{pattern}"),
        }
    }
}

/// Resolves an entry of the `watch` of the stack at `stack`. Errors go to `problems`.
pub(super) fn watched(
    entry: &Spanned<String>,
    stack: &ProjectPath,
    files: &SourceTree,
    problems: &mut Vec<Diagnostic>,
) -> Option<Spanned<Watch>> {
    let written = &entry.value;
    let spanned = |value| {
        let span = entry.span;
        Some(Spanned { value, span })
    };
    let path = stack.resolve(written).ok();
    let kind = path.as_ref().map_or(Ok(None), |path| files.kind(path));
    let kind = match kind {
        Ok(kind) => kind,
        Err(error) => {
            let message = format!("`watch` names `{written}`, which cannot be read");
            let diagnostic = Diagnostic::error(Code::Unreadable, message);
            problems.push(diagnostic.label(entry.span, error.to_string()));
            return None;
        }
    };
    let problem = match (path, kind) {
        (Some(path), Some(FileKind::File)) => return spanned(Watch::File(path)),
        (Some(path), Some(_)) => {
            let message = format!("`watch` names files, and `{path}` is not one");
            let diagnostic = Diagnostic::error(Code::InvalidValue, message)
                .label(entry.span, "not a regular file");
            let below = written.trim_end_matches('/');
            diagnostic.help(format!("for everything below it, write `{below}/**`"))
        }
        _ if FilePattern::is_pattern(written) => match FilePattern::new(stack, written) {
            Ok(pattern) => return spanned(Watch::FilePattern(pattern)),
            Err(BadPattern::LeavesProject) => leaves_project(entry),
            Err(BadPattern::Syntax(problem)) => {
                let message = format!("`{written}` is not a pattern of file names");
                let diagnostic =
                    Diagnostic::error(Code::InvalidPattern, message).label(entry.span, problem);
                diagnostic.help(
                    "`*` and `?` match within a name, `**` across directories, `{a,b}` either of two",
                )
            }
        },
        (Some(path), None) => return spanned(Watch::File(path)),
        (None, _) => leaves_project(entry),
    };
    problems.push(problem);
    None
}

fn leaves_project(entry: &Spanned<String>) -> Diagnostic {
    Diagnostic::outside_project(&entry.value, entry.span)
        .help("watch files inside the project; a leading `/` is the project root")
}

/// Returns a warning for each entry of `watch` that names nothing that exists.
pub fn unmatched(stacks: &Stacks, root: &Path) -> Vec<Diagnostic> {
    let mut open: Vec<(&Spanned<Watch>, &FilePattern)> = Vec::new();
    let mut problems = Vec::new();
    for (_, stack) in stacks.iter() {
        for entry in &stack.watch {
            match &entry.value {
                Watch::File(path) if path.to_host(root).symlink_metadata().is_err() => {
                    let message = format!("`watch` names `{path}`, which does not exist");
                    problems.push(
                        Diagnostic::warning(Code::UnmatchedWatch, message)
                            .label(entry.span, "no such file"),
                    );
                }
                Watch::File(_) => {}
                Watch::FilePattern(pattern) => open.push((entry, pattern)),
            }
        }
    }
    // Patterns of one directory are looked up in one walk, which ends when all have matched.
    open.sort_by(|(_, a), (_, b)| a.directory().cmp(b.directory()));
    for patterns in open.chunk_by(|(_, a), (_, b)| a.directory() == b.directory()) {
        let Some((_, first)) = patterns.first() else {
            continue;
        };
        let matched = matched(patterns, &first.directory().to_host(root), root);
        let missing = patterns
            .iter()
            .enumerate()
            .filter(|(index, _)| !matched.contains(index));
        problems.extend(missing.map(|(_, (entry, pattern))| {
            let message = format!("no file matches `{pattern}`, which `watch` names");
            Diagnostic::warning(Code::UnmatchedWatch, message)
                .label(entry.span, "nothing to watch now")
        }));
    }
    problems
}

fn matched(
    patterns: &[(&Spanned<Watch>, &FilePattern)],
    directory: &Path,
    root: &Path,
) -> HashSet<usize> {
    let mut open: Vec<usize> = (0..patterns.len()).collect();
    let mut matched = HashSet::new();
    let entries = WalkDir::new(directory).into_iter();
    for entry in entries
        .filter_entry(|entry| entry.file_name() != ".git")
        .flatten()
    {
        if entry.file_type().is_dir() {
            continue;
        }
        let Some(file) = ProjectPath::from_host(root, entry.path()) else {
            continue;
        };
        open.retain(|&index| {
            let is_match = patterns[index].1.matches(&file);
            if is_match {
                matched.insert(index);
            }
            !is_match
        });
        if open.is_empty() {
            break;
        }
    }
    matched
}
