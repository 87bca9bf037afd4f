//! `replace_triggered_by`: stacks that are replaced because others have changed or will change.
//!
//! A stack runs after its triggers, so one pass along the graph also finds chains. [`TriggerFacts`]
//! supplies the status and recorded facts of stacks. [`recorded_trigger`] finds what has changed since, for the
//! stacks that a plan leaves open.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::driver::are_incomparable;
use crate::project::stack::{Stack, StackIndex, StackMode, Stacks};
use crate::selection::graph::{Graph, Precedence};
use crate::selection::reference::{Reference, ReferenceKind, ReferenceTarget, References};
use crate::source::Span;
use crate::state::document::{Applied, Document, Entry};

/// Returns the outputs that `replace_triggered_by` rules name, by stack.
pub fn named_outputs(references: &References) -> BTreeMap<StackIndex, BTreeSet<String>> {
    let mut named: BTreeMap<StackIndex, BTreeSet<String>> = BTreeMap::new();
    for reference in &references.list {
        if let (Some(output), ReferenceTarget::Stack(stack)) =
            (&reference.output, &reference.target)
        {
            named.entry(*stack).or_default().insert(output.clone());
        }
    }
    named
}

/// Returns the comparable digests of a stack's outputs, by name, that others were applied with: the last ones. They tell
/// whether a sensitive output has changed that is unknown since.
pub fn noted_outputs(document: &Document, key: &str) -> BTreeMap<String, String> {
    let applied = document.stacks.values();
    let mut applied: Vec<&Applied> = applied.filter_map(|it| it.applied.as_ref()).collect();
    applied.sort_by_key(|applied| applied.serial);
    let noted = applied.iter().flat_map(|applied| &applied.triggered_by);
    let noted = noted.filter(|(_, digest)| !are_incomparable(digest, digest));
    let of_stack = noted.filter_map(|(name, digest)| {
        let (stack, output) = name.rsplit_once('#')?;
        (stack == key).then(|| (output.to_owned(), digest.clone()))
    });
    of_stack.collect()
}

/// A trigger that replaces a stack whose replacement the plan left open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiredTrigger {
    /// The stack or the output.
    pub name: String,
    /// Whether it may not have changed: the output is unknown.
    pub is_unknown: bool,
}

/// Returns the trigger that has fired since a stack was applied, if any, given a stack that one of its references
/// names, with its key and entry, and its outputs if they are known.
pub fn recorded_trigger(
    applied: &Applied,
    reference: &Reference,
    (stack, key, named): (&Stack, &str, &Entry),
    outputs: Option<&BTreeMap<String, String>>,
) -> Option<FiredTrigger> {
    let Some(output) = &reference.output else {
        let has_changed = named.may_have_changed() > Some(applied.serial);
        let has_changed = has_changed && stack.mode == StackMode::Manage;
        return has_changed.then(|| FiredTrigger {
            name: stack.path.to_string(),
            is_unknown: false,
        });
    };
    let noted = applied.triggered_by.get(&format!("{key}#{output}"))?;
    let now = outputs.map(|outputs| outputs.get(output).map_or("", String::as_str));
    (now != Some(noted)).then(|| FiredTrigger {
        name: format!("{}#{output}", stack.path),
        is_unknown: now.is_none(),
    })
}

/// The action on a stack, as far as it triggers others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerOutlook {
    /// It triggers nothing, or is not part of the plan.
    Unchanged,
    /// It triggers nothing yet; checked again if a stack with work precedes it.
    Open,
    /// It is created or destroyed: it triggers nothing, but its dependents are checked again.
    Work,
    Changes,
}

pub trait TriggerFacts {
    /// Returns the action on a stack before triggers are considered.
    fn outlook(&self, stack: StackIndex) -> TriggerOutlook;

    /// Returns whether a stack is recorded and in the plan, so that it may be replaced.
    fn may_be_replaced(&self, stack: StackIndex) -> bool;

    /// Returns the serial of the last update or replacement of a stack, if recorded.
    fn changed(&self, stack: StackIndex) -> Option<u64>;

    /// Returns the serial of the last apply of a stack, if recorded.
    fn applied(&self, stack: StackIndex) -> Option<u64>;

    /// Returns whether the recorded output differs from the one that `from` was applied with.
    fn output_differs(&self, from: StackIndex, named: StackIndex, output: &str) -> bool;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaceCause<'r> {
    pub stack: StackIndex,
    /// The output that triggers; `None` for any change of the stack.
    pub output: Option<&'r str>,
    /// Whether it changed in an earlier apply.
    pub is_past: bool,
    pub span: Span,
}

