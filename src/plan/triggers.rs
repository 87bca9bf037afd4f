//! `replace_triggered_by`: which stacks are replaced because others have changed, or are about to.
//!
//! A trigger is something to run after, so one pass along the graph finds chains too. This module does not
//! know how stacks stand, or what is on record: that is asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::project::stack::{StackIndex, StackMode, Stacks};
use crate::selection::graph::{Graph, Precedence};
use crate::selection::reference::{Reference, ReferenceKind, References, Target};
use crate::source::Span;

/// Returns the outputs that count for some `replace_triggered_by`, by the stack that has them.
pub fn named_outputs(references: &References) -> BTreeMap<StackIndex, BTreeSet<String>> {
    let mut named: BTreeMap<StackIndex, BTreeSet<String>> = BTreeMap::new();
    for reference in &references.list {
        if let (Some(output), Target::Stack(stack)) = (&reference.output, &reference.target) {
            named.entry(*stack).or_default().insert(output.clone());
        }
    }
    named
}

/// What a plan does with a stack, as far as others are triggered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// Nothing that triggers anything, or it is not part of the plan.
    Still,
    /// Nothing so far; it is looked at again if something with work comes before it.
    Open,
    /// It is created or destroyed: it triggers nothing, but what comes after it is looked at again.
    Work,
    /// It is updated or replaced.
    Changes,
}

/// What is known of a stack that others name, or that names others.
pub trait Known {
    /// Returns what a plan does with a stack before triggers are looked at.
    fn course(&self, stack: StackIndex) -> Course;

    /// Returns whether a stack is on record and part of the plan, so that it may be replaced.
    fn may_be_replaced(&self, stack: StackIndex) -> bool;

    /// Returns the write with which the last update or replacement of a stack was recorded, if any was.
    fn changed(&self, stack: StackIndex) -> Option<u64>;

    /// Returns the write with which the last apply of a stack was recorded, if any was.
    fn applied(&self, stack: StackIndex) -> Option<u64>;

    /// Returns whether an output of a stack has another value on record than that with which the stack `from`
    /// was applied.
    fn output_differs(&self, from: StackIndex, named: StackIndex, output: &str) -> bool;
}

/// What triggers a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger<'r> {
    /// The stack that changes.
    pub stack: StackIndex,
    /// The output that counts, if only one does.
    pub output: Option<&'r str>,
    /// Whether it has changed in an earlier apply.
    pub is_past: bool,
    /// Where it is named.
    pub span: Span,
}

/// The stacks that are triggered.
#[derive(Debug, Default)]
pub struct Triggered<'r> {
    /// Those that are replaced, with the first trigger that fires.
    pub fired: BTreeMap<StackIndex, Trigger<'r>>,
    /// Those that are replaced if something changes that is only known during the apply.
    pub open: BTreeMap<StackIndex, Vec<Trigger<'r>>>,
}

/// What is known of all stacks that a reference names.
#[derive(Debug, Clone, Copy, Default)]
struct Summary {
    /// The first that changes in this plan.
    changes: Option<StackIndex>,
    /// The first of which that is not known.
    open: Option<StackIndex>,
    /// The one that has changed last on record, with the serial.
    past: Option<(u64, StackIndex)>,
}

/// Finds the stacks that are triggered. It takes time linear in the size of the graph and in the number of
/// stacks that each group of references names.
pub fn triggered<'r>(
    stacks: &Stacks,
    graph: &Graph,
    references: &'r References,
    known: &dyn Known,
) -> Triggered<'r> {
    let mut by_stack: HashMap<StackIndex, Vec<&Reference>> = HashMap::new();
    for reference in &references.list {
        if reference.kind == ReferenceKind::ReplaceTriggeredBy
            && known.may_be_replaced(reference.from)
        {
            by_stack.entry(reference.from).or_default().push(reference);
        }
    }
    if by_stack.is_empty() {
        return Triggered::default();
    }
    let mut pass = Pass {
        stacks,
        references,
        known,
        courses: stacks
            .iter()
            .map(|(stack, _)| known.course(stack))
            .collect(),
        summaries: HashMap::new(),
        found: Triggered::default(),
    };
    let precedence = Precedence::new(graph);
    let mut pending = precedence.pending();
    let mut ready: Vec<usize> = (0..pending.len())
        .filter(|&node| pending[node] == 0)
        .collect();
    // By node, whether something with work comes before it.
    let mut is_after_work = vec![false; pending.len()];
    while let Some(node) = ready.pop() {
        let mut has_work = is_after_work[node];
        if node < stacks.len() {
            let stack = StackIndex::new(node);
            if pass.courses[node] == Course::Open && !has_work {
                pass.courses[node] = Course::Still;
            }
            for reference in by_stack.get(&stack).into_iter().flatten() {
                pass.look_at(reference);
            }
            has_work |= matches!(pass.courses[node], Course::Work | Course::Changes);
        }
        for successor in precedence.successors(node) {
            let next = successor.node as usize;
            is_after_work[next] |= has_work;
            pending[next] -= 1;
            if pending[next] == 0 {
                ready.push(next);
            }
        }
    }
    // What is replaced anyway depends on nothing else.
    let Triggered { fired, open } = &mut pass.found;
    open.retain(|stack, _| !fired.contains_key(stack));
    pass.found
}

