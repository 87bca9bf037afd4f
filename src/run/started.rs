//! A run from start to end, whatever its turns do: the lock, the journal, the commands.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use crate::error::{ErrorContext as _, Result};
use crate::notice::Notices;
use crate::path::StackPath;
use crate::record::journal::{Header, RunRecord, UncommittedFile};
use crate::record::logs::Logs;
use crate::run::directed::{Director, TurnExecutor};
use crate::run::event::{RunEvent, RunSummary, Sink};
use crate::run::event_stream::EventStream;
use crate::run::execute::{Commands, Execution, Inbox, Streams, Task, execute, make_room};
use crate::run::following::{
    FollowUpTurn, FollowUpTurns, FollowUpWork, PolicyThread, PreparedFollowUp,
};
use crate::run::recording::{Concurrency, EndedRecording, Followers, Recording};
use crate::run::results::{OrderResults, ResultSender, UnsentResult};
use crate::run::state::{RunState, StatePlan, WriterReports};
use crate::run::steps::{command_steps, confirmed};
use crate::run::turn::{Operation, Step, TurnIndex};
use crate::run::workflow::Follower;
use crate::state::job_lease::JobLease;
use crate::state::writer::{StateWriter, WriterEnd};

pub struct BeginOptions<'a> {
    /// Where notes about its record go.
    pub notices: &'a Notices,
    /// Whether the run is recorded, and locked against others. A project without a marked root keeps
    /// nothing.
    pub is_recorded: bool,
    pub beside: Concurrency,
    /// The uncommitted files, if known.
    pub uncommitted: Option<Vec<UncommittedFile>>,
    pub is_reported: bool,
    /// Another destination for the lines of its journal.
    pub events: Option<EventStream>,
    /// Where its results go, if it is a job of a work order.
    pub results: Option<OrderResults>,
    /// The receiver of signals, if there is one already.
    pub inbox: Option<Inbox>,
}

/// A run whose first command is about to start.
pub struct StartedRun {
    execution: Execution,
    /// The commands of each turn, without what needs no process.
    tasks: Vec<Vec<Task>>,
    inbox: Inbox,
    recording: Recording,
    id: String,
    lease: Option<Arc<JobLease>>,
    state: Option<RunState>,
    following: Option<PolicyThread>,
    followups: FollowUpTurns,
    /// The steps before the commands of stacks.
    preceding: HashMap<StackPath, Vec<(Step, Task)>>,
}

pub struct EndedRun {
    pub summary: Arc<RunSummary>,
    /// Its record, if a report needs it.
    pub record: Option<RunRecord>,
    /// Why its last events could not be written to the stream.
    pub problem: Option<io::Error>,
    /// The result of writing the state, if it was written.
    pub state: Option<WriterEnd>,
    /// The results of a job that are only on this machine; `None` if it is no job, or sends none.
    pub unsent: Option<Vec<UnsentResult>>,
    /// Whether destroys are recorded as failed, because their results are only on this machine.
    pub has_unsent_destroys: bool,
}

impl EndedRun {
    /// Returns whether it is a job that has succeeded and whose results are all in the store.
    pub fn is_elsewhere(&self) -> bool {
        let is_sent = self.unsent.as_ref().is_some_and(Vec::is_empty);
        let is_lost = matches!(self.state, Some(WriterEnd::Lost { .. }));
        is_sent && !is_lost && self.summary.has_ended_well()
    }
}

