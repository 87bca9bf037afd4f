//! The persistent graph: the stacks that exist, the applied commits, and the result of the last attempt.
//!
//! One [`document`] holds it, in a folder or a bucket. Machines share it; each write replaces the version that its
//! writer read, or fails. A command changes the document with one write ([`edit`]). A run takes the [`lock`] in it;
//! meanwhile, a [`writer`] keeps a record of the run beside the document, and merges it at the end. If the holder is
//! lost, others do that: [`lock::unlock`], or [`recover`] with the copy on the run's own machine.
//!
//! This module doesn't know stacks of the project, or why they were applied.

pub mod backend;
pub mod cfngin;
pub mod clock;
pub mod document;
pub mod edit;
mod generations;
pub mod heartbeat;
mod holder;
pub mod job_lease;
mod keys;
mod lease;
pub mod lock;
pub mod open;
pub mod recover;
mod rename;
pub mod results;
pub mod retry;
pub mod rules;
pub mod run_record;
pub mod salvage;
pub mod shared;
pub mod store;
pub mod timeline;
pub mod writer;
mod written;
