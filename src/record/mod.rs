//! The folder `.orch`: the journals of runs, the output of their commands, and inputs of policies.

pub mod journal;
pub mod logs;
pub mod results;
pub mod samples;
