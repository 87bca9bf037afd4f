//! The list of an archive's entries.

use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) entries: Vec<ListedFile>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListedFile {
    pub(super) name: String,
    pub(super) size: u64,
    /// In lower-case hexadecimal.
    pub(super) sha256: String,
}
