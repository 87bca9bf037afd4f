//! The errors of archives.

use std::io;
use std::path::Path;

use crate::printable::printable;

/// Why an archive, or an entry of it, was not read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveReadError {
    /// Not an archive that [`write()`](super::write()) writes: damaged, or from another program.
    #[error("`{file}` {problem}")]
    Refused { file: String, problem: String },
    #[error("failed to read `{file}`: {error}")]
    Io { file: String, error: io::Error },
    /// An entry cannot be extracted to the caller's path.
    #[error("failed to write `{to}`: {error}")]
    Extract { to: String, error: io::Error },
}

/// An error without the archive's name.
pub(super) enum ArchiveFault {
    /// Completes a sentence that begins with the archive's name.
    Problem(String),
    Io(io::Error),
    Extract(io::Error),
}

impl ArchiveFault {
    pub(super) fn structure(error: rawzip::Error, problem: impl Into<String>) -> Self {
        match error.into_kind() {
            rawzip::ErrorKind::IO(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                ArchiveFault::Io(error)
            }
            _ => ArchiveFault::Problem(problem.into()),
        }
    }

    pub(super) fn in_file(self, file: &str) -> ArchiveReadError {
        let file = file.to_owned();
        match self {
            ArchiveFault::Problem(problem) => ArchiveReadError::Refused { file, problem },
            ArchiveFault::Io(error) => ArchiveReadError::Io { file, error },
            ArchiveFault::Extract(error) => ArchiveReadError::Extract { to: file, error },
        }
    }
}

impl<P: Into<String>> From<P> for ArchiveFault {
    fn from(problem: P) -> Self {
        ArchiveFault::Problem(problem.into())
    }
}

pub(super) fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}
