//! Why `orch` cannot do what was asked, and what the user can do about it.
//!
//! Modules with errors of a narrower kind have types of their own; these become an [`Error`] where a command gives up
//! because of them.

use std::error::Error as StdError;
use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::exit::ExitStatus;

/// A result whose error ends the command.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a command ends early.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    /// The message and its causes.
    cause: BoxedError,
    hints: Vec<String>,
    refusal: Option<Box<Refusal>>,
}

/// What a JSON document says if the command refuses.
#[derive(Debug, Clone, Serialize)]
pub struct Refusal {
    pub problem: String,
    /// The command that solves it, if there is one.
    pub command: Option<String>,
}

pub type BoxedError = Box<dyn StdError + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line is wrong.
    Usage,
    /// The configuration is wrong.
    Configuration,
    /// `orch` refuses to do it.
    Refused,
    /// I/O failed, git did, or a program is missing.
    External,
    /// Everything about it has been shown.
    Reported(ExitStatus),
}

impl Error {
    /// Returns the error of a command line that makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message.into())
    }

    /// Returns a refusal.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused, message.into())
    }

    pub fn new(kind: ErrorKind, error: impl Into<BoxedError>) -> Self {
        Error {
            kind,
            cause: error.into(),
            hints: Vec::new(),
            refusal: None,
        }
    }

    /// Returns a failure of git, the disk, a store or a program.
    pub fn external(error: impl Into<BoxedError>) -> Self {
        Self::new(ErrorKind::External, error)
    }

    /// Returns an external failure, with what was being done.
    pub fn described(message: impl Into<String>, source: impl Into<BoxedError>) -> Self {
        Self::external(ContextError {
            message: message.into(),
            source: source.into(),
        })
    }

    /// Makes it a refusal, whatever it was.
    #[must_use]
    pub fn refusing(mut self) -> Self {
        self.kind = ErrorKind::Refused;
        self
    }

    /// Adds a hint: what the user can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Makes the JSON document of the command say why it refuses.
    #[must_use]
    pub fn documented(self) -> Self {
        let refusal = Refusal {
            problem: self.message(),
            command: None,
        };
        self.with_refusal(refusal)
    }

    /// The same in other words.
    #[must_use]
    pub fn with_refusal(mut self, refusal: Refusal) -> Self {
        self.refusal.get_or_insert_with(|| Box::new(refusal));
        self
    }

    /// Returns what the JSON document of the command says.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_deref()
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the message without causes and hints.
    pub fn message(&self) -> String {
        self.cause.to_string()
    }

    /// Returns the kind, the error with its causes, and the hints.
    pub fn into_parts(self) -> (ErrorKind, BoxedError, Vec<String>) {
        (self.kind, self.cause, self.hints)
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.cause, f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.source()
    }
}

impl From<ExitStatus> for Error {
    fn from(status: ExitStatus) -> Self {
        Self::new(ErrorKind::Reported(status), "reported")
    }
}

#[derive(Debug)]
struct ContextError {
    message: String,
    source: BoxedError,
}

impl Display for ContextError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for ContextError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.source)
    }
}

/// Adds what was being done to an error of git, the disk or a store; or turns an absence into an error.
pub trait ErrorContext<T> {
    /// Turns an error into an [external one](ErrorKind::External) with a message above it.
    fn context(self, message: impl Into<String>) -> Result<T>;
}

impl<T, E: Into<BoxedError>> ErrorContext<T> for Result<T, E> {
    fn context(self, message: impl Into<String>) -> Result<T> {
        self.map_err(|error| Error::described(message, error))
    }
}

impl<T> ErrorContext<T> for Option<T> {
    fn context(self, message: impl Into<String>) -> Result<T> {
        self.ok_or_else(|| Error::external(message.into()))
    }
}

/// Returns the message of an error, with those of its causes.
pub fn with_causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
