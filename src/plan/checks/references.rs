//! The stacks that conditions name: each must exist, and the condition's stack must run after it.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::OnceLock;

use super::names::no_itself;
use crate::diagnostic::{Code, Diagnostic};
use crate::project::Project;
use crate::project::environment::Environments;
use crate::project::lifecycle::{Condition, ConditionKind, Mentions};
use crate::project::stack::StackIndex;
use crate::selection::graph::{Graph, Precedence};
use crate::source::Span;

pub(super) struct EarlierStacks<'p> {
    graph: &'p Graph,
    /// The reversed precedence, computed on first use.
    reversed: OnceLock<Precedence>,
}

impl<'p> EarlierStacks<'p> {
    pub(super) fn new(graph: &'p Graph) -> Self {
        EarlierStacks {
            graph,
            reversed: OnceLock::new(),
        }
    }

    /// Returns whether a stack runs after another. Direct predecessors need no search.
    fn runs_after(&self, stack: StackIndex, source: StackIndex) -> bool {
        let reversed = self
            .reversed
            .get_or_init(|| Precedence::new(self.graph).reversed());
        let mut seen: HashSet<usize> = HashSet::new();
        let mut open = VecDeque::from([stack.get()]);
        while let Some(node) = open.pop_front() {
            for before in reversed.successors(node) {
                let before = before.node as usize;
                if before == source.get() {
                    return true;
                }
                if seen.insert(before) {
                    open.push_back(before);
                }
            }
        }
        false
    }

    /// Resolves a stack that a condition names. Fails if its outputs must not be used.
    pub(super) fn resolve(
        &self,
        project: &Project,
        stack: StackIndex,
        written: &str,
        span: Span,
    ) -> Result<StackIndex, Diagnostic> {
        let stacks = &project.stacks;
        let own = &stacks[stack].path;
        let source = stacks.one_written(own.directory(), written, span)?;
        if source == stack {
            let message = format!("`{written}` is the stack itself");
            return Err(Diagnostic::error(Code::SelfReference, message)
                .label(span, format!("the condition is one of `{own}`"))
                .help("in a `postcondition`, write `self.outputs`"));
        }
        self.check(project, stack, source, ("outputs", span))?;
        Ok(source)
    }

    fn check(
        &self,
        project: &Project,
        stack: StackIndex,
        source: StackIndex,
        (what, span): (&str, Span),
    ) -> Result<(), Diagnostic> {
        if self.runs_after(stack, source) {
            return Ok(());
        }
        let stacks = &project.stacks;
        let (own, named) = (&stacks[stack].path, &stacks[source].path);
        let message = format!("`{own}` uses {what} of `{named}`, but does not run after it");
        Err(Diagnostic::error(Code::UnavailableName, message)
            .label(span, "an `after` is missing")
            .label(stacks[stack].span, "in this stack")
            .help(format!("add `after = [\"{named}\"]` to `{own}`")))
    }
}

/// The stacks whose outputs conditions may need.
#[derive(Debug, Default)]
pub struct MentionedStacks {
    /// Those that they name literally.
    pub stacks: BTreeSet<StackIndex>,
    pub itself: bool,
    /// Whether they compute others.
    pub computes: bool,
}

pub fn mentioned(
    project: &Project,
    stack: StackIndex,
    conditions: &[&Condition],
) -> MentionedStacks {
    let mut all = MentionedStacks::default();
    for condition in conditions {
        let named = Mentions::of(condition);
        all.computes |= named.computes;
        all.itself |= named.uses_own_outputs;
        for (written, _) in named.stacks {
            let directory = project.stacks[stack].path.directory();
            let only = project.stacks.written(directory, written);
            all.stacks.extend(only.ok().and_then(|named| named.only()));
        }
    }
    all
}

/// Returns problems with the stacks whose generations environments are computed from. A problem of
/// an inherited variable is reported once, with the first stack that has it.
pub fn misplaced_generations(
    environments: &Environments<'_>,
    graph: &Graph,
    stacks: &[StackIndex],
) -> Vec<Diagnostic> {
    let project = environments.namespaces().project();
    let after = EarlierStacks::new(graph);
    let mut problems = CountedProblems::default();
    for &stack in stacks {
        for (source, span) in environments.stacks_used(stack) {
            let problem = if source == stack {
                let message = format!("`{}` is the stack itself", project.stacks[stack].path);
                let diagnostic = Diagnostic::error(Code::SelfReference, message)
                    .label(span, "a variable of this stack");
                Err(diagnostic.help("write `orch.stack.generation`"))
            } else {
                after.check(project, stack, source, ("the generation", span))
            };
            if let Err(problem) = problem {
                problems.add(span, problem);
            }
        }
    }
    problems.diagnostics()
}

/// Problems that several stacks may have in the same place.
#[derive(Default)]
struct CountedProblems {
    /// Each with the number of stacks that have it.
    all: Vec<(Diagnostic, usize)>,
    positions: HashMap<(Span, Code), usize>,
}

impl CountedProblems {
    fn add(&mut self, span: Span, problem: Diagnostic) {
        let next = self.all.len();
        let position = *self.positions.entry((span, problem.code)).or_insert(next);
        if position == next {
            self.all.push((problem, 0));
        }
        self.all[position].1 += 1;
    }

    fn diagnostics(self) -> Vec<Diagnostic> {
        let diagnostics = self.all.into_iter().map(|(problem, n)| match n {
            1 => problem,
            n => problem.note(format!("this applies to {} more of its stacks", n - 1)),
        });
        diagnostics.collect()
    }
}

/// Returns problems with the stacks that conditions name. A problem of an inherited condition is
/// reported once, with the first stack that has it.
pub fn misplaced(
    project: &Project,
    graph: &Graph,
    stacks: impl Iterator<Item = StackIndex>,
) -> Vec<Diagnostic> {
    let after = EarlierStacks::new(graph);
    let mut by_condition: HashMap<*const Condition, Mentions<'_>> = HashMap::new();
    let mut problems = CountedProblems::default();
    for stack in stacks {
        for condition in project.rules_of(stack).conditions {
            let named = by_condition
                .entry(std::ptr::from_ref(condition))
                .or_insert_with(|| Mentions::of(condition));
            let itself = named
                .itself
                .filter(|_| condition.kind == ConditionKind::Precondition)
                .map(|span| (span, no_itself(span)));
            let named = named.stacks.iter().filter_map(|&(written, span)| {
                let problem = after.resolve(project, stack, written, span).err()?;
                Some((span, problem))
            });
            for (span, problem) in named.chain(itself) {
                problems.add(span, problem);
            }
        }
    }
    problems.diagnostics()
}
