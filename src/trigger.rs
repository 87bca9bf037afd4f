//! Triggers: files that ask for a stack to count as changed, or not to, for a reason that is not a
//! change of its own.
//!
//! The files are Terramate's: `/.tmtriggers/<stack path>/<kind>-<uuid>.tm.hcl`, each with one `trigger`
//! block. A trigger counts while its file differs from the base; that is known to
//! [`crate::change`], not here.

use crate::git::FileState;
use crate::path::ProjectPath;

/// What a trigger asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TriggerKind {
    /// The stack counts as changed.
    Changed,
    /// The stack does not count as changed, whatever else says so.
    IgnoreChange,
}

/// A trigger of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// What it asks for.
    pub kind: TriggerKind,
    /// Why, as whoever wrote it says.
    pub reason: String,
    /// The file that it is written in.
    pub file: ProjectPath,
    /// How far the file has come.
    pub state: FileState,
}
