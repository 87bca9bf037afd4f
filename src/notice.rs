//! The notices of a command, besides its result: notes, warnings, and problems of the configuration.
//!
//! The listener decides how a notice looks, and whether it is shown.

use std::error::Error;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::source::{Sources, Span};

/// Something that the user should know.
pub enum Notice<'a> {
    /// Changes are measured from this base, for a reason.
    Base(&'a str, &'a str),
    /// Something worth knowing.
    Note(&'a str),
    /// Something that may be wrong.
    Warning(&'a str),
    /// An error that keeps the command from finishing.
    Error(&'a dyn Error),
    /// Files that could not be read, which a CI system also shows.
    Errors(&'a [&'a dyn Error], &'a Sources),
    /// The fix for the previous notice.
    Help(&'a str),
    /// Problems of the configuration, with the files they point into.
    Diagnostics(&'a [Diagnostic], &'a Sources),
    /// The same, which a CI system also shows beside the lines of the files.
    Annotated(&'a [Diagnostic], &'a Sources),
    /// Failed stacks: path, declaration and reason. Only a CI system shows them, beside the declarations.
    Failures(&'a [(&'a str, Span, String)], &'a Sources),
}

/// Where notices go, in the order in which they are given.
#[derive(Clone)]
pub struct Notices(Arc<dyn Fn(Notice<'_>) + Send + Sync>);

impl Debug for Notices {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}

impl Notices {
    pub fn new(listener: impl Fn(Notice<'_>) + Send + Sync + 'static) -> Self {
        Notices(Arc::new(listener))
    }

    pub fn note(&self, message: &str) {
        self.0(Notice::Note(message));
    }

    pub fn warning(&self, message: &str) {
        self.0(Notice::Warning(message));
    }

    pub fn error(&self, error: &dyn Error) {
        self.0(Notice::Error(error));
    }

    /// Gives files that could not be read.
    pub fn errors(&self, errors: &[&dyn Error], sources: &Sources) {
        self.0(Notice::Errors(errors, sources));
    }

    /// Gives a hint about the notice before.
    pub fn help(&self, message: &str) {
        self.0(Notice::Help(message));
    }

    /// Gives problems of the configuration.
    pub fn diagnostics(&self, diagnostics: &[Diagnostic], sources: &Sources) {
        self.0(Notice::Diagnostics(diagnostics, sources));
    }

    /// Gives problems that a CI system also shows beside the lines of the files.
    pub fn annotated(&self, diagnostics: &[Diagnostic], sources: &Sources) {
        self.0(Notice::Annotated(diagnostics, sources));
    }

    /// Gives failed stacks.
    pub fn failures(&self, failures: &[(&str, Span, String)], sources: &Sources) {
        self.0(Notice::Failures(failures, sources));
    }

    /// Reports the base of changes, and its reason.
    pub fn base(&self, base: &str, reason: &str) {
        self.0(Notice::Base(base, reason));
    }
}
