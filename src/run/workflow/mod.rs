//! A workflow: the turns of a run, of the runs that it resumes, and the follow-ups that policies request.
//!
//! A state machine without processes, threads or time. It doesn't know Rego, or the order of turns.

mod earlier;
mod follower;
mod foreseen;
mod input;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use self::earlier::EarlierTurns;
pub use self::follower::{FollowedPolicy, Follower, now};
pub use self::foreseen::{ExpectedEnd, ForeseenRun, ForeseenTurn};
pub use self::input::{
    ChangeAction, ChangeInput, ChangePhase, CommitInput, EntityInput, RunFacts, SCHEMA,
    SessionInput, StackInput, TurnFacts, id, input, workflow_entry,
};
use super::evaluated::{DroppedFollowUp, Follow, TurnState, WhyDropped};
use super::turn::{Operation, TurnIndex};
use crate::path::StackPath;
use crate::project::policy::PolicySettings;
use crate::project::stack::{StackIndex, Stacks};
use crate::record::journal::PolicyAnswer;
use crate::state::document::{AttemptOutcome, Entry, INTERRUPTED};

/// How many turns of a chain a message names.
const NAMED: usize = 6;

#[derive(Debug, Clone)]
pub struct WorkflowTurn {
    /// The id that policies know it by: `01a1….57`.
    pub id: String,
    /// Its stack, if that is in the project.
    pub stack: Option<StackIndex>,
    pub path: StackPath,
    pub state: TurnState,
    /// The states that it has had, in order.
    pub history: Vec<TurnState>,
    /// How policies see it.
    pub kind: TurnKind,
    pub facts: TurnFacts,
    /// Whether it was added, or is one that was added in an earlier run: it has the command of follow-ups.
    pub is_followup: bool,
    /// Whether policies have added it, in this run or in one that ended before it began.
    pub was_added: bool,
    /// Who requested it, if not the run itself: `policy/retry`, or a user.
    pub triggered_by: Option<String>,
    pub policies: Vec<String>,
    /// The turn that it follows, by its position in the workflow.
    pub after: Option<usize>,
    /// The flags that are set, each with the policies that have set it.
    pub flags: Flags,
    /// Whether it follows, directly or not, from a turn that did not finish.
    pub answers_failure: bool,
    /// The answers of policies to its end, if another run has asked them.
    pub answers: Option<Vec<PolicyAnswer>>,
    /// In the run of a work order: how many turns had ended when it started.
    pub started_after: Option<usize>,
    /// In the run of a work order: how many turns had ended before it did.
    pub ended_after: Option<usize>,
    /// When it was asked for, in nanoseconds since 1970.
    pub created_at: u64,
    /// When its state last changed, in nanoseconds since 1970.
    pub updated_at: u64,
}

impl WorkflowTurn {
    pub fn run(&self) -> &str {
        self.id.rsplit_once('.').map_or("", |(run, _)| run)
    }

    /// Returns whether it certainly never ran.
    fn never_ran(&self) -> bool {
        matches!(
            self.state,
            TurnState::Skipped | TurnState::Canceled | TurnState::Discarded
        )
    }

    /// Returns whether it counts for the limit of follow-ups.
    fn is_counted(&self) -> bool {
        self.was_added && !self.never_ran()
    }

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
            was_added: false,
            triggered_by: None,
            policies: Vec::new(),
            after: None,
            flags: BTreeMap::new(),
            answers_failure: false,
            answers: None,
            started_after: None,
            ended_after: None,
            created_at: at,
            updated_at: at,
        }
    }
}

/// How policies see a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnKind {
    /// A run that deploys.
    Tracked,
    /// A tracked run that looks for drift, and accepts it.
    Drift,
    Task,
    /// A run that destroys the stack.
    Destroy,
}

impl TurnKind {
    /// Returns the turn of an apply as policies see it. `is_refresh`: the apply only accepts drift.
    pub fn of(operation: Operation, is_refresh: bool) -> Self {
        match operation {
            Operation::Destroy => TurnKind::Destroy,
            _ if is_refresh => TurnKind::Drift,
            Operation::Run | Operation::Plan | Operation::Apply => TurnKind::Tracked,
        }
    }

