//! Trigger files on disk, where anyone may have put anything.

use std::fs::{self, FileType};
use std::io;

use walkdir::WalkDir;

use super::directory;
use super::text::{self, Statement};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::discover::{Limit, ReadError, TextError, is_configuration, read_text};
use crate::source::{FileId, SourceFile, Span};

/// The limit of trigger files. Real ones have six lines.
const LIMIT: Limit = Limit {
    bytes: 1 << 20,
    help: "a trigger has one short block",
};

/// What a place in the directory of triggers has.
pub(crate) enum Found {
    /// No file.
    Nothing,
    /// A file that is no trigger. If it should not be there, that has been said.
    NoTrigger,
    /// A trigger.
    Trigger(Statement),
}

/// Reads a trigger file. What is wrong with it goes to the problems of the project.
///
/// Links are not followed: git knows nothing of what lies behind them.
pub(crate) fn read(project: &mut Project, file: &ProjectPath) -> Found {
    let metadata = match metadata(project, file) {
        Ok(Some(metadata)) => metadata,
        Ok(None) => return Found::Nothing,
        Err(source) => return unreadable(project, file, source),
    };
    if metadata.is_dir() {
        return Found::Nothing;
    }
    if !metadata.is_file() {
        return not_a_file(project, file, metadata.file_type());
    }
    if *file == directory() {
        let help = "triggers lie below a directory of that name: make it one";
        return refuse(project, problem(file, "is a file").help(help));
    }
    if !is_trigger_name(project, file) {
        return Found::NoTrigger;
    }
    match read_text(&file.to_host(&project.root), true, None, &LIMIT) {
        Ok(text) => understand(project, file, text),
        Err(TextError::NotUtf8 { text, offset }) => not_utf8(project, file, text, offset),
        Err(TextError::Refused { why, help }) => refuse(project, problem(file, &why).help(help)),
        Err(TextError::Io(source)) => unreadable(project, file, source),
    }
}

/// Parses the text of a trigger file, wherever it comes from.
pub(crate) fn understand(project: &mut Project, file: &ProjectPath, text: String) -> Found {
    match text::parse(&text) {
        Ok(statement) => Found::Trigger(statement),
        Err(problems) => {
            let path = file.clone();
            project.adopt(SourceFile { path, text }, problems);
            Found::NoTrigger
        }
    }
}

/// Says whether a file has the name of a trigger; warns if it looks as if it should.
pub(crate) fn is_trigger_name(project: &mut Project, file: &ProjectPath) -> bool {
    let name = file.basename();
    if is_configuration(name.as_ref()) {
        return true;
    }
    let is_documentation = name == "README" || name.to_ascii_lowercase().ends_with(".md");
    if !name.starts_with('.') && !is_documentation {
        let message = format!("`{}` is no trigger because of its name", file.relative());
        let diagnostic = Diagnostic::warning(Code::InvalidTrigger, message).file(file.clone());
        let help = "the names of triggers end in `.tm.hcl`: rename it, or move it elsewhere";
        project.diagnostics.push(diagnostic.help(help));
    }
    false
}

/// Says whether the path of a file could be told as it is; warns if not.
pub(crate) fn is_nameable(project: &mut Project, file: &ProjectPath) -> bool {
    let is_text = !file.as_str().contains(char::REPLACEMENT_CHARACTER);
    if !is_text {
        let message = format!("the path of `{}` is not UTF-8", file.relative());
        let diagnostic = Diagnostic::warning(Code::Encoding, message).file(file.clone());
        let diagnostic = diagnostic.note("no stack has such a path, so it is no trigger");
        project.diagnostics.push(diagnostic.help("rename it"));
    }
    is_text
}

/// Checks all files in the directory of triggers, whether they differ from anything or not. What is
/// wrong goes to the problems of the project.
pub fn check_all(project: &mut Project) {
    let host = directory().to_host(&project.root);
    let walk = WalkDir::new(host)
        .follow_root_links(false)
        .sort_by_file_name();
    for entry in walk {
        let host = match &entry {
            Ok(entry) => Some(entry.path()),
            Err(error) => error.path(),
        };
        let host = host.unwrap_or(&project.root);
        let file = ProjectPath::from_host(&project.root, host).unwrap_or_else(|| {
            let inside = host.strip_prefix(&project.root).unwrap_or(host);
            ProjectPath::from_normal(&format!("/{}", inside.to_string_lossy()))
        });
        match entry.map_err(io::Error::from) {
            Ok(entry) if entry.file_type().is_dir() => {}
            Ok(_) => {
                if let Found::Nothing = read(project, &file) {
                    is_nameable(project, &file);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => _ = unreadable(project, &file, error),
        }
    }
}

/// Looks at a file without following links; `None` if there is none.
fn metadata(project: &Project, file: &ProjectPath) -> io::Result<Option<fs::Metadata>> {
    let mut host = project.root.clone();
    let mut names = file.components().peekable();
    while let Some(name) = names.next() {
        host.push(name);
        match host.symlink_metadata() {
            Ok(metadata) if names.peek().is_none() => return Ok(Some(metadata)),
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn not_a_file(project: &mut Project, file: &ProjectPath, kind: FileType) -> Found {
    let mut diagnostic = problem(file, &format!("is {}", what(kind)));
    // It may hide triggers, but does not look like one.
    if *file != directory() && !is_configuration(file.basename().as_ref()) {
        diagnostic.severity = Severity::Warning;
    }
    let help = "triggers are plain files in plain directories, and links are not followed";
    refuse(project, diagnostic.help(help))
}

/// Says what is not a directory.
pub(super) fn what(kind: FileType) -> &'static str {
    if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_file() {
        "a file"
    } else {
        "not a regular file"
    }
}

/// Starts an error; the text goes on from the name of the file.
fn problem(file: &ProjectPath, text: &str) -> Diagnostic {
    Diagnostic::error(
        Code::InvalidTrigger,
        format!("`{}` {text}", file.relative()),
    )
    .file(file.clone())
}

fn refuse(project: &mut Project, diagnostic: Diagnostic) -> Found {
    project.diagnostics.push(diagnostic);
    Found::NoTrigger
}

fn not_utf8(project: &mut Project, file: &ProjectPath, text: String, offset: u32) -> Found {
    let span = Span {
        file: FileId(u32::MAX),
        start: offset,
        end: offset,
    };
    let diagnostic = Diagnostic::error(Code::Encoding, "this file is not UTF-8")
        .label(span, "the first byte that is not text")
        .help("save the file as UTF-8");
    let path = file.clone();
    project.adopt(SourceFile { path, text }, vec![diagnostic]);
    Found::NoTrigger
}

fn unreadable(project: &mut Project, file: &ProjectPath, source: io::Error) -> Found {
    let path = file.relative().to_owned();
    project.errors.push(ReadError { path, source });
    Found::NoTrigger
}
