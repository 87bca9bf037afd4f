//! The exit status of `orch`. The topic `exit-status` documents the numbers for users.

use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// The command succeeded, or there was nothing to do.
    Success,
    /// A run is over; `RunSummary::exit_status` has the number.
    Run(u8),
    /// The configuration is wrong.
    Configuration,
    /// `orch` refuses: the base of changes is unknown, a safeguard is violated, another run is in progress,
    /// or the run to resume is stale or does not exist.
    Refused,
    /// I/O failed, git did, or a program is missing.
    External,
    /// The command line is wrong.
    Usage,
}

impl ExitStatus {
    /// Returns the number of the status.
    pub fn number(self) -> u8 {
        match self {
            ExitStatus::Success => 0,
            ExitStatus::Run(status) => status,
            ExitStatus::Configuration => 3,
            ExitStatus::Refused => 4,
            ExitStatus::External => 5,
            ExitStatus::Usage => 64,
        }
    }
}

/// Returns whether the number of a status is a success: 2 means that there are changes.
pub fn is_success(number: u8) -> bool {
    matches!(number, 0 | 2)
}

/// Returns the worse of two numbers: a failure, or the higher one.
pub fn worse(a: u8, b: u8) -> u8 {
    let rank = |number: u8| (!is_success(number), number);
    if rank(a) > rank(b) { a } else { b }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        ExitCode::from(status.number())
    }
}
