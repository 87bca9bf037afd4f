//! Turns changed files into changed stacks, each with the file and the rule that connects them.
//!
//! A stack changed if one of its own files did (a file belongs to the nearest stack at or above it), a file
//! that it watches or imports, or one that its Terraform or Terragrunt files use; `inputs` knows these. It
//! also changed if its computed values did; `computed` compares them. Git determines the changed files, and
//! [`crate::change::base`] the commit to compare with. Trigger files concern only the stack that they name.

mod applied;
pub mod base;
mod baseline;
mod call;
mod calls;
mod canonical;
mod cause;
mod code_use;
mod computed;
mod counted_tree;
mod data;
mod digest;
mod error;
mod files;
mod find;
#[cfg(test)]
mod fixtures;
mod ignored;
mod inputs;
mod lacking;
mod left_out;
mod listed;
mod named;
mod present;
mod removed;
mod rollback;
pub mod trigger;
mod triggers;
mod unchanged;
mod uncounted;
mod unit;

pub use applied::{
    CommitRange, Deletion, Difference, EntryIndex, MissingStack, MoveConflict, NoProof, Pending,
    ProvenRemoval, RangeCommit, RemovedBy, RemovedDirectory, RemovingBlock, StackStatus,
    StackStatuses, StatusKind, deletions, had_stack_on_record, moved_or_removed, relocate,
    stack_statuses,
};
pub use baseline::{AppliedBase, Baseline, ChangeBase};
pub use call::{CallVersion, FoundCall, ModuleCall};
pub use calls::{called_modules, calls_of, terragrunt_units};
pub use cause::{
    ChangeCause, Ignored, Input, InputLocation, Location, SwitchedOff, UncountedChange, Use,
    UseKind, WhyUncounted,
};
pub use computed::{HostEnvironment, add_computed};
pub use data::add_code_uses;
pub use digest::{InputDigest, InputDigests, digests, part_label};
pub use error::ChangeError;
pub use files::ChangedFiles;
pub use find::{Changes, causes_since, find};
pub use left_out::{ignored_variables, mark_ignored};
pub use listed::{add_uncounted, inputs_of, unknown_paths};
pub use present::{CurrentProject, UncommittedChanges};
pub use rollback::{MissingCommit, Rollback, rollbacks};
pub use uncounted::{CountedStates, UncountedFiles};
pub use unit::{TerragruntUnit, UnitDependency, UnitTarget};
