//! The command of a run: the same in all stacks, or evaluated for each; or several, as a script has them.

use std::collections::HashMap;
use std::ffi::OsString;

use crate::project::stack::StackIndex;

/// The meaning of the words that the user gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    Plain,
    Template,
    /// They are the labels of a script.
    Script,
}

#[derive(Debug, Clone)]
pub struct RunCommand {
    kind: CommandKind,
    /// The words as given; there is at least one.
    words: Vec<OsString>,
    /// The command as it is shown.
    given: Vec<OsString>,
    /// The command of a stack that has none of its own, if there is one.
    same: Vec<Vec<OsString>>,
    by_stack: HashMap<StackIndex, Vec<Vec<OsString>>>,
}

impl RunCommand {
    /// Makes a command that is the same in all stacks. `words` must not be empty.
    pub fn plain(words: Vec<OsString>) -> Self {
        RunCommand {
            kind: CommandKind::Plain,
            given: words.clone(),
            same: vec![words.clone()],
            words,
            by_stack: HashMap::new(),
        }
    }

    /// Makes a command whose words are templates, given their values in each stack.
    pub fn evaluated(
        words: Vec<OsString>,
        by_stack: impl IntoIterator<Item = (StackIndex, Vec<OsString>)>,
    ) -> Self {
        let by_stack = by_stack.into_iter();
        RunCommand {
            kind: CommandKind::Template,
            by_stack: by_stack.map(|(stack, it)| (stack, vec![it])).collect(),
            ..RunCommand::plain(words)
        }
    }

    /// Makes the command of a script, given its labels and its commands in each stack that has it.
    pub fn script(
        labels: Vec<OsString>,
        by_stack: impl IntoIterator<Item = (StackIndex, Vec<Vec<OsString>>)>,
    ) -> Self {
        let before = ["orch", "script", "run"].map(OsString::from);
        RunCommand {
            kind: CommandKind::Script,
            given: before.into_iter().chain(labels.iter().cloned()).collect(),
            same: Vec::new(),
            words: labels,
            by_stack: by_stack.into_iter().collect(),
        }
    }

    pub fn kind(&self) -> CommandKind {
        self.kind
    }

    /// Returns the words that the user gave.
    pub fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Returns the command as it is shown: for a script, the one that runs it.
    pub fn given(&self) -> &[OsString] {
        &self.given
    }

    /// Returns whether it may differ from stack to stack.
    pub fn is_evaluated(&self) -> bool {
        self.kind != CommandKind::Plain
    }

    /// Returns the commands in a stack, one after the other; none if the stack has no such script.
    pub fn commands(&self, stack: StackIndex) -> &[Vec<OsString>] {
        self.by_stack.get(&stack).unwrap_or(&self.same)
    }

    /// Returns whether a condition holds for a command in any of these stacks. Checks it once if the
    /// command is the same in all of them.
    pub fn any(&self, stacks: &[StackIndex], is_true: impl Fn(&[OsString]) -> bool) -> bool {
        if self.is_evaluated() {
            let mut commands = stacks.iter().flat_map(|&stack| self.commands(stack));
            commands.any(|command| is_true(command))
        } else {
            is_true(&self.given)
        }
    }
}
