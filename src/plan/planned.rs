//! The plan: all entries, with the options and the state that it was made from.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::entry::{PlanEntry, PlanMode, PlannedAction, Removed};
use crate::change::AppliedBase;
use crate::path::StackPath;
use crate::plan::checks::FailedCondition;
use crate::plan::order::{
    NamedConstraints, OperationOrder, RecordedConstraints, RelaxedEdge, ReplacementOrder, StackWork,
};
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::run::evaluated::{PolicyProblem, ProblemSeverity};
use crate::run::schedule::OnError;
use crate::run::turn::{Operation, TurnIndex};
use crate::selection::graph::{Graph, Precedence};
use crate::state::document::Document;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub id: String,
    pub mode: PlanMode,
    pub options: RequestedOptions,
    pub commit: Option<String>,
    /// The state that it was made from.
    pub state: Option<AppliedBase>,
    /// By path.
    pub entries: Vec<PlanEntry>,
    /// The operations in serial order, without undecided stacks.
    pub operations: Vec<PlannedOperation>,
    /// The recorded constraints that the operations violate, each with the effect.
    #[serde(default)]
    pub relaxed: Vec<RelaxedConstraint>,
    pub failed: Vec<FailedAsk>,
    pub without_driver: usize,
    /// Stacks in the state that are neither in this commit nor in the plan.
    #[serde(default)]
    pub removals: UnplannedRemovals,
    /// Stacks that are not selected and run after stacks with work.
    #[serde(default)]
    pub dependents_out_of_scope: usize,
    /// The stacks of operations and undecided stacks in serial order; empty if none is undecided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequence: Vec<StackPath>,
    /// The follow-ups that policies add; `None` if policies are off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followups: Option<PlannedFollowUps>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    Nothing,
    /// There are changes, but all are blocked.
    Blocked,
    /// There are changes, or at least the state is updated.
    Changes,
}

/// Counts of stacks in the state that are neither in this commit nor in the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnplannedRemovals {
    /// Not selected.
    pub out_of_scope: usize,
    /// Excluded on request.
    pub left_out: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct RequestedOptions {
    /// Whether all tools were asked, regardless of the state.
    pub full: bool,
    pub init: bool,
    /// Whether stacks were planned that a later commit has applied.
    pub allow_rollback: bool,
    /// As written.
    pub replace: Vec<String>,
    /// Whether the user passed arguments to `plan`. Their values may be secret, so they are not stored here.
    pub arguments: bool,
    /// The options among these arguments, with values only if these are addresses of resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_options: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedOperation {
    pub stack: StackPath,
    pub destroys: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RelaxedConstraint {
    #[serde(default)]
    pub effect: RelaxedEffect,
    /// The stack that must come first, as `orch list` prints it, or the name of its group.
    pub earlier: String,
    /// The stack that must come later, or the name of its group.
    pub later: String,
}

/// The effect of a violated constraint, the worst first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelaxedEffect {
    /// The earlier stack is destroyed although the later one, which is kept, still refers to it.
    DestroyedFirst,
    /// The earlier stack is applied although the later one, destroyed afterwards, still refers to
    /// it.
    ChangedFirst,
    /// Newer declarations contradict it and take precedence.
    #[default]
    Contradicted,
}

pub struct PlannedOrder {
    pub order: OperationOrder,
    /// Stacks in the state but not in this commit: at least the destroyed ones. Their numbers
    /// follow those of the project's stacks.
    pub removed: Vec<StackPath>,
    /// The violated constraints, deduplicated, the worst first.
    pub relaxed: Vec<RelaxedConstraint>,
}

impl PlannedOrder {
    pub fn new(
        project: &Project,
        graph: &Graph,
        document: Option<&Document>,
        actions: impl Iterator<Item = (StackIndex, PlannedAction)>,
        removed: &BTreeMap<String, PlannedAction>,
    ) -> Self {
        let mut works = vec![StackWork::default(); project.stacks.len()];
        for (stack, action) in actions {
            works[stack.get()] = StackWork {
                destroy: matches!(action, PlannedAction::Replace | PlannedAction::Delete),
                apply: matches!(
                    action,
                    PlannedAction::Create | PlannedAction::Update | PlannedAction::Replace
                ),
            };
        }
        let removed = removed
            .iter()
            .filter(|&(_, action)| *action == PlannedAction::Delete)
            .map(|(key, _)| key.as_str())
            .collect();
        Self::of(project, graph, document, &works, &removed)
    }

    /// Orders work on the project's stacks, by index, and destroys of removed stacks, by key.
    /// Applies follow this commit's constraints; destroys follow the recorded ones in reverse.
    /// Without a document, nothing is recorded. A key that is unrecorded, or belongs to a stack of
    /// this commit, has no operation.
    pub fn of(
        project: &Project,
        graph: &Graph,
        document: Option<&Document>,
        works: &[StackWork],
        removed: &BTreeSet<&str>,
    ) -> Self {
        Self::with_late(project, graph, document, works, (removed, &BTreeSet::new()))
    }

