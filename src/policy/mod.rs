//! Trigger policies: Rego files that say what follows a finished turn.
//!
//! A pull request may bring any policy, and the interpreter can be made to overflow its stack, to fill the
//! memory and to run forever. So policies are parsed and evaluated in a child process, a [`Worker`], which
//! is killed when it takes too long or too much; [`serve()`] is that process. The two exchange lines
//! of JSON, see `protocol`.
//!
//! What an evaluation is given and what becomes of its [`PolicyOutput`] is not known here, nor where files are.

mod answer;
#[cfg(feature = "policies")]
mod brackets;
mod memory;
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
pub use self::problem::{Dialect, LoadProblem, Problem};
pub use self::protocol::ListKind;
pub use self::serve::serve;
pub use self::test_rule::{RegoFile, TestOutcome, TestRule};
pub use self::worker::{FoundTests, Loaded, PolicyNumber, Tested, Worker, WorkerError};

/// How large the file of a policy may be, in bytes.
pub const MAX_BYTES: usize = 256 << 10;
