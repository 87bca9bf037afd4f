//! A run with the state of the project: the lock, and the records of stacks.

mod lock;
mod snapshot;

pub use self::lock::{LockRequest, Lockable, StateLock, check_keys, or_give_up};
pub use self::snapshot::{InputSnapshot, Published, declared};