    /// Like [`Self::of`], if the apply may find that it must destroy `late` stacks first.
    pub fn with_late(
        project: &Project,
        graph: &Graph,
        document: Option<&Document>,
        works: &[StackWork],
        (removed, late): (&BTreeSet<&str>, &BTreeSet<usize>),
    ) -> Self {
        let tree = Precedence::new(graph);
        // Recorded constraints order only destroys.
        if removed.is_empty() && !is_destroyed_beside_others(works) {
            let nothing = RecordedConstraints {
                n_stacks: works.len(),
                n_nodes: works.len(),
                edges: Vec::new(),
            };
            return PlannedOrder {
                order: OperationOrder::new(works, &tree, &nothing),
                removed: Vec::new(),
                relaxed: Vec::new(),
            };
        }
        let record = NamedConstraints::new(project, graph, document);
        let removed_works = record.removed.iter().map(|key| StackWork {
            destroy: removed.contains(key),
            apply: false,
        });
        let works: Vec<StackWork> = works.iter().copied().chain(removed_works).collect();
        let paths = record
            .removed
            .iter()
            .map(|key| StackPath::parse(key).expect("a recorded stack has a path"));
        let removed: Vec<StackPath> = paths.collect();
        let places = places_by_path(project, &removed);
        let recorded = record.recorded.between(&works);
        let replacements = ReplacementOrder {
            created_first: created_first(project, document, &works, &removed),
            late: late.clone(),
        };
        let order =
            OperationOrder::with_ties(&works, &tree, &recorded, &replacements, |it| places[it]);
        let name = |node: u32| record.name(project, node as usize);
        let relaxed: BTreeSet<RelaxedConstraint> = order
            .relaxed
            .iter()
            .map(|relaxed| match *relaxed {
                RelaxedEdge::Recorded(edge) => RelaxedConstraint {
                    effect: RelaxedEffect::Contradicted,
                    earlier: name(edge.earlier),
                    later: name(edge.later),
                },
                RelaxedEdge::Rule { user, used, .. } => RelaxedConstraint {
                    effect: if works[used as usize].destroy {
                        RelaxedEffect::DestroyedFirst
                    } else {
                        RelaxedEffect::ChangedFirst
                    },
                    earlier: name(used),
                    later: name(user),
                },
            })
            .collect();
        PlannedOrder {
            order,
            removed,
            relaxed: relaxed.into_iter().collect(),
        }
    }

    pub fn operations(&self, project: &Project) -> Vec<PlannedOperation> {
        let stacks = project.stacks.iter().map(|(_, stack)| &stack.path);
        let paths: Vec<&StackPath> = stacks.chain(&self.removed).collect();
        let planned = self.order.sequence.iter().map(|it| PlannedOperation {
            stack: paths[it.stack].clone(),
            destroys: it.operation == Operation::Destroy,
        });
        planned.collect()
    }

    /// Returns the stacks that an apply skips if `failed` ones fail, each with one of these.
    pub fn skipped_after(
        &self,
        project: &Project,
        failed: &BTreeSet<&StackPath>,
    ) -> BTreeMap<StackPath, StackPath> {
        let operations = self.operations(project);
        let stack = |turn: TurnIndex| &operations[turn.get()].stack;
        let mut schedule = self.order.schedule().on_error(OnError::SkipDependents);
        let mut skipped_after = BTreeMap::new();
        while let Some(turn) = schedule.start_next() {
            let succeeds = !failed.contains(stack(turn));
            schedule.finish(turn, succeeds);
            let skipped = schedule
                .settle(turn, succeeds)
                .into_iter()
                .filter(|it| !failed.contains(stack(it.turn)));
            skipped_after
                .extend(skipped.map(|it| (stack(it.turn).clone(), stack(it.cause).clone())));
        }
        skipped_after
    }
}

/// Returns the stacks that are created before the old ones are destroyed: the number of each, and
/// of the old generation, which is current in the state.
fn created_first(
    project: &Project,
    document: Option<&Document>,
    works: &[StackWork],
    removed: &[StackPath],
) -> Vec<(usize, usize)> {
    let pair = |(old, path): (usize, &StackPath)| {
        let generation = path.generation()?;
        let made = project.stacks.find(&path.current())?.get();
        let entry = document?.stacks.get(path.current().as_str())?;
        let is_current = entry.generation == generation && works[made].apply;
        is_current.then_some((made, old))
    };
    let old = (project.stacks.len()..).zip(removed);
    old.filter_map(pair).collect()
}

/// Returns each stack's position in path order; removed stacks have the highest numbers.
fn places_by_path(project: &Project, removed: &[StackPath]) -> Vec<usize> {
    let paths: Vec<&StackPath> = project
        .stacks
        .iter()
        .map(|(_, stack)| &stack.path)
        .chain(removed)
        .collect();
    let mut by_path: Vec<usize> = (0..paths.len()).collect();
    by_path.sort_by_key(|&stack| paths[stack]);
    let mut places = vec![0; paths.len()];
    for (place, stack) in by_path.into_iter().enumerate() {
        places[stack] = place;
    }
    places
}

