//! What an apply would do: an entry for each stack, and its turns in one order.

pub mod archive;
pub mod ask;
mod begin;
pub mod entry;
pub mod order;
mod planned;

pub use self::begin::{AskRun, begin};
pub use self::planned::{FailedAsk, Plan, conditions};
