//! What follows from what: the turns of a run, of those that it resumes, and of what policies ask for.
//!
//! A state machine without processes, threads or time. It knows neither Rego nor in which order turns run.

mod earlier;
mod follower;
mod input;
mod names;
mod on_record;

use std::collections::{BTreeMap, BTreeSet};

pub use self::earlier::EarlierTurns;
pub use self::follower::{FollowedPolicy, Follower, now};
pub use self::input::{
    ChangeAction, ChangeInput, ChangePhase, CommitInput, EntityInput, RunFacts, SessionInput,
    StackInput, TurnFacts, id, input, workflow_entry,
};
pub use self::names::StackNames;
pub use self::on_record::{StackOnRecord, state_on_record};
use super::evaluated::{Dropped, Follow, PolicyAnswer, TurnState, WhyDropped};
use super::turn::TurnIndex;
use crate::path::StackPath;
use crate::project::policy::PolicySettings;
use crate::project::stack::StackIndex;

/// How many turns of a chain a message names.
const NAMED: usize = 6;

/// A turn of a workflow.
#[derive(Debug, Clone)]
pub struct WorkflowTurn {
    /// The id that policies know it by: `01a1….57`.
    pub id: String,
    /// Its stack, if that is in the tree.
    pub stack: Option<StackIndex>,
    /// The path of its stack.
    pub path: StackPath,
    /// How far it has come.
    pub state: TurnState,
    /// The states that it has had, in order.
    pub history: Vec<TurnState>,
    /// What it is to policies.
    pub kind: TurnKind,
    /// What is known of it besides.
    pub facts: TurnFacts,
    /// Whether it was added, or is one that was added in an earlier run: it has the command of follow-ups.
    pub is_followup: bool,
    /// Who asked for it, if that is not the run itself: `policy/retry`, or a user.
    pub triggered_by: Option<String>,
    /// The policies that have asked for it.
    pub policies: Vec<String>,
    /// The turn that it follows, by its position in the workflow.
    pub after: Option<usize>,
    /// The flags that are set, each with the policies that have set it.
    pub flags: Flags,
    /// Whether it follows, directly or not, from a turn that did not finish.
    pub answers_failure: bool,
    /// When it was asked for, in nanoseconds since 1970.
    pub created_at: u64,
    /// When its state last changed, in nanoseconds since 1970.
    pub updated_at: u64,
}

/// What a turn is to policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnKind {
    /// A run that deploys.
    Tracked,
    /// A task.
    Task,
    /// A run that destroys what the stack stands for.
    Destroy,
}

impl TurnKind {
    /// Returns the word that policies know it by.
    pub fn word(self) -> &'static str {
        match self {
            TurnKind::Tracked => "TRACKED",
            TurnKind::Task => "TASK",
            TurnKind::Destroy => "DESTROY",
        }
    }
}

impl WorkflowTurn {
    /// Returns a turn that waits.
    pub fn new(id: String, stack: Option<StackIndex>, path: StackPath, at: u64) -> Self {
        WorkflowTurn {
            id,
            stack,
            path,
            state: TurnState::Queued,
            history: vec![TurnState::Queued],
            kind: TurnKind::Tracked,
            facts: TurnFacts::default(),
            is_followup: false,
            triggered_by: None,
            policies: Vec::new(),
            after: None,
            flags: BTreeMap::new(),
            answers_failure: false,
            created_at: at,
            updated_at: at,
        }
    }
}

/// All turns of a run, and of those that it resumes.
#[derive(Debug)]
pub struct Workflow {
    run: String,
    names: StackNames,
    settings: PolicySettings,
    turns: Vec<WorkflowTurn>,
    /// How many of them are of earlier runs.
    n_earlier: usize,
}

/// What follows from the end of a turn.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Consequences {
    /// The turns that were added to the workflow, in order.
    pub queued: Vec<Follow>,
    /// Turns that were to come anyway.
    pub joined: Vec<Follow>,
    /// What was asked for and does not follow.
    pub dropped: Vec<Dropped>,
    /// Whether another turn of the same stack follows, so that this one does not count.
    pub is_retried: bool,
}

