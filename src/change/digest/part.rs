//! Digests of parts.

use std::collections::HashMap;
use std::sync::RwLock;

use sha2::{Digest as _, Sha256};

use super::present::PresentFile;
use crate::change::cause::InputLocation;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartDigest {
    pub(super) hash: [u8; 32],
    pub(super) is_dirty: bool,
}

#[derive(Default)]
pub(super) struct PartHasher {
    hasher: Sha256,
    is_dirty: bool,
}

impl PartHasher {
    pub(super) fn text(&mut self, text: &str) {
        self.hasher.update(text.len().to_le_bytes());
        self.hasher.update(text.as_bytes());
    }

    pub(super) fn file(&mut self, file: &PresentFile) {
        self.is_dirty |= !file.is_committed;
        if let Some(line) = file.line() {
            self.text(&line);
        }
    }

    /// Adds a configuration file by its canonical text; an empty one does not count.
    pub(super) fn add_canonical(&mut self, file: &PresentFile, said: &str) {
        self.is_dirty |= !file.is_committed;
        if let Some(line) = file.canonical_line(said).filter(|_| !said.is_empty()) {
            self.text(&line);
        }
    }

    pub(super) fn part(&mut self, part: &PartDigest) {
        self.is_dirty |= part.is_dirty;
        self.hasher.update(part.hash);
    }

    pub(super) fn finish(self) -> PartDigest {
        PartDigest {
            hash: self.hasher.finalize().into(),
            is_dirty: self.is_dirty,
        }
    }
}

pub(super) type KnownDigests = RwLock<HashMap<InputLocation, PartDigest>>;
