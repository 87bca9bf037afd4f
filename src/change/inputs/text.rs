//! The text of a file that may name inputs.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use memchr::memchr_iter;

use super::tree::Tree;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::on_disk::if_there;
use crate::path::ProjectPath;
use crate::printable::printable;
use crate::source::{FileId, Span};

/// The size limit for native files. Their parser needs a hundred times as much memory.
const MAX_NATIVE_BYTES: u64 = 2 << 20;

/// The size limit for JSON files.
const MAX_JSON_BYTES: u64 = 16 << 20;

/// The consequence of a broken file, for messages.
const CONSEQUENCE: &str = "changes of files that it uses go unnoticed";

/// Reads a file into a buffer, or notes its problem. Returns `None` if there is nothing to read: the file is
/// missing, or a link without a target.
///
/// Anything but a regular file is ruled out first, since opening a pipe would block forever.
pub(super) fn read<'b>(
    tree: &Tree,
    file: &ProjectPath,
    host: &Path,
    plain: bool,
    buffer: &'b mut Vec<u8>,
) -> Option<&'b str> {
    let refuse = |code: Code, why: String| {
        let message = format!("`{}` {why}", printable(file.relative()));
        let diagnostic = Diagnostic::warning(code, message).file(file.clone());
        tree.problems.add(file, "", diagnostic.note(CONSEQUENCE));
    };
    if !plain {
        let way = tree.links().follow(file);
        let Some(target) = &way.end else {
            if !way.is_circle() {
                refuse(
                    Code::OutsideProject,
                    "is a link that leads out of the project".to_owned(),
                );
            }
            return None;
        };
        let kind = match if_there(fs::metadata(target.to_host(tree.root()))) {
            Ok(found) => found?.file_type(),
            Err(error) => {
                tree.problems.unreadable(file, error);
                return None;
            }
        };
        if kind.is_dir() {
            return None;
        } else if !kind.is_file() {
            refuse(Code::Unreadable, "is not a regular file".to_owned());
            return None;
        }
    }
    let max_bytes = if host.extension().is_some_and(|ending| ending == "json") {
        MAX_JSON_BYTES
    } else {
        MAX_NATIVE_BYTES
    };
    buffer.clear();
    let read = fs::File::open(host).and_then(|file| file.take(max_bytes + 1).read_to_end(buffer));
    match if_there(read) {
        Ok(None) => return None,
        Ok(_) if buffer.len() as u64 > max_bytes => {
            refuse(
                Code::Unreadable,
                format!("is larger than {} MiB", max_bytes >> 20),
            );
            return None;
        }
        Ok(_) => {}
        Err(error) => {
            tree.problems.unreadable(file, error);
            return None;
        }
    }
    let bytes = buffer.strip_prefix(b"\xef\xbb\xbf").unwrap_or(buffer);
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => {
            let diagnostic = Diagnostic::warning(Code::Encoding, "this file is not UTF-8")
                .label(
                    span(error.valid_up_to(), error.valid_up_to()),
                    "the first byte that is not text",
                )
                .note(CONSEQUENCE)
                .help("save the file as UTF-8");
            let text = String::from_utf8_lossy(bytes);
            tree.problems.add(file, &text, diagnostic);
            None
        }
    }
}

/// Adds a parser's diagnostic as a warning.
pub(super) fn broken(tree: &Tree, file: &ProjectPath, text: &str, diagnostic: Diagnostic) {
    let diagnostic = Diagnostic {
        severity: Severity::Warning,
        ..diagnostic.note(CONSEQUENCE)
    };
    tree.problems.add(file, text, diagnostic);
}

pub(super) fn span(start: usize, end: usize) -> Span {
    let offset = |at: usize| u32::try_from(at).expect("the size is limited");
    Span {
        file: FileId::UNPLACED,
        start: offset(start),
        end: offset(end),
    }
}

/// Where the lines of a text begin.
pub(super) struct LineStarts(Vec<u32>);

impl LineStarts {
    /// Finds the lines of a text, which pays off only if the text names an input.
    pub(super) fn new(text: &str) -> Self {
        let feeds = memchr_iter(b'\n', text.as_bytes());
        LineStarts(feeds.map(|at| span(at, at).start).collect())
    }

    /// Returns the line of a span, from 1.
    pub(super) fn at(&self, span: Span) -> usize {
        self.0.partition_point(|&feed| feed < span.start) + 1
    }
}
