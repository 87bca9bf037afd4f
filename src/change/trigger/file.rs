//! Reads trigger files from disk, where anything may lie.

use std::fs::{self, FileType};
use std::io;
use std::path::Path;

use walkdir::WalkDir;

use super::text::{self, Statement};
use super::{TriggerKind, directory, directory_of};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::on_disk::if_there;
use crate::path::{InstanceKey, ProjectPath, StackPath};
use crate::project::discover::{SizeLimit, TextError, is_configuration, read_text};
use crate::project::{FileReadError, Problems};
use crate::source::{FileId, SourceFile, Span};

/// The size limit. Real trigger files have six lines.
const LIMIT: SizeLimit = SizeLimit {
    bytes: 1 << 20,
    help: "a trigger has one short block",
};

/// The content of a path in the trigger directory.
pub(crate) enum TriggerFile {
    Nothing,
    /// A file that is not a trigger. If it does not belong there, a diagnostic says so.
    NoTrigger,
    Trigger(Statement),
}

/// Reads a trigger file and adds its problems to `problems`.
///
/// Links are not followed: git does not know their targets.
pub(crate) fn read(root: &Path, file: &ProjectPath, problems: &mut Problems) -> TriggerFile {
    let metadata = match metadata(root, file) {
        Ok(Some(metadata)) => metadata,
        Ok(None) => return TriggerFile::Nothing,
        Err(source) => return unreadable(file, source, problems),
    };
    if metadata.is_dir() {
        return TriggerFile::Nothing;
    }
    if !metadata.is_file() {
        return not_a_file(file, metadata.file_type(), problems);
    }
    if *file == directory() {
        let help = "make it a directory, which contains triggers";
        return refuse(problem(file, "is a file").help(help), problems);
    }
    if !is_trigger_name(file, problems) {
        return TriggerFile::NoTrigger;
    }
    match read_text(&file.to_host(root), true, None, &LIMIT) {
        Ok(text) => understand(file, text, problems),
        Err(TextError::NotUtf8 { text, offset }) => not_utf8(file, text, offset, problems),
        Err(TextError::Refused { why, help }) => refuse(problem(file, &why).help(help), problems),
        Err(TextError::Io(source)) => unreadable(file, source, problems),
    }
}

/// Parses the text of a trigger file from any source.
pub(crate) fn understand(file: &ProjectPath, text: String, problems: &mut Problems) -> TriggerFile {
    match text::parse(&text) {
        Ok(statement) => TriggerFile::Trigger(statement),
        Err(diagnostics) => {
            let path = file.clone();
            problems.add_file(SourceFile { path, text }, diagnostics);
            TriggerFile::NoTrigger
        }
    }
}

/// Returns whether a file is named like a trigger; warns if it resembles one.
pub(crate) fn is_trigger_name(file: &ProjectPath, problems: &mut Problems) -> bool {
    let name = file.basename();
    if is_configuration(name.as_ref()) {
        return true;
    }
    let is_documentation = name == "README" || name.to_ascii_lowercase().ends_with(".md");
    if !name.starts_with('.') && !is_documentation {
        let message = format!("`{}` is not a trigger because of its name", file.relative());
        let diagnostic = Diagnostic::warning(Code::InvalidTrigger, message).file(file.clone());
        let help = "the names of triggers end in `.tm.hcl`: rename it, or move it elsewhere";
        problems.diagnostics.push(diagnostic.help(help));
    }
    false
}

/// Returns whether the path of a file is UTF-8; warns if not.
pub(crate) fn is_nameable(file: &ProjectPath, problems: &mut Problems) -> bool {
    let is_text = !file.as_str().contains(char::REPLACEMENT_CHARACTER);
    if !is_text {
        let message = format!("the path of `{}` is not UTF-8", file.relative());
        let diagnostic = Diagnostic::warning(Code::Encoding, message)
            .file(file.clone())
            .note("no stack has this path, so the file is not a trigger");
        problems.diagnostics.push(diagnostic.help("rename it"));
    }
    is_text
}

