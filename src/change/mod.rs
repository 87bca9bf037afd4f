//! From changed files to changed stacks, each with the file and the rule that ties them.
//!
//! A stack has changed if one of its own files has (the nearest stack at or above a file owns it), a
//! file that it watches or imports, or one that its Terraform or Terragrunt files use; `inputs` knows
//! these. Which files have changed is git's affair, and since which commit that of [`crate::change::base`].
//! Trigger files are none of these: they concern the stack that they name, and nothing else.

pub mod base;
mod cause;
mod error;
mod files;
mod find;
#[cfg(test)]
mod fixtures;
mod inputs;
mod listed;
mod named;
mod removed;
mod shared;
pub mod trigger;
mod triggers;
mod uncounted;

pub use cause::{
    ChangeCause, Input, InputLocation, Location, SwitchedOff, UncountedChange, Use, UseKind,
    WhyUncounted,
};
pub use error::ChangeError;
pub use files::ChangedFiles;
pub use find::{Changes, Since, UncommittedChanges, find};
pub use listed::{add_uncounted, inputs_of};
pub use shared::{SharedData, shared_data};
pub use uncounted::{Counted, Uncounted};
