//! How an imagined run ends.

use orch::run::evaluated::TurnState;

/// How a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
#[value(rename_all = "UPPER")]
pub(crate) enum EndState {
    /// It succeeded
    Finished,
    /// It failed
    Failed,
    /// It was interrupted
    Stopped,
    /// It never started, since another one failed
    Canceled,
    /// It never started, since its plan was not approved
    Discarded,
}

impl EndState {
    pub(super) fn turn_state(self) -> TurnState {
        match self {
            EndState::Finished => TurnState::Finished,
            EndState::Failed => TurnState::Failed,
            EndState::Stopped => TurnState::Stopped,
            EndState::Canceled => TurnState::Canceled,
            EndState::Discarded => TurnState::Discarded,
        }
    }
}
