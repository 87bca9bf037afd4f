//! What people and programs read: text, JSON, and drawings of the graph.
//!
//! Everything here writes to a given [`std::io::Write`] and decides nothing. Text from disk goes
//! through [`crate::printable`]. JSON has structs of its own, so that a change of the domain cannot
//! silently change the format.

mod changes;
mod drawing;
mod json;
mod reasons;
mod text;
mod why;

pub use drawing::{Drawing, write_dot, write_graph_json, write_mermaid};
pub use json::{
    List, write_diagnostics, write_environments, write_list, write_refusal, write_removed,
};
pub use reasons::reason_text;
pub use text::RunText;
pub use why::{Story, write_why, write_why_json};
