//! The answers of the `git` program, taken apart.

use super::{CommitId, FileChange, GitError, command_line, is_hexadecimal};

/// An answer that consists of fields with a NUL after each.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    command: String,
}

impl<'a> Fields<'a> {
    /// Takes the answer to a command apart.
    pub(super) fn new(answer: &'a [u8], arguments: &[&str]) -> Self {
        Fields {
            rest: answer,
            command: command_line(arguments),
        }
    }

    /// Returns the next field.
    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == 0)?;
        let field = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(field)
    }

    /// Says that a field makes no sense.
    pub(super) fn unexpected(&self, field: &[u8]) -> GitError {
        let start = &field[..field.len().min(200)];
        GitError::Unexpected {
            command: self.command.clone(),
            answer: String::from_utf8_lossy(start).into_owned(),
        }
    }
}

/// Returns the next object of `git cat-file --batch`.
pub(super) fn blob<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let line_end = rest.iter().position(|&byte| byte == b'\n')?;
    let line = str::from_utf8(&rest[..line_end]).ok()?;
    let [_, "blob", size] = line.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    let start = line_end + 1;
    let end = start.checked_add(size.parse().ok()?)?;
    let content = rest.get(start..end)?;
    *rest = rest.get(end + 1..)?;
    Some(content)
}

/// Returns what a status letter means for a file of these modes.
pub(super) fn change(status: Option<u8>, modes: &[&[u8]]) -> FileChange {
    if modes.contains(&&b"160000"[..]) {
        return FileChange::Repository;
    }
    match status {
        Some(b'A') => FileChange::Added,
        Some(b'D') => FileChange::Deleted,
        Some(b'T') => FileChange::Retyped,
        Some(b'U') => FileChange::Conflicted,
        _ => FileChange::Modified,
    }
}

/// Finds a reference in the answer of `git ls-remote`; gives the line that makes no sense, if there
/// is one.
pub(super) fn tip<'a>(answer: &'a [u8], reference: &str) -> Result<Option<CommitId>, &'a [u8]> {
    let mut found = None;
    let lines = answer.split(|&byte| byte == b'\n');
    for line in lines.filter(|line| !line.is_empty()) {
        let text = str::from_utf8(line).map_err(|_| line)?;
        let (id, name) = text.split_once('\t').ok_or(line)?;
        if !matches!(id.len(), 40 | 64) || !is_hexadecimal(id) {
            return Err(line);
        }
        // A pattern also names what merely ends like this.
        if name == reference {
            found = Some(CommitId(id.to_ascii_lowercase()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_reference_is_the_tip() {
        let [a, b] = ["a", "b"].map(|digit| digit.repeat(40));
        let check = |answer: &str, expected: Result<Option<&str>, &str>| {
            let found = tip(answer.as_bytes(), "refs/heads/main");
            let found = found.map(|tip| tip.map(|tip| tip.0));
            let expected = expected.map(|tip| tip.map(str::to_owned));
            assert_eq!(found, expected.map_err(str::as_bytes), "{answer}");
        };
        let other = format!("{a}\trefs/heads/refs/heads/main\n");
        check("", Ok(None));
        check(&other, Ok(None));
        check(&format!("{other}{b}\trefs/heads/main\n"), Ok(Some(&b)));
        for wrong in [
            format!("{b} refs/heads/main"),
            format!("{}\trefs/heads/main", &b[1..]),
            format!("-{}\trefs/heads/main", &b[1..]),
            "warning: something".to_owned(),
        ] {
            check(&format!("{other}{wrong}\n"), Err(&wrong));
        }
    }
}
