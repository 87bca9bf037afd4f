//! Problems in the files that name inputs, collected from all threads.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::Mutex;

use crate::diagnostic::Diagnostic;
use crate::path::ProjectPath;
use crate::project::{FileReadError, Problems};
use crate::source::SourceFile;

/// The maximum number of problems shown for one file. More would not help, and a hostile file has a million.
const MAX_PER_FILE: usize = 50;

/// Problems by file, each once.
#[derive(Default)]
pub(crate) struct InputProblems(Mutex<BTreeMap<ProjectPath, ProblemsOfFile>>);

#[derive(Default)]
struct ProblemsOfFile {
    text: String,
    /// In order of discovery.
    diagnostics: Vec<Diagnostic>,
    seen: HashSet<Diagnostic>,
    unreadable: Option<io::Error>,
}

impl InputProblems {
    /// Adds a problem of a file, and keeps the text if the problem points into it.
    pub(super) fn add(&self, file: &ProjectPath, text: &str, diagnostic: Diagnostic) {
        let mut files = self.0.lock().expect("no task panics while it holds this");
        let of_file = files.entry(file.clone()).or_default();
        if of_file.seen.len() >= MAX_PER_FILE || !of_file.seen.insert(diagnostic.clone()) {
            return;
        }
        if of_file.text.is_empty() && !diagnostic.labels.is_empty() {
            text.clone_into(&mut of_file.text);
        }
        of_file.diagnostics.push(diagnostic);
    }

    /// Notes an unreadable file or directory, which hides changes of what it uses.
    pub(super) fn unreadable(&self, file: &ProjectPath, error: io::Error) {
        let mut files = self.0.lock().expect("no task panics while it holds this");
        files.entry(file.clone()).or_default().unreadable = Some(error);
    }

    /// Adds everything to the project's problems, by file and place. Fails if a file could not be
    /// read.
    pub(crate) fn add_to(self, problems: &mut Problems) -> Result<(), FileReadError> {
        let files = self
            .0
            .into_inner()
            .expect("no task panics while it holds this");
        for (path, mut of_file) in files {
            if let Some(source) = of_file.unreadable {
                let path = path.relative().to_owned();
                return Err(FileReadError { path, source });
            }
            of_file.diagnostics.sort_by_cached_key(|diagnostic| {
                let start = diagnostic.labels.first().map(|label| label.span.start);
                (start, diagnostic.message.clone())
            });
            let source = SourceFile {
                path,
                text: of_file.text,
            };
            problems.add_file(source, of_file.diagnostics);
        }
        Ok(())
    }
}
