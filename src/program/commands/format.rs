//! `--format`: whether a command writes for people or for programs.

use clap::ValueEnum;
use orch::report::Document;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

impl Format {
    /// Returns the JSON document that standard output expects, if any.
    pub(super) fn document(self, document: Document) -> Option<Document> {
        (self == Format::Json).then_some(document)
    }
}
