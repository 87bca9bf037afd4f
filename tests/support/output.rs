//! What `orch` printed, and how it ended.

use std::fmt;
use std::process::ExitStatus;

use serde_json::Value;

/// What `orch` said. Shown as stdout, then stderr and the exit status where there is something to see.
#[must_use]
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    status: ExitStatus,
}

impl Output {
    pub(crate) fn new(stdout: String, stderr: String, status: ExitStatus) -> Self {
        Output {
            stdout,
            stderr,
            status,
        }
    }

    /// The exit status.
    #[track_caller]
    pub(crate) fn code(&self) -> i32 {
        let code = self.status.code();
        code.unwrap_or_else(|| panic!("orch does not end by itself: {} {self}", self.status))
    }

    /// Stdout as data, of an `orch` that had nothing to complain about.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code(), 0, "{self}");
        self.data()
    }

    /// Stdout as data, whatever the exit status.
    #[track_caller]
    pub(crate) fn data(&self) -> Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("stdout is not one JSON document: {error}\n{self}"),
        }
    }

    /// The command that `orch` advises to run.
    #[track_caller]
    pub(crate) fn advice(&self) -> &str {
        let advice = self.stderr.split_once("help: run `");
        let advice = advice.and_then(|(_, rest)| rest.split_once('`'));
        advice.unwrap_or_else(|| panic!("{self}")).0
    }

    /// What is shown, without what git says when it fetches.
    pub(crate) fn without_git(&self) -> String {
        let mut is_own = true;
        let shown = self.to_string();
        let lines = shown.lines().filter(|line| {
            if *line == "[stderr]" {
                is_own = false;
                return true;
            }
            let starts = [
                "base ",
                "note: ",
                "error: ",
                "  caused by: ",
                "  = ",
                "[exit",
            ];
            is_own || starts.iter().any(|start| line.starts_with(start))
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stdout)?;
        if !self.stderr.is_empty() {
            write!(f, "[stderr]\n{}", self.stderr)?;
        }
        match self.status.code() {
            Some(0) => Ok(()),
            Some(code) => writeln!(f, "[exit status {code}]"),
            None => writeln!(f, "[{}]", self.status),
        }
    }
}
