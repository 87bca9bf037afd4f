//! The exit status of `orch`. The topic `exit-status` documents the numbers for users.

use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// Everything wanted was done, or there was nothing to do.
    Success,
    /// A command failed in at least one stack.
    CommandFailed,
    /// The configuration is wrong.
    Configuration,
    /// `orch` refuses: the base of changes is unknown, a safeguard is violated, another run is going on,
    /// or the run to resume is stale or does not exist.
    Refused,
    /// I/O failed, git did, or a program is missing.
    External,
    /// The command line is wrong.
    Usage,
    /// A signal of this number ended the run, whatever the commands returned.
    Signal(i32),
}

impl ExitStatus {
    /// Returns the number.
    pub(crate) fn number(self) -> u8 {
        match self {
            ExitStatus::Success => 0,
            ExitStatus::CommandFailed => 1,
            ExitStatus::Configuration => 3,
            ExitStatus::Refused => 4,
            ExitStatus::External => 5,
            ExitStatus::Usage => 64,
            ExitStatus::Signal(signal) => 128 + u8::try_from(signal).unwrap_or(127),
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        ExitCode::from(status.number())
    }
}
