use super::trigger::BadTrigger;
use crate::git::GitError;
use crate::project::{FileReadError, LoadTreeError};

#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Tree(#[from] LoadTreeError),
    #[error(transparent)]
    File(#[from] FileReadError),
    #[error(transparent)]
    Trigger(#[from] BadTrigger),
    #[error("failed to start the threads that read files")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}
