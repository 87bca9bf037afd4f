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

mod copy;
mod error;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use self::error::ArchiveReadError;
pub use self::read::Archive;
pub use self::write::{check_target, write};
use crate::context::PLAN_MARK;

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