    /// Returns whether it runs the configuration of its stack, as follow-ups do.
    fn is_deployment(self) -> bool {
        matches!(self, TurnKind::Tracked | TurnKind::Task)
    }

    /// Returns the word that policies know it by.
    pub fn word(self) -> &'static str {
        match self {
            TurnKind::Tracked | TurnKind::Drift => "TRACKED",
            TurnKind::Task => "TASK",
            TurnKind::Destroy => "DESTROY",
        }
    }
}

/// All turns of a run, and of those that it resumes.
pub struct Workflow {
    run: String,
    names: StackNames,
    settings: PolicySettings,
    turns: Vec<WorkflowTurn>,
    n_earlier: usize,
    /// The positions of the turns of each stack, in order.
    by_path: HashMap<StackPath, Vec<usize>>,
    /// How many turns were added, without those that certainly never ran.
    n_followups: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Consequences {
    pub queued: Vec<Follow>,
    /// Turns that would have run anyway.
    pub joined: Vec<Follow>,
    /// Requested follow-ups that do not run.
    pub dropped: Vec<DroppedFollowUp>,
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
        let n_earlier = earlier.len();
        let turns = [earlier, turns].concat();
        let mut by_path: HashMap<StackPath, Vec<usize>> = HashMap::new();
        for (position, turn) in turns.iter().enumerate() {
            by_path.entry(turn.path.clone()).or_default().push(position);
        }
        Workflow {
            run,
            names,
            settings,
            n_followups: turns.iter().filter(|turn| turn.is_counted()).count(),
            turns,
            n_earlier,
            by_path,
        }
    }

    /// Returns all turns, by position.
    pub fn turns(&self) -> &[WorkflowTurn] {
        &self.turns
    }

    pub fn names(&self) -> &StackNames {
        &self.names
    }

    pub fn position(&self, turn: TurnIndex) -> usize {
        self.n_earlier + turn.get()
    }

    /// Returns the run of a turn of an earlier run, and the number of its stack's turn there, from 1.
    pub fn place_of_earlier(&self, position: usize) -> (String, u32) {
        let turn = &self.turns[position];
        let run = turn.run();
        let before = self.by_path[&turn.path]
            .iter()
            .take_while(|other| **other < position);
        let same = before.filter(|other| self.turns[**other].run() == run);
        let number = same.count() + 1;
        (run.to_owned(), u32::try_from(number).unwrap_or(u32::MAX))
    }

    pub fn reaches(&mut self, position: usize, state: TurnState, at: u64) {
        let turn = &mut self.turns[position];
        let was_counted = turn.is_counted();
        turn.state = state;
        turn.history.push(state);
        turn.updated_at = at;
        if was_counted && !turn.is_counted() {
            self.n_followups -= 1;
        }
    }

    pub fn learn(&mut self, position: usize, facts: TurnFacts) {
        self.turns[position].facts = facts;
    }

