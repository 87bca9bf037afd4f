//! The command of a run: the same in all stacks, or evaluated for each.

use std::collections::HashMap;
use std::ffi::OsString;

use crate::project::stack::StackIndex;

#[derive(Debug, Clone)]
pub struct RunCommand {
    /// The words as given; there is at least one.
    given: Vec<OsString>,
    /// Their values in each stack, if they are templates.
    evaluated: Option<HashMap<StackIndex, Vec<OsString>>>,
}

impl RunCommand {
    /// Makes a command that is the same in all stacks. `words` must not be empty.
    pub fn plain(words: Vec<OsString>) -> Self {
        RunCommand {
            given: words,
            evaluated: None,
        }
    }

    /// Makes a command whose words are templates, given their values in each stack.
    pub fn evaluated(
        words: Vec<OsString>,
        by_stack: impl IntoIterator<Item = (StackIndex, Vec<OsString>)>,
    ) -> Self {
        RunCommand {
            given: words,
            evaluated: Some(by_stack.into_iter().collect()),
        }
    }

    pub fn given(&self) -> &[OsString] {
        &self.given
    }

    pub fn is_evaluated(&self) -> bool {
        self.evaluated.is_some()
    }

    pub fn of(&self, stack: StackIndex) -> &[OsString] {
        let evaluated = self.evaluated.as_ref().and_then(|all| all.get(&stack));
        evaluated.map_or(&self.given, Vec::as_slice)
    }

    /// Returns whether a condition holds for the command in any of these stacks. Checks it once if the
    /// command is the same in all of them.
    pub fn any(&self, stacks: &[StackIndex], is_true: impl Fn(&[OsString]) -> bool) -> bool {
        if self.is_evaluated() {
            stacks.iter().any(|&stack| is_true(self.of(stack)))
        } else {
            is_true(&self.given)
        }
    }
}
