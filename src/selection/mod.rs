//! Which stacks a command acts on, which runs before which, and why.
//!
//! Nothing here touches the world or runs anything.

pub mod graph;
pub mod reference;
pub mod select;
pub mod why;
