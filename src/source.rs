//! Configuration files as text, and places in them.
//!
//! This module knows lines and columns, but not what the text means.

use std::collections::HashSet;
use std::ops::Range;

use memchr::memchr_iter;

use crate::path::ProjectPath;

/// Identifies one file of [`Sources`]. Files are numbered as tasks read them, so the numbers have no order: for that,
/// use [`Sources::place`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(pub(crate) u32);

impl FileId {
    /// The file of spans in a text that is not among the [`Sources`] yet.
    pub(crate) const UNPLACED: FileId = FileId(u32::MAX);
}

/// A range of a configuration file, as byte offsets into its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    pub file: FileId,
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A value and the place where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

/// A line and column, both counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// A configuration file and its text.
#[derive(Debug)]
pub struct SourceFile {
    /// Where the file is.
    pub path: ProjectPath,
    /// Its text, without a byte order mark.
    pub text: String,
}

impl SourceFile {
    /// Returns the line and column of a byte offset.
    pub fn position(&self, offset: usize) -> Position {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line_start = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |newline| newline + 1);
        Position {
            line: memchr_iter(b'\n', before).count() + 1,
            column: String::from_utf8_lossy(&before[line_start..])
                .chars()
                .count()
                + 1,
        }
    }
}

/// All files that were read, by [`FileId`], and texts from the command line, which count as files.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
    arguments: HashSet<FileId>,
}

impl Sources {
    pub fn add(&mut self, file: SourceFile) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).expect("fewer than four billion files"));
        self.files.push(file);
        id
    }

    /// Adds a text from the command line and returns its id. Messages call it by this name.
    pub fn add_argument(&mut self, name: &str, text: &str) -> FileId {
        let id = self.add(SourceFile {
            path: ProjectPath::root().join(name),
            text: text.to_owned(),
        });
        self.arguments.insert(id);
        id
    }

    /// Returns whether this is a text from the command line.
    pub fn is_argument(&self, id: FileId) -> bool {
        self.arguments.contains(&id)
    }

    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// Returns what a span is ordered by: the path of its file, and its ends.
    pub fn place(&self, span: Span) -> (&ProjectPath, u32, u32) {
        (&self.file(span.file).path, span.start, span.end)
    }

    pub fn locate(&self, span: Span) -> (&SourceFile, Position) {
        let file = self.file(span.file);
        (file, file.position(span.start as usize))
    }

    /// Returns the path of the file relative to the project root, and the line at which a span starts.
    pub fn file_and_line(&self, span: Span) -> (&str, usize) {
        let (file, position) = self.locate(span);
        (file.path.relative(), position.line)
    }

    /// Returns `path/of/file:line`, the path relative to the project root.
    pub fn line(&self, span: Span) -> String {
        let (file, position) = self.locate(span);
        format!("{}:{}", file.path.relative(), position.line)
    }

    pub fn len(&self) -> usize {
        self.files.len()
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let file = SourceFile {
            path: ProjectPath::root(),
            text: "añb\nc".into(),
        };
        assert_eq!(file.position(0), Position { line: 1, column: 1 });
        assert_eq!(file.position(3), Position { line: 1, column: 3 });
        assert_eq!(file.position(5), Position { line: 2, column: 1 });
        assert_eq!(file.position(99), Position { line: 2, column: 2 });
    }
}
