//! Why a run does not begin, other than for what is wrong with the project or its repository.

/// What is asked for is refused; the help says what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct RunRefused {
    pub(crate) message: String,
    pub(crate) help: String,
}
