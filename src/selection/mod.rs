//! Which stacks a command acts on, which runs before which, and why.
//!
//! Nothing here does I/O or runs anything.

pub mod attached;
pub mod create_before_destroy;
mod dangling;
pub mod data;
pub mod graph;
pub mod recorded;
pub mod reference;
pub mod select;
pub mod why;
