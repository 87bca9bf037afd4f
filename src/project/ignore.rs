//! `config.change_detection.ignore`: files whose changes do not count.

use crate::diagnostic::{Code, Diagnostic};
use crate::path::ProjectPath;
use crate::pattern::FilePattern;
use crate::source::Spanned;

#[derive(Debug)]
pub struct Ignore {
    /// Matches the files that do not count.
    pub pattern: FilePattern,
    pub written: Spanned<String>,
}

/// Resolves an entry of `config.change_detection.ignore`. An entry without a `/` matches files at any depth; no entry
/// applies to files outside its directory.
pub(super) fn ignored(
    entry: &Spanned<String>,
    directory: &ProjectPath,
    problems: &mut Vec<Diagnostic>,
) -> Option<Ignore> {
    let written = &entry.value;
    let wrong = |label: String, help: &str| {
        let message = format!("`{written}` cannot be ignored");
        let diagnostic = Diagnostic::error(Code::InvalidPattern, message).label(entry.span, label);
        diagnostic.help(help)
    };
    if written.starts_with('!') {
        let label = "`!` does not re-include files".to_owned();
        problems.push(wrong(label, "list only globs of files to ignore"));
        return None;
    }
    if written.trim_matches('/').is_empty() {
        let label = "names no file".to_owned();
        problems.push(wrong(label, "for everything in a directory, write `**`"));
        return None;
    }
    let is_name = !written.trim_end_matches('/').contains('/');
    let pattern = if is_name {
        FilePattern::new(directory, &format!("**/{written}"))
    } else {
        FilePattern::new(directory, written)
    };
    match pattern {
        Err(problem) => problems.push(wrong(
            problem.to_string(),
            "`*` and `?` match within a name, `**` across directories, `{a,b}` either of two",
        )),
        Ok(pattern) if !pattern.directory().is_at_or_below(directory) => {
            let label = format!("lies outside `{directory}`");
            let help = "write it in a file of that directory, or of one above it";
            problems.push(wrong(label, help));
        }
        Ok(pattern) => {
            let written = entry.clone();
            return Some(Ignore { pattern, written });
        }
    }
    None
}
