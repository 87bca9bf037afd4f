//! Resuming an earlier run: which run is meant, what is left of it, and whether what succeeded in it
//! still holds.
//!
//! What has changed since is found by the rules of `--changed`, from the commit and the uncommitted
//! files that the run began with. Whether to resume a run anyway is for the caller to decide,
//! who also reads the project and asks git for its status.

mod earlier;
mod moved;

pub use self::earlier::{EarlierRun, ResumeError, ResumedRun};
pub use self::moved::{Moved, MovedStack, UnknownChanges, WorkingTree, uncommitted};
