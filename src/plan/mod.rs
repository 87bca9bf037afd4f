//! What an apply would do: an entry for each stack, and its turns in one order.

pub mod archive;
pub mod ask;
mod begin;
pub mod entry;
pub mod order;
mod planned;
mod saved;
pub mod upstream;

pub use self::begin::{AskRun, begin};
pub use self::planned::{FailedAsk, Plan, PlannedOperation, conditions, operations};
pub use self::saved::{SavedPlan, SavedPlanError, SavedStack, is_saved_plan};
