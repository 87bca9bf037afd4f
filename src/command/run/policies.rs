//! Policies in `orch run`: which are loaded, their input, and the follow-ups that they may add.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;

use super::{PreparedCommand, RunOptions, command};
use crate::command::RunSession;
use crate::command::workflow::{EarlierWorkflow, PolicyRequest, PreparedPolicies};
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::printable::command_line;
use crate::project::config::{RecordKind, RecordPatterns};
use crate::project::environment::{Environment, lookup};
use crate::project::host::host_variable;
use crate::project::policy::PolicyRun;
use crate::project::stack::StackIndex;
use crate::record::journal::{AskedRecord, PoliciesRecord, TASK, TRACKED};
use crate::run::execute::Task;
use crate::run::facts::on_record;
use crate::run::following::{FollowUpWork, PreparedFollowUp};
use crate::run::order::Direction;
use crate::run::request::{PreparedRun, TaskFinder};
use crate::run::run_command::{CommandKind, RunCommand};
use crate::run::turn::TurnIndex;
use crate::run::workflow::{
    self, ExpectedEnd, ForeseenRun, SessionInput, TurnKind, WorkflowTurn, turn_id,
};
use crate::state::document::Document;

/// The fix if policies cannot see the state.
const NOT_READ: &str =
    "policies see the recorded states of stacks; with `--no-record`, they are not read";

pub struct PreparedRunPolicies {
    prepared: PreparedPolicies,
    pub command: RunCommand,
}

/// Returns how policies treat the turns of a run. Fails if the flags contradict each other, or
/// policies cannot follow such a run.
pub(super) fn mode(
    context: &Context,
    options: &RunOptions,
    prepared: &PreparedCommand,
    resumed: Option<&EarlierWorkflow>,
) -> Result<PolicyRun> {
    let PreparedCommand { run, command } = prepared;
    let is_reverse = run.direction() == Direction::Reverse;
    let flags = &options.policies;
    let recording = options.settings.recording;
    // Without a record, only these flags turn policies on.
    if recording == Some(RecordKind::Never) && flags.mode.is_none() && resumed.is_none() {
        return without_policies(options);
    }
    let patterns = patterns(context)?;
    let host = |name: &str| lookup(&Environment::new(), name);
    let says = |command: &[OsString]| Some(patterns.recognize(command, host)?.recorded);
    let found = match command.kind() {
        CommandKind::Plain | CommandKind::Template => says(command.given()),
        CommandKind::Script => {
            let stacks = run.sequence.iter();
            let mut commands = stacks.flat_map(|stack| command.commands(*stack));
            commands.find_map(|words| says(words).filter(|kind| *kind != RecordKind::Never))
        }
    };
    let kind = recording.or(found);
    let mode = match flags.mode {
        Some(mode) => mode,
        None if resumed.is_some_and(|resumed| resumed.record.kind == TASK) => PolicyRun::Task,
        None if resumed.is_some() => PolicyRun::Tracked,
        None if kind == Some(RecordKind::Apply) && !is_reverse => {
            context.project.settings.policies.run
        }
        None => PolicyRun::Off,
    };
    if mode == PolicyRun::Off {
        return without_policies(options);
    }
    let followup: Vec<OsString> = flags
        .followup
        .as_deref()
        .map(shell_words::split)
        .and_then(Result::ok)
        .unwrap_or_default()
        .into_iter()
        .map(OsString::from)
        .collect();
    let follows_destroy = says(&followup) == Some(RecordKind::Destroy);
    let hint = match flags.mode {
        Some(_) => "remove `--policies`",
        // It is recorded as an apply.
        None if found == Some(RecordKind::Destroy) => "use `--record=destroy`",
        None if options.runs_elsewhere => "set `run = \"off\"` in `config { policies {} }`",
        None => "add `--policies=off`",
    };
    let turns = run.sequence.iter().zip(&run.tasks);
    let destroys_somewhere = || {
        let mut turns = turns.clone();
        turns.any(|(&stack, tasks)| {
            let mut commands = command.commands(stack).iter().zip(tasks);
            commands.any(|(words, task)| destroys(&patterns, words, &task.environment))
        })
    };
    // Regardless of what the state records.
    let is_destroy = || [kind, found].contains(&Some(RecordKind::Destroy)) || destroys_somewhere();
    if is_reverse || is_destroy() {
        let what = if is_reverse {
            "`--reverse`"
        } else {
            "a command that destroys"
        };
        return Err(Error::usage(format!(
            "policies cannot be combined with {what}: follow-ups outside of the selection would be destroyed"
        ))
        .hint(hint));
    }
    if follows_destroy {
        return Err(Error::usage(
            "`--followup` must not destroy: follow-ups outside of the selection would be destroyed",
        )
        .hint(hint));
    }
    let has_followup = resumed.is_some_and(|resumed| resumed.record.followup.is_some());
    if mode == PolicyRun::Task && flags.followup.is_none() && !has_followup {
        return Err(Error::usage(
            "`--policies=task` needs `--followup COMMAND`: follow-ups of a task are tracked runs with their own command",
        ));
    }
    Ok(mode)
}