#[derive(Debug, Default)]
pub struct Replacements<'r> {
    /// The stacks to replace, with the first trigger that fires.
    pub fired: BTreeMap<StackIndex, ReplaceCause<'r>>,
    /// The stacks that are replaced if a change turns up during the apply.
    pub open: BTreeMap<StackIndex, Vec<ReplaceCause<'r>>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Summary {
    /// The first that changes in this plan.
    changes: Option<StackIndex>,
    /// The first that may change.
    open: Option<StackIndex>,
    /// The last one to change according to the state, with the serial.
    past: Option<(u64, StackIndex)>,
}

/// Finds the triggered stacks, in time linear in the graph and in the stacks that references match.
pub fn triggered<'r>(
    stacks: &Stacks,
    graph: &Graph,
    references: &'r References,
    known: &dyn TriggerFacts,
) -> Replacements<'r> {
    let mut by_stack: HashMap<StackIndex, Vec<&Reference>> = HashMap::new();
    for reference in &references.list {
        if reference.kind == ReferenceKind::ReplaceTriggeredBy
            && known.may_be_replaced(reference.from)
        {
            by_stack.entry(reference.from).or_default().push(reference);
        }
    }
    if by_stack.is_empty() {
        return Replacements::default();
    }
    let mut pass = TriggerPass {
        stacks,
        references,
        known,
        courses: stacks
            .iter()
            .map(|(stack, _)| known.outlook(stack))
            .collect(),
        summaries: HashMap::new(),
        found: Replacements::default(),
    };
    let precedence = Precedence::new(graph);
    let mut pending = precedence.pending();
    let mut ready: Vec<usize> = (0..pending.len())
        .filter(|&node| pending[node] == 0)
        .collect();
    // By node: whether a stack with work precedes it.
    let mut is_after_work = vec![false; pending.len()];
    while let Some(node) = ready.pop() {
        let mut has_work = is_after_work[node];
        if node < stacks.len() {
            let stack = StackIndex::new(node);
            if pass.courses[node] == TriggerOutlook::Open && !has_work {
                pass.courses[node] = TriggerOutlook::Unchanged;
            }
            for reference in by_stack.get(&stack).into_iter().flatten() {
                pass.evaluate(reference);
            }
            has_work |= matches!(
                pass.courses[node],
                TriggerOutlook::Work | TriggerOutlook::Changes
            );
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
    // A stack that is replaced anyway depends on nothing else.
    let Replacements { fired, open } = &mut pass.found;
    open.retain(|stack, _| !fired.contains_key(stack));
    pass.found
}

struct TriggerPass<'a, 'r> {
    stacks: &'a Stacks,
    references: &'r References,
    known: &'a dyn TriggerFacts,
    courses: Vec<TriggerOutlook>,
    /// By target, for references from stacks outside of it.
    summaries: HashMap<&'r ReferenceTarget, Summary>,
    found: Replacements<'r>,
}

impl<'r> TriggerPass<'_, 'r> {
    /// Evaluates a reference, after all of its stacks.
    fn evaluate(&mut self, reference: &'r Reference) {
        let from = reference.from;
        let trigger = |stack: StackIndex, is_past: bool| ReplaceCause {
            stack,
            output: reference.output.as_deref(),
            is_past,
            span: reference.span,
        };
        if let (Some(output), ReferenceTarget::Stack(named)) =
            (&reference.output, &reference.target)
        {
            // A new output is known once its stack has been applied.
            if self.known.output_differs(from, *named, output) {
                self.fire(from, trigger(*named, true));
            } else if matches!(
                self.courses[named.get()],
                TriggerOutlook::Changes | TriggerOutlook::Open
            ) {
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

    fn fire(&mut self, from: StackIndex, trigger: ReplaceCause<'r>) {
        self.found.fired.entry(from).or_insert(trigger);
        self.courses[from.get()] = TriggerOutlook::Changes;
    }

    fn open(&mut self, from: StackIndex, trigger: ReplaceCause<'r>) {
        self.found.open.entry(from).or_default().push(trigger);
        let course = &mut self.courses[from.get()];
        if *course == TriggerOutlook::Unchanged {
            *course = TriggerOutlook::Open;
        }
    }

    fn summary(&mut self, reference: &'r Reference) -> Summary {
        let target = &reference.target;
        // A stack in the group refers to the others.
        let own = self.stacks[reference.from].path.directory();
        let is_member = match target {
            ReferenceTarget::Stack(_) | ReferenceTarget::Directory(_) => false,
            ReferenceTarget::Enclosing(_) => true,
            ReferenceTarget::Instances(directory) => own == directory,
            ReferenceTarget::Tag(_) => {
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
                TriggerOutlook::Changes => _ = summary.changes.get_or_insert(stack),
                TriggerOutlook::Open => _ = summary.open.get_or_insert(stack),
                TriggerOutlook::Unchanged | TriggerOutlook::Work => {}
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