/// Returns whether there is work on other stacks than a single destroyed one.
fn is_destroyed_beside_others(works: &[StackWork]) -> bool {
    let working = works.iter().filter(|work| **work != StackWork::default());
    works.iter().any(|work| work.destroy) && working.count() > 1
}

/// A stack whose tool failed, or whose conditions do not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAsk {
    pub stack: StackPath,
    pub why: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<FailedCondition>,
}

impl Plan {
    pub fn entry(&self, stack: &StackPath) -> Option<&PlanEntry> {
        let found = self
            .entries
            .binary_search_by(|entry| entry.stack.cmp(stack));
        found.ok().map(|position| &self.entries[position])
    }

    /// Orders the turns of an apply, including those of undecided stacks.
    pub fn order(
        &self,
        project: &Project,
        graph: &Graph,
        document: Option<&Document>,
    ) -> PlannedOrder {
        let entries = self.entries.iter().filter(|entry| entry.blocked.is_none());
        let (removed, here): (Vec<_>, Vec<_>) = entries.partition(|entry| entry.removed.is_some());
        let removed = removed
            .into_iter()
            .filter(|it| it.action == PlannedAction::Delete)
            .map(|entry| entry.stack.as_str())
            .collect();
        let mut works = vec![StackWork::default(); project.stacks.len()];
        for entry in here {
            if let Some(stack) = project.stacks.find(&entry.stack) {
                works[stack.get()] = StackWork {
                    destroy: entry.destroys(),
                    apply: entry.is_undecided()
                        || self.accepts_drift(entry)
                        || entry.action.is_work() && entry.action != PlannedAction::Delete,
                };
            }
        }
        PlannedOrder::of(project, graph, document, &works, &removed)
    }

    pub fn is_applyable(&self) -> bool {
        let is_quiet =
            |entry: &PlanEntry| matches!(entry.action, PlannedAction::NoOp | PlannedAction::Read);
        let is_work = |entry: &PlanEntry| {
            entry.blocked.is_none() && (!is_quiet(entry) || self.accepts_drift(entry))
        };
        self.failed.is_empty() && self.entries.iter().any(is_work)
    }

    /// Returns whether an apply accepts a stack's drift: the tool's state then matches its
    /// resources.
    pub fn accepts_drift(&self, entry: &PlanEntry) -> bool {
        self.mode == PlanMode::RefreshOnly
            && entry.has_drifted
            && entry.action == PlannedAction::NoOp
            && entry.blocked.is_none()
    }

    /// Returns the stacks that are planned only in part.
    pub fn partial(&self) -> Vec<&StackPath> {
        let partial = self
            .entries
            .iter()
            .filter(|entry| entry.blocked.is_none() && !entry.is_complete);
        partial.map(|entry| &entry.stack).collect()
    }

    /// Returns whether nothing failed or is blocked, and no tool left anything out.
    pub fn is_complete(&self) -> bool {
        let is_complete = |entry: &PlanEntry| entry.blocked.is_none() && entry.is_complete;
        self.failed.is_empty() && self.entries.iter().all(is_complete)
    }

    /// Returns the outcome of an apply. Reads and unmerged removals do not count.
    pub fn outlook(&self) -> Outlook {
        let does_something = |entry: &PlanEntry| {
            let is_quiet = matches!(entry.action, PlannedAction::NoOp | PlannedAction::Read);
            let has_work = !is_quiet || entry.is_undecided() || self.accepts_drift(entry);
            entry.blocked.is_none() && has_work
        };
        if self.entries.iter().any(does_something) {
            Outlook::Changes
        } else if self
            .blocked_changes()
            .any(|entry| entry.removed != Some(Removed::Doubtful))
        {
            Outlook::Blocked
        } else {
            Outlook::Nothing
        }
    }

    /// Returns the entries that are blocked despite changes: of selected stacks, and of stacks that
    /// HEAD removed. Recorded stacks that may belong to another branch do not count.
    pub fn blocked_changes(&self) -> impl Iterator<Item = &PlanEntry> {
        self.entries
            .iter()
            .filter(|entry| entry.blocked.is_some() && entry.removed != Some(Removed::Unproven))
    }
}

/// The follow-ups of an apply if all its turns succeed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFollowUps {
    /// The added turns, in the sequence of a serial run.
    pub turns: Vec<PlannedFollowUp>,
    /// Errors of policies, and requested stacks that cannot run as follow-ups.
    pub problems: Vec<PolicyProblem>,
    /// Stacks whose follow-ups may differ because their changes are known only during the apply.
    pub uncertain: Vec<StackPath>,
}

impl PlannedFollowUps {
    /// Fails if policies would fail the apply.
    pub fn check(&self) -> Result<(), FailedPolicies> {
        let is_error = |it: &PolicyProblem| it.severity == ProblemSeverity::Error;
        if self.problems.iter().any(is_error) {
            return Err(FailedPolicies);
        }
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a policy failed or a limit is exceeded: an apply of this plan would end with status 1")]
pub struct FailedPolicies;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFollowUp {
    pub stack: StackPath,
    pub policies: Vec<String>,
    pub after: StackPath,
    /// Whether the stack has `autodeploy = true`: its changes need no approval.
    pub autodeploy: bool,
    pub problem: Option<String>,
}
