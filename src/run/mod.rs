//! A run: in which order stacks are started, whether they may be at all, and how commands are started,
//! interrupted and waited for.
//!
//! A run speaks in [`event`]s; who shows or keeps them is not known here.

pub mod event;
pub mod execute;
pub mod journaled;
pub mod order;
pub mod resume;
pub mod safeguard;
pub mod schedule;
pub mod settings;
pub mod turn;
