//! What a command has read of the state so far, beside the snapshot of git.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use super::state::OpenedState;
use super::statuses::CountedDigests;
use crate::change::InputDigests;
use crate::project::namespaces::Generations;

/// The parts of the state that have been read so far.
#[derive(Default)]
pub struct StateSnapshot {
    pub opened: Option<OpenedState>,
    pub generations: Arc<Generations>,
    pub(super) digested: Option<CountedDigests>,
    /// Whether to fetch applied commits that this clone lacks.
    pub fetches_seen: bool,
    /// The arguments of each `git fetch` that has run to compare HEAD with the applied commits.
    pub(super) fetched: BTreeSet<Vec<String>>,
    /// The digests that a plan depends on.
    pub input_digests: Option<Rc<InputDigests>>,
}
