//! The files of a Terraform module, and what they define for its constant paths: locals, variables, and the
//! arguments of modules.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry};
use std::io;

use super::json_body::{self, BlockKind};
use super::text;
use super::tree::Tree;
use crate::diagnostic::Diagnostic;
use crate::language::parse::parse_whole;
use crate::language::syntax::{Body, Expr};
use crate::on_disk::if_there;
use crate::path::ProjectPath;
use crate::project::discover::{is_override, is_terraform};
use crate::source::FileId;

const WORKSPACES: [BlockKind; 1] = [BlockKind::new("workspaces", 0)];

const JSON_KINDS: [BlockKind; 5] = [
    BlockKind {
        inner: &[
            BlockKind {
                inner: &WORKSPACES,
                ..BlockKind::new("backend", 1)
            },
            BlockKind {
                inner: &WORKSPACES,
                ..BlockKind::new("cloud", 0)
            },
        ],
        ..BlockKind::new("terraform", 0)
    },
    BlockKind::new("data", 2),
    BlockKind::new("locals", 0),
    BlockKind::new("module", 1),
    BlockKind::new("variable", 1),
];

/// Returns the files of a directory that may define locals and variables; those that override others come last.
pub(super) fn definitions(tree: &Tree, directory: &ProjectPath) -> Vec<Body> {
    parsed(tree, directory, &["locals", "variable"])
}

/// Returns the files of a directory that may define locals and variables, or call modules.
pub(super) fn definitions_and_calls(tree: &Tree, directory: &ProjectPath) -> Vec<Body> {
    parsed(tree, directory, &["locals", "variable", "module"])
}

fn parsed(tree: &Tree, directory: &ProjectPath, words: &[&str]) -> Vec<Body> {
    let files = files(tree, directory);
    let mut buffer = Vec::new();
    let files = in_merge_order(&files).into_iter();
    let parsed = files.filter_map(|(name, plain)| {
        let file = directory.join(&name.to_string_lossy());
        let host = file.to_host(tree.root());
        let text = text::read(tree, &file, &host, *plain, &mut buffer)?;
        let is_wanted = words.iter().any(|word| text.contains(word));
        // A syntax error is reported elsewhere.
        is_wanted.then(|| parse(name, text).ok())?
    });
    parsed.collect()
}

/// Returns the values that the calls of a module, by its name, pass for a variable.
pub(super) fn arguments<'b>(files: &'b [Body], module: &str, variable: &str) -> Vec<&'b Expr> {
    let blocks = files.iter().flat_map(|file| file.blocks("module"));
    let calls = blocks.filter(|block| {
        let name = block.labels.first();
        name.is_some_and(|name| *name.text == *module)
    });
    let arguments = calls.filter_map(|call| call.body.attribute(variable));
    arguments.map(|argument| &argument.value).collect()
}

/// Returns the Terraform files of a directory. A directory that the walk did not see is a module in a place
/// without stacks, and is listed from disk.
pub(super) fn files<'t>(tree: &Tree<'t>, directory: &ProjectPath) -> Cow<'t, [(OsString, bool)]> {
    match tree.listing().get(directory.as_str()) {
        Some(listed) => Cow::Borrowed(&listed.files),
        None => Cow::Owned(files_on_disk(tree, directory, is_terraform)),
    }
}

/// Returns the Terraform files among others, in the order in which Terraform merges them.
pub(super) fn in_merge_order(files: &[(OsString, bool)]) -> Vec<&(OsString, bool)> {
    let files = files.iter().filter(|(name, _)| is_terraform(name));
    let mut files: Vec<&(OsString, bool)> = files.collect();
    files.sort_by_key(|(name, _)| is_override(name));
    files
}

/// Parses a file; in JSON, only the blocks of a backend, of data, of modules, and of constants.
pub(super) fn parse(name: &OsStr, text: &str) -> Result<Body, Box<Diagnostic>> {
    if is_json(name) {
        json_body::only_blocks(text, &JSON_KINDS)
    } else {
        parse_whole(FileId::UNPLACED, text)
    }
}

pub(super) fn is_json(name: &OsStr) -> bool {
    name.as_encoded_bytes().ends_with(b".json")
}

/// Returns the wanted files of a directory on disk, each with whether it is a regular file, or notes that it
/// cannot be read.
pub(super) fn files_on_disk(
    tree: &Tree,
    directory: &ProjectPath,
    is_wanted: impl Fn(&OsStr) -> bool,
) -> Vec<(OsString, bool)> {
    let listed = || -> io::Result<Vec<(OsString, bool)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(directory.to_host(tree.root()))? {
            let entry = entry?;
            let name = entry.file_name();
            if is_wanted(&name)
                && let Some(kind) = if_there(DirEntry::file_type(&entry))?
                && !kind.is_dir()
            {
                files.push((name, kind.is_file()));
            }
        }
        files.sort_unstable();
        Ok(files)
    };
    listed().unwrap_or_else(|error| {
        tree.problems.unreadable(directory, error);
        Vec::new()
    })
}
