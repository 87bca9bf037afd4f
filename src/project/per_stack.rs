//! Values of single stacks, and problems that several stacks share.

use std::collections::HashMap;

use crate::diagnostic::{Code, Diagnostic};
use crate::project::stack::StackIndex;
use crate::source::Span;

#[derive(Debug, Clone)]
pub struct SharedProblem {
    /// The problem, as the first of the stacks has it.
    pub diagnostic: Diagnostic,
    pub stacks: Vec<StackIndex>,
}

/// Problems of stacks: one diagnostic for each place, worded for the first stack, with all stacks that
/// have it. Many stacks may inherit a definition, and a mistake in it is one mistake, even if the
/// wording differs by stack.
#[derive(Debug, Default)]
pub struct SharedProblems {
    problems: Vec<SharedProblem>,
    by_place: HashMap<(Code, Option<Span>), usize>,
}

impl SharedProblems {
    /// Adds the problems of a stack. All problems of a stack must be added before those of the next.
    pub fn add(&mut self, stack: StackIndex, found: impl IntoIterator<Item = Diagnostic>) {
        for diagnostic in found {
            let place = diagnostic.labels.first().map(|label| label.span);
            let index = *self
                .by_place
                .entry((diagnostic.code, place))
                .or_insert(self.problems.len());
            match self.problems.get_mut(index) {
                // A mistake in a global affects everything that uses it.
                Some(known) if known.stacks.last() == Some(&stack) => {}
                Some(known) => known.stacks.push(stack),
                None => self.problems.push(SharedProblem {
                    diagnostic,
                    stacks: vec![stack],
                }),
            }
        }
    }

    /// Returns all problems in the order in which they were found.
    pub fn into_vec(self) -> Vec<SharedProblem> {
        self.problems
    }
}

/// Computes something for each stack. Returns the results, and the problems of the other stacks.
pub(crate) fn for_each<T>(
    stacks: impl IntoIterator<Item = StackIndex>,
    mut compute: impl FnMut(StackIndex) -> Result<T, Vec<Diagnostic>>,
) -> (Vec<(StackIndex, T)>, Vec<SharedProblem>) {
    let mut known = Vec::new();
    let mut problems = SharedProblems::default();
    for stack in stacks {
        match compute(stack) {
            Ok(computed) => known.push((stack, computed)),
            Err(found) => problems.add(stack, found),
        }
    }
    (known, problems.into_vec())
}

/// Adds a label at the use of a value, if the problem is in another place, such as a global.
pub(crate) fn needed_at(diagnostic: Diagnostic, place: Span, within: Span) -> Diagnostic {
    let is_inside = diagnostic.labels.first().is_none_or(|label| {
        let (here, all) = (label.span, within);
        here.file == all.file && all.start <= here.start && here.end <= all.end
    });
    if is_inside || diagnostic.labels.iter().any(|label| label.span == place) {
        diagnostic
    } else {
        diagnostic.label(place, "needed here")
    }
}
