//! The commands, from the request to the answer: what the program around them parses and prints.
//!
//! All runs go through [`RunSession`]. Nothing here knows the command line or a terminal: the program shows runs
//! ([`RunTerminal`], [`RunOutput`]), asks the user, and gives [notices](crate::notice).

pub mod apply;
mod changes;
mod follower;
mod holder;
pub mod load;
pub mod plan;
mod released;
pub mod run;
pub mod select;
mod session;
pub mod stack_arg;
pub mod state;
pub mod trigger;
mod validate;
pub mod why;
mod why_missing;

pub use self::session::{RunOutput, RunSession, RunTerminal, ShownRun};
use self::session::{annotate, is_lost};
