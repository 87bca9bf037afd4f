//! The plan: all entries, and what is known of how they were made.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::entry::{Action, PlanEntry, PlanMode, Removed};
use super::followups::PlannedFollowUps;
use crate::change::AppliedBase;
use crate::path::StackPath;
use crate::plan::checks::FailedCondition;
use crate::plan::order::{Order, Record, Recorded, Relaxed, Turnarounds, Work};
use crate::project::Project;
use crate::project::stack::StackIndex;
use crate::run::schedule::OnError;
use crate::run::turn::{Operation, TurnIndex};
use crate::selection::graph::{Graph, Precedence};
use crate::state::document::Document;

/// What an apply would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Its id: that of the run that made it.
    pub id: String,
    /// What it was made for.
    pub mode: PlanMode,
    /// What else was asked for.
    pub options: RequestedOptions,
    /// The commit of HEAD.
    pub commit: Option<String>,
    /// The document that it was made with.
    pub state: Option<AppliedBase>,
    /// The entries, by path.
    pub entries: Vec<PlanEntry>,
    /// What an apply would do, in the sequence of a serial run; what is undecided is missing.
    pub operations: Vec<PlannedOperation>,
    /// The constraints on record that the operations do not keep to, each with the effect.
    #[serde(default)]
    pub relaxed: Vec<RelaxedConstraint>,
    /// The stacks whose tools failed.
    pub failed: Vec<FailedAsk>,
    /// How many selected stacks have no driver.
    pub without_driver: usize,
    /// The stacks on record that are neither in the tree nor in the plan.
    #[serde(default)]
    pub removals: UnplannedRemovals,
    /// The stacks of the operations and those that are decided during the apply, in the sequence of a serial
    /// run; empty if none are decided then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequence: Vec<StackPath>,
    /// The follow-ups that policies add to an apply; none if policies take no part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followups: Option<PlannedFollowUps>,
}

/// The outcome of an apply of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    Nothing,
    /// There is something to do, and all of it is blocked.
    Blocked,
    /// There is something to do, or at least the record to update.
    Changes,
}

/// How many stacks are on record, not in the tree, and not in the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnplannedRemovals {
    /// Those that the selection leaves out.
    pub out_of_scope: usize,
    /// Those that were left out on demand.
    pub left_out: usize,
}

/// What a plan was asked for besides its mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct RequestedOptions {
    /// Whether all tools were asked, whatever is on record.
    pub full: bool,
    /// Whether `init` ran in every stack that was asked.
    pub init: bool,
    /// Whether what a later commit has applied was planned as well.
    pub allow_rollback: bool,
    /// What is replaced, as written.
    pub replace: Vec<String>,
    /// Whether `plan` got words of the user. These may be secret and are not kept.
    pub arguments: bool,
}

/// One of the things that an apply would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedOperation {
    pub stack: StackPath,
    /// Whether what exists is destroyed; else it is brought forward.
    pub destroys: bool,
}

/// A constraint on record that the operations do not keep to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RelaxedConstraint {
    /// What that means.
    #[serde(default)]
    pub effect: RelaxedEffect,
    /// The stack that came first, as `orch list` prints it, or what its group is called.
    pub earlier: String,
    /// The stack that came after it, or what its group is called.
    pub later: String,
}

/// What it means that a constraint on record is not kept to; the worst comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelaxedEffect {
    /// The earlier stack is destroyed while the later one, which stays, still refers to it.
    DestroyedFirst,
    /// The earlier stack is brought forward while the later one, which is then destroyed, still refers to it.
    ChangedFirst,
    /// Newer declarations contradict it, and these count.
    #[default]
    Contradicted,
}

/// The operations of an apply in one order.
#[derive(Debug)]
pub struct PlannedOrder {
    /// The order. Its stacks have their indices as numbers; those in [`Self::gone`] come after them.
    pub order: Order,
    /// Stacks on record that are not in the tree: at least those that are destroyed.
    pub gone: Vec<StackPath>,
    /// What it does not keep to, each once, the worst first.
    pub relaxed: Vec<RelaxedConstraint>,
}

impl PlannedOrder {
    /// Orders what an apply of some actions would do; see [`Self::of`].
    pub fn new(
        project: &Project,
        graph: &Graph,
        document: Option<&Document>,
        actions: impl Iterator<Item = (StackIndex, Action)>,
        gone: &BTreeMap<String, Action>,
    ) -> Self {
        let mut works = vec![Work::default(); project.stacks.len()];
        for (stack, action) in actions {
            works[stack.get()] = Work {
                destroy: matches!(action, Action::Replace | Action::Delete),
                apply: matches!(action, Action::Create | Action::Update | Action::Replace),
            };
        }
        let gone = gone.iter();
        let gone = gone.filter(|&(_, action)| *action == Action::Delete);
        let gone = gone.map(|(key, _)| key.as_str()).collect();
        Self::of(project, graph, document, &works, &gone)
    }

