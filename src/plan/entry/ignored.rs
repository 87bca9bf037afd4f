//! What `ignore_changes` leaves out of a stack that is to be planned.

use super::reason::{Reason, ReasonSource};

/// How many ignored inputs a reason names.
const MAX_NAMED: usize = 5;

/// What `ignore_changes` leaves out.
#[derive(Debug, Clone, Copy)]
pub struct IgnoredInputs<'a> {
    /// What differs and is left out, by name.
    pub names: &'a [String],
    /// Whether everything is left out, so that the stack is never brought forward.
    pub is_all: bool,
    /// The file that has the rule, relative to the project root.
    pub file: &'a str,
    /// The line in that file, from 1.
    pub line: usize,
}

impl IgnoredInputs<'_> {
    /// Returns what differs and does not count as a reason to do nothing, if anything does.
    pub(super) fn reason(&self) -> Option<Reason> {
        if self.names.is_empty() {
            return None;
        }
        let n_named = self.names.len().min(MAX_NAMED);
        let mut text = format!("ignored: {}", self.names[..n_named].join(", "));
        if self.names.len() > n_named {
            text += &format!(" and {} more", self.names.len() - n_named);
        }
        let reason = Reason::new(ReasonSource::Config, text);
        Some(reason.said_in(Some(self.file), Some(self.line)))
    }
}
