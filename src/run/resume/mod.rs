//! Resumes an earlier run: finds the run, the work that is left, and changes since.
//!
//! Changes are found by the rules of `--changed`, from the commit and the uncommitted files of that run. The caller
//! decides whether to resume anyway, reads the project and asks git for its status.

mod earlier;
mod moved;

pub use self::earlier::{EarlierRun, ResumeError, ResumedRun};
pub use self::moved::{Moved, MovedStack, UnknownChanges, WorkingTree, uncommitted};
