//! The commands of a run as text.

use std::collections::HashMap;

use crate::path::StackPath;
use crate::printable::command_line;
use crate::project::stack::{Stack, StackIndex, Stacks};
use crate::run::run_command::RunCommand;

/// The command of each turn as text, made printable.
#[derive(Default)]
pub struct CommandLines {
    /// The command of all turns, if it is the same in all.
    same: String,
    /// The command of each turn, if they differ.
    by_turn: Vec<String>,
    /// Those of follow-ups, if policies may add any.
    followup: Option<FollowUpLines>,
}

/// The commands of follow-ups.
struct FollowUpLines {
    /// The command in all stacks, if it is the same in all.
    same: String,
    /// The command in each stack, if they differ.
    by_stack: HashMap<StackPath, String>,
    /// Which of the run's first turns are follow-ups.
    are_followups: Vec<bool>,
}

impl CommandLines {
    pub fn new(command: &RunCommand, sequence: &[StackIndex]) -> Self {
        let evaluated = if command.is_evaluated() {
            sequence
        } else {
            &[]
        };
        CommandLines {
            same: command_line(command.given()),
            by_turn: evaluated
                .iter()
                .map(|&stack| command_line(command.of(stack)))
                .collect(),
            followup: None,
        }
    }

    /// Adds the command of follow-ups, given which of the run's first turns have it.
    #[must_use]
    pub fn with_followup(
        mut self,
        command: &RunCommand,
        stacks: &Stacks,
        are_followups: Vec<bool>,
    ) -> Self {
        let evaluated = command.is_evaluated().then(|| stacks.iter());
        let line =
            |(stack, it): (StackIndex, &Stack)| (it.path.clone(), command_line(command.of(stack)));
        self.followup = Some(FollowUpLines {
            same: command_line(command.given()),
            by_stack: evaluated.into_iter().flatten().map(line).collect(),
            are_followups,
        });
        self
    }

    /// Returns the command of the turn at a position, which is one of this stack.
    pub fn of(&self, turn: usize, stack: &StackPath) -> &str {
        match &self.followup {
            Some(followup) if *followup.are_followups.get(turn).unwrap_or(&true) => {
                followup.by_stack.get(stack).unwrap_or(&followup.same)
            }
            _ => self.by_turn.get(turn).unwrap_or(&self.same),
        }
    }
}
