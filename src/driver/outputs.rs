//! Digests of outputs: whether what a stack hands to others has changed, without what it is.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

/// A digest of each output, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputDigests(pub BTreeMap<String, OutputDigest>);

/// What is known of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputDigest {
    /// The digest of its value.
    Of(String),
    /// Its value is only known after the apply.
    Unknown,
    /// Its value is a secret, of which not even a digest is kept.
    Sensitive,
}

/// Returns a digest of parts, each of which counts with its length.
pub(super) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let hash = hasher.finalize();
    let digits = hash.iter().map(|byte| format!("{byte:02x}"));
    digits.take(16).collect()
}
