//! The loop: what comes, what is due, what may start, one at a time, until nothing is left to do.

use std::collections::BTreeMap;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::alarm::{Alarm, Alarms};
use super::{Control, End, Executor, Inbox, Message, PATIENCE, Plan, Signal, os};
use crate::project::attempt::Attempts;
use crate::project::stack::StackIndex;
use crate::run::event::{CancelCause, Ending, Failure, Outcome, Reaction, RunEvent, RunSummary};

/// How long a command that was killed is waited for. One that hangs in the kernel, or whose output
/// nobody takes from us, may never end.
const LAST_WAIT: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 5000 });

/// A signal that follows an equal one faster than a person could send it is the same one, delivered
/// to `orch` and again to its process group.
pub(super) const ECHO: Duration = Duration::from_millis(30);

/// Carries out a plan until nothing is left to do. That a command fails is data in the summary.
pub fn execute<E: Executor>(
    plan: Plan,
    executor: &mut E,
    inbox: &Inbox,
    on_event: &mut dyn FnMut(&RunEvent),
) -> RunSummary {
    let begun = Instant::now();
    let mut alarms = Alarms::default();
    if let Some(at) = plan.timeout.and_then(|timeout| begun.checked_add(timeout)) {
        alarms.set(at, Alarm::Run);
    }
    let run = Run {
        begun,
        plan,
        executor,
        inbox,
        alarms,
        active: BTreeMap::new(),
        summary: RunSummary::default(),
        signals: 0,
        last_signal: None,
        ending: None,
        on_event,
    };
    run.go()
}

struct Run<'a, E: Executor> {
    begun: Instant,
    plan: Plan,
    executor: &'a mut E,
    inbox: &'a Inbox,
    alarms: Alarms,
    active: BTreeMap<StackIndex, Active<E::Command>>,
    summary: RunSummary,
    signals: u32,
    last_signal: Option<(i32, Instant)>,
    /// Why nothing new starts any more: what came first.
    ending: Option<CancelCause>,
    on_event: &'a mut dyn FnMut(&RunEvent),
}

/// A stack that has been started and has not ended.
struct Active<C> {
    begun: Instant,
    /// The latest attempt, from 1, and when it began.
    attempt: u32,
    attempt_begun: Instant,
    now: Now<C>,
}

/// What is going on in an active stack.
enum Now<C> {
    Running {
        command: C,
        is_interrupted: bool,
        /// What the command is interrupted for, if not for a signal.
        overdue: Option<Failure>,
    },
    /// The next attempt is yet to come; the last one failed like this.
    Waiting(Failure),
}

