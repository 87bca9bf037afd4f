//! The persistent graph: what exists out there, from which commit, and how the last attempt ended.
//!
//! One [`document`] holds it, in a folder or a bucket. Machines share it; each write replaces what its
//! writer has read, or fails. A command changes the document with one write ([`edit`]). A run takes the
//! [`lock`] in it; while it lasts, a [`writer`] keeps a record of its own beside the document, and merges
//! that in the end. If the holder is gone, somebody else does: by [`lock::unlock`], or by [`recover`] from
//! what the run has kept on its own machine.
//!
//! Nothing here knows what a stack is, or why it was applied.

mod abandoned;
mod action;
pub mod backend;
pub mod cfngin;
pub mod clock;
mod deposed;
pub mod document;
pub mod edit;
mod generations;
pub mod heartbeat;
mod history;
mod holder;
mod inputs;
mod kept;
mod keys;
mod lease;
pub mod lock;
pub mod open;
pub mod patience;
pub mod recover;
mod refreshed;
mod rename;
pub mod rules;
pub mod run_record;
pub mod salvage;
pub mod store;
pub mod timeline;
mod triggered;
pub mod writer;
mod written;