    /// Orders work on the stacks of a project, by index, and the destruction of stacks on record that are
    /// not in the tree, by key: along the constraints of the tree and, where something is destroyed, against
    /// those on record. Without a document, nothing is on record.
    ///
    /// A key that is not on record, or is that of a stack of the tree, has no operation.
    pub fn of(
        project: &Project,
        graph: &Graph,
        document: Option<&Document>,
        works: &[Work],
        gone: &BTreeSet<&str>,
    ) -> Self {
        Self::with_late(project, graph, document, works, (gone, &BTreeSet::new()))
    }

    /// Does what [`Self::of`] does where it is known of some stacks only when their time has come whether they are
    /// destroyed before they are brought forward.
    pub fn with_late(
        project: &Project,
        graph: &Graph,
        document: Option<&Document>,
        works: &[Work],
        (gone, late): (&BTreeSet<&str>, &BTreeSet<usize>),
    ) -> Self {
        let tree = Precedence::new(graph);
        // What is on record says only what is destroyed before or after something else.
        if gone.is_empty() && !is_destroyed_beside_others(works) {
            let nothing = Recorded {
                n_stacks: works.len(),
                n_nodes: works.len(),
                edges: Vec::new(),
            };
            return PlannedOrder {
                order: Order::new(works, &tree, &nothing),
                gone: Vec::new(),
                relaxed: Vec::new(),
            };
        }
        let record = Record::new(project, graph, document);
        let works_gone = record.gone.iter().map(|key| Work {
            destroy: gone.contains(key),
            apply: false,
        });
        let works: Vec<Work> = works.iter().copied().chain(works_gone).collect();
        let paths = record.gone.iter();
        let paths = paths.map(|key| StackPath::parse(key).expect("a stack on record has a path"));
        let gone: Vec<StackPath> = paths.collect();
        let places = places_by_path(project, &gone);
        let recorded = record.recorded.between(&works);
        let turnarounds = Turnarounds {
            made_first: made_first(project, document, &works, &gone),
            late: late.clone(),
        };
        let order = Order::with_ties(&works, &tree, &recorded, &turnarounds, |it| places[it]);
        let name = |node| record.name(project, node);
        let relaxed = order.relaxed.iter().map(|relaxed| match *relaxed {
            Relaxed::Recorded(edge) => RelaxedConstraint {
                effect: RelaxedEffect::Contradicted,
                earlier: name(edge.earlier),
                later: name(edge.later),
            },
            Relaxed::Rule { user, used, .. } => RelaxedConstraint {
                effect: if works[used as usize].destroy {
                    RelaxedEffect::DestroyedFirst
                } else {
                    RelaxedEffect::ChangedFirst
                },
                earlier: name(used),
                later: name(user),
            },
        });
        let relaxed: BTreeSet<RelaxedConstraint> = relaxed.collect();
        PlannedOrder {
            order,
            gone,
            relaxed: relaxed.into_iter().collect(),
        }
    }

    /// Returns the operations, in the sequence of a serial run.
    pub fn operations(&self, project: &Project) -> Vec<PlannedOperation> {
        let stacks = project.stacks.iter().map(|(_, stack)| &stack.path);
        let paths: Vec<&StackPath> = stacks.chain(&self.gone).collect();
        let planned = self.order.sequence.iter().map(|it| PlannedOperation {
            stack: paths[it.stack].clone(),
            destroys: it.operation == Operation::Destroy,
        });
        planned.collect()
    }
}

impl PlannedOrder {
    /// Returns the stacks that an apply skips if the operations on some stacks fail, each with one of these: what
    /// runs after them, also to be destroyed after them.
    pub fn behind(
        &self,
        project: &Project,
        failed: &BTreeSet<&StackPath>,
    ) -> BTreeMap<StackPath, StackPath> {
        let operations = self.operations(project);
        let stack = |turn: TurnIndex| &operations[turn.get()].stack;
        let mut schedule = self.order.schedule().on_error(OnError::SkipDependents);
        let mut behind = BTreeMap::new();
        while let Some(turn) = schedule.start_next() {
            let succeeds = !failed.contains(stack(turn));
            schedule.finish(turn, succeeds);
            let skipped = schedule.settle(turn, succeeds).into_iter();
            let skipped = skipped.filter(|it| !failed.contains(stack(it.turn)));
            behind.extend(skipped.map(|it| (stack(it.turn).clone(), stack(it.cause).clone())));
        }
        behind
    }
}

