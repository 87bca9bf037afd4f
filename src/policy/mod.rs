//! Trigger policies: Rego files that select follow-ups of finished turns.
//!
//! A pull request may contain any policy, and the interpreter can overflow its stack, fill the
//! memory or run forever. So policies are parsed and evaluated in a child process, a [`Worker`],
//! which is killed when it exceeds its limits. [`serve()`] is that process. The two exchange lines
//! of JSON, see `protocol`.
//!
//! This module does not know what the input means, how a [`PolicyOutput`] is used, or where files
//! are.

mod answer;
#[cfg(feature = "policies")]
mod brackets;
mod memory;
mod outline;
mod problem;
mod protocol;
#[cfg(feature = "policies")]
mod rego;
#[cfg(feature = "policies")]
mod serve;
#[cfg(not(feature = "policies"))]
#[path = "without_rego.rs"]
mod serve;
mod test_rule;
mod worker;

pub use self::answer::PolicyOutput;
pub use self::outline::PolicyOutline;
pub use self::problem::{Dialect, LoadProblem, Problem};
pub use self::protocol::ListKind;
pub use self::serve::serve;
pub use self::test_rule::{RegoFile, TestOutcome, TestRule};
pub use self::worker::{FoundTests, Loaded, PolicyNumber, Tested, Worker, WorkerError};

/// The maximum size of a policy file, in bytes.
pub const MAX_BYTES: usize = 256 << 10;