    /// Notes the answers of policies to the end of a turn, and adds the turns that follow.
    pub fn follow(&mut self, position: usize, answers: &[PolicyAnswer], at: u64) -> Consequences {
        let said = answers.iter().map(|it| FlagChange {
            policy: &it.policy,
            reset: it.answer.reset_flag.iter().collect(),
            set: it.answer.flag.iter().collect(),
        });
        set_flags(&mut self.turns[position].flags, &said.collect::<Vec<_>>());
        let mut wanted: BTreeMap<StackIndex, Vec<String>> = BTreeMap::new();
        let mut dropped: BTreeMap<&str, (WhyDropped, Vec<String>)> = BTreeMap::new();
        let ambiguous = |one: StackIndex, other: StackIndex| WhyDropped::Ambiguous {
            stacks: [one, other].map(|stack| self.names.path(stack).clone()),
        };
        for answer in answers {
            for name in &answer.answer.trigger {
                let policies = match self.names.find(name) {
                    NamedStack::One(stack) => wanted.entry(stack).or_default(),
                    NamedStack::Ambiguous(one, other) => {
                        let why = || (ambiguous(one, other), Vec::new());
                        &mut dropped.entry(name).or_insert_with(why).1
                    }
                    NamedStack::Unknown => {
                        let why = || (WhyDropped::Unknown, Vec::new());
                        &mut dropped.entry(name).or_insert_with(why).1
                    }
                };
                if policies.last() != Some(&answer.policy) {
                    policies.push(answer.policy.clone());
                }
            }
        }
        let mut consequences = Consequences::default();
        for (name, (why, policies)) in dropped {
            consequences.dropped.push(DroppedFollowUp {
                name: name.to_owned(),
                policies,
                why,
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
        let dropped = |why: WhyDropped, path: &StackPath, policies: Vec<String>| DroppedFollowUp {
            name: path.to_string(),
            policies,
            why,
        };
        let path = self.names.path(stack).clone();
        let parent = &self.turns[position];
        let is_same = parent.stack == Some(stack);
        let answers_failure = parent.answers_failure || parent.state != TurnState::Finished;
        if !is_same && self.has_joined_earlier(position, stack) {
            return;
        }
        let waiting = self.waiting(stack);
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
        // Follow-ups deploy, so none can retry a failed destroy or refresh.
        consequences.is_retried |= is_same && self.turns[position].kind.is_deployment();
        let number = waiting.unwrap_or(self.turns.len() - self.n_earlier);
        let follow = Follow {
            turn: TurnIndex::new(number),
            stack: path.clone(),
            policies: policies.clone(),
        };
        if waiting.is_some() {
            consequences.joined.push(follow);
        } else {
            let id = turn_id(&self.run, number);
            self.n_followups += 1;
            let of_path = self.by_path.entry(path.clone()).or_default();
            of_path.push(self.turns.len());
            self.turns.push(WorkflowTurn {
                is_followup: true,
                was_added: true,
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

    fn of_stack(&self, stack: StackIndex) -> impl Iterator<Item = usize> + Clone {
        let of_path = self
            .by_path
            .get(self.names.path(stack))
            .into_iter()
            .flatten()
            .copied();
        // A removed stack may have had a path that is now invalid.
        of_path.filter(move |position| self.turns[*position].stack == Some(stack))
    }

    /// Returns whether a turn of a stack began after the end of this one, in the same run of a work order: so it was
    /// the follow-up.
    fn has_joined_earlier(&self, position: usize, stack: StackIndex) -> bool {
        let parent = &self.turns[position];
        let Some(end) = parent.ended_after.filter(|_| position < self.n_earlier) else {
            return false;
        };
        let mut turns = self.of_stack(stack).map(|it| &self.turns[it]);
        turns.any(|turn| turn.run() == parent.run() && turn.started_after > Some(end))
    }

    /// Returns the number of the waiting turn of a stack, if there is one. Of a stack that is destroyed and
    /// recreated, it is the latter turn. A turn that only accepts drift deploys nothing, so it is none.
    fn waiting(&self, stack: StackIndex) -> Option<usize> {
        let own = self
            .of_stack(stack)
            .filter(|position| *position >= self.n_earlier);
        let mut waiting = own.filter(|position| {
            let turn = &self.turns[*position];
            turn.state == TurnState::Queued && turn.kind != TurnKind::Drift
        });
        let is_made = |position: &usize| self.turns[*position].kind.is_deployment();
        let position = waiting.clone().find(is_made).or_else(|| waiting.next())?;
        Some(position - self.n_earlier)
    }

    /// Returns the limit that one more turn of a stack would exceed, if it would.
    fn exceeded(&self, stack: StackIndex) -> Option<(&'static str, u32)> {
        let has_run = |position: &usize| !self.turns[*position].never_ran();
        let PolicySettings {
            max_turns,
            max_followups,
            ..
        } = self.settings;
        if self.of_stack(stack).filter(has_run).count() >= max_turns as usize {
            return Some(("max_turns", max_turns));
        }
        (self.n_followups >= max_followups as usize).then_some(("max_followups", max_followups))
    }

    /// Returns the chain that led to a follow-up of a turn, from its end: `/c ← retry ← /c`.
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

/// Returns the id of a turn in the input of policies, given its number from 0.
pub fn turn_id(run: &str, number: usize) -> String {
    format!("{run}.{}", number + 1)
}

/// The flags of a turn, each with the policies that have set it.
pub type Flags = BTreeMap<String, BTreeSet<String>>;

/// The change of a policy to the flags of a turn.
struct FlagChange<'a> {
    policy: &'a str,
    reset: Vec<&'a String>,
    set: Vec<&'a String>,
}

/// First resets, then sets: a flag is removed when all policies that set it have reset it.
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

/// How a run that exceeded its time limit has left a stack, in the words of the state.
const RUN_TIMED_OUT: &str = "run-timed-out";

/// The recorded state of a stack, as policies see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedStack {
    pub state: TurnState,
    /// Whether it has been applied, and not only tried to be.
    pub is_applied: bool,
    /// The commit that was applied last, if that is known.
    pub commit: Option<CommitInput>,
}

impl RecordedStack {
    /// Gives it to the input of policies.
    pub fn tell(self, input: &mut StackInput) {
        input.set_state(self.state);
        if let Some(commit) = self.commit {
            input.set_tracked_commit(commit);
        }
    }
}

/// Returns how the last turn of a stack ended; none if it has never been applied, nor tried to be.
pub fn state_on_record(entry: &Entry) -> Option<TurnState> {
    if entry.intent.is_some() {
        return Some(TurnState::Applying);
    }
    let Some(last) = &entry.last else {
        // It was recorded without a run.
        return entry.applied.is_some().then_some(TurnState::Finished);
    };
    Some(match (&last.outcome, last.failure.as_deref()) {
        (AttemptOutcome::Succeeded, _) => TurnState::Finished,
        (_, Some(INTERRUPTED | RUN_TIMED_OUT)) => TurnState::Stopped,
        _ => TurnState::Failed,
    })
}

/// How policies name the stacks of a project: by id, by path, or by the path without its leading `/`.
#[derive(Debug, Clone)]
pub struct StackNames {
    paths: Vec<StackPath>,
    by_path: HashMap<String, StackIndex>,
    /// Ids are compared ignoring case, so they are in lower case.
    by_id: HashMap<String, StackIndex>,
    excluded: BTreeSet<StackIndex>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedStack {
    One(StackIndex),
    /// The id of the first stack is the path of the second.
    Ambiguous(StackIndex, StackIndex),
    Unknown,
}

impl StackNames {
    /// Returns the names of all stacks. Those that are excluded never follow.
    pub fn new(stacks: &Stacks, excluded: BTreeSet<StackIndex>) -> Self {
        let paths: Vec<StackPath> = stacks.iter().map(|(_, stack)| stack.path.clone()).collect();
        let by_path = stacks
            .iter()
            .map(|(index, stack)| (stack.path.to_string(), index));
        let by_id = stacks.iter().filter_map(|(index, stack)| {
            let id = stack.id.as_ref()?;
            Some((id.value.to_ascii_lowercase(), index))
        });
        StackNames {
            by_path: by_path.collect(),
            by_id: by_id.collect(),
            paths,
            excluded,
        }
    }

    /// Returns the stack that a policy asks for.
    pub fn find(&self, name: &str) -> NamedStack {
        if name.starts_with('/') {
            let found = self.by_path.get(name);
            return found.map_or(NamedStack::Unknown, |stack| NamedStack::One(*stack));
        }
        let id = self.by_id.get(&name.to_ascii_lowercase());
        let path = self.by_path.get(&format!("/{name}"));
        match (id, path) {
            (Some(id), Some(path)) if id != path => NamedStack::Ambiguous(*id, *path),
            (Some(stack), _) | (None, Some(stack)) => NamedStack::One(*stack),
            (None, None) => NamedStack::Unknown,
        }
    }

    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub fn path(&self, stack: StackIndex) -> &StackPath {
        &self.paths[stack.get()]
    }

    pub(super) fn is_excluded(&self, stack: StackIndex) -> bool {
        self.excluded.contains(&stack)
    }
}
