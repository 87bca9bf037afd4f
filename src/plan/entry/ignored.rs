//! The inputs of a stack that `ignore_changes` excludes.

use super::reason::{PlanReason, ReasonSource};
use crate::printable::first_of;

const MAX_NAMED: usize = 5;

#[derive(Debug, Clone, Copy)]
pub struct IgnoredInputs<'a> {
    pub names: &'a [String],
    /// Changed inputs from other stacks.
    pub inputs: &'a [String],
    /// Whether all inputs are ignored, so that the stack is never applied for changes.
    pub is_all: bool,
    /// The file with the rule, relative to the project root.
    pub file: &'a str,
    /// From 1.
    pub line: usize,
}

impl IgnoredInputs<'_> {
    /// Returns the reason to do nothing, if something differs.
    pub(super) fn reason(&self) -> Option<PlanReason> {
        let names = [self.names, self.inputs].concat();
        if names.is_empty() {
            return None;
        }
        let text = format!("ignored: {}", first_of(names.iter(), MAX_NAMED));
        let reason = PlanReason::new(ReasonSource::Config, text);
        Some(reason.at(Some(self.file), Some(self.line)))
    }
}
