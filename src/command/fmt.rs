//! `orch fmt`: formats configuration files.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use walkdir::{DirEntry, WalkDir};

use crate::create::{Replacement, replace_all};
use crate::diagnostic::Diagnostic;
use crate::error::{Error, ErrorContext as _, Result};
use crate::exit::ExitStatus;
use crate::language::format::format;
use crate::notice::Notices;
use crate::path::ProjectPath;
use crate::printable::printable;
use crate::project::discover::{CONFIGURATION, SKIP_MARKS, TextError, is_configuration, read_text};
use crate::project::pool;
use crate::source::{FileId, SourceFile, Sources};

/// The ending of Terramate's files of generated code.
const GENERATED: &[u8] = b".tmgen";

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Files whose layout differs from the usual one.
#[derive(Debug, Default)]
pub struct Unformatted(Vec<Replacement>);

impl Unformatted {
    /// Finds such files among the configuration files at and below a directory, or among `files`, which are relative
    /// to it. Reports all files with problems, and then fails.
    pub fn find(directory: &Path, files: &[PathBuf], notices: &Notices) -> Result<Self> {
        let found = if files.is_empty() {
            configuration_files(directory)?
        } else {
            files.to_vec()
        };
        let pool = pool().context("failed to start the threads that read files")?;
        let read = |file: &PathBuf| format_file(directory, file);
        let read: Vec<FormattedFile> = pool.install(|| found.par_iter().map(read).collect());
        let mut sources = Sources::default();
        let mut problems = Vec::new();
        let mut unformatted = Vec::new();
        let mut failed: Option<Error> = None;
        for (file, formatted) in found.iter().zip(read) {
            match formatted {
                FormattedFile::Same => {}
                FormattedFile::Different(replacement) => unformatted.push(replacement),
                FormattedFile::Broken(text, diagnostic) => {
                    let name = shown(directory, file);
                    let path = ProjectPath::root().join(name.trim_start_matches('/'));
                    let file = sources.add(SourceFile { path, text });
                    problems.push(placed(*diagnostic, file));
                }
                FormattedFile::Unreadable(why) => {
                    let what = format!("failed to read `{}`", printable(&shown(directory, file)));
                    let error = Error::described(what, why);
                    if let Some(error) = failed.replace(error) {
                        notices.error(&error);
                    }
                }
            }
        }
        notices.diagnostics(&problems, &sources);
        if let Some(error) = failed {
            return Err(error);
        }
        if !problems.is_empty() {
            return Err(ExitStatus::Configuration.into());
        }
        Ok(Unformatted(unformatted))
    }

    /// Returns the files as they were named, or relative to the directory.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|file| &*file.shown)
    }

    /// Writes all files in the usual layout, each whole.
    pub fn write(&self) -> Result<()> {
        replace_all(&self.0)
    }
}

/// Returns a text in the usual layout. Reports a syntax error, and then fails.
pub fn format_text(name: &str, text: &str, notices: &Notices) -> Result<String> {
    let mut sources = Sources::default();
    let file = sources.add_argument(name, text);
    format(text).map_err(|diagnostic| {
        notices.diagnostics(&[placed(*diagnostic, file)], &sources);
        ExitStatus::Configuration.into()
    })
}

enum FormattedFile {
    Same,
    Different(Replacement),
    /// A syntax error in a text.
    Broken(String, Box<Diagnostic>),
    Unreadable(Box<dyn std::error::Error + Send + Sync>),
}

/// Returns the configuration files at and below a directory, by path, without those that are kept out of projects.
fn configuration_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let is_in = |entry: &DirEntry| {
        let is_hidden = entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".");
        let is_there = |mark: &&str| entry.path().join(mark).symlink_metadata().is_ok();
        !entry.file_type().is_dir() || !is_hidden && !SKIP_MARKS.iter().any(is_there)
    };
    let mut files = Vec::new();
    let entries = WalkDir::new(directory).sort_by_file_name().into_iter();
    for entry in entries.filter_entry(is_in) {
        let entry = entry.context("failed to list the configuration files")?;
        let name = entry.file_name();
        let is_generated = name.as_encoded_bytes().ends_with(GENERATED);
        if entry.file_type().is_file() && (is_configuration(name) || is_generated) {
            files.push(entry.into_path());
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn format_file(directory: &Path, file: &Path) -> FormattedFile {
    // The target of a link is replaced, not the link.
    let host = match dunce::canonicalize(directory.join(file)) {
        Ok(host) => host,
        Err(error) => return FormattedFile::Unreadable(error.into()),
    };
    let text = match read_text(&host, false, None, &CONFIGURATION) {
        Ok(text) => text,
        Err(TextError::Io(error)) => return FormattedFile::Unreadable(error.into()),
        Err(TextError::NotUtf8 { .. }) => return FormattedFile::Unreadable("not UTF-8".into()),
        Err(TextError::Refused { why, .. }) => return FormattedFile::Unreadable(why.into()),
    };
    match format(&text) {
        Ok(formatted) if formatted == text => FormattedFile::Same,
        Ok(formatted) => match fs::read(&host) {
            Ok(bytes) => {
                let has_mark = bytes.starts_with(BYTE_ORDER_MARK.as_bytes());
                let mark = if has_mark { BYTE_ORDER_MARK } else { "" };
                FormattedFile::Different(Replacement {
                    shown: shown(directory, file),
                    host,
                    before: format!("{mark}{text}"),
                    after: format!("{mark}{formatted}"),
                })
            }
            Err(error) => FormattedFile::Unreadable(error.into()),
        },
        Err(diagnostic) => FormattedFile::Broken(text, diagnostic),
    }
}

/// Returns the path of a file, relative to a directory that contains it.
fn shown(directory: &Path, file: &Path) -> String {
    let file = file.strip_prefix(directory).unwrap_or(file);
    file.to_string_lossy().into_owned()
}

fn placed(mut diagnostic: Diagnostic, file: FileId) -> Diagnostic {
    for label in &mut diagnostic.labels {
        label.span.file = file;
    }
    diagnostic
}
