//! Which stacks a command acts on, and why: one selector for all commands.
//!
//! All stacks → changed → current directory → tags → `wants` and `wanted_by`, closed transitively
//! and regardless of the filters before them.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crate::change::{Cause, Changes, Since};
use crate::path::ProjectPath;
use crate::reference::{ReferenceKind, References, Target};
use crate::source::Span;
use crate::stack::{StackIndex, Stacks};
use crate::tag::TagFilter;

/// What the user asks for.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The stacks that have changed, where only those are wanted.
    pub changed: Option<Changes>,
    /// The directory that limits the selection.
    pub directory: ProjectPath,
    /// How it limits it.
    pub scope: Scope,
    /// Only stacks that match one of these; any stack if there are none.
    pub tags: Vec<TagFilter>,
    /// No stack that carries one of these tags.
    pub no_tags: Vec<String>,
}

/// How a directory limits the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Stacks at or below it.
    Recursive,
    /// Only the stack at it.
    Exact,
}

/// Why a stack is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It has changed.
    Changed(Cause),
    /// It lies at or below the directory, or is the stack at it.
    Directory(ProjectPath, Scope),
    /// It matches a tag filter of the command line.
    Tags(TagFilter),
    /// A selected stack names it in `wants`.
    Wants(StackIndex, Span),
    /// It names a selected stack in `wanted_by`.
    WantedBy(StackIndex, Span),
}

/// The stacks that a command acts on, each with the reasons it is in.
#[derive(Debug, Default)]
pub struct Selection {
    stacks: BTreeMap<StackIndex, Vec<Reason>>,
    since: Option<Since>,
}

impl Selection {
    /// Returns the stacks in path order.
    pub fn stacks(&self) -> impl Iterator<Item = StackIndex> {
        self.stacks.keys().copied()
    }

    /// Returns what changes are measured from, where only what has changed was wanted.
    pub fn since(&self) -> Option<&Since> {
        self.since.as_ref()
    }

    /// Returns how many stacks are selected.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Says whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Says whether a stack is selected.
    pub fn contains(&self, stack: StackIndex) -> bool {
        self.stacks.contains_key(&stack)
    }

    /// Returns why a stack is selected; nothing if it is not. What the filters let pass has their
    /// reasons; what is only wanted names the nearest stack that wants it.
    pub fn reasons(&self, stack: StackIndex) -> &[Reason] {
        self.stacks.get(&stack).map_or(&[], Vec::as_slice)
    }
}

/// Selects the stacks that a wish means.
pub fn select(stacks: &Stacks, references: &References, wish: &Wish) -> Selection {
    let candidates: Vec<StackIndex> = match wish.scope {
        Scope::Recursive => stacks.at_or_below(&wish.directory).collect(),
        Scope::Exact => stacks.at(wish.directory.as_str()).into_iter().collect(),
    };
    let mut selection = Selection {
        stacks: BTreeMap::new(),
        since: wish.changed.as_ref().map(|changes| changes.since.clone()),
    };
    for candidate in candidates {
        let stack = &stacks[candidate];
        let mut reasons = Vec::with_capacity(1);
        if let Some(changed) = &wish.changed {
            match changed.stacks.get(&candidate) {
                Some(cause) => reasons.push(Reason::Changed(cause.clone())),
                None => continue,
            }
        }
        reasons.push(Reason::Directory(wish.directory.clone(), wish.scope));
        if !wish.tags.is_empty() {
            match wish
                .tags
                .iter()
                .find(|filter| filter.matches(|tag| stack.has_tag(tag)))
            {
                Some(filter) => reasons.push(Reason::Tags(filter.clone())),
                None => continue,
            }
        }
        if !wish.no_tags.iter().any(|tag| stack.has_tag(tag)) {
            selection.stacks.insert(candidate, reasons);
        }
    }
    close_over_wants(stacks, references, &mut selection);
    selection
}

/// Adds what the selected stacks want, breadth first.
fn close_over_wants(stacks: &Stacks, references: &References, selection: &mut Selection) {
    // `wanted_by` is `wants` seen from the other side: for a group, kept once for all its members.
    let mut wants: HashMap<StackIndex, Vec<(&Target, Span)>> = HashMap::new();
    let mut wanted_by: HashMap<&Target, Vec<(StackIndex, Span)>> = HashMap::new();
    for reference in &references.list {
        match reference.kind {
            ReferenceKind::Wants => wants
                .entry(reference.from)
                .or_default()
                .push((&reference.target, reference.span)),
            ReferenceKind::WantedBy => {
                wanted_by
                    .entry(&reference.target)
                    .or_default()
                    .push((reference.from, reference.span));
            }
            ReferenceKind::After | ReferenceKind::Before => {}
        }
    }
    if wants.is_empty() && wanted_by.is_empty() {
        return;
    }
    let mut wanted_by_stack: HashMap<StackIndex, Vec<&Target>> = HashMap::new();
    let mut targets: Vec<&Target> = wanted_by.keys().copied().collect();
    targets.sort_unstable_by_key(|target| {
        wanted_by[target]
            .iter()
            .map(|&(stack, span)| (stack, span.start))
            .min()
    });
    for target in targets {
        for member in references.members(target, stacks) {
            wanted_by_stack.entry(member).or_default().push(target);
        }
    }
    let mut opened: HashSet<&Target> = HashSet::new();
    let mut queue: VecDeque<StackIndex> = selection.stacks().collect();
    while let Some(stack) = queue.pop_front() {
        let mut add = |wanted: StackIndex, reason: Reason| {
            selection.stacks.entry(wanted).or_insert_with(|| {
                queue.push_back(wanted);
                vec![reason]
            });
        };
        for &(target, span) in wants.get(&stack).into_iter().flatten() {
            // A tag group that holds this stack leaves it out, but it is selected already.
            if opened.insert(target) {
                for wanted in references.members(target, stacks) {
                    add(wanted, Reason::Wants(stack, span));
                }
            }
        }
        for target in wanted_by_stack.remove(&stack).into_iter().flatten() {
            for (wanted, span) in wanted_by.remove(target).into_iter().flatten() {
                // A stack that names its own tag does not thereby want itself; it is selected already.
                add(wanted, Reason::WantedBy(stack, span));
            }
        }
    }
}
