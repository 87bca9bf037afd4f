//! A run with policies, which decide the follow-ups of ended turns.
//!
//! A thread evaluates policies, one turn at a time in the order of their ends, while the run continues. They see all
//! turns as of the end of that turn, however long the evaluation takes.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use super::evaluated::{FollowReason, TurnState};
use super::event::{CancelCause, Ending, Failure, Outcome, RunEvent, Turns};
use super::execute::{AddedTurn, EarlierSender, Settlement, SettlementSender, Task};
use super::turn::{Operation, Step, Turn, TurnIndex};
use super::workflow::{Follower, TurnFacts, TurnKind, WorkflowTurn};
use crate::path::StackPath;
use crate::project::attempt::Attempts;
use crate::project::stack::StackIndex;

/// The parts of a follow-up of a stack.
#[derive(Debug, Clone)]
pub(super) struct FollowUpTurn {
    pub(super) operation: Operation,
    /// The limits and retries of its steps.
    pub(super) attempts: Attempts,
    pub(super) steps: Arc<[Step]>,
    /// The first step that applies the plan of earlier ones, if any plans.
    pub(super) acting: Option<usize>,
    pub(super) node: usize,
    /// Breaks ties: the lowest runs first.
    pub(super) rank: u32,
}

/// A turn that may follow.
#[derive(Debug)]
pub struct PreparedFollowUp {
    pub stack: StackPath,
    pub work: FollowUpWork,
    /// The limits and retries of each command.
    pub attempts: Attempts,
    pub node: usize,
    /// Breaks ties: the lowest runs first.
    pub rank: u32,
}

#[derive(Debug)]
pub enum FollowUpWork {
    /// The commands of `orch run`, or why they cannot be run.
    Commands(Result<Vec<Task>, String>),
    /// The steps of a driver, whose commands the director has.
    Driver {
        operation: Operation,
        steps: Arc<[Step]>,
        /// The first step that applies the plan of earlier ones; the number of steps if none plans.
        acting: usize,
    },
}

/// The commands of added turns, and the policies that requested turns.
#[derive(Debug, Default)]
pub(super) struct FollowUpTurns {
    by_stack: HashMap<StackPath, PreparedFollowUp>,
    turns: RefCell<Turns>,
    policies: RefCell<HashMap<TurnIndex, String>>,
}

impl FollowUpTurns {
    pub(super) fn new(prepared: Vec<PreparedFollowUp>) -> Self {
        let by_stack = prepared.into_iter().map(|it| (it.stack.clone(), it));
        FollowUpTurns {
            by_stack: by_stack.collect(),
            ..FollowUpTurns::default()
        }
    }

    pub(super) fn event(&self, event: &RunEvent) {
        if self.by_stack.is_empty() {
            return; // no policy follows the run
        }
        self.turns.borrow_mut().follow(event);
        if let RunEvent::Evaluated(evaluated) = event {
            for follow in evaluated.queued.iter().chain(&evaluated.joined) {
                let policies = follow.policies.join(",");
                self.policies.borrow_mut().insert(follow.turn, policies);
            }
        }
    }

    /// Returns the command of a step of a turn that was added; `None` if the director has it.
    pub(super) fn task(&self, turn: TurnIndex, step: usize) -> Result<Option<Task>, Failure> {
        let turn = &self.turns.borrow()[turn];
        match self.work(&turn.stack) {
            Some(FollowUpWork::Commands(Ok(tasks))) => {
                let before = turn.steps[..step].iter().filter(|step| step.is_command());
                Ok(Some(tasks[before.count()].clone()))
            }
            Some(FollowUpWork::Commands(Err(why))) => Err(Failure::NotStarted(why.clone())),
            Some(FollowUpWork::Driver { .. }) | None => Ok(None),
        }
    }

    fn work(&self, stack: &StackPath) -> Option<&FollowUpWork> {
        Some(&self.by_stack.get(stack)?.work)
    }

    /// Passes a command its turn, and the policies that requested the turn.
    pub(super) fn name(&self, task: &mut Task, turn: TurnIndex) {
        if self.by_stack.is_empty() {
            return;
        }
        let number = (turn.get() + 1).to_string();
        task.environment
            .insert("ORCH_TURN".to_owned(), Some(number));
        let policies = self.policies.borrow().get(&turn).cloned();
        // An outer run may have set it, and a turn of an earlier run may have better data.
        let known = task
            .environment
            .entry("ORCH_POLICY".to_owned())
            .or_insert(None);
        *known = policies.or(known.take());
    }
}

enum FollowerMessage {
    Started(TurnIndex),
    /// A later step of a turn has started.
    Step(TurnIndex, usize),
    Facts(TurnIndex, TurnFacts),
    /// A turn has ended, and no policy is asked.
    Over(TurnIndex, TurnState),
    /// A turn has ended, and policies are asked.
    Ended(TurnIndex, TurnState, SettlementSender),
}

