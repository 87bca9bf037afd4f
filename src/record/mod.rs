//! What `orch` keeps in the folder `.orch`: the journals of runs, and what their commands printed.

pub mod journal;
pub mod logs;
