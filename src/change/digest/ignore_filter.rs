//! The inputs that the `ignore_changes` of a stack leaves out.

use std::collections::HashSet;

use super::part::{KnownDigests, PartDigest};
use crate::change::cause::Use;
use crate::change::ignored::IgnoreList;
use crate::path::ProjectPath;

/// The ignored inputs of a stack.
pub(super) struct IgnoreFilter<'a> {
    pub(super) list: &'a IgnoreList,
    /// The files matched by globs that may match anywhere.
    pub(super) view: &'a FilteredDigests<'a>,
    /// The other ignored files, sorted.
    pub(super) inside: Vec<&'a ProjectPath>,
}

/// The digests without the files that some globs match.
#[derive(Default)]
pub(super) struct FilteredDigests<'a> {
    pub(super) ignored: HashSet<&'a ProjectPath>,
    pub(super) places: KnownDigests,
    /// By node: its own uses, and those with all modules behind it. Empty if nothing is ignored.
    pub(super) nodes: Vec<PartDigest>,
    pub(super) modules: Vec<PartDigest>,
}

impl IgnoreFilter<'_> {
    pub(super) fn is_idle(&self) -> bool {
        let has_files = !self.inside.is_empty() || !self.view.ignored.is_empty();
        !has_files && self.list.variables().is_empty()
    }

    pub(super) fn drops(&self, file: &ProjectPath) -> bool {
        self.is_inside(file) || self.view.ignored.contains(file)
    }

    pub(super) fn is_inside(&self, file: &ProjectPath) -> bool {
        self.inside.binary_search(&file).is_ok()
    }

    /// Returns whether a chain leads through an ignored file.
    pub(super) fn drops_way(&self, steps: &[Use]) -> bool {
        steps.iter().any(|step| self.drops(&step.location.file))
    }
}
