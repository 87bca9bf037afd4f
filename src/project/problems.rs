//! What is wrong with a project, collected while it is read.
//!
//! Whoever reads something takes the project as it is and a list of problems to add to. Nothing here
//! decides what a problem means for a command.

use std::collections::BTreeMap;
use std::io;

use crate::diagnostic::Diagnostic;
use crate::path::ProjectPath;
use crate::source::{SourceFile, Sources};

/// A file or directory that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read `{path}`")]
pub struct FileReadError {
    /// What could not be read, relative to the project root where it lies inside.
    pub path: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Everything that is wrong, as far as it has been read.
#[derive(Debug, Default)]
pub struct Problems {
    /// What is wrong with the configuration, and with what the project is asked about.
    pub diagnostics: Vec<Diagnostic>,
    /// What could not be read.
    pub errors: Vec<FileReadError>,
    /// Files that are not configuration, by path.
    files: BTreeMap<ProjectPath, Vec<FileProblems>>,
}

/// What is wrong with one text of a file; a trigger may have another one in HEAD.
#[derive(Debug)]
struct FileProblems {
    /// Empty if no diagnostic points into it.
    text: String,
    diagnostics: Vec<Diagnostic>,
}

impl Problems {
    /// Adds what is wrong with a file that is not configuration, such as a trigger or a module of
    /// Terraform. The places in the diagnostics need not name a file: they all mean this one.
    ///
    /// Drops what has been said about the same file before.
    pub fn add_file(&mut self, source: SourceFile, diagnostics: Vec<Diagnostic>) {
        if diagnostics.is_empty() {
            return;
        }
        let SourceFile { path, text } = source;
        let texts = self.files.entry(path).or_default();
        let is_same =
            |known: &FileProblems| known.text == text || known.text.is_empty() || text.is_empty();
        let Some(known) = texts.iter_mut().find(|known| is_same(known)) else {
            texts.push(FileProblems { text, diagnostics });
            return;
        };
        if known.text.is_empty() {
            known.text = text;
        }
        for diagnostic in diagnostics {
            if !known.diagnostics.contains(&diagnostic) {
                known.diagnostics.push(diagnostic);
            }
        }
    }

    /// Returns whether any problem is an error.
    pub fn has_errors(&self) -> bool {
        let in_files = self.files.values().flatten();
        let in_files = in_files.flat_map(|file| &file.diagnostics);
        let mut all = self.diagnostics.iter().chain(in_files);
        !self.errors.is_empty() || all.any(Diagnostic::is_error)
    }

    /// Adds the files that problems point into to `sources`, so that all diagnostics can be drawn.
    pub fn settle(&mut self, sources: &mut Sources) {
        for (path, texts) in std::mem::take(&mut self.files) {
            for FileProblems {
                text,
                mut diagnostics,
            } in texts
            {
                let mut labels = diagnostics.iter_mut().flat_map(|it| &mut it.labels);
                if let Some(first) = labels.next() {
                    let path = path.clone();
                    let file = sources.add(SourceFile { path, text });
                    first.span.file = file;
                    labels.for_each(|label| label.span.file = file);
                }
                self.diagnostics.append(&mut diagnostics);
            }
        }
    }
}