/// Returns the stacks that are made anew before the old ones are destroyed, given the stacks after those of the
/// project: the number of each, and that of the old one, which is current on record.
fn made_first(
    project: &Project,
    document: Option<&Document>,
    works: &[Work],
    gone: &[StackPath],
) -> Vec<(usize, usize)> {
    let pair = |(old, path): (usize, &StackPath)| {
        let generation = path.generation()?;
        let made = project.stacks.find(&path.current())?.get();
        let entry = document?.stacks.get(path.current().as_str())?;
        let is_current = entry.generation == generation && works[made].apply;
        is_current.then_some((made, old))
    };
    let old = (project.stacks.len()..).zip(gone);
    old.filter_map(pair).collect()
}

/// Returns the place of each stack by path, given those that come after the stacks of the project.
fn places_by_path(project: &Project, gone: &[StackPath]) -> Vec<usize> {
    let paths = project.stacks.iter().map(|(_, stack)| &stack.path);
    let paths: Vec<&StackPath> = paths.chain(gone).collect();
    let mut by_path: Vec<usize> = (0..paths.len()).collect();
    by_path.sort_by_key(|&stack| paths[stack]);
    let mut places = vec![0; paths.len()];
    for (place, stack) in by_path.into_iter().enumerate() {
        places[stack] = place;
    }
    places
}

/// Returns whether there is work on another stack than one that is destroyed.
fn is_destroyed_beside_others(works: &[Work]) -> bool {
    let working = works.iter().filter(|work| **work != Work::default());
    works.iter().any(|work| work.destroy) && working.count() > 1
}

/// A stack whose tool could not say what it would do, or whose conditions do not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAsk {
    pub stack: StackPath,
    pub why: String,
    /// The conditions that do not hold.
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

    /// Orders the turns of an apply: the operations, and the stacks that are decided during the
    /// apply.
    pub fn order(
        &self,
        project: &Project,
        graph: &Graph,
        document: Option<&Document>,
    ) -> PlannedOrder {
        let entries = self.entries.iter().filter(|entry| entry.blocked.is_none());
        let (removed, here): (Vec<_>, Vec<_>) = entries.partition(|entry| entry.removed.is_some());
        let gone = removed.into_iter().filter(|it| it.action == Action::Delete);
        let gone = gone.map(|entry| entry.stack.as_str()).collect();
        let mut works = vec![Work::default(); project.stacks.len()];
        for entry in here {
            if let Some(stack) = project.stacks.find(&entry.stack) {
                works[stack.get()] = Work {
                    destroy: entry.destroys(),
                    apply: entry.is_undecided()
                        || entry.action.is_work() && entry.action != Action::Delete,
                };
            }
        }
        PlannedOrder::of(project, graph, document, &works, &gone)
    }

    /// Returns whether there is anything to apply.
    pub fn is_applyable(&self) -> bool {
        let is_quiet = |entry: &PlanEntry| matches!(entry.action, Action::NoOp | Action::Read);
        let is_work = |entry: &PlanEntry| {
            entry.blocked.is_none() && (!is_quiet(entry) || self.accepts_drift(entry))
        };
        self.failed.is_empty() && self.entries.iter().any(is_work)
    }

    /// Returns whether an apply of it accepts the drift of a stack, so that the tool's own state
    /// matches its resources.
    pub fn accepts_drift(&self, entry: &PlanEntry) -> bool {
        self.mode == PlanMode::RefreshOnly
            && entry.has_drifted
            && entry.action == Action::NoOp
            && entry.blocked.is_none()
    }

    /// Returns whether it has everything: nothing failed, is blocked, or was left out by a tool.
    pub fn is_complete(&self) -> bool {
        let is_complete = |entry: &PlanEntry| entry.blocked.is_none() && entry.is_complete;
        self.failed.is_empty() && self.entries.iter().all(is_complete)
    }

    /// Returns the outcome of an apply of it. Reading a stack does not count, nor does a removal that is not merged.
    pub fn outlook(&self) -> Outlook {
        let does_something = |entry: &PlanEntry| {
            let is_quiet = matches!(entry.action, Action::NoOp | Action::Read);
            let has_work = !is_quiet || entry.is_undecided() || self.accepts_drift(entry);
            entry.blocked.is_none() && has_work
        };
        if self.entries.iter().any(does_something) {
            Outlook::Changes
        } else if self
            .kept_back()
            .any(|entry| entry.removed != Some(Removed::Doubtful))
        {
            Outlook::Blocked
        } else {
            Outlook::Nothing
        }
    }

    /// Returns the entries that are blocked although something is to be done: of selected stacks,
    /// and of stacks that HEAD has removed. Recorded stacks that may belong to another branch do not
    /// count.
    pub fn kept_back(&self) -> impl Iterator<Item = &PlanEntry> {
        self.entries
            .iter()
            .filter(|entry| entry.blocked.is_some() && entry.removed != Some(Removed::Unproven))
    }
}
