//! What can go wrong with an archive.

use std::io;
use std::path::Path;

use crate::printable::printable;

/// Why an archive was not written. The file that was there before, if any, is as it was.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// There is something that is not to be replaced.
    #[error("`{file}` is {found}: a plan is only written to a regular file")]
    Target {
        /// Its path.
        file: String,
        /// What is there.
        found: &'static str,
    },
    /// The directory is missing.
    #[error("failed to write `{file}`: the directory `{directory}` does not exist")]
    NoDirectory {
        /// The path of the file.
        file: String,
        /// The path of its directory.
        directory: String,
    },
    /// The file system refuses.
    #[error("failed to write `{file}`: {error}")]
    Io {
        /// Its path.
        file: String,
        error: io::Error,
    },
    /// The plan of a tool cannot be read.
    #[error("failed to read `{file}`, the plan of a tool: {error}")]
    Source {
        /// Its path.
        file: String,
        error: io::Error,
    },
    /// There is more than an archive can hold.
    #[error("`{file}` cannot hold more than {limit}: select fewer stacks for one plan")]
    TooLarge {
        /// Its path.
        file: String,
        /// What it can hold.
        limit: String,
    },
}

/// Why an archive, or something in it, was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not as [`write()`](super::write()) has made it: damaged, or made by somebody else.
    #[error("`{file}` {problem}")]
    Refused {
        /// Its path.
        file: String,
        /// What is wrong with it.
        problem: Problem,
    },
    /// The file system refuses.
    #[error("failed to read `{file}`: {error}")]
    Io {
        /// Its path.
        file: String,
        error: io::Error,
    },
    /// An entry cannot be put where the caller wants it.
    #[error("failed to write `{to}`: {error}")]
    Extract {
        /// Where it was to be put.
        to: String,
        error: io::Error,
    },
}

/// What is wrong with an archive, in words that follow its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A directory, a pipe, a device.
    #[error("is not a regular file")]
    NotRegular,
    /// There is not a single byte.
    #[error("is empty")]
    Empty,
    /// Something else altogether.
    #[error("is not a plan: it does not begin like a zip archive")]
    NoZip,
    /// An archive of another program.
    #[error(
        "is not a plan: it is a zip archive that `orch plan -o` has not written (an artefact may have to be \
        unpacked first)"
    )]
    NoPlan,
    /// It begins like a plan.
    #[error("is cut off, or has something after its end")]
    End,
    /// A later version of the program has written it.
    #[error(
        "has format {0}, and this version of orch reads formats up to {FORMAT}: use the version that wrote it",
        FORMAT = super::FORMAT
    )]
    Newer(u32),
    /// There is more than a plan can have.
    #[error("has more than {0}, the most that orch writes")]
    TooLarge(String),
    /// The zip archive's table of contents is not one.
    #[error("has a damaged table of contents")]
    Directory,
    /// An entry has another name than its place demands: a name that leads elsewhere, one that is there
    /// twice, one that is not listed.
    #[error("has an entry `{found}` where `{expected}` belongs")]
    Name {
        /// Its name, made printable.
        found: String,
        /// The right name.
        expected: String,
    },
    /// An entry is encrypted.
    #[error("has an encrypted entry, `{0}`")]
    Encrypted(String),
    /// An entry is compressed.
    #[error("has a compressed entry, `{0}`: orch compresses none")]
    Compressed(String),
    /// An entry is a symbolic link, a directory, a device.
    #[error("has an entry `{0}` that is not a regular file")]
    Kind(String),
    /// An entry uses a part of the zip format that is not needed for a plan.
    #[error("has an entry `{0}` that orch has not written like this")]
    Foreign(String),
    /// The zip archive describes an entry twice, and differently.
    #[error("says two different things about its entry `{0}`")]
    Contradiction(String),
    /// An entry lies in another one, or something lies between them.
    #[error("has something hidden before its entry `{0}`, or entries that overlap")]
    Place(String),
    /// The list of entries is not one.
    #[error("has a `manifest.json` that does not list its entries")]
    Manifest,
    /// The content of an entry has another size or digest than is listed.
    #[error("is damaged: `{0}` is not what was written")]
    Damaged(String),
    /// An entry that is asked for does not exist.
    #[error("has no entry `{0}`")]
    Missing(String),
}

/// What ends the reading of an archive whose name is still to be told.
#[derive(Debug)]
pub(super) enum Fault {
    Problem(Problem),
    Io(io::Error),
    Extract(io::Error),
}

impl Fault {
    /// Returns what a fault in the structure of the archive means.
    pub(super) fn structure(error: rawzip::Error, problem: Problem) -> Self {
        match error.into_kind() {
            rawzip::ErrorKind::IO(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Fault::Io(error)
            }
            _ => Fault::Problem(problem),
        }
    }

    pub(super) fn in_file(self, file: &str) -> ReadError {
        let file = file.to_owned();
        match self {
            Fault::Problem(problem) => ReadError::Refused { file, problem },
            Fault::Io(error) => ReadError::Io { file, error },
            Fault::Extract(error) => ReadError::Extract { to: file, error },
        }
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Fault::Problem(problem)
    }
}

pub(super) fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}
