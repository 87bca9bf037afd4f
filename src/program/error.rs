//! Errors of the program. An error that has already been printed is only an [`ExitStatus`].

use std::io;

use orch::error::{Error, ErrorKind};
use orch::exit::ExitStatus;
use orch::project::discover::RootUnknown;

use crate::program::{console, github};

pub(crate) type Result<T, E = ProgramError> = std::result::Result<T, E>;

/// Why the program ends early, with hints for the user.
pub(crate) struct ProgramError {
    kind: ErrorKind,
    error: anyhow::Error,
    hints: Vec<String>,
}

impl ProgramError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, anyhow::Error::msg(message.into()))
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused, anyhow::Error::msg(message.into()))
    }

    pub(crate) fn new(kind: ErrorKind, error: anyhow::Error) -> Self {
        ProgramError {
            kind,
            error,
            hints: Vec::new(),
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.kind, ErrorKind::Reported(_))
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn message(&self) -> String {
        self.error.to_string()
    }

    /// Prints the error, its causes and the hints, unless it is silent.
    pub(crate) fn show(&self) {
        if !self.is_silent() {
            console::error(self.error.as_ref());
            self.hints.iter().for_each(|hint| console::help(hint));
            let title = match self.kind {
                ErrorKind::Refused => "orch: refused",
                _ => "orch",
            };
            let mut message = self.error.to_string();
            for cause in self.error.chain().skip(1) {
                message += &format!("\ncaused by: {cause}");
            }
            for hint in &self.hints {
                message += &format!("\nhelp: {hint}");
            }
            github::annotate_end(title, &message);
        }
    }

    pub(crate) fn status(&self) -> ExitStatus {
        match self.kind {
            ErrorKind::Usage => ExitStatus::Usage,
            ErrorKind::Configuration => ExitStatus::Configuration,
            ErrorKind::Refused => ExitStatus::Refused,
            ErrorKind::External => ExitStatus::External,
            ErrorKind::Reported(status) => status,
        }
    }
}

impl From<ExitStatus> for ProgramError {
    fn from(status: ExitStatus) -> Self {
        Self::new(ErrorKind::Reported(status), anyhow::Error::msg("reported"))
    }
}

impl From<Error> for ProgramError {
    fn from(error: Error) -> Self {
        let (kind, error, hints) = error.into_parts();
        ProgramError {
            kind,
            error: anyhow::Error::from_boxed(error),
            hints,
        }
    }
}

impl From<ProgramError> for Error {
    fn from(error: ProgramError) -> Self {
        let ProgramError { kind, error, hints } = error;
        let error = Error::new(kind, error);
        hints.into_iter().fold(error, Error::hint)
    }
}

/// An error with a context of its own is an external failure.
impl From<anyhow::Error> for ProgramError {
    fn from(error: anyhow::Error) -> Self {
        Self::new(ErrorKind::External, error)
    }
}

/// Only writes to stdout have no context.
impl From<io::Error> for ProgramError {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            // The reader has exited, as in `orch list | head -1`.
            io::ErrorKind::BrokenPipe => ErrorKind::Reported(ExitStatus::Success),
            _ => ErrorKind::External,
        };
        let error = anyhow::Error::from(error).context("failed to write to stdout");
        Self::new(kind, error)
    }
}

impl From<RootUnknown> for ProgramError {
    fn from(error: RootUnknown) -> Self {
        Self::new(ErrorKind::Configuration, error.into())
    }
}
