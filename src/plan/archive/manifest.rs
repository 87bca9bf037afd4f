//! The list of what is in an archive.

use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    /// All entries before the manifest, in their order.
    pub(super) entries: Vec<Listed>,
}

/// What an entry must be.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listed {
    pub(super) name: String,
    /// In bytes.
    pub(super) size: u64,
    /// In hexadecimal, lower case.
    pub(super) sha256: String,
}