pub(super) struct PolicyThread {
    sender: Sender<FollowerMessage>,
    thread: JoinHandle<()>,
    attached: HashSet<StackPath>,
    turns: Turns,
    /// Whether the run is being ended from outside.
    is_halted: bool,
    n_signals: u32,
    /// Whether no one waits for answers any more.
    is_given_up: Arc<AtomicBool>,
}

impl PolicyThread {
    /// Starts to follow a run, with the parts of follow-ups by stack. First, the turns of
    /// `reopened`, which earlier runs left open, are added; then policies are asked about the turns
    /// of `unevaluated`, which ended in earlier runs. Both are positions in the workflow. Fails if
    /// the thread cannot be started.
    pub(super) fn start(
        follower: Follower,
        followups: Vec<FollowUpTurn>,
        reopened: Range<usize>,
        unevaluated: Vec<usize>,
        earlier: EarlierSender,
    ) -> std::io::Result<Self> {
        let attached = follower.attached_paths();
        let (sender, receiver) = mpsc::channel();
        let is_given_up = Arc::new(AtomicBool::new(false));
        let given_up = is_given_up.clone();
        let thread = thread::Builder::new()
            .name("policies".to_owned())
            .spawn(move || {
                let mut asking = AskingThread {
                    follower,
                    followups,
                    is_given_up: given_up,
                };
                if !reopened.is_empty() {
                    earlier.tell(asking.reopened(reopened));
                }
                for position in unevaluated {
                    earlier.tell(asking.settlement(position, None));
                }
                asking.follow(&receiver);
            })?;
        Ok(PolicyThread {
            sender,
            thread,
            attached,
            turns: Turns::default(),
            is_halted: false,
            n_signals: 0,
            is_given_up,
        })
    }

    pub(super) fn event(&mut self, event: &RunEvent) {
        self.turns.follow(event);
        match event {
            RunEvent::Started { turn, attempt: 1 } => self.tell(FollowerMessage::Started(*turn)),
            RunEvent::StepStarted { turn, step } => self.tell(FollowerMessage::Step(*turn, *step)),
            RunEvent::RunTimedOut { .. } => self.is_halted = true,
            RunEvent::Interrupted { .. } => {
                self.is_halted = true;
                self.n_signals += 1;
                let is_given_up = self.n_signals > 1;
                self.is_given_up.store(is_given_up, Ordering::Relaxed);
            }
            RunEvent::Ended(ending) if !is_asked(ending) => {
                let state = match ending.outcome {
                    Outcome::Unconfirmed => TurnState::Unconfirmed,
                    _ => TurnState::Skipped,
                };
                self.tell(FollowerMessage::Over(ending.turn, state));
            }
            _ => {}
        }
    }

    /// Asks the policies of an ended turn; returns the effect if there are none.
    pub(super) fn ended(&mut self, ending: &Ending, later: SettlementSender) -> Option<Settlement> {
        let state = match &ending.outcome {
            Outcome::Succeeded => TurnState::Finished,
            Outcome::Failed(Failure::RunTimedOut(_)) => TurnState::Stopped,
            Outcome::Failed(_) if self.is_halted => TurnState::Stopped,
            Outcome::Failed(_) => TurnState::Failed,
            Outcome::Unconfirmed => TurnState::Unconfirmed,
            Outcome::Cancelled(CancelCause::Rejected) => TurnState::Discarded,
            Outcome::Cancelled(_) => TurnState::Canceled,
            Outcome::Skipped { .. } => TurnState::Skipped,
        };
        if self.asks_about(ending.turn) {
            self.tell(FollowerMessage::Ended(ending.turn, state, later));
            return None;
        }
        self.tell(FollowerMessage::Over(ending.turn, state));
        Some(Settlement::by_itself(ending.outcome == Outcome::Succeeded))
    }

    pub(super) fn asks_about(&self, turn: TurnIndex) -> bool {
        self.attached.contains(&self.turns[turn].stack)
    }

    /// Takes the facts of a turn that has just ended.
    pub(super) fn learn(&self, turn: TurnIndex, facts: TurnFacts) {
        self.tell(FollowerMessage::Facts(turn, facts));
    }

    fn tell(&self, told: FollowerMessage) {
        // The thread ends only when this is dropped, or by a panic, which ends the run too.
        _ = self.sender.send(told);
    }

