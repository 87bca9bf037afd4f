//! Finds the project root.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::names::is_configuration;
use super::text::{CONFIGURATION, TextError, read_text};
use crate::language::parse::parse;
use crate::language::syntax::{Body, ExprKind};
use crate::on_disk::if_there;
use crate::source::FileId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootRule {
    /// Its own files have `orch { root = true }`.
    Declared,
    Git,
    RequiredVersion,
    /// Nothing marks the root, so it is the working directory.
    WorkingDirectory,
}

/// A file above the working directory that may mark the project root and cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("the project root is unknown: `{}` may mark it, but {problem}", file.display())]
pub struct RootUnknown {
    pub file: PathBuf,
    pub problem: String,
}

/// Finds the project root of a working directory, which must be absolute and free of links.
///
/// The nearest ancestor that declares itself the root; else git's top level; else the nearest ancestor that sets
/// `required_version`; else the working directory.
///
/// If nothing marks the root, and a file above the working directory cannot be parsed: it might mark the root, and
/// then constraints and settings would be lost silently. In all other cases, such a file belongs to the project, and
/// loading the project reports the problem.
pub fn find_root(working_directory: &Path) -> Result<(PathBuf, RootRule), RootUnknown> {
    let mut git = None;
    let mut required_version = None;
    let mut unknown = None;
    for directory in working_directory.ancestors() {
        let declares = root_declarations(directory);
        if declares.root {
            return Ok((directory.to_path_buf(), RootRule::Declared));
        }
        // An unreadable repository counts as one: later questions to it report the error.
        if git.is_none() && is_git_top_level(directory).unwrap_or(true) {
            git = Some(directory.to_path_buf());
        }
        if required_version.is_none() && declares.required_version {
            required_version = Some(directory.to_path_buf());
        }
        if directory != working_directory {
            unknown = unknown.or(declares.unknown);
        }
    }
    match (git, required_version, unknown) {
        (Some(git), _, _) => Ok((git, RootRule::Git)),
        (None, Some(directory), _) => Ok((directory, RootRule::RequiredVersion)),
        (None, None, Some(unknown)) => Err(unknown),
        (None, None, None) => Ok((working_directory.to_path_buf(), RootRule::WorkingDirectory)),
    }
}

/// Returns the nearest directory at or above this one that git calls a top level.
///
/// Only `.git` counts: git itself also accepts a directory that merely looks like a repository from
/// inside, which anyone can commit, with a configuration that runs programs.
///
/// With its path, if a `.git` is there and cannot be read.
pub(crate) fn git_top_level(directory: &Path) -> Result<Option<&Path>, (PathBuf, io::Error)> {
    for above in directory.ancestors() {
        match is_git_top_level(above) {
            Ok(true) => return Ok(Some(above)),
            Ok(false) => {}
            Err(error) => return Err((above.join(".git"), error)),
        }
    }
    Ok(None)
}

/// Returns whether git would call this directory a top level: it has a repository, or a file that
/// points to one as worktrees and submodules do. Reading it ourselves keeps commands that need no
/// history independent of git.
fn is_git_top_level(directory: &Path) -> io::Result<bool> {
    let git = directory.join(".git");
    let Some(kind) = if_there(fs::metadata(&git))? else {
        return Ok(false);
    };
    if kind.is_dir() {
        let has = |name| if_there(fs::metadata(git.join(name))).map(|it| it.is_some());
        if !has("HEAD")? && has("objects")? {
            return Err(io::Error::other("the repository has lost its `HEAD`"));
        }
        return has("HEAD");
    }
    // Only a plain file is opened: opening a pipe would block.
    if !kind.is_file() {
        return Ok(false);
    }
    let mut start = Vec::new();
    fs::File::open(&git)?.take(7).read_to_end(&mut start)?;
    Ok(start == b"gitdir:")
}

#[derive(Default)]
struct RootDeclarations {
    root: bool,
    required_version: bool,
    unknown: Option<RootUnknown>,
}

fn root_declarations(directory: &Path) -> RootDeclarations {
    let mut found = RootDeclarations::default();
    // A directory that cannot be listed marks nothing that anyone could see.
    let Ok(entries) = fs::read_dir(directory) else {
        return found;
    };
    for entry in entries.flatten() {
        let plain = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_configuration(&entry.file_name()) || entry.path().is_dir() {
            continue;
        }
        match own_blocks(&entry.path(), plain) {
            Ok(body) => {
                found.root |= declares_root(&body);
                found.required_version |= project_blocks(&body)
                    .any(|block| block.attribute("required_version").is_some());
            }
            Err(problem) => {
                let unknown = RootUnknown {
                    file: entry.path(),
                    problem,
                };
                let other = found.unknown.take();
                // The first by name, independent of the order on disk.
                found.unknown = other
                    .into_iter()
                    .chain([unknown])
                    .min_by(|a, b| a.file.cmp(&b.file));
            }
        }
    }
    found
}

fn own_blocks(file: &Path, plain: bool) -> Result<Body, String> {
    let text = match read_text(file, plain, None, &CONFIGURATION) {
        Ok(text) => text,
        Err(TextError::Io(error)) => return Err(error.to_string()),
        Err(TextError::NotUtf8 { .. }) => return Err("it is not UTF-8".to_owned()),
        Err(TextError::Refused { why, .. }) => return Err(format!("it {why}")),
    };
    parse(FileId(0), &text).map_err(|diagnostic| {
        let place = diagnostic.labels.first().map(|label| {
            let line = text[..label.span.range().start].split('\n').count();
            format!(" in line {line}: {}", label.text)
        });
        format!(
            "it has a {}{}",
            diagnostic.message,
            place.unwrap_or_default()
        )
    })
}

fn project_blocks(body: &Body) -> impl Iterator<Item = &Body> {
    let blocks = body.blocks("orch").chain(body.blocks("terramate"));
    blocks.map(|block| &block.body)
}

/// Returns whether a file makes its directory the root of a project.
pub(crate) fn declares_root(body: &Body) -> bool {
    project_blocks(body)
        .filter_map(|block| block.attribute("root"))
        .any(|root| matches!(root.value.kind, ExprKind::Bool(true)))
}
