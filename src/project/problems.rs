//! The problems of a project, collected while it is read.
//!
//! Functions that read take the project and a list of problems to add to. The command decides how to react.

use std::collections::BTreeMap;
use std::io;

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::path::ProjectPath;
use crate::source::{SourceFile, Sources};

/// A file or directory that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read `{path}`")]
pub struct FileReadError {
    /// The unreadable file, relative to the project root if it is inside.
    pub path: String,
    #[source]
    pub source: io::Error,
}

#[derive(Debug, Default)]
pub struct Problems {
    /// Problems in the configuration and in the user's queries.
    pub diagnostics: Vec<Diagnostic>,
    pub errors: Vec<FileReadError>,
    /// Files that are not configuration, by path.
    files: BTreeMap<ProjectPath, Vec<FileProblems>>,
}

/// The problems in one text of a file; a trigger may have a different text in HEAD.
#[derive(Debug)]
struct FileProblems {
    /// Empty if no diagnostic points into it.
    text: String,
    diagnostics: Vec<Diagnostic>,
}

impl Problems {
    /// Adds the problems of a file that is not configuration, such as a trigger or a Terraform module. The
    /// spans in the diagnostics need not name a file: they all refer to this one.
    ///
    /// Replaces earlier diagnostics about the same file.
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

    /// Keeps only the problems with some codes in files that are not configuration, and makes them errors.
    pub(crate) fn keep_as_errors(&mut self, codes: &[Code]) {
        for of_file in self.files.values_mut().flatten() {
            of_file.diagnostics.retain(|it| codes.contains(&it.code));
            for diagnostic in &mut of_file.diagnostics {
                diagnostic.severity = Severity::Error;
                diagnostic.notes.clear();
            }
        }
    }

    pub(crate) fn append(&mut self, mut other: Problems) {
        self.diagnostics.append(&mut other.diagnostics);
        self.errors.append(&mut other.errors);
        for (path, texts) in other.files {
            for FileProblems { text, diagnostics } in texts {
                let path = path.clone();
                self.add_file(SourceFile { path, text }, diagnostics);
            }
        }
    }

    pub fn has_errors(&self) -> bool {
        let in_files = self
            .files
            .values()
            .flatten()
            .flat_map(|file| &file.diagnostics);
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
