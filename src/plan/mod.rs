//! The actions of an apply: one entry per stack, and the turns in one order.

pub mod apply;
mod approval;
pub mod archive;
pub mod ask;
pub mod backends;
mod begin;
pub mod checks;
pub mod code;
mod commands;
pub mod commit_code;
mod conditions;
mod destroy_order;
pub mod entry;
mod environment;
pub mod facts;
pub mod inputs;
mod left_behind;
pub mod order;
mod planned;
pub mod planner;
pub mod progress;
pub mod protection;
pub mod read_outputs;
pub mod removal;
mod rows;
mod same_command;
mod saved;
pub mod stack;
pub mod stale;
pub mod succession;
pub mod ties;
mod totals;
pub mod triggers;
pub mod verify;

pub use self::approval::DestroyedResources;
pub use self::begin::{DriverRun, Purpose, begin};
pub use self::commands::{CannotAsk, HiddenOption, PLAN_FILE};
pub use self::conditions::{WorkBefore, conditions};
pub use self::destroy_order::DestroyingRun;
pub use self::environment::{EnvironmentSource, PlannedStack, SavedEnvironment};
pub use self::left_behind::{DestroyOutcome, LeftBehind, left_behind};
pub use self::planned::{
    FailedAsk, Outlook, Plan, PlannedOperation, PlannedOrder, RelaxedConstraint, RelaxedEffect,
    RequestedOptions, UnplannedRemovals,
};
pub use self::planned::{FailedPolicies, PlannedFollowUp, PlannedFollowUps};
pub use self::rows::PlanRow;
pub use self::same_command::DestroyCommand;
pub use self::saved::{SavedPlan, SavedPlanError, SavedPolicies, SavedProject, SavedStack};
pub use self::totals::{ResourceTotals, StackTotals, Totals};
