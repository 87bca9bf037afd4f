//! A run, from the request to the result.
//!
//! A [`request`] becomes turns in [`order`]; the [`schedule`] decides which may start, [`execute`] runs their steps,
//! and [`event`]s report the progress. One sink of events, the [`recording`], is part of every run; this module
//! doesn't know the others.

pub mod directed;
pub mod evaluated;
pub mod event;
pub mod event_stream;
pub mod execute;
pub mod facts;
pub mod following;
pub mod journaled;
pub mod order;
pub mod output_reads;
pub mod own_process;
pub mod policies;
mod policy_lints;
pub mod recording;
pub mod request;
pub mod results;
pub mod resume;
pub mod run_command;
pub mod safeguard;
pub mod schedule;
pub mod settings;
pub mod sharing;
mod stack_record;
pub mod started;
pub mod state;
pub mod state_lock;
mod steps;
pub mod terraform;
pub mod tool;
pub mod turn;
pub mod violations;
pub mod workflow;
