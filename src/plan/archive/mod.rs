//! The file that `orch plan -o` writes and `orch apply` reads.
//!
//! It is a zip archive, so that everybody can look into it. Its entries are these, in this order and no
//! others. They are stored as they are: most tools have compressed their plans, and what is not compressed
//! does not grow when it is unpacked.
//!
//! | entry | what it is |
//! | --- | --- |
//! | `plan.json` | what is to be done; this module does not look into it |
//! | `plans/0`, `plans/1`, … | the plans of the tools |
//! | `manifest.json` | the size and the SHA-256 of each entry before it |
//! | comment of the archive | `orch plan 1 sha256:…`: the format, and the SHA-256 of `manifest.json` |
//!
//! The same content makes the same bytes: nothing in the archive tells when or where it was written.
//!
//! Whoever can put a file in the place of another can also make its digests: they protect from damage, not
//! from malice. A reader therefore trusts nothing: it accepts exactly the entries above, without a gap
//! between them, and opens no place in the file system but the one that the caller names.

mod copy;
mod error;
mod manifest;
mod read;
mod write;

#[cfg(test)]
mod tests;

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

pub use self::error::{Problem, ReadError, WriteError};
pub use self::read::Archive;
pub use self::write::{check_target, write};
use crate::context::PLAN_MARK;

/// The format that is written. All formats up to this one can be read.
pub const FORMAT: u32 = 1;

/// How many tools' plans an archive can hold. With [`MOST_BYTES`], this is less than what a zip archive
/// can hold without the 64-bit extensions, which are refused.
pub const MOST_PLANS: usize = 50_000;

/// How many bytes the entries can have together.
pub const MOST_BYTES: u64 = 4_000_000_000;

/// How many bytes `plan.json` can have.
pub const MOST_JSON_BYTES: u64 = 256 << 20;

/// How many bytes `manifest.json` can have: more than that many plans need.
const MOST_MANIFEST_BYTES: u64 = 16 << 20;

const PLAN_JSON: &str = "plan.json";
const MANIFEST_JSON: &str = "manifest.json";

/// A regular file that only its owner can read and write, as the zip format has it.
const FILE_MODE: u32 = 0o100_600;

/// Returns the name of the entry that stands at a place in an archive of so many entries.
fn entry_name(index: usize, entries: usize) -> String {
    match index {
        0 => PLAN_JSON.to_owned(),
        _ if index + 1 == entries => MANIFEST_JSON.to_owned(),
        _ => format!("plans/{}", index - 1),
    }
}

/// Returns the comment of an archive.
fn comment(format: u32, manifest_sha256: &str) -> String {
    format!("{PLAN_MARK}{format} sha256:{manifest_sha256}")
}

/// Opens a regular file; `None` if something else is there. A pipe would keep a reader waiting for its
/// other end, and a device has no end. Links are followed.
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
    // Something else may have been put there since.
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some((file, metadata)))
}
