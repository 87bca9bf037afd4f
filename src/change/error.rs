//! Why changes could not be found.

use super::trigger::BadTrigger;
use crate::git::GitError;
use crate::project::{FileReadError, LoadTreeError};

/// Why changes could not be found.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// git did not answer.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The files of a commit could not be read.
    #[error(transparent)]
    Tree(#[from] LoadTreeError),
    /// A file that may name inputs could not be read.
    #[error(transparent)]
    File(#[from] FileReadError),
    /// A trigger could not be read.
    #[error(transparent)]
    Trigger(#[from] BadTrigger),
    /// No thread could be started.
    #[error("failed to start the threads that read files")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}
