//! The output of a run while it is in progress, and at its end.
//!
//! [`RunText`] has the messages. The others print them and the output of commands in order: whole
//! groups ([`Groups`]), lines with a prefix ([`PrefixedLines`]), progress ([`Progress`]). All of
//! them write to [`StreamWriters`], which know what the two streams accept.

mod commands;
mod folding;
mod groups;
mod policies;
mod prefixed;
mod progress;
mod terminal;
mod text;
mod writers;

pub use commands::CommandLines;
pub use folding::FoldingStyle;
pub use groups::{Groups, RunLogs};
pub use policies::policy_problems;
pub use prefixed::PrefixedLines;
pub use progress::Progress;
pub use terminal::Filter;
pub use text::{RunText, failure_reason, failure_text};
pub use writers::{StreamWriter, StreamWriters};

#[cfg(test)]
mod tests;
