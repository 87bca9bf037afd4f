//! The commands of a run as text.

use std::collections::HashMap;

use crate::path::StackPath;
use crate::printable::command_line;
use crate::project::stack::{Stack, StackIndex, Stacks};
use crate::run::run_command::RunCommand;
use crate::run::turn::{Step, Turn, TurnIndex};

/// The command of each turn as text, made printable.
#[derive(Default)]
pub struct CommandLines {
    /// The command of all turns, if it is the same in all.
    same: String,
    /// The commands of each turn, if they differ.
    by_turn: Vec<Vec<String>>,
    /// Those of follow-ups, if policies may add any.
    followup: Option<FollowUpLines>,
}

struct FollowUpLines {
    /// The command in all stacks, if it is the same in all.
    same: String,
    /// The commands in each stack, if they differ.
    by_stack: HashMap<StackPath, Vec<String>>,
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
                .map(|&stack| lines(command, stack))
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
        let line = |(stack, it): (StackIndex, &Stack)| (it.path.clone(), lines(command, stack));
        self.followup = Some(FollowUpLines {
            same: command_line(command.given()),
            by_stack: evaluated.into_iter().flatten().map(line).collect(),
            are_followups,
        });
        self
    }

    /// Returns the commands of the turn at a position, which is one of this stack.
    pub fn all(&self, turn: usize, stack: &StackPath) -> &[String] {
        let (own, same) = match &self.followup {
            Some(followup) if *followup.are_followups.get(turn).unwrap_or(&true) => {
                (followup.by_stack.get(stack), &followup.same)
            }
            _ => (self.by_turn.get(turn), &self.same),
        };
        let own = own.filter(|own| !own.is_empty());
        own.map_or(std::slice::from_ref(same), Vec::as_slice)
    }

    /// Returns the first command of the turn at a position, which is one of this stack.
    pub fn of(&self, turn: usize, stack: &StackPath) -> &str {
        self.all(turn, stack).first().map_or("", String::as_str)
    }

    /// Returns the command of a later step of a turn; `None` for its first command, and for the steps of drivers.
    pub fn of_step(&self, index: TurnIndex, turn: &Turn, step: usize) -> Option<&str> {
        let before = turn.steps.get(..step)?.iter();
        let number = before.filter(|step| step.is_command()).count();
        let is_command = turn.steps.get(step).is_some_and(Step::is_command);
        let commands = self.all(index.get(), &turn.stack);
        let command = commands.get(number)?;
        (is_command && number > 0).then_some(command)
    }
}

fn lines(command: &RunCommand, stack: StackIndex) -> Vec<String> {
    let commands = command.commands(stack).iter();
    commands.map(|words| command_line(words)).collect()
}