/// Returns that policies are off; refuses flags that need them.
fn without_policies(options: &RunOptions) -> Result<PolicyRun> {
    let useless = [
        ("--followup", options.policies.followup.is_some()),
        ("--metadata", !options.policies.metadata.is_empty()),
    ];
    match useless.iter().find(|(_, is_given)| *is_given) {
        None => Ok(PolicyRun::Off),
        Some((flag, _)) => Err(Error::usage(format!(
            "`{flag}` has no effect without `--policies`"
        ))),
    }
}

/// Returns the patterns that distinguish commands that apply from those that destroy.
pub(in crate::command) fn patterns(context: &Context) -> Result<RecordPatterns> {
    let Some(block) = &context.project.settings.state else {
        return Ok(RecordPatterns::built_in());
    };
    block.patterns(&host_variable).map_err(|problems| {
        context
            .notices
            .diagnostics(&problems, &context.project.sources);
        let error = "the configuration of the state is wrong";
        Error::new(ErrorKind::Configuration, error)
    })
}

fn destroys(patterns: &RecordPatterns, command: &[OsString], environment: &Environment) -> bool {
    let found = patterns.recognize(command, |name| lookup(environment, name));
    found.is_some_and(|it| it.recorded == RecordKind::Destroy)
}

impl PreparedRunPolicies {
    pub(super) fn prepare(
        context: &mut Context,
        options: &RunOptions,
        mode: PolicyRun,
        prepared: &PreparedCommand,
        excluded: &BTreeSet<StackIndex>,
        resumed: Option<&EarlierWorkflow>,
    ) -> Result<Self> {
        let policies = context.load_policies_of_stacks()?;
        if policies.attached.policies_of_stacks().is_empty() {
            context
                .notices
                .note("no policy is attached to any stack, so nothing follows");
        }
        let run = &prepared.run;
        let stacks = &context.project.stacks;
        let request = PolicyRequest {
            run: &run.id,
            kind: if mode == PolicyRun::Task {
                TASK
            } else {
                TRACKED
            },
            followup: options.policies.followup.as_ref(),
            metadata: &options.policies.metadata,
            excluded: excluded
                .iter()
                .map(|stack| stacks[*stack].path.to_string())
                .collect(),
            earlier: resumed,
            if_changed: "start a new run, or add `--allow-stale` to use the present policies",
        };
        let record = context.policies_record(&policies, request)?;
        let facts = context.run_facts(&record.metadata)?;
        let (command, followups) = followups(context, record.followup.as_deref(), prepared)?;
        let (turns, asked) = turns(context, mode, run, resumed, &facts.session);
        let (earlier, unevaluated) = resumed.map_or_else(Default::default, |resumed| {
            let earlier = &resumed.earlier;
            (earlier.turns.clone(), earlier.unevaluated.clone())
        });
        let all = (earlier, turns);
        Ok(PreparedRunPolicies {
            prepared: PreparedPolicies {
                follower: context.follower(policies, facts, &run.id, &record.excluded, all),
                followups,
                unevaluated,
                n_reopened: 0,
                record: PoliciesRecord { asked, ..record },
            },
            command,
        })
    }

