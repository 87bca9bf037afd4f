//! Where the project begins.

use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::{is_configuration, read_text};
use crate::parse::parse;
use crate::source::FileId;
use crate::syntax::{Body, ExprKind};

/// How the project root was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootRule {
    /// Its own files say `orch { root = true }`.
    Declared,
    /// It is git's top level.
    Git,
    /// Its own files set `required_version`.
    RequiredVersion,
    /// Nothing says where the project begins, so it is the working directory.
    WorkingDirectory,
}

/// Finds the project root of a working directory, which must be absolute and free of links.
///
/// The nearest ancestor that declares itself the root; else git's top level; else the nearest
/// ancestor that sets `required_version`; else the working directory. Files that cannot be read or
/// parsed declare nothing here; if they belong to the project, loading it reports them.
pub fn find_root(working_directory: &Path) -> (PathBuf, RootRule) {
    let mut git = None;
    let mut required_version = None;
    for directory in working_directory.ancestors() {
        let declares = root_declarations(directory);
        if declares.root {
            return (directory.to_path_buf(), RootRule::Declared);
        }
        if git.is_none() && is_git_top_level(directory) {
            git = Some(directory.to_path_buf());
        }
        if required_version.is_none() && declares.required_version {
            required_version = Some(directory.to_path_buf());
        }
    }
    if let Some(git) = git {
        (git, RootRule::Git)
    } else if let Some(directory) = required_version {
        (directory, RootRule::RequiredVersion)
    } else {
        (working_directory.to_path_buf(), RootRule::WorkingDirectory)
    }
}

/// Says whether git would call this directory a top level: it has a repository, or a file that
/// points to one as worktrees and submodules do. Reading it ourselves keeps commands that need no
/// history independent of git.
fn is_git_top_level(directory: &Path) -> bool {
    let git = directory.join(".git");
    git.join("HEAD").exists() || fs::read(&git).is_ok_and(|content| content.starts_with(b"gitdir:"))
}

#[derive(Default)]
struct RootDeclarations {
    root: bool,
    required_version: bool,
}

fn root_declarations(directory: &Path) -> RootDeclarations {
    let mut found = RootDeclarations::default();
    let entries = WalkDir::new(directory).min_depth(1).max_depth(1);
    for entry in entries.into_iter().flatten() {
        if entry.file_type().is_dir() || !is_configuration(entry.file_name()) {
            continue;
        }
        if let Ok(text) = read_text(entry.path(), entry.file_type().is_file(), None)
            && let Ok(body) = parse(FileId(0), &text)
        {
            found.root |= declares_root(&body);
            found.required_version |=
                project_blocks(&body).any(|block| block.attribute("required_version").is_some());
        }
    }
    found
}

fn project_blocks(body: &Body) -> impl Iterator<Item = &Body> {
    let blocks = body.blocks("orch").chain(body.blocks("terramate"));
    blocks.map(|block| &block.body)
}

/// Says whether a file makes its directory the root of a project.
pub(super) fn declares_root(body: &Body) -> bool {
    project_blocks(body)
        .filter_map(|block| block.attribute("root"))
        .any(|root| matches!(root.value.kind, ExprKind::Bool(true)))
}
