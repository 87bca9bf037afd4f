//! What `orch` keeps in the folder `.orch`: the journals of runs, what their commands printed, and
//! inputs of policies.

pub mod journal;
pub mod logs;
pub mod samples;