    /// Gives turns that are follow-ups of an earlier run their command, and records the facts that
    /// policies need. Fails if such a command cannot run.
    pub(super) fn complete(&self, run: &mut PreparedRun) -> Result<()> {
        run.policies = Some(self.prepared.record.clone());
        let workflow = self.prepared.follower.workflow();
        for (number, tasks) in run.tasks.iter_mut().enumerate() {
            let position = workflow.position(TurnIndex::new(number));
            let turn = &workflow.turns()[position];
            if let Some(stack) = turn.stack.filter(|_| turn.is_followup) {
                match command_of(&self.prepared.followups[stack.get()]) {
                    Ok(followup) => *tasks = followup.to_vec(),
                    Err(problem) => {
                        let message =
                            format!("the follow-up of `{}` cannot run: {problem}", turn.path);
                        return Err(Error::new(ErrorKind::Configuration, message));
                    }
                }
            }
            if !turn.policies.is_empty() {
                let policies = turn.policies.join(",");
                for task in tasks {
                    let value = Some(policies.clone());
                    task.environment.insert("ORCH_POLICY".to_owned(), value);
                }
            }
        }
        Ok(())
    }

    /// Returns which first turns of the run have the command of follow-ups instead of the run's.
    pub fn have_own_command(&self) -> Vec<bool> {
        let workflow = self.prepared.follower.workflow();
        let turns = &workflow.turns()[workflow.position(TurnIndex::new(0))..];
        let has_own = self.prepared.record.followup.is_some();
        turns.iter().map(|it| has_own && it.is_followup).collect()
    }

    /// Returns the commands of possible follow-ups.
    pub(super) fn tasks_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        let followups = self.prepared.followups.iter_mut();
        let tasks = followups.filter_map(|followup| match &mut followup.work {
            FollowUpWork::Commands(tasks) => tasks.as_mut().ok(),
            FollowUpWork::Driver { .. } => None,
        });
        tasks.flatten()
    }

    /// Keeps a stack from running as a follow-up.
    pub(super) fn refuse(&mut self, stack: StackIndex, why: String) {
        self.prepared.followups[stack.get()].work = FollowUpWork::Commands(Err(why));
    }

    /// Returns the commands of a stack's follow-up, if it can run.
    pub(super) fn tasks(&self, stack: StackIndex) -> Option<&[Task]> {
        command_of(&self.prepared.followups[stack.get()]).ok()
    }

    /// Returns the turns of the run and their follow-ups, if all succeed.
    pub fn foreseen(self, run: &PreparedRun) -> ForeseenRun {
        let PreparedPolicies {
            follower,
            followups,
            unevaluated,
            ..
        } = self.prepared;
        let place = |stack: StackIndex| (stack.get(), followups[stack.get()].rank);
        let schedule = run.schedule();
        follower.foresee(schedule, unevaluated, place, |_| ExpectedEnd::Success(None))
    }

    /// Gives policies the recorded facts of stacks, from `document` or else from the state. A run
    /// that does not use the state does not read it. Fails if the document is unusable, or git
    /// fails.
    pub(super) fn recall(
        &mut self,
        context: &mut Context,
        run: &PreparedRun,
        document: Option<&Document>,
    ) -> Result<()> {
        let is_left_alone = run.recording() == Some(RecordKind::Never);
        if context.project.settings.state.is_none() || is_left_alone {
            return Ok(());
        }
        let records = match document {
            Some(document) => on_record(&context.project, document)?,
            None => context
                .read_on_record()
                .map_err(|error| error.hint(NOT_READ))?,
        };
        self.prepared.follower.recall(records);
        Ok(())
    }

    pub(super) fn follow(self, session: &mut RunSession<'_>) -> Result<()> {
        session.follow(self.prepared)
    }
}

/// Returns the commands of a follow-up, or why it cannot run.
fn command_of(followup: &PreparedFollowUp) -> Result<&[Task], &str> {
    match &followup.work {
        FollowUpWork::Commands(tasks) => tasks.as_deref().map_err(String::as_str),
        FollowUpWork::Driver { .. } => Err("it has no command"),
    }
}

