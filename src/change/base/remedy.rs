//! The fix for a base that cannot be determined.
//!
//! This module knows which `git fetch` is needed, for the user or for `--fetch`, but runs nothing.

use std::iter;

use super::BaseUnknown;
use crate::git::{self, CommitId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// `git fetch` with these arguments.
    Fetch(Vec<String>),
    /// More of the history of a shallow clone is needed.
    History {
        /// The remote to fetch from.
        remote: String,
        /// A refspec that was never fetched.
        missing: Option<String>,
        /// The commits whose history is needed.
        of: Vec<String>,
    },
    /// Something that only the user can do.
    Advice(String),
}

/// The depths to which `--fetch` deepens a shallow clone in turn. This much history takes less than a minute;
/// more is up to the user.
const DEEPENINGS: [u32; 4] = [50, 200, 800, 3200];

impl Remedy {
    /// Fetches all branches and tags.
    pub(super) fn all(remote: &str) -> Self {
        Remedy::Fetch(vec!["--tags".to_owned(), remote.to_owned()])
    }

    /// Fetches the history of these commits, after a refspec that was never fetched.
    pub(super) fn history(remote: &str, missing: Option<String>, of: &[CommitId]) -> Self {
        Remedy::History {
            remote: remote.to_owned(),
            missing,
            of: of.iter().map(CommitId::to_string).collect(),
        }
    }

    pub fn command(&self) -> Option<String> {
        let arguments = match self {
            Remedy::Fetch(arguments) => arguments.clone(),
            Remedy::History {
                remote,
                missing,
                of,
            } => {
                let mut arguments = vec!["--unshallow".to_owned(), remote.clone()];
                arguments.extend(missing.iter().chain(of).cloned());
                arguments
            }
            Remedy::Advice(_) => return None,
        };
        Some(fetch_command(&arguments))
    }

    /// Returns whether the next fetch deepens the history.
    pub fn is_deepening(&self) -> bool {
        matches!(self, Remedy::History { missing: None, .. })
    }

    /// Returns the arguments of the next `git fetch` after `deepened` rounds; `None` when that is deep
    /// enough.
    pub fn fetch(&self, deepened: usize) -> Option<Vec<String>> {
        match self {
            Remedy::Fetch(arguments) => Some(arguments.clone()),
            Remedy::History {
                remote,
                missing: Some(missing),
                ..
            } => Some(vec![
                "--depth=1".to_owned(),
                remote.clone(),
                missing.clone(),
            ]),
            Remedy::History { remote, of, .. } => {
                let depth = DEEPENINGS.get(deepened)?;
                let mut arguments = vec![format!("--deepen={depth}"), remote.clone()];
                arguments.extend(of.iter().cloned());
                Some(arguments)
            }
            Remedy::Advice(_) => None,
        }
    }
}

/// Returns `git fetch` with these arguments, as a user would type it.
pub fn fetch_command(arguments: &[String]) -> String {
    let words = iter::once("fetch").chain(arguments.iter().map(String::as_str));
    git::command_line(words)
}

/// A problem without its fix.
pub(super) struct BaseRefusal(String);

pub(super) fn refuse(problem: impl Into<String>) -> BaseRefusal {
    BaseRefusal(problem.into())
}

impl BaseRefusal {
    pub(super) fn remedy<T>(self, remedy: Remedy) -> Result<T, BaseUnknown> {
        Err(BaseUnknown::Refused {
            problem: self.0,
            remedy,
        })
    }

    /// Refuses with advice that only the user can follow.
    pub(super) fn advise<T>(self, advice: impl Into<String>) -> Result<T, BaseUnknown> {
        self.remedy(Remedy::Advice(advice.into()))
    }
}