/// Checks all files in the trigger directory, changed or not, and adds their problems to `problems`.
pub fn check_all(root: &Path, problems: &mut Problems) {
    let host = directory().to_host(root);
    let walk = WalkDir::new(host)
        .follow_root_links(false)
        .sort_by_file_name();
    for entry in walk {
        let host = match &entry {
            Ok(entry) => Some(entry.path()),
            Err(error) => error.path(),
        };
        let host = host.unwrap_or(root);
        let file = ProjectPath::from_host(root, host).unwrap_or_else(|| {
            let inside = host.strip_prefix(root).unwrap_or(host);
            ProjectPath::from_normal(&format!("/{}", inside.to_string_lossy()))
        });
        match entry.map_err(io::Error::from) {
            Ok(entry) if entry.file_type().is_dir() => {}
            Ok(_) => {
                if let TriggerFile::Nothing = read(root, &file, problems) {
                    is_nameable(&file, problems);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => _ = unreadable(&file, error, problems),
        }
    }
}

/// A trigger that marks stacks as changed, even if its file has not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskingTrigger {
    pub file: ProjectPath,
    directory: ProjectPath,
    key: Option<InstanceKey>,
}

impl AskingTrigger {
    pub(crate) fn directory(&self) -> &ProjectPath {
        &self.directory
    }

    pub fn concerns(&self, stack: &StackPath) -> bool {
        *stack.directory() == self.directory
            && (self.key.is_none() || self.key.as_ref() == stack.key())
    }
}

/// A file that may be a trigger, and is not a valid one.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is not a valid trigger (run `orch validate` to see why)", .0.relative())]
pub struct BadTrigger(ProjectPath);

/// Returns the triggers of the project that mark stacks as changed. Files that do not look like
/// triggers are left out. Fails if a file, or the trigger directory, cannot be read or parsed.
pub fn asking(root: &Path) -> Result<Vec<AskingTrigger>, BadTrigger> {
    let mut asking = Vec::new();
    let walk = WalkDir::new(directory().to_host(root))
        .follow_root_links(false)
        .sort_by_file_name();
    for entry in walk {
        let entry =
            if_there(entry.map_err(io::Error::from)).map_err(|_| BadTrigger(directory()))?;
        let found = entry.and_then(|entry| ProjectPath::from_host(root, entry.path()));
        let Some(file) = found else {
            continue;
        };
        let mut problems = Problems::default();
        match read(root, &file, &mut problems) {
            _ if problems.has_errors() => return Err(BadTrigger(file)),
            TriggerFile::Trigger(statement) if statement.kind == TriggerKind::Changed => {
                asking.push(AskingTrigger {
                    directory: directory_of(&file),
                    key: statement.key,
                    file,
                });
            }
            _ => {}
        }
    }
    Ok(asking)
}

/// Looks up a file without following links; `None` if it does not exist.
fn metadata(root: &Path, file: &ProjectPath) -> io::Result<Option<fs::Metadata>> {
    let mut host = root.to_path_buf();
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

fn not_a_file(file: &ProjectPath, kind: FileType, problems: &mut Problems) -> TriggerFile {
    let mut diagnostic = problem(file, &format!("is {}", what(kind)));
    // It may hide triggers, but does not look like one.
    if *file != directory() && !is_configuration(file.basename().as_ref()) {
        diagnostic.severity = Severity::Warning;
    }
    let help = "use a plain file in plain directories; links are not followed";
    refuse(diagnostic.help(help), problems)
}

/// Returns the name of a kind of file that should be a directory.
pub(super) fn what(kind: FileType) -> &'static str {
    if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_file() {
        "a file"
    } else {
        "not a regular file"
    }
}

/// Starts a diagnostic whose text continues the name of the file.
fn problem(file: &ProjectPath, text: &str) -> Diagnostic {
    Diagnostic::error(
        Code::InvalidTrigger,
        format!("`{}` {text}", file.relative()),
    )
    .file(file.clone())
}

fn refuse(diagnostic: Diagnostic, problems: &mut Problems) -> TriggerFile {
    problems.diagnostics.push(diagnostic);
    TriggerFile::NoTrigger
}

fn not_utf8(file: &ProjectPath, text: String, offset: u32, problems: &mut Problems) -> TriggerFile {
    let span = Span {
        file: FileId::UNPLACED,
        start: offset,
        end: offset,
    };
    let diagnostic = Diagnostic::error(Code::Encoding, "this file is not UTF-8")
        .label(span, "the first byte that is not text")
        .help("save the file as UTF-8");
    let path = file.clone();
    problems.add_file(SourceFile { path, text }, vec![diagnostic]);
    TriggerFile::NoTrigger
}

fn unreadable(file: &ProjectPath, source: io::Error, problems: &mut Problems) -> TriggerFile {
    let path = file.relative().to_owned();
    problems.errors.push(FileReadError { path, source });
    TriggerFile::NoTrigger
}
