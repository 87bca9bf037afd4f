//! Why changes could not be found.

use crate::git::GitError;
use crate::project::LoadTreeError;

/// Why changes could not be found.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// git did not answer.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The files of a commit could not be read.
    #[error(transparent)]
    Tree(#[from] LoadTreeError),
    /// No thread could be started.
    #[error("failed to start the threads that read files")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}
