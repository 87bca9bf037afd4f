//! The results of the turns of a work order, which its jobs send to the store of the state, and the run that they make
//! together.
//!
//! A result has the lines that the journal of the job has about the turn, and the logs of its attempts, so it holds no
//! secret that those do not. On any machine, the results become one run: a journal with logs, like that of a run on one
//! machine.

mod claim;
mod collect;
mod local;
mod merge;
mod order;
mod result;
mod run_copy;

pub use self::claim::{ClaimEnd, ResultClaim};
pub use self::collect::ResultLines;
pub use self::local::LocalResults;
pub use self::merge::{MergeFacts, merged};
pub use self::order::{OrderOutline, OutlinedTurn, StoredOrder};
pub use self::result::{AttemptLog, ResultError, TurnResult};
pub use self::run_copy::RunCopy;
