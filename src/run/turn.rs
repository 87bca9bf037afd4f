//! Turns: what a run is made of.
//!
//! A stack has one turn in most runs. It has two where what it stands for is replaced, and more where
//! others are added during the run. This module does not know who adds them, or what a step does.

use std::fmt;
use std::sync::Arc;

use crate::path::StackPath;
use crate::project::attempt::ExitCodes;

/// The number of a turn in its run, from 0: first those that the run began with, in the sequence of a
/// serial run, then those that were added.
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

/// One stack's turn in a run, with all its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The stack, which may no longer be in the tree.
    pub stack: StackPath,
    /// What is done with it.
    pub operation: Operation,
    /// What is done for that, one after the other, in one slot; each attempt begins with the first.
    pub steps: Arc<[Step]>,
}

/// What is done with a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The command of `orch run`.
    Run,
    /// A tool is asked what it would do.
    Ask,
    /// What the stack stands for is brought forward.
    Apply,
    /// What the stack stands for is destroyed.
    Destroy,
}

/// A part of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A command, with its name among the steps.
    Command(Arc<str>),
    /// A command whose exit statuses mean something else than those of the turn.
    CommandWith(Arc<str>, Arc<ExitCodes>),
    /// Somebody outside is asked whether to go on. Until the answer comes the turn holds its slot, and
    /// once nothing new starts it is as if it had never started.
    Confirmation,
    /// Something is checked without a command: who directs the run says whether the turn fails.
    Check,
}

impl Step {
    pub fn is_command(&self) -> bool {
        matches!(self, Step::Command(_) | Step::CommandWith(..))
    }
}

impl Turn {
    /// Returns a turn of the one command of `orch run` in a stack. The turns of a run share the steps.
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