    /// Waits until all questions are answered, unless no one needs the answers.
    pub(super) fn end(self) {
        drop(self.sender);
        if !self.is_given_up.load(Ordering::Relaxed)
            && let Err(panic) = self.thread.join()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

fn is_asked(ending: &Ending) -> bool {
    match &ending.outcome {
        Outcome::Succeeded | Outcome::Failed(_) => true,
        Outcome::Cancelled(cause) => cause.is_answered(),
        Outcome::Unconfirmed | Outcome::Skipped { .. } => false,
    }
}

/// Asks policies, in a thread of its own.
struct AskingThread {
    follower: Follower,
    followups: Vec<FollowUpTurn>,
    is_given_up: Arc<AtomicBool>,
}

impl AskingThread {
    fn follow(&mut self, told: &Receiver<FollowerMessage>) {
        for told in told {
            match told {
                FollowerMessage::Started(turn) => {
                    let position = self.follower.workflow().position(turn);
                    let of_turn = &self.follower.workflow().turns()[position];
                    let state = match of_turn.kind {
                        TurnKind::Task => TurnState::Performing,
                        _ if self.acting(of_turn).is_some_and(|acting| acting > 0) => {
                            TurnState::Planning
                        }
                        TurnKind::Tracked | TurnKind::Drift | TurnKind::Destroy => {
                            TurnState::Applying
                        }
                    };
                    self.follower.reaches(position, state);
                }
                FollowerMessage::Step(turn, step) => {
                    let position = self.follower.workflow().position(turn);
                    let of_turn = &self.follower.workflow().turns()[position];
                    // A second attempt was already past this state.
                    let is_planning = of_turn.state == TurnState::Planning;
                    if is_planning && self.acting(of_turn) == Some(step) {
                        self.follower.reaches(position, TurnState::Applying);
                    }
                }
                FollowerMessage::Facts(turn, facts) => {
                    let position = self.follower.workflow().position(turn);
                    self.follower.learn(position, facts);
                }
                FollowerMessage::Over(turn, state) => {
                    let position = self.follower.workflow().position(turn);
                    self.follower.reaches(position, state);
                }
                FollowerMessage::Ended(turn, state, later) => {
                    let position = self.follower.workflow().position(turn);
                    self.follower.reaches(position, state);
                    later.tell(self.settlement(position, Some(turn)));
                }
            }
        }
    }

    /// Returns the settlement that adds the turns that earlier runs left open.
    fn reopened(&self, positions: Range<usize>) -> Settlement {
        let workflow = self.follower.workflow();
        let turns = &workflow.turns()[positions];
        let added = turns.iter().filter_map(|turn| {
            let reason = turn.after.map(|after| FollowReason {
                policies: turn.policies.clone(),
                stack: workflow.turns()[after].path.clone(),
                after: None,
                earlier: Some(workflow.place_of_earlier(after)),
            });
            self.added(turn, reason)
        });
        Settlement {
            added: added.collect(),
            ..Settlement::by_itself(true)
        }
    }

    fn added(&self, turn: &WorkflowTurn, follows: Option<FollowReason>) -> Option<AddedTurn> {
        let followup = &self.followups[turn.stack?.get()];
        Some(AddedTurn {
            turn: Turn {
                stack: turn.path.clone(),
                operation: followup.operation,
                steps: followup.steps.clone(),
            },
            attempts: followup.attempts.clone(),
            follows,
            node: followup.node,
            rank: followup.rank,
            answers_failure: turn.answers_failure,
        })
    }

    /// Returns the first step of a follow-up that applies a plan, if it plans.
    fn acting(&self, turn: &WorkflowTurn) -> Option<usize> {
        let stack = turn.stack.filter(|_| turn.is_followup)?;
        self.followups[stack.get()].acting
    }

    /// Asks policies about an ended turn. `turn` is its number, if it is one of this run.
    fn settlement(&mut self, position: usize, turn: Option<TurnIndex>) -> Settlement {
        let is_given_up = self.is_given_up.clone();
        let is_given_up = || is_given_up.load(Ordering::Relaxed);
        let (evaluated, consequences) = self.follower.ended(position, turn, is_given_up);
        let workflow = self.follower.workflow();
        let of = |turn: TurnIndex| &workflow.turns()[workflow.position(turn)];
        let added = consequences.queued.iter().filter_map(|follow| {
            let reason = FollowReason {
                policies: follow.policies.clone(),
                stack: evaluated.stack.clone(),
                after: turn,
                earlier: evaluated.earlier.clone(),
            };
            self.added(of(follow.turn), Some(reason))
        });
        let joined = consequences.joined.iter().map(|follow| follow.turn);
        let succeeded = evaluated.state == TurnState::Finished;
        Settlement {
            counts_as_success: succeeded || consequences.is_retried,
            added: added.collect(),
            answering: joined.filter(|turn| of(*turn).answers_failure).collect(),
            evaluated: Some(Arc::new(evaluated)),
        }
    }
}

impl Follower {
    fn attached_paths(&self) -> HashSet<StackPath> {
        let names = self.workflow().names();
        let stacks = (0..names.len()).map(StackIndex::new);
        let attached = stacks.filter(|stack| self.is_attached(*stack));
        attached.map(|stack| names.path(stack).clone()).collect()
    }
}
