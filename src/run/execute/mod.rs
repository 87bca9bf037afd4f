//! Runs the steps of turns.
//!
//! One loop owns the schedule, the running commands and time. Threads that wait for commands, and one that receives
//! signals, send it messages through one channel. The loop reports its decisions as
//! [`RunEvent`](crate::run::event::RunEvent)s and never sees the output of commands.
//!
//! The loop starts commands through an [`Executor`] and doesn't know processes. [`Commands`] runs them as processes.
//!
//! # Signals
//!
//! A command must be interrupted exactly once: terraform frees its lock cleanly on the first interrupt and loses it
//! on the second. There are two cases:
//!
//! - A command that has the terminal, because `orch` is in the foreground and shares its streams, runs in our process
//!   group, so that prompts work. A Ctrl-C reaches it directly, and only a signal that a process sent to `orch` is
//!   passed on. (One that was sent to the whole group reaches the command twice; it cannot be distinguished.)
//! - Every other command has a process group of its own. Whether a signal was sent to `orch` or to its whole group, the
//!   command and its children get it only from us.
//!
//! SIGTERM is passed on as it is, because terraform treats it as an interrupt. All others are passed on as an
//! interrupt: a hang-up or a quit would end terraform at once, and leave its lock behind.
//!
//! After the first signal nothing new starts; a second one terminates the commands, a third kills them. A command that
//! takes too long gets the same interrupt, and is killed after the grace period. A killed command that does not end is
//! soon abandoned. If the loop itself is blocked by output that no one reads, further signals end the process. So the
//! third or the fourth signal always ends the run.
//!
//! A command in a process group of its own cannot have the terminal: the kernel stops it when it asks, as `ssh` does
//! for a password. It would be stopped forever, so it is interrupted and fails.

mod active;
mod command;
mod ending;
mod interruption;
mod lookup;
mod retry;
mod run_loop;
#[cfg(test)]
mod tests;
mod worker;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(not(unix), path = "other.rs")]
mod os;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

pub use self::command::{Commands, Outlet, Recorder, RecorderFor, Running, Streams, Task};
pub use self::lookup::{LookupError, ProgramFinder};
pub use self::os::{OutputKeeper, keep_output};
pub use self::run_loop::execute;
use crate::error::Error;
use crate::project::attempt::Attempts;
use crate::record::journal::ChangeSummary;
use crate::run::evaluated::{FollowReason, TurnEvaluation};
use crate::run::event::{Ending, Failure, Outcome, Reaction};
use crate::run::schedule::Schedule;
use crate::run::turn::{Turn, TurnIndex};

pub struct Execution {
    /// Decides which turn may start.
    pub schedule: Schedule,
    /// The turns it begins with, in the sequence of a serial run, as the schedule numbers them.
    pub turns: Vec<Turn>,
    /// The limits and retries of each turn.
    pub attempts: Vec<Attempts>,
    /// How long the whole run may take.
    pub timeout: Option<Duration>,
    /// How long a command that took too long has to end after its interrupt.
    pub grace: Duration,
    /// Whether the exit status of the run shows whether there are changes.
    pub detailed_exit_code: bool,
    /// Whether there were changes in a run that this one resumes.
    pub had_changes: bool,
    /// The exit status if every turn succeeds: other than 0 if the plan left out stacks with work.
    pub left_out_status: u8,
    /// How many turns of earlier runs still need an answer of policies. Nothing starts before.
    pub n_earlier: usize,
    /// Whether the initial turns were not approved: none of them starts, only turns that answer to that do.
    pub is_rejected: bool,
}

/// Starts commands, and decides the effect of their ends.
pub trait Executor {
    /// A command that is running, or a question that is open.
    type Command: Control;

    /// Returns whether a step cannot start yet, because another turn is running the same step. The turn keeps its slot,
    /// and the question is repeated after everything that happens.
    fn is_held(&mut self, _step: &UpcomingStep<'_>) -> bool {
        false
    }

    /// Returns whether there is anything to do in a step that is about to start; if not, the next
    /// step follows. A turn without such a step succeeds. Fails if the attempt fails instead.
    fn is_needed(&mut self, _step: &UpcomingStep<'_>) -> Result<bool, Failure> {
        Ok(true)
    }