/// Returns the first turns of a run, and who requested those that the run itself did not.
fn turns(
    context: &Context,
    mode: PolicyRun,
    run: &PreparedRun,
    resumed: Option<&EarlierWorkflow>,
    session: &SessionInput,
) -> (Vec<WorkflowTurn>, Vec<AskedRecord>) {
    let at = workflow::now();
    let mut asked = Vec::new();
    let turns = run.sequence.iter().enumerate().map(|(number, &stack)| {
        let path = context.project.stacks[stack].path.clone();
        let mut turn = WorkflowTurn {
            kind: match mode {
                PolicyRun::Task => TurnKind::Task,
                PolicyRun::Tracked | PolicyRun::Off => TurnKind::Tracked,
            },
            ..WorkflowTurn::new(turn_id(&run.id, number), Some(stack), path, at)
        };
        let last = resumed.and_then(|resumed| resumed.earlier.last(&turn.path));
        if let Some((_, last)) = last {
            asked.extend(turn.ask_again(last, session));
        }
        turn
    });
    (turns.collect(), asked)
}

/// Returns the data and the command of each stack's follow-up.
fn followups(
    context: &mut Context,
    followup: Option<&str>,
    prepared: &PreparedCommand,
) -> Result<(RunCommand, Vec<PreparedFollowUp>)> {
    let PreparedCommand { run, command } = prepared;
    let kind = match command.kind() {
        CommandKind::Script if followup.is_some() => CommandKind::Plain,
        kind => kind,
    };
    let words = match followup {
        None => command.words().to_vec(),
        Some(followup) => {
            let words = shell_words::split(followup)
                .ok()
                .filter(|words| !words.is_empty())
                .ok_or_else(|| {
                    Error::usage(format!("in --followup: `{followup}` is not a command"))
                })?;
            words.into_iter().map(OsString::from).collect()
        }
    };
    let all: Vec<StackIndex> = context
        .project
        .stacks
        .iter()
        .map(|(stack, _)| stack)
        .collect();
    let evaluated = command::evaluated(context, &words, kind, &all)?;
    let mut environments: HashMap<StackIndex, Environment> =
        evaluated.environments.into_iter().collect();
    let command = evaluated.command;
    let mut wrong: HashMap<StackIndex, String> = HashMap::new();
    for problem in evaluated.problems {
        for stack in problem.stacks {
            let known = wrong.entry(stack).or_default();
            if !known.is_empty() {
                known.push_str("; ");
            }
            known.push_str(&problem.diagnostic.message);
        }
    }
    for cycles in context.graph.cycles() {
        for &stack in &cycles.stacks {
            wrong.insert(
                stack,
                "it is part of a cycle (see `orch validate`)".to_owned(),
            );
        }
    }
    let patterns = patterns(context)?;
    let project = &context.project;
    let settings = run.settings();
    let mut finder = TaskFinder::new(project, &run.id);
    let mut prepared = Vec::with_capacity(all.len());
    for stack in all {
        let attempts = settings.attempts(project, &command, &[stack]);
        let environment = environments.remove(&stack).unwrap_or_default();
        let commands = command.commands(stack);
        let tasks = match (wrong.remove(&stack), &attempts) {
            (Some(problem), _) => Err(problem),
            (None, Err(_)) => Err("its retries are not configured correctly".to_owned()),
            (None, Ok(_)) if commands.is_empty() => {
                let title = command_line(&words);
                Err(format!("it does not have the script `{title}`"))
            }
            // Its arguments and its environment are known only now.
            (None, Ok(_))
                if commands
                    .iter()
                    .any(|it| destroys(&patterns, it, &environment)) =>
            {
                Err("it would destroy, and no follow-up may do that".to_owned())
            }
            (None, Ok(_)) => {
                let found = finder.find_all(stack, commands, &environment);
                found.map_err(|error| error.to_string())
            }
        };
        let attempts = attempts.unwrap_or_default().pop();
        prepared.push(PreparedFollowUp {
            stack: project.stacks[stack].path.clone(),
            work: FollowUpWork::Commands(tasks),
            attempts: attempts.unwrap_or_default(),
            node: stack.get(),
            rank: run.rank(stack),
        });
    }
    Ok((command, prepared))
}
