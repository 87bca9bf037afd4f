//! The file that `orch plan -o` writes and `orch apply` reads.
//!
//! It is a zip archive that any tool can open. It has exactly these entries, in this order, stored
//! uncompressed. Most tools compress their plans themselves, and stored content cannot grow when
//! unpacked.
//!
//! | entry | content |
//! | --- | --- |
//! | `plan.json` | the plan; opaque to this module |
//! | `plans/0`, `plans/1`, … | the plans of the tools |
//! | `manifest.json` | size and SHA-256 of each entry before it |
//! | archive comment | `orch plan 1 sha256:…`: the format, and the SHA-256 of `manifest.json` |
//!
//! The same content gives the same bytes: the archive has no times and no paths.
//!
//! Anyone who can replace the file can also compute its digests: they protect from damage, not from
//! malice. A reader therefore trusts nothing. It accepts exactly these entries, without gaps, and
//! writes only to the path that the caller names.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use self::read::Archive;
pub use self::write::{check_target, remove_earlier, write};
use crate::ascii::hex;
use crate::context::PLAN_MARK;
use crate::printable::printable;

/// The format that is written. All formats up to this one can be read.
pub const FORMAT: u32 = 1;

/// With [`MOST_BYTES`], fits without the 64-bit extensions of zip, which are refused.
pub const MOST_PLANS: usize = 50_000;

/// Of all entries together.
pub const MOST_BYTES: u64 = 4_000_000_000;

pub const MOST_JSON_BYTES: u64 = 256 << 20;

/// More than [`MOST_PLANS`] need.
const MOST_MANIFEST_BYTES: u64 = 16 << 20;

const PLAN_JSON: &str = "plan.json";
const MANIFEST_JSON: &str = "manifest.json";

/// A regular file that only its owner can read and write, as zip encodes it.
const FILE_MODE: u32 = 0o100_600;

/// Returns the name of the entry at an index, given the number of entries.
fn entry_name(index: usize, entries: usize) -> String {
    match index {
        0 => PLAN_JSON.to_owned(),
        _ if index + 1 == entries => MANIFEST_JSON.to_owned(),
        _ => format!("plans/{}", index - 1),
    }
}

fn comment(format: u32, manifest_sha256: &str) -> String {
    format!("{PLAN_MARK}{format} sha256:{manifest_sha256}")
}

/// Opens a regular file or a link to one: reading a pipe could block, and a device may never end.
fn open_regular(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    if !path.metadata()?.is_file() {
        return Ok(None);
    }
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path)?;
    // The file may have been replaced since.
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some((file, metadata)))
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    entries: Vec<ListedFile>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedFile {
    name: String,
    size: u64,
    /// In lower-case hexadecimal.
    sha256: String,
}

/// Which side failed.
pub(super) enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct CopiedContent {
    pub(super) size: u64,
    pub(super) sha256: String,
}

pub(super) fn copy(from: &mut impl Read, to: &mut impl Write) -> Result<CopiedContent, CopyError> {
    let mut buffer = vec![0; 1 << 16];
    let mut hasher = Sha256::new();
    let mut size = 0;
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        hasher.update(&buffer[..read]);
        to.write_all(&buffer[..read]).map_err(CopyError::Write)?;
        size += read as u64;
    }
    let sha256 = hex(&hasher.finalize());
    Ok(CopiedContent { size, sha256 })
}

/// Why an archive, or an entry of it, was not read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveReadError {
    /// Not an archive that [`write()`] writes: damaged, or from another program.
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
