//! Parses the answers of the `git` program.

use super::{FileChange, GitError, command_line};

/// An answer that consists of fields with a NUL after each.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    command: String,
}

impl<'a> Fields<'a> {
    /// Starts to parse the answer to a command.
    pub(super) fn new(answer: &'a [u8], arguments: &[&str]) -> Self {
        Fields {
            rest: answer,
            command: command_line(arguments),
        }
    }

    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == 0)?;
        let field = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(field)
    }

    pub(super) fn unexpected(&self, field: &[u8]) -> GitError {
        let start = &field[..field.len().min(200)];
        GitError::Unexpected {
            command: self.command.clone(),
            answer: String::from_utf8_lossy(start).into_owned(),
        }
    }
}

/// Returns the kind and the content of the next object of `git cat-file --batch`.
pub(super) fn object<'a>(rest: &mut &'a [u8]) -> Option<(&'a str, &'a [u8])> {
    let line_end = rest.iter().position(|&byte| byte == b'\n')?;
    let line = str::from_utf8(&rest[..line_end]).ok()?;
    let [_, kind, size] = line.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    let start = line_end + 1;
    let end = start.checked_add(size.parse().ok()?)?;
    let content = rest.get(start..end)?;
    *rest = rest.get(end + 1..)?;
    Some((kind, content))
}

/// Returns the next object of `git cat-file --batch`, which is a file.
pub(super) fn blob<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (kind, content) = object(rest)?;
    (kind == "blob").then_some(content)
}

/// Returns the change that a status letter means for a file of these modes.
pub(super) fn change(status: Option<u8>, modes: &[&[u8]]) -> FileChange {
    if modes.contains(&&b"160000"[..]) {
        return FileChange::Repository;
    }
    match status {
        Some(b'A') => FileChange::Added,
        Some(b'D') if modes.contains(&&b"120000"[..]) => FileChange::DeletedLink,
        Some(b'D') => FileChange::Deleted,
        Some(b'T') => FileChange::Retyped,
        Some(b'U') => FileChange::Conflicted,
        _ => FileChange::Modified,
    }
}