impl Workflow {
    /// Returns the workflow of a run with the turns that it begins with, after those of the runs that it
    /// resumes.
    pub fn new(
        run: String,
        names: StackNames,
        settings: PolicySettings,
        earlier: Vec<WorkflowTurn>,
        turns: Vec<WorkflowTurn>,
    ) -> Self {
        Workflow {
            run,
            names,
            settings,
            n_earlier: earlier.len(),
            turns: [earlier, turns].concat(),
        }
    }

    /// Returns all turns, by position.
    pub fn turns(&self) -> &[WorkflowTurn] {
        &self.turns
    }

    /// Returns the names of the stacks.
    pub fn names(&self) -> &StackNames {
        &self.names
    }

    /// Returns the position of a turn of the run.
    pub fn position(&self, turn: TurnIndex) -> usize {
        self.n_earlier + turn.get()
    }

    /// Returns the run of a turn of an earlier run, and which turn of its stack it was there, from 1.
    fn place_of_earlier(&self, position: usize) -> (String, u32) {
        let run_of = |turn: &WorkflowTurn| {
            let run = turn.id.rsplit_once('.').map_or("", |(run, _)| run);
            run.to_owned()
        };
        let turn = &self.turns[position];
        let run = run_of(turn);
        let before = self.turns[..position].iter();
        let same = before.filter(|other| other.path == turn.path && run_of(other) == run);
        let number = same.count() + 1;
        (run, u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Notes how far a turn has come.
    pub fn reaches(&mut self, position: usize, state: TurnState, at: u64) {
        let turn = &mut self.turns[position];
        turn.state = state;
        turn.history.push(state);
        turn.updated_at = at;
    }

    /// Notes what is known of a turn besides.
    pub fn learn(&mut self, position: usize, facts: TurnFacts) {
        self.turns[position].facts = facts;
    }

    /// Notes what policies have answered to the end of a turn, and adds the turns that follow.
    pub fn follow(&mut self, position: usize, answers: &[PolicyAnswer], at: u64) -> Consequences {
        let said = answers.iter().map(|it| FlagChange {
            policy: &it.policy,
            reset: it.answer.reset_flag.iter().collect(),
            set: it.answer.flag.iter().collect(),
        });
        set_flags(&mut self.turns[position].flags, &said.collect::<Vec<_>>());
        let mut wanted: BTreeMap<StackIndex, Vec<String>> = BTreeMap::new();
        let mut unknown: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for answer in answers {
            for name in &answer.answer.trigger {
                let policies = match self.names.find(name) {
                    Some(stack) => wanted.entry(stack).or_default(),
                    None => unknown.entry(name).or_default(),
                };
                if policies.last() != Some(&answer.policy) {
                    policies.push(answer.policy.clone());
                }
            }
        }
        let mut consequences = Consequences::default();
        for (name, policies) in unknown {
            consequences.dropped.push(Dropped {
                name: name.to_owned(),
                policies,
                why: WhyDropped::Unknown,
            });
        }
        for (stack, policies) in wanted {
            self.ask_for(position, stack, policies, at, &mut consequences);
        }
        consequences
    }

    fn ask_for(
        &mut self,
        position: usize,
        stack: StackIndex,
        policies: Vec<String>,
        at: u64,
        consequences: &mut Consequences,
    ) {
        let dropped = |why: WhyDropped, path: &StackPath, policies: Vec<String>| Dropped {
            name: path.to_string(),
            policies,
            why,
        };
        let path = self.names.path(stack).clone();
        let (parent, own) = (&self.turns[position], &self.turns[self.n_earlier..]);
        let is_same = parent.stack == Some(stack);
        let answers_failure = parent.answers_failure || parent.state != TurnState::Finished;
        let waits =
            |turn: &WorkflowTurn| turn.stack == Some(stack) && turn.state == TurnState::Queued;
        // Of a stack that is destroyed and made anew, it is the latter.
        let brings_forward = |turn: &WorkflowTurn| waits(turn) && turn.kind != TurnKind::Destroy;
        let waiting = own.iter().position(brings_forward);
        let waiting = waiting.or_else(|| own.iter().position(waits));
        let flags = if is_same {
            parent.flags.clone()
        } else {
            BTreeMap::new()
        };
        if waiting.is_none() {
            if self.names.is_excluded(stack) {
                let dropped = dropped(WhyDropped::Excluded, &path, policies);
                consequences.dropped.push(dropped);
                return;
            }
            if let Some((setting, allowed)) = self.exceeded(stack) {
                let chain = self.chain(position, &path, &policies);
                let why = WhyDropped::Limit {
                    setting,
                    allowed,
                    chain,
                };
                consequences.dropped.push(dropped(why, &path, policies));
                return;
            }
        }
        consequences.is_retried |= is_same;
        let number = waiting.unwrap_or(own.len());
        let follow = Follow {
            turn: TurnIndex::new(number),
            stack: path.clone(),
            policies: policies.clone(),
        };
        if waiting.is_some() {
            consequences.joined.push(follow);
        } else {
            let id = turn_id(&self.run, number);
            self.turns.push(WorkflowTurn {
                is_followup: true,
                ..WorkflowTurn::new(id, Some(stack), path, at)
            });
            consequences.queued.push(follow);
        }
        let number = self.n_earlier + number;
        let turn = &mut self.turns[number];
        turn.triggered_by = policies.first().map(|policy| format!("policy/{policy}"));
        turn.policies = policies;
        turn.after = Some(position);
        turn.answers_failure |= answers_failure;
        for (flag, policies) in flags {
            turn.flags.entry(flag).or_default().extend(policies);
        }
    }

    /// Returns the limit that one more turn of a stack would exceed, if it would.
    fn exceeded(&self, stack: StackIndex) -> Option<(&'static str, u32)> {
        let never_ran = [
            TurnState::Skipped,
            TurnState::Canceled,
            TurnState::Discarded,
        ];
        let has_run = |turn: &&WorkflowTurn| !never_ran.contains(&turn.state);
        let of_stack = self.turns.iter().filter(|turn| turn.stack == Some(stack));
        let PolicySettings {
            max_turns,
            max_followups,
            ..
        } = self.settings;
        if of_stack.filter(has_run).count() >= max_turns as usize {
            return Some(("max_turns", max_turns));
        }
        let followups = self.turns.iter().filter(|turn| turn.after.is_some());
        (followups.count() >= max_followups as usize).then_some(("max_followups", max_followups))
    }

    /// Returns what led to a follow-up of a turn, from its end: `/c ← retry ← /c`.
    fn chain(&self, position: usize, path: &StackPath, policies: &[String]) -> String {
        let mut chain = path.to_string();
        let (mut policies, mut at) = (policies, Some(position));
        for _ in 0..NAMED {
            let Some(turn) = at.map(|at| &self.turns[at]) else {
                return chain;
            };
            chain += &format!(" ← {} ← {}", policies.join(", "), turn.path);
            policies = &turn.policies;
            at = turn.after;
        }
        if at.is_some() {
            chain += " ← …";
        }
        chain
    }
}

/// Returns the id that policies know a turn of a run by, given its number from 0.
pub fn turn_id(run: &str, number: usize) -> String {
    format!("{run}.{}", number + 1)
}

/// The flags of a turn, each with the policies that have set it.
pub type Flags = BTreeMap<String, BTreeSet<String>>;

/// What a policy does to the flags of a turn.
struct FlagChange<'a> {
    policy: &'a str,
    reset: Vec<&'a String>,
    set: Vec<&'a String>,
}

/// First resets, then sets: a flag is gone when all policies that set it have reset it.
fn set_flags(flags: &mut Flags, changes: &[FlagChange<'_>]) {
    for change in changes {
        for flag in &change.reset {
            if let Some(policies) = flags.get_mut(*flag) {
                policies.remove(change.policy);
            }
        }
    }
    flags.retain(|_, policies| !policies.is_empty());
    for change in changes {
        for flag in &change.set {
            let policies = flags.entry((*flag).clone()).or_default();
            policies.insert(change.policy.to_owned());
        }
    }
}
