//! The stacks that selected stacks want: `wants` and `wanted_by`, followed transitively.

use std::collections::{HashMap, VecDeque};

use super::{Query, Selection, SelectionReason};
use crate::project::stack::{StackIndex, Stacks};
use crate::selection::reference::{ReferenceKind, ReferenceTarget, References};
use crate::source::Span;

pub(super) struct Wants<'a> {
    stacks: &'a Stacks,
    references: &'a References,
    /// The targets of `wants`, by declaring stack.
    declared: HashMap<StackIndex, Vec<(&'a ReferenceTarget, Span)>>,
    /// `wanted_by` is `wants` seen from the other side; for a group, stored once for all its members.
    wanted_by: HashMap<&'a ReferenceTarget, Vec<(StackIndex, Span)>>,
    /// The targets of `wanted_by` that contain a stack.
    targets: HashMap<StackIndex, Vec<&'a ReferenceTarget>>,
}

impl<'a> Wants<'a> {
    pub(super) fn new(stacks: &'a Stacks, references: &'a References) -> Self {
        let mut declared: HashMap<StackIndex, Vec<(&ReferenceTarget, Span)>> = HashMap::new();
        let mut wanted_by: HashMap<&ReferenceTarget, Vec<(StackIndex, Span)>> = HashMap::new();
        for reference in &references.list {
            match reference.kind {
                ReferenceKind::Wants => declared
                    .entry(reference.from)
                    .or_default()
                    .push((&reference.target, reference.span)),
                ReferenceKind::WantedBy => wanted_by
                    .entry(&reference.target)
                    .or_default()
                    .push((reference.from, reference.span)),
                ReferenceKind::After
                | ReferenceKind::Before
                | ReferenceKind::ReplaceTriggeredBy
                | ReferenceKind::Data(_) => {}
            }
        }
        let mut sorted: Vec<&ReferenceTarget> = wanted_by.keys().copied().collect();
        sorted.sort_unstable_by_key(|target| {
            let declaring = wanted_by[target].iter();
            declaring.map(|&(stack, span)| (stack, span.start)).min()
        });
        let mut targets: HashMap<StackIndex, Vec<&ReferenceTarget>> = HashMap::new();
        for target in sorted {
            for member in references.members(target, stacks) {
                targets.entry(member).or_default().push(target);
            }
        }
        Wants {
            stacks,
            references,
            declared,
            wanted_by,
            targets,
        }
    }

    /// Adds the stacks that selected ones want, breadth first, except for excluded ones.
    pub(super) fn close(&self, query: &Query, selection: &mut Selection) {
        if self.declared.is_empty() && self.wanted_by.is_empty() {
            return;
        }
        let mut opened: HashMap<&ReferenceTarget, Opened> = HashMap::new();
        let mut waiting: HashMap<&ReferenceTarget, Vec<&[(StackIndex, Span)]>> = HashMap::new();
        let mut queue: VecDeque<StackIndex> = selection.stacks().collect();
        while let Some(stack) = queue.pop_front() {
            let mut add = |wanted: StackIndex, reason: SelectionReason| {
                if query.excludes(&self.stacks[wanted]) {
                    return;
                }
                selection.stacks.entry(wanted).or_insert_with(|| {
                    queue.push_back(wanted);
                    selection.dropped.remove(&wanted);
                    vec![reason]
                });
            };
            for &(target, span) in self.declared.get(&stack).into_iter().flatten() {
                for wanted in self.open(target, stack, &mut opened) {
                    add(wanted, SelectionReason::Wants(stack, span));
                }
            }
            for &target in self.targets.get(&stack).into_iter().flatten() {
                let declaring = waiting
                    .entry(target)
                    .or_insert_with(|| self.wanted_by(target));
                declaring.retain(|here| {
                    // A stack that names a directory around it does not name the stacks nested in it.
                    let is_nested = matches!(target, ReferenceTarget::Enclosing(_))
                        && self.lies_in(stack, here[0].0);
                    if !is_nested {
                        for &(wanted, span) in *here {
                            add(wanted, SelectionReason::WantedBy(stack, span));
                        }
                    }
                    is_nested
                });
            }
        }
    }

    /// Returns the stacks that name a target in `wanted_by`. Instances in one directory are grouped, since
    /// the same stacks are nested in all of them.
    fn wanted_by(&self, target: &ReferenceTarget) -> Vec<&[(StackIndex, Span)]> {
        let directory = |(stack, _): &(StackIndex, Span)| self.stacks[*stack].path.directory();
        let declaring = self.wanted_by[target].as_slice();
        declaring
            .chunk_by(|a, b| directory(a) == directory(b))
            .collect()
    }

    /// Returns the stacks of a target that `from` wants and that no stack has wanted so far. They may already
    /// be selected.
    fn open(
        &self,
        target: &'a ReferenceTarget,
        from: StackIndex,
        opened: &mut HashMap<&'a ReferenceTarget, Opened>,
    ) -> Vec<StackIndex> {
        let mut members = match opened.get(target) {
            None => self.references.members(target, self.stacks),
            // A later stack wants the stacks nested in the first one too.
            Some(&Opened::Without(first)) if !self.lies_in(first, from) => {
                let directory = self.stacks[first].path.directory();
                self.stacks.at_or_below(directory).collect()
            }
            Some(_) => return Vec::new(),
        };
        let without = match target {
            ReferenceTarget::Enclosing(_) => {
                members.retain(|&member| !self.lies_in(member, from));
                Opened::Without(from)
            }
            ReferenceTarget::Stack(_)
            | ReferenceTarget::Directory(_)
            | ReferenceTarget::Instances(_)
            | ReferenceTarget::Tag(_) => Opened::Whole,
        };
        opened.insert(target, without);
        members
    }

    fn lies_in(&self, stack: StackIndex, outer: StackIndex) -> bool {
        let directory = self.stacks[stack].path.directory();
        directory.is_at_or_below(self.stacks[outer].path.directory())
    }
}

/// The part of a target that some stack wants.
#[derive(Clone, Copy)]
enum Opened {
    Whole,
    /// All but those at or below this stack, which wants a directory that contains it.
    Without(StackIndex),
}