impl<E: Executor> Run<'_, E> {
    /// Does one thing at a time: what has come meanwhile, and what is due, counts before anything
    /// starts.
    fn go(mut self) -> RunSummary {
        loop {
            self.take_what_has_come();
            if let Some(alarm) = self.alarms.due(Instant::now()) {
                self.alarm(alarm);
                continue;
            }
            if self.is_ending() {
                self.give_up_retries();
            } else if let Some(stack) = self.plan.schedule.start_next() {
                self.start(stack, 1);
                continue;
            }
            if self.active.is_empty() {
                break;
            }
            self.wait();
        }
        self.account_for_the_rest();
        self.summary.elapsed = self.begun.elapsed();
        self.summary
    }

    /// Says whether nothing new starts any more.
    fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Handles what is in the inbox, so that nothing starts after a signal.
    fn take_what_has_come(&mut self) {
        // A Ctrl-C reaches commands and us at once, and our handler runs before a command can have
        // ended; only the thread that passes the signal on may be late.
        let signals = self.inbox.signals.as_ref();
        let is_late = signals.is_some_and(os::Signals::has_arrived);
        let deadline = Instant::now() + PATIENCE;
        let mut is_late = is_late && self.signals == 0;
        loop {
            let message = if is_late {
                let patience = deadline.saturating_duration_since(Instant::now());
                self.inbox.receiver.recv_timeout(patience).ok()
            } else {
                self.inbox.receiver.try_recv().ok()
            };
            let Some(message) = message else {
                break;
            };
            is_late &= !matches!(message, Message::Signal(_));
            self.handle(message);
        }
    }

    /// Waits until something happens or is due.
    fn wait(&mut self) {
        // The sender that we hold ourselves keeps the channel open.
        let message = match self.alarms.next() {
            None => self.inbox.receiver.recv().map_err(RecvTimeoutError::from),
            Some(at) => {
                let patience = at.saturating_duration_since(Instant::now());
                self.inbox.receiver.recv_timeout(patience)
            }
        };
        if let Ok(message) = message {
            self.handle(message);
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Signal(signal) => {
                if let Some(signals) = &self.inbox.signals {
                    signals.taken();
                }
                self.signal(&signal);
            }
            Message::Ended {
                stack,
                attempt,
                end,
            } => {
                if !self.is_running(stack, attempt) {
                    return; // it was killed and given up
                }
                if let Some(problem) = end.output_lost {
                    (self.on_event)(&RunEvent::OutputLost { stack, problem });
                }
                self.attempt_ended(stack, end.result, end.output_matches);
            }
            Message::WantsTerminal { stack, attempt } => {
                if self.is_on_time(stack, attempt) {
                    self.overdue(stack, Failure::WantedTerminal);
                }
            }
        }
    }

    fn start(&mut self, stack: StackIndex, attempt: u32) {
        (self.on_event)(&RunEvent::Started { stack, attempt });
        let end = End {
            sender: self.inbox.sender.clone(),
            stack,
            attempt,
        };
        let nothing_special = Attempts::default();
        let attempts = self.plan.attempts.get(&stack).unwrap_or(&nothing_special);
        let now = Instant::now();
        let started = self.executor.start(stack, attempts, attempt, end);
        if let Some(at) = attempts
            .timeout
            .and_then(|timeout| now.checked_add(timeout))
        {
            self.alarms.set(at, Alarm::Attempt(stack, attempt));
        }
        let begun = self.active.get(&stack).map_or(now, |active| active.begun);
        let (now_running, failure) = match started {
            Ok(command) => {
                let running = Now::Running {
                    command,
                    is_interrupted: false,
                    overdue: None,
                };
                (running, None)
            }
            Err(failure) => (Now::Waiting(failure.clone()), Some(failure)),
        };
        self.active.insert(
            stack,
            Active {
                begun,
                attempt,
                attempt_begun: now,
                now: now_running,
            },
        );
        if let Some(failure) = failure {
            self.attempt_ended(stack, Err(failure), false);
        }
    }

    fn attempt_ended(
        &mut self,
        stack: StackIndex,
        mut result: Result<(), Failure>,
        output_matches: bool,
    ) {
        let is_ending = self.is_ending();
        let active = self.active.get_mut(&stack).expect("it was started");
        if let Now::Running {
            overdue: Some(failure),
            ..
        } = &active.now
        {
            // Whatever it says: it was interrupted, and half of the work may be done.
            result = Err(failure.clone());
        }
        let Err(failure) = result else {
            return self.stack_ended(stack, Outcome::Succeeded);
        };
        let attempt = active.attempt;
        let retry = self
            .plan
            .attempts
            .get(&stack)
            .and_then(|attempts| attempts.retry.as_ref());
        let wait = retry.and_then(|retry| retry.wait(attempt, &failure, output_matches));
        let next = wait.filter(|_| !is_ending);
        let Some((wait, at)) =
            next.and_then(|wait| Some((wait, Instant::now().checked_add(wait)?)))
        else {
            return self.stack_ended(stack, Outcome::Failed(failure));
        };
        active.now = Now::Waiting(failure.clone());
        self.alarms.set(at, Alarm::Retry(stack));
        let elapsed = active.attempt_begun.elapsed();
        (self.on_event)(&RunEvent::Retrying {
            stack,
            attempt,
            failure,
            elapsed,
            wait,
        });
    }

    fn stack_ended(&mut self, stack: StackIndex, outcome: Outcome) {
        let active = self.active.remove(&stack).expect("it was started");
        let succeeded = outcome == Outcome::Succeeded;
        self.tell_end(Ending {
            stack,
            outcome,
            elapsed: active.begun.elapsed(),
            attempts: active.attempt,
        });
        for (skipped, cause) in self.plan.schedule.finish(stack, succeeded) {
            self.tell_end(never_ran(skipped, Outcome::Skipped { cause }));
        }
        if self.plan.schedule.is_stopped() {
            self.ending.get_or_insert(CancelCause::Failed(stack));
        }
    }

    fn tell_end(&mut self, ending: Ending) {
        (self.on_event)(&RunEvent::Ended(ending.clone()));
        self.summary.endings.push(ending);
    }

    /// Once nothing new starts, neither does another attempt.
    fn give_up_retries(&mut self) {
        let waiting: Vec<_> = self
            .active
            .iter()
            .filter_map(|(&stack, active)| match &active.now {
                Now::Waiting(failure) => Some((stack, failure.clone())),
                Now::Running { .. } => None,
            })
            .collect();
        for (stack, failure) in waiting {
            self.stack_ended(stack, Outcome::Failed(failure));
        }
    }

    fn alarm(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::Run => {
                let (Some(timeout), false) = (self.plan.timeout, self.plan.schedule.is_over())
                else {
                    return; // the last stack has just ended
                };
                self.ending.get_or_insert(CancelCause::RunTimedOut(timeout));
                let running = self.running();
                (self.on_event)(&RunEvent::RunTimedOut {
                    timeout,
                    grace: self.plan.grace,
                    running: running.clone(),
                });
                for stack in running {
                    self.overdue(stack, Failure::RunTimedOut(timeout));
                }
            }
            Alarm::Attempt(stack, attempt) => {
                let timeout = self
                    .plan
                    .attempts
                    .get(&stack)
                    .and_then(|attempts| attempts.timeout);
                let (Some(timeout), true) = (timeout, self.is_on_time(stack, attempt)) else {
                    return; // it has ended, or is being ended
                };
                let grace = self.plan.grace;
                (self.on_event)(&RunEvent::TimedOut {
                    stack,
                    timeout,
                    grace,
                });
                self.overdue(stack, Failure::TimedOut(timeout));
            }
            Alarm::Grace(stack, attempt) => {
                if self.is_running(stack, attempt) {
                    (self.on_event)(&RunEvent::Killed(stack));
                    self.react(stack, Reaction::Kill, None);
                }
            }
            Alarm::Lost(stack, attempt) => {
                if self.is_running(stack, attempt) {
                    let problem = "it was killed and has not ended";
                    self.attempt_ended(stack, Err(Failure::Lost(problem.to_owned())), false);
                }
            }
            Alarm::Retry(stack) => {
                if let Some(active) = self.active.get(&stack)
                    && !self.is_ending()
                {
                    let next = active.attempt + 1;
                    self.start(stack, next);
                }
            }
        }
    }

    /// Says whether an attempt is running.
    fn is_running(&self, stack: StackIndex, attempt: u32) -> bool {
        self.active.get(&stack).is_some_and(|active| {
            active.attempt == attempt && matches!(active.now, Now::Running { .. })
        })
    }

    /// Says whether an attempt is running and its time is not yet over.
    fn is_on_time(&self, stack: StackIndex, attempt: u32) -> bool {
        self.active.get(&stack).is_some_and(|active| {
            active.attempt == attempt && matches!(active.now, Now::Running { overdue: None, .. })
        })
    }

    /// Interrupts a command that cannot succeed any more, and sees to it that it ends.
    fn overdue(&mut self, stack: StackIndex, failure: Failure) {
        let grace = self.plan.grace;
        let Some(active) = self.active.get_mut(&stack) else {
            return;
        };
        let attempt = active.attempt;
        if let Now::Running {
            overdue: overdue @ None,
            ..
        } = &mut active.now
        {
            *overdue = Some(failure);
            self.react(stack, Reaction::Interrupt, None);
            if let Some(at) = Instant::now().checked_add(grace) {
                self.alarms.set(at, Alarm::Grace(stack, attempt));
            }
        }
    }

    /// Interrupts, at most once, terminates or kills the command of a stack, if one is running.
    fn react(&mut self, stack: StackIndex, reaction: Reaction, signal: Option<&Signal>) {
        let Some(active) = self.active.get_mut(&stack) else {
            return;
        };
        let Now::Running {
            command,
            is_interrupted,
            ..
        } = &mut active.now
        else {
            return;
        };
        let was_interrupted = std::mem::replace(is_interrupted, true);
        if reaction != Reaction::Interrupt || !was_interrupted {
            command.react(reaction, signal);
        }
        if reaction == Reaction::Kill {
            let alarm = Alarm::Lost(stack, active.attempt);
            self.alarms.set(Instant::now() + LAST_WAIT, alarm);
        }
    }

    fn running(&self) -> Vec<StackIndex> {
        let is_running = |active: &Active<_>| matches!(active.now, Now::Running { .. });
        let running = self.active.iter().filter(|(_, active)| is_running(active));
        running.map(|(&stack, _)| stack).collect()
    }

    fn signal(&mut self, signal: &Signal) {
        let is_echo = self.last_signal.is_some_and(|(number, at)| {
            number == signal.number && signal.at.saturating_duration_since(at) < ECHO
        });
        self.last_signal = Some((signal.number, signal.at));
        if is_echo {
            return;
        }
        self.signals += 1;
        self.summary.signal.get_or_insert(signal.number);
        self.ending
            .get_or_insert(CancelCause::Signal(signal.number));
        let reaction = match self.signals {
            1 => Reaction::Interrupt,
            2 => Reaction::Terminate,
            _ => Reaction::Kill,
        };
        let running = self.running();
        (self.on_event)(&RunEvent::Interrupted {
            signal: signal.number,
            reaction,
            running: running.clone(),
        });
        for stack in running {
            self.react(stack, reaction, Some(signal));
        }
    }

    /// Tells of the stacks whose turn never came.
    fn account_for_the_rest(&mut self) {
        let cause = self.ending.unwrap_or(CancelCause::Stuck);
        let mut is_waiting = vec![false; self.plan.schedule.n_stacks()];
        for stack in self.plan.schedule.waiting() {
            is_waiting[stack.get()] = true;
        }
        for stack in std::mem::take(&mut self.plan.sequence) {
            if is_waiting[stack.get()] {
                self.tell_end(never_ran(stack, Outcome::Cancelled(cause)));
            }
        }
    }
}

fn never_ran(stack: StackIndex, outcome: Outcome) -> Ending {
    Ending {
        stack,
        outcome,
        elapsed: Duration::ZERO,
        attempts: 0,
    }
}
