//! Resumes an earlier run: finds the run, the work that is left, and changes since.
//!
//! Changes are found by the rules of `--changed`, from the commit and the uncommitted files of that run. The caller
//! decides whether to resume anyway, reads the project and asks git for its status.

mod changes;
mod earlier;

pub use self::changes::{ChangedStack, ChangesSinceRun, UnknownChanges, WorkingTree, uncommitted};
pub use self::earlier::{EarlierRun, ResumedRun, unknown_word};