    /// Starts a step of a turn. [`StepStart::end`] reports its end, once, from any thread. Fails if
    /// it cannot be started; then no end is reported.
    fn start(&mut self, start: StepStart<'_, Self::Command>) -> Result<Self::Command, Failure>;

    /// Returns whether a turn ends without doing something that needed approval and had none.
    fn is_unconfirmed(&self, _turn: TurnIndex) -> bool {
        false
    }

    /// Returns whether a turn has applied changes that a plan has shown. Its output need not report them.
    fn applies_changes(&self, _turn: TurnIndex) -> bool {
        false
    }

    /// Returns whether the run kept an old generation because only the user may allow its destruction.
    fn has_refused(&self) -> bool {
        false
    }

    /// Returns the effect of an ended turn on others, or `None` if it is reported later, once, from any thread. Until
    /// then, no turn behind it starts.
    fn settle(&mut self, ending: &Ending, later: SettlementSender) -> Option<Settlement> {
        drop(later);
        Some(Settlement::by_itself(ending.outcome == Outcome::Succeeded))
    }
}

/// A step that may be about to start.
pub struct UpcomingStep<'a> {
    pub index: TurnIndex,
    pub turn: &'a Turn,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The position of the step among those of the turn.
    pub step: usize,
    /// The latest changes that a step of the attempt reported.
    pub changes: Option<ChangeSummary>,
}

pub struct StepStart<'a, C> {
    pub index: TurnIndex,
    pub turn: &'a Turn,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The position of the step among those of the turn.
    pub step: usize,
    /// The limits and retries of the turn.
    pub attempts: &'a Attempts,
    /// The step before, in the same attempt: they share the log.
    pub previous: Option<C>,
    pub end: StepReporter,
}

/// The effect of an ended turn on others.
pub struct Settlement {
    /// Whether later turns run as after a success.
    pub counts_as_success: bool,
    /// Turns to add. One at the node of a failed turn that counts as a success replaces that one.
    pub added: Vec<AddedTurn>,
    /// Turns that have not started and answer a failure from now on.
    pub answering: Vec<TurnIndex>,
    /// The answers of policies, if any was asked.
    pub evaluated: Option<Arc<TurnEvaluation>>,
}

pub struct AddedTurn {
    pub turn: Turn,
    pub attempts: Attempts,
    /// The reason, if policies requested it.
    pub follows: Option<FollowReason>,
    pub node: usize,
    /// Breaks ties: the lowest runs first.
    pub rank: u32,
    /// Whether it answers a failure: it runs even after one.
    pub answers_failure: bool,
}

impl Settlement {
    /// Returns the default effect of a success or a failure.
    pub fn by_itself(succeeded: bool) -> Self {
        Settlement {
            counts_as_success: succeeded,
            added: Vec::new(),
            answering: Vec::new(),
            evaluated: None,
        }
    }
}

/// Reports the effect of an ended turn to the loop, later.
pub struct SettlementSender {
    sender: Sender<Message>,
    turn: TurnIndex,
    is_told: bool,
}

impl SettlementSender {
    /// Reports it. A run that is ending ignores it.
    pub fn tell(mut self, settlement: Settlement) {
        let turn = self.turn;
        self.is_told = true;
        // Without a loop, no one needs it.
        _ = self.sender.send(Message::Settled { turn, settlement });
    }
}

/// Reports the effect of turns of earlier runs to the loop, from any thread.
pub struct EarlierSender(Sender<Message>);

impl EarlierSender {
    /// Reports the effect of one of them.
    pub fn tell(&self, settlement: Settlement) {
        // Without a loop, no one needs it.
        _ = self.0.send(Message::Earlier(settlement));
    }
}

/// A dropped sender, perhaps after a panic, must not leave the run waiting forever.
impl Drop for SettlementSender {
    fn drop(&mut self) {
        if !self.is_told {
            _ = self.sender.send(Message::Unsettled(self.turn));
        }
    }
}

/// As for [`SettlementSender`].
impl Drop for EarlierSender {
    fn drop(&mut self) {
        _ = self.0.send(Message::NoMoreEarlier);
    }
}

/// A command that is running.
pub trait Control {
    /// Interrupts, terminates or kills it, if it has not ended. Returns whether that may have reached it.
    fn react(&self, reaction: Reaction, signal: Option<&Signal>) -> bool;
}

#[derive(Debug)]
pub struct StepReporter {
    sender: Sender<Message>,
    turn: TurnIndex,
    attempt: u32,
    step: usize,
}

pub struct StepEnd {
    pub result: Result<(), Failure>,
    pub changes: Option<ChangeSummary>,
    pub output_matches: bool,
    /// Why some of its output was lost, if any was.
    pub output_lost: Option<String>,
}

