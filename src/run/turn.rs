//! The turns of a run.
//!
//! A stack has one turn in most runs. It has two if it is replaced, and more if policies add some. This module
//! doesn't know who adds turns, or the purpose of a step.

use std::fmt;
use std::sync::Arc;

use crate::path::StackPath;
use crate::project::attempt::ExitCodes;

/// The number of a turn in its run, from 0: first the initial turns, in the sequence of a serial run, then the added
/// ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnIndex(u32);

impl TurnIndex {
    /// Returns the turn with a number.
    ///
    /// # Panics
    ///
    /// From 2³² on.
    #[expect(clippy::cast_possible_truncation, reason = "asserted")]
    pub const fn new(number: usize) -> Self {
        assert!(
            number <= u32::MAX as usize,
            "a run has fewer than 2³² turns"
        );
        TurnIndex(number as u32)
    }

    /// Returns the number.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The stack, which may have been removed from the project.
    pub stack: StackPath,
    pub operation: Operation,
    /// The steps, one after the other, in one slot; each attempt begins with the first.
    pub steps: Arc<[Step]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The command of `orch run`.
    Run,
    Plan,
    Apply,
    Destroy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A command, with its name among the steps.
    Command(Arc<str>),
    /// A command whose exit statuses have another meaning than those of the turn.
    CommandWith(Arc<str>, Arc<ExitCodes>),
    /// A question to someone outside. The turn holds its slot until the answer; if nothing new starts, it is as if it
    /// had never started.
    Confirmation,
    /// A check without a command: the director decides whether the turn fails.
    Check,
}

impl Step {
    pub fn is_command(&self) -> bool {
        matches!(self, Step::Command(_) | Step::CommandWith(..))
    }
}

impl Turn {
    /// Returns a turn of `orch run`. All turns of a run share the steps.
    pub fn of_command(stack: impl Into<StackPath>, steps: &Arc<[Step]>) -> Self {
        Turn {
            stack: stack.into(),
            operation: Operation::Run,
            steps: steps.clone(),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Command(name) | Step::CommandWith(name, _) => name,
            Step::Confirmation => "confirmation",
            Step::Check => "check",
        })
    }
}
