//! Ids for stacks without one.

use std::fs;
use std::io;

use uuid::Uuid;

use super::write::FileToWrite;
use crate::language::edit::with_attribute;
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::stack::Stack;

pub(super) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A stack without an id.
pub struct MissingId {
    pub directory: ProjectPath,
    pub id: String,
    /// The file with the id; or why the file cannot be edited.
    pub change: Result<FileToWrite, CannotEdit>,
}

#[derive(Debug, thiserror::Error)]
pub enum CannotEdit {
    #[error("its instances need an id each: write one with `each.key` in it")]
    Instances,
    #[error("its file is a link")]
    Link,
    #[error("the layout of its `stack` block is not understood")]
    Layout,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Returns the stacks of a project that have no id, each with a new one. Instances of a directory are one.
pub fn missing_ids(project: &Project) -> Vec<MissingId> {
    let mut missing: Vec<MissingId> = Vec::new();
    for (_, stack) in project.stacks.iter().filter(|(_, it)| it.id.is_none()) {
        let directory = stack.path.directory();
        if missing.last().is_some_and(|it| it.directory == *directory) {
            continue;
        }
        let id = Uuid::new_v4().to_string();
        missing.push(MissingId {
            change: with_id(project, stack, &id),
            directory: directory.clone(),
            id,
        });
    }
    missing
}

fn with_id(project: &Project, stack: &Stack, id: &str) -> Result<FileToWrite, CannotEdit> {
    if stack.path.key().is_some() {
        return Err(CannotEdit::Instances);
    }
    let source = project.sources.file(stack.span.file);
    let host = source.path.to_host(&project.root);
    if host.symlink_metadata()?.is_symlink() {
        return Err(CannotEdit::Link);
    }
    let before = fs::read_to_string(&host)?;
    let (mark, text) = match before.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) => (BYTE_ORDER_MARK, text),
        None => ("", before.as_str()),
    };
    let keyword = stack.span.start as usize;
    let edited = with_attribute(text, keyword, "id", id).ok_or(CannotEdit::Layout)?;
    Ok(FileToWrite {
        path: source.path.clone(),
        after: format!("{mark}{edited}"),
        before: Some(before),
    })
}
