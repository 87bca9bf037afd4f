//! Annotations of GitHub Actions at lines of files.
//!
//! They are written to stderr like all messages of `orch`: the runner reads both streams.

use std::env;
use std::io::Write as _;
use std::path::Path;

use orch::diagnostic::{Diagnostic, Severity};
use orch::printable::printable_lines;
use orch::report::{Annotation, write_annotation};
use orch::source::{Sources, Span};

use super::console;

/// GitHub shows this many annotations of each kind for a step.
const MOST: usize = 10;

pub(crate) struct Github {
    /// The path of the project from the repository root: empty, or with a trailing slash.
    prefix: String,
}

impl Github {
    /// Returns the current job, if any, given the root of the project.
    pub(crate) fn detect(root: &Path) -> Option<Self> {
        if !is_job() {
            return None;
        }
        let workspace =
            env::var_os("GITHUB_WORKSPACE").and_then(|path| Path::new(&path).canonicalize().ok());
        let inside = workspace.and_then(|workspace| {
            let root = root.canonicalize().ok()?;
            Some(root.strip_prefix(workspace).ok()?.to_owned())
        });
        let names = inside.iter().flat_map(|inside| inside.components());
        let prefix = names.map(|name| name.as_os_str().to_string_lossy() + "/");
        Some(Github {
            prefix: prefix.collect(),
        })
    }

    /// Annotates the locations of diagnostics, errors first.
    pub(crate) fn diagnostics(&self, diagnostics: &[Diagnostic], sources: &Sources) {
        for severity in [Severity::Error, Severity::Warning] {
            let alike = diagnostics.iter().filter(|it| it.severity == severity);
            for diagnostic in alike.take(MOST) {
                let place = diagnostic.labels.first().map(|label| label.span);
                let mut message = diagnostic.message.clone();
                for help in &diagnostic.help {
                    message += &format!("\nhelp: {help}");
                }
                let title = format!("orch: {}", diagnostic.code.name());
                self.annotate(severity, place, sources, &title, &message);
            }
        }
    }

    /// Annotates the declarations of failed stacks.
    pub(crate) fn failures(&self, failures: &[(&str, Span, String)], sources: &Sources) {
        for (path, declared, message) in failures.iter().take(MOST) {
            let title = format!("orch: {path} failed");
            self.annotate(Severity::Error, Some(*declared), sources, &title, message);
        }
    }

    /// Annotates files that could not be read.
    pub(crate) fn errors(&self, errors: impl Iterator<Item = String>, sources: &Sources) {
        for message in errors.take(MOST) {
            self.annotate(Severity::Error, None, sources, "orch", &message);
        }
    }

    fn annotate(
        &self,
        severity: Severity,
        place: Option<Span>,
        sources: &Sources,
        title: &str,
        message: &str,
    ) {
        let argument = place.filter(|span| sources.is_argument(span.file));
        if let Some(span) = argument {
            let name = sources.file(span.file).path.relative();
            write(severity, None, title, &format!("{name}: {message}"));
            return;
        }
        let place = place.map(|span| {
            let file = sources.file(span.file);
            let position = file.position(span.range().start);
            let path = format!("{}{}", self.prefix, file.path.relative());
            (path, position.line, Some(position.column))
        });
        let place = place.as_ref();
        let location = place.map(|(path, line, column)| (path.as_str(), *line, *column));
        write(severity, location, title, message);
    }
}

pub(crate) fn annotate_end(title: &str, message: &str) {
    if is_job() {
        write(Severity::Error, None, title, message);
    }
}

fn is_job() -> bool {
    env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true")
}

fn write(
    severity: Severity,
    location: Option<(&str, usize, Option<usize>)>,
    title: &str,
    message: &str,
) {
    let annotation = Annotation {
        severity,
        location,
        title: &printable_lines(title),
        message: &printable_lines(message),
    };
    let mut line = Vec::new();
    // A broken stderr cannot be reported.
    _ = write_annotation(&mut line, &annotation);
    _ = console::stderr().write_all(&line);
}
