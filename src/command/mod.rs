//! The commands, from request to answer. The program turns the command line into a request, and
//! prints the answer.
//!
//! All runs use [`RunSession`]. This module knows neither the command line nor a terminal: the
//! program shows runs ([`RunTerminal`], [`RunOutput`]) and [notices](crate::notice), and prompts
//! the user.

pub mod apply;
mod changes;
pub mod clone;
pub mod create;
pub mod export;
pub mod fmt;
pub mod job;
pub mod load;
mod new_directory;
pub mod order_followups;
mod order_runs;
pub mod plan;
pub mod policy_requests;
mod released;
pub mod run;
pub mod running_jobs;
pub mod scenario;
pub mod script;
pub mod select;
mod session;
pub mod stack_arg;
pub mod state;
pub mod trigger;
mod validate;
pub mod why;
mod workflow;

pub use self::session::{RunOutput, RunSession, RunTerminal, ToolRun};
use self::session::{annotate, is_lost};
