//! Conditions that a read-only stack and the stack that manages its resources both have.

use std::collections::BTreeMap;

use super::subjects::StacksToPlan;
use crate::context::Context;
use crate::plan::backends::StackBackend;
use crate::printable::printable;
use crate::project::lifecycle::Condition;
use crate::project::stack::{StackIndex, StackMode};

const MAX_WARNINGS: usize = 10;

impl Context {
    /// Warns of conditions on read-only stacks that the managing stacks have, too. Those of the
    /// managing stack are enough, since reading waits for it. Conditions that both inherit do not
    /// count.
    pub(super) fn warn_of_readers(
        &self,
        subjects: &StacksToPlan<'_>,
        places: &BTreeMap<StackIndex, StackBackend>,
    ) {
        let mode = |stack: StackIndex| self.project.stacks[stack].mode;
        let conditions = |stack: StackIndex| self.project.rules_of(stack).conditions;
        let readers: Vec<(StackIndex, &str)> = subjects
            .all
            .iter()
            .map(|subject| subject.stack)
            .filter(|&it| mode(it) == StackMode::Read)
            .filter(|&it| !conditions(it).is_empty())
            .filter_map(|it| Some((it, places.get(&it)?.backend()?)))
            .collect();
        if readers.is_empty() {
            return;
        }
        let managed: BTreeMap<&str, StackIndex> = places
            .iter()
            .filter_map(|(&stack, place)| {
                let is_managed = mode(stack) == StackMode::Manage;
                Some((place.backend().filter(|_| is_managed)?, stack))
            })
            .collect();
        let pairs = readers.into_iter().filter_map(|(reader, backend)| {
            let &keeper = managed.get(backend)?;
            let (of_reader, of_keeper) = (conditions(reader), conditions(keeper));
            let has_own = |own: &[&Condition], others: &[&Condition]| {
                let is_shared =
                    |it: &&Condition| others.iter().any(|other| std::ptr::eq(*it, *other));
                !own.iter().all(is_shared)
            };
            let both = has_own(&of_reader, &of_keeper) && has_own(&of_keeper, &of_reader);
            both.then_some((reader, keeper, backend))
        });
        let path = |stack: StackIndex| &self.project.stacks[stack].path;
        for (reader, keeper, backend) in pairs.take(MAX_WARNINGS) {
            let (reader, keeper) = (path(reader), path(keeper));
            self.notices.warning(&printable(&format!(
                "{reader} and {keeper} have conditions on the same infrastructure, `{backend}`; keep those of {keeper}, and let {reader} run after it"
            )));
        }
    }
}