impl StepReporter {
    /// Reports that the command was stopped because it asked for the terminal; the end follows later.
    fn wants_terminal(&self) {
        _ = self.sender.send(Message::WantsTerminal {
            turn: self.turn,
            attempt: self.attempt,
            step: self.step,
        });
    }

    pub fn tell(self, end: StepEnd) {
        // Without a loop, no one needs it.
        _ = self.sender.send(Message::Ended {
            turn: self.turn,
            attempt: self.attempt,
            step: self.step,
            end,
        });
    }
}

/// What can happen while the loop waits.
enum Message {
    Ended {
        turn: TurnIndex,
        attempt: u32,
        step: usize,
        end: StepEnd,
    },
    WantsTerminal {
        turn: TurnIndex,
        attempt: u32,
        step: usize,
    },
    Settled {
        turn: TurnIndex,
        settlement: Settlement,
    },
    /// The effect of a turn will never be reported.
    Unsettled(TurnIndex),
    Earlier(Settlement),
    /// No further effects of turns of earlier runs will be reported.
    NoMoreEarlier,
    StateLost(String),
    /// A wait is over.
    Woken,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no signals"))]
    Signal(Signal),
}

/// A signal that `orch` received.
#[derive(Clone, Copy)]
pub struct Signal {
    pub number: i32,
    /// Whether a process sent it, rather than the terminal.
    pub from_process: bool,
    /// When it was received.
    pub at: Instant,
}

/// The messages to the loop.
pub struct Inbox {
    // Dropped first: a closed channel tells the signal thread that the loop has ended.
    signals: Option<os::Signals>,
    sender: Sender<Message>,
    receiver: Receiver<Message>,
}

impl Inbox {
    /// Returns an inbox without signals.
    pub fn without_signals() -> Self {
        let (sender, receiver) = mpsc::channel();
        Inbox {
            sender,
            receiver,
            signals: None,
        }
    }

    /// Returns the sender for effects of turns of earlier runs.
    pub(in crate::run) fn earlier(&self) -> EarlierSender {
        EarlierSender(self.sender.clone())
    }

    /// Returns the sender that reports a lost state, from any thread.
    pub(in crate::run) fn state_alarm(&self) -> StateAlarm {
        StateAlarm(self.sender.clone())
    }

    /// Returns an inbox that also receives this process's signals. They do not end the process
    /// until the inbox is dropped. Fails if signals cannot be received.
    pub fn with_signals() -> io::Result<Self> {
        let mut inbox = Self::without_signals();
        inbox.signals = Some(os::receive_signals(inbox.sender.clone())?);
        Ok(inbox)
    }

    /// Returns a function that ends a wait early, from any thread.
    pub fn alarm(&self) -> impl FnOnce() + Send + use<> {
        let sender = self.sender.clone();
        move || _ = sender.send(Message::Woken)
    }

    /// Waits while no command runs. A signal has its default effect: it ends the process.
    pub fn sleep(&self, duration: Duration) {
        if let Ok(Message::Signal(signal)) = self.receiver.recv_timeout(duration) {
            os::end_process(signal.number);
        }
    }
}

/// Tells the loop that results can no longer be recorded: nothing new starts, and running commands continue.
pub(in crate::run) struct StateAlarm(Sender<Message>);

impl StateAlarm {
    pub(in crate::run) fn ring(&self, why: &impl fmt::Display) {
        // Without a loop, no one needs it.
        _ = self.0.send(Message::StateLost(why.to_string()));
    }
}

/// How many files a command that runs keeps open, at most.
const FILES_OF_A_COMMAND: u64 = 8;

/// How many `orch` itself keeps open.
const OUR_FILES: u64 = 64;

/// Makes sure that this many commands can run at once: raises the limit of open files if it is too
/// low. Fails if it may not be raised that far.
pub fn make_room(at_once: usize) -> Result<(), Error> {
    let at_once = at_once as u64;
    let needed = OUR_FILES + at_once * FILES_OF_A_COMMAND;
    if at_once < 2 {
        return Ok(());
    }
    os::allow_open_files(needed).map_err(|allowed| {
        let possible = (allowed.saturating_sub(OUR_FILES) / FILES_OF_A_COMMAND).max(1);
        Error::external(format!(
            "{at_once} commands at once need {needed} open files, and no more than {allowed} are allowed (`ulimit -Hn`); run fewer at once: `-j {possible}`"
        ))
    })
}

/// How long a signal that has arrived may take to come through the channel.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(1);