struct Pass<'a, 'r> {
    stacks: &'a Stacks,
    references: &'r References,
    known: &'a dyn Known,
    courses: Vec<Course>,
    /// By target, for references of stacks that do not belong to it.
    summaries: HashMap<&'r Target, Summary>,
    found: Triggered<'r>,
}

impl<'r> Pass<'_, 'r> {
    /// Looks at a reference, all of whose stacks have been looked at.
    fn look_at(&mut self, reference: &'r Reference) {
        let from = reference.from;
        let trigger = |stack: StackIndex, is_past: bool| Trigger {
            stack,
            output: reference.output.as_deref(),
            is_past,
            span: reference.span,
        };
        if let (Some(output), Target::Stack(named)) = (&reference.output, &reference.target) {
            // What an output will be is known once its stack has been applied.
            if self.known.output_differs(from, *named, output) {
                self.fire(from, trigger(*named, true));
            } else if matches!(self.courses[named.get()], Course::Changes | Course::Open) {
                self.open(from, trigger(*named, false));
            }
            return;
        }
        let summary = self.summary(reference);
        let applied = self.known.applied(from);
        if let Some(stack) = summary.changes {
            self.fire(from, trigger(stack, false));
        } else if let (Some((changed, stack)), Some(applied)) = (summary.past, applied)
            && changed > applied
        {
            self.fire(from, trigger(stack, true));
        } else if let Some(stack) = summary.open {
            self.open(from, trigger(stack, false));
        }
    }

    fn fire(&mut self, from: StackIndex, trigger: Trigger<'r>) {
        self.found.fired.entry(from).or_insert(trigger);
        self.courses[from.get()] = Course::Changes;
    }

    fn open(&mut self, from: StackIndex, trigger: Trigger<'r>) {
        self.found.open.entry(from).or_default().push(trigger);
        let course = &mut self.courses[from.get()];
        if *course == Course::Still {
            *course = Course::Open;
        }
    }

    fn summary(&mut self, reference: &'r Reference) -> Summary {
        let target = &reference.target;
        // A stack that belongs to the group names the others.
        let own = self.stacks[reference.from].path.directory();
        let is_member = match target {
            Target::Stack(_) | Target::Directory(_) => false,
            Target::Enclosing(_) => true,
            Target::Instances(directory) => own == directory,
            Target::Tag(_) => {
                let members = self.references.members(target, self.stacks);
                members.binary_search(&reference.from).is_ok()
            }
        };
        if is_member {
            let named = self.references.named(reference, self.stacks);
            return self.summed_up(named.into_iter());
        }
        if let Some(summary) = self.summaries.get(target) {
            return *summary;
        }
        let members = self.references.members(target, self.stacks);
        let summary = self.summed_up(members.into_iter());
        self.summaries.insert(target, summary);
        summary
    }

    fn summed_up(&self, named: impl Iterator<Item = StackIndex>) -> Summary {
        let mut summary = Summary::default();
        for stack in named.filter(|&it| self.stacks[it].mode == StackMode::Manage) {
            match self.courses[stack.get()] {
                Course::Changes => _ = summary.changes.get_or_insert(stack),
                Course::Open => _ = summary.open.get_or_insert(stack),
                Course::Still | Course::Work => {}
            }
            let changed = self.known.changed(stack);
            let is_later = |changed: u64| summary.past.is_none_or(|(last, _)| changed > last);
            if let Some(changed) = changed.filter(|&changed| is_later(changed)) {
                summary.past = Some((changed, stack));
            }
        }
        summary
    }
}
