//! The errors of archives.

use std::io;
use std::path::Path;

use crate::printable::printable;

/// Why an archive was not written. An existing file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveWriteError {
    /// The path has something that must not be replaced.
    #[error("`{file}` is {found}: name a regular file for the plan")]
    Target { file: String, found: &'static str },
    #[error("failed to write `{file}`: the directory `{directory}` does not exist")]
    NoDirectory { file: String, directory: String },
    #[error("failed to write `{file}`: {error}")]
    Io { file: String, error: io::Error },
    /// The plan of a tool cannot be read.
    #[error("failed to read `{file}`, the plan of a tool: {error}")]
    Source { file: String, error: io::Error },
    #[error("`{file}` cannot hold more than {limit}: select fewer stacks")]
    TooLarge { file: String, limit: String },
}

/// Why an archive, or an entry of it, was not read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveReadError {
    /// Not an archive that [`write()`](super::write()) writes: damaged, or from another program.
    #[error("`{file}` {problem}")]
    Refused {
        file: String,
        problem: ArchiveProblem,
    },
    #[error("failed to read `{file}`: {error}")]
    Io { file: String, error: io::Error },
    /// An entry cannot be extracted to the caller's path.
    #[error("failed to write `{to}`: {error}")]
    Extract { to: String, error: io::Error },
}

/// Completes a sentence that begins with the archive's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveProblem {
    /// A directory, a pipe, a device.
    #[error("is not a regular file")]
    NotRegular,
    #[error("is empty")]
    Empty,
    #[error("is not a plan: it does not begin like a zip archive")]
    NoZip,
    #[error(
        "is a zip archive, but not a plan of `orch plan -o` (unpack it first if it is an artifact)"
    )]
    NoPlan,
    #[error("is truncated, or has data after its end")]
    End,
    #[error(
        "has format {0}, and this version of orch reads formats up to {FORMAT}: use the version that wrote it",
        FORMAT = super::FORMAT
    )]
    Newer(u32),
    #[error("has more than {0}, the most that orch writes")]
    TooLarge(String),
    #[error("has a damaged table of contents")]
    Directory,
    /// An entry's name differs from the expected one: it may point outside the archive, or be a
    /// duplicate.
    #[error("has an entry `{found}` where `{expected}` belongs")]
    Name {
        /// Made printable.
        found: String,
        expected: String,
    },
    #[error("has an encrypted entry, `{0}`")]
    Encrypted(String),
    #[error("has a compressed entry, `{0}`: orch compresses none")]
    Compressed(String),
    /// An entry is a symbolic link, a directory, a device.
    #[error("has an entry `{0}` that is not a regular file")]
    Kind(String),
    /// An entry uses a zip feature that plans do not need.
    #[error("has an entry `{0}` that was not written by orch")]
    Foreign(String),
    /// The local header and the central directory disagree.
    #[error("has contradictory headers for its entry `{0}`")]
    Contradiction(String),
    /// Entries overlap, or there is a gap between them.
    #[error("has hidden data before its entry `{0}`, or overlapping entries")]
    Place(String),
    #[error("has a `manifest.json` that does not list its entries")]
    Manifest,
    /// The size or the digest of an entry differs from the manifest.
    #[error("is damaged: `{0}` does not match the manifest")]
    Damaged(String),
    #[error("has no entry `{0}`")]
    Missing(String),
}

/// An error without the archive's name.
pub(super) enum ArchiveFault {
    Problem(ArchiveProblem),
    Io(io::Error),
    Extract(io::Error),
}

impl ArchiveFault {
    pub(super) fn structure(error: rawzip::Error, problem: ArchiveProblem) -> Self {
        match error.into_kind() {
            rawzip::ErrorKind::IO(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                ArchiveFault::Io(error)
            }
            _ => ArchiveFault::Problem(problem),
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

impl From<ArchiveProblem> for ArchiveFault {
    fn from(problem: ArchiveProblem) -> Self {
        ArchiveFault::Problem(problem)
    }
}

pub(super) fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}