impl StartedRun {
    /// Makes room for the commands, takes the lock and begins the journal. From now on signals
    /// reach the run, whose journal records them. `tasks` has the commands of each turn, one for
    /// each command step. Fails if I/O or the operating system fails, or another run is in
    /// progress.
    pub fn begin(
        root: &Path,
        id: &str,
        execution: Execution,
        tasks: Vec<Vec<Task>>,
        jobs: NonZeroUsize,
        header: impl FnOnce() -> Header,
        circumstances: BeginOptions<'_>,
    ) -> Result<Self> {
        make_room(jobs.get().min(execution.turns.len()))?;
        let BeginOptions {
            notices,
            is_recorded,
            beside,
            uncommitted: _,
            is_reported,
            events: mut stream,
            results,
            inbox,
        } = circumstances;
        let inbox = match inbox {
            Some(inbox) => inbox,
            None => Inbox::with_signals().context("failed to receive signals")?,
        };
        let is_followed = is_reported || stream.is_some() || results.is_some();
        let mut header = (is_recorded || is_followed).then(header);
        if let Some((header, results)) = header.as_mut().zip(results.as_ref()) {
            header.part_of = Some(results.outline.run.clone());
        }
        let mut recording = match &header {
            Some(header) if is_recorded => Recording::begin(root, header, beside, notices)?,
            _ => Recording::default(),
        };
        if let Some((stream, header)) = stream.as_mut().zip(header.as_ref()) {
            // If there is no reader, the first event fails.
            _ = stream.write(header);
        }
        let lease = results.as_ref().and_then(|results| results.lease.clone());
        let results = match results.zip(header.as_ref()) {
            Some((results, header)) => {
                let logs = recording.folder().map(|folder| folder.join("logs"));
                match ResultSender::start(results, header, logs.map(Logs::new)) {
                    Ok(sender) => Some(sender),
                    Err(error) => {
                        recording.discard();
                        return Err(error).context("failed to start a thread");
                    }
                }
            }
            None => None,
        };
        recording.follow(Followers {
            record: header.filter(|_| is_reported).map(RunRecord::new),
            stream,
            results,
        });
        Ok(StartedRun {
            execution,
            tasks,
            inbox,
            recording,
            id: id.to_owned(),
            lease,
            state: None,
            following: None,
            followups: FollowUpTurns::default(),
            preceding: HashMap::new(),
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn folder(&self) -> Option<&Path> {
        self.recording.folder()
    }

    /// Makes the run record its results in the state. `start` starts the writer, which sends these
    /// reports. Fails if the writer cannot be started.
    pub fn keep_state(
        mut self,
        plan: StatePlan,
        start: impl FnOnce(WriterReports) -> io::Result<StateWriter>,
    ) -> io::Result<Self> {
        let writer = start(plan.reports(&self.inbox))?;
        for (number, turn) in self.execution.turns.iter_mut().enumerate() {
            let Some(record) = plan.record(number) else {
                continue;
            };
            if let Some(earlier) = &record.earlier {
                let destroys = turn.operation == Operation::Destroy;
                self.recording
                    .note_earlier((turn.stack.as_str(), destroys), earlier);
            }
            if turn.operation == Operation::Run {
                turn.steps = confirmed(&turn.steps, record.command_position);
            }
        }
        let sends_results = self.recording.sends_results();
        self.state = Some(plan.begin(self.id.clone(), writer, sends_results));
        Ok(self)
    }

    /// Puts steps before the commands of stacks, each with its task, also of turns that are added.
    #[must_use]
    pub fn preceded(mut self, first: HashMap<StackPath, Vec<(Step, Task)>>) -> Self {
        for (turn, tasks) in self.execution.turns.iter_mut().zip(&mut self.tasks) {
            if let Some(first) = first.get(&turn.stack) {
                turn.steps = precede(&turn.steps, tasks, first);
            }
        }
        self.preceding = first;
        self
    }

    /// Makes policies follow the run. `prepared` has the parts of follow-ups in path order. First,
    /// policies are asked about the turns of earlier runs at the positions `unevaluated` of the
    /// workflow. Its last `n_reopened` turns are added at once. Fails if the thread that asks them
    /// cannot be started.
    pub fn follow(
        mut self,
        follower: Follower,
        mut prepared: Vec<PreparedFollowUp>,
        unevaluated: Vec<usize>,
        n_reopened: usize,
    ) -> io::Result<Self> {
        let of_commands = |stack, tasks: &[Task], attempts| {
            let steps = command_steps(tasks, attempts);
            let state = self.state.as_ref();
            match state.and_then(|state| state.followup(stack)) {
                Some(record) => confirmed(&steps, record.command_position),
                None => steps,
            }
        };
        let followups = prepared.iter_mut().map(|prepared| {
            let (operation, steps, acting) = match &mut prepared.work {
                FollowUpWork::Driver {
                    operation,
                    steps,
                    acting,
                } => (*operation, steps.clone(), Some(*acting)),
                FollowUpWork::Commands(Ok(tasks)) => {
                    let steps = of_commands(&prepared.stack, tasks, &prepared.attempts);
                    let steps = match self.preceding.get(&prepared.stack) {
                        Some(first) => precede(&steps, tasks, first),
                        None => steps,
                    };
                    (Operation::Run, steps, None)
                }
                // Its only step fails.
                FollowUpWork::Commands(Err(_)) => {
                    let steps = [Step::Command("command".into())].into();
                    (Operation::Run, steps, None)
                }
            };
            FollowUpTurn {
                operation,
                attempts: prepared.attempts.clone(),
                steps,
                acting,
                node: prepared.node,
                rank: prepared.rank,
            }
        });
        let workflow = follower.workflow();
        for turn in (0..self.execution.turns.len()).map(TurnIndex::new) {
            // Unfinished turns of an earlier run answer its failures.
            if workflow.turns()[workflow.position(turn)].answers_failure {
                self.execution.schedule.answer_failure(turn);
            }
        }
        let n_all = workflow.turns().len();
        let reopened = n_all - n_reopened..n_all;
        self.execution.n_earlier = unevaluated.len() + usize::from(n_reopened > 0);
        let (followups, earlier) = (followups.collect(), self.inbox.earlier());
        let following = PolicyThread::start(follower, followups, reopened, unevaluated, earlier)?;
        self.following = Some(following);
        self.followups = FollowUpTurns::new(prepared);
        Ok(self)
    }

    /// Ends the run before its first command: frees the state lock, and removes the journal, which would look like
    /// that of a killed run.
    pub fn give_up(self) {
        self.state.map(RunState::finish);
        self.recording.discard();
    }

    /// Runs the commands with these streams, and returns the result. The sinks receive every event. Each start is
    /// recorded before it happens. The director decides which steps are needed; without one, all are.
    pub fn execute(
        mut self,
        streams: Streams<'_>,
        sinks: &mut [&mut dyn Sink],
        director: Option<&mut dyn Director>,
    ) -> EndedRun {
        let tasks = self.tasks;
        let turns = self.execution.turns.clone();
        let (following, followups) = (RefCell::new(self.following), self.followups);
        let director = RefCell::new(director);
        let task = |turn: TurnIndex, step: usize| {
            let mut task = match tasks.get(turn.get()) {
                None => match followups.task(turn, step)? {
                    Some(task) => task,
                    None => match director.borrow_mut().as_mut() {
                        Some(director) => director.task(turn, step)?,
                        None => unreachable!("a run without a director adds only its command"),
                    },
                },
                Some(tasks) => {
                    let before = turns[turn.get()].steps[..step].iter();
                    let number = before.filter(|step| step.is_command());
                    tasks[number.count()].clone()
                }
            };
            if let Some(director) = director.borrow().as_ref() {
                director.amend(turn, &mut task);
            }
            followups.name(&mut task, turn);
            Ok(task)
        };
        let commands = Commands::new(task, streams);
        let recording = &mut self.recording;
        let state = self.state.map(Rc::new);
        let mut on_event = |event: &RunEvent| {
            if let RunEvent::Ended(ending) = event {
                let mut director = director.borrow_mut();
                let findings = director.as_mut().and_then(|it| it.ended(ending));
                if let Some(state) = &state {
                    state.ended(ending, findings);
                }
            }
            if let RunEvent::Retrying { turn, .. } = event
                && let Some(director) = director.borrow_mut().as_mut()
            {
                director.retries(*turn);
            }
            if let RunEvent::Added { added, .. } = event {
                if let Some(state) = &state {
                    state.added(&added.stack);
                }
                if let Some(director) = director.borrow_mut().as_mut() {
                    director.added(added);
                }
            }
            followups.event(event);
            if let Some(following) = following.borrow_mut().as_mut() {
                following.event(event);
                if let RunEvent::Ended(ending) = event
                    && following.asks_about(ending.turn)
                    && let Some(director) = director.borrow().as_ref()
                {
                    following.learn(ending.turn, director.facts(ending));
                }
            }
            let mut problems = recording.event(event);
            if let Some(state) = &state {
                recording.sent().for_each(|turn| state.sent(turn));
            }
            for sink in &mut *sinks {
                problems.extend(sink.event(event).err());
            }
            for problem in problems {
                let not_kept = RunEvent::NotKept(problem.to_string());
                for sink in &mut *sinks {
                    // The second failure of a sink adds nothing.
                    _ = sink.event(&not_kept);
                }
            }
        };
        let mut executor = TurnExecutor {
            commands,
            state: state.clone(),
            lease: (self.lease.as_deref()).map(|lease| (lease, self.inbox.state_alarm())),
            director: &director,
            following: &following,
        };
        let summary = execute(self.execution, &mut executor, &self.inbox, &mut on_event);
        drop(executor);
        if let Some(following) = following.into_inner() {
            following.end();
        }
        let (state, unsent, has_unsent_destroys) = finish(state, recording);
        let EndedRecording { record, problem } = self.recording.end();
        EndedRun {
            summary,
            record,
            problem,
            state,
            unsent,
            has_unsent_destroys,
        }
    }
}

/// Waits until the results are sent and the state is written. Returns how writing the state ended, the results that are
/// only on this machine, and whether destroys therefore count as failed.
fn finish(
    state: Option<Rc<RunState>>,
    recording: &mut Recording,
) -> (Option<WriterEnd>, Option<Vec<UnsentResult>>, bool) {
    let mut results = None;
    let mut has_unsent_destroys = false;
    if let Some(state) = state.as_ref().filter(|it| it.has_unsent()) {
        results = recording.end_results();
        let sent = results.iter().flat_map(|(_, sent)| sent);
        sent.for_each(|turn| state.sent(*turn));
        has_unsent_destroys = state.fail_unsent();
    }
    let end = state.and_then(Rc::into_inner).map(RunState::finish);
    let results = results.or_else(|| recording.end_results());
    (end, results.map(|(unsent, _)| unsent), has_unsent_destroys)
}

/// Puts steps before the first command. Adds their tasks to those of the commands.
fn precede(steps: &[Step], tasks: &mut Vec<Task>, first: &[(Step, Task)]) -> Arc<[Step]> {
    let command = steps.iter().position(Step::is_command);
    let (before, rest) = steps.split_at(command.unwrap_or(steps.len()));
    let (first, first_tasks): (Vec<Step>, Vec<Task>) = first.iter().cloned().unzip();
    tasks.splice(0..0, first_tasks);
    [before, &first, rest].concat().into()
}
