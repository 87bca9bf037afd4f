//! What is left out of the inputs of a stack by its `ignore_changes`.

use std::collections::HashSet;

use super::part::{Known, PartDigest};
use crate::change::cause::Use;
use crate::change::ignored::IgnoreList;
use crate::path::ProjectPath;

/// What is left out of the inputs of a stack.
pub(super) struct Sieve<'a> {
    pub(super) list: &'a IgnoreList,
    /// The files that the globs of the list match which may match anywhere.
    pub(super) view: &'a View<'a>,
    /// The others, sorted.
    pub(super) inside: Vec<&'a ProjectPath>,
}

/// What is left where some files are left out.
#[derive(Default)]
pub(super) struct View<'a> {
    pub(super) ignored: HashSet<&'a ProjectPath>,
    /// By place.
    pub(super) places: Known,
    /// By node of the graph, what it uses, and what it and all behind it use; empty if nothing is left out.
    pub(super) nodes: Vec<PartDigest>,
    pub(super) modules: Vec<PartDigest>,
}

impl Sieve<'_> {
    /// Returns whether nothing is left out.
    pub(super) fn is_idle(&self) -> bool {
        let has_files = !self.inside.is_empty() || !self.view.ignored.is_empty();
        !has_files && self.list.variables().is_empty()
    }

    /// Returns whether a file is left out.
    pub(super) fn drops(&self, file: &ProjectPath) -> bool {
        self.is_inside(file) || self.view.ignored.contains(file)
    }

    /// Returns whether a file of the directory of the stack is left out.
    pub(super) fn is_inside(&self, file: &ProjectPath) -> bool {
        self.inside.binary_search(&file).is_ok()
    }

    /// Returns whether a way leads through a file that is left out.
    pub(super) fn drops_way(&self, steps: &[Use]) -> bool {
        steps.iter().any(|step| self.drops(&step.location.file))
    }
}
