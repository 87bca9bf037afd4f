//! A run that policies follow: which they are, what they are told, and what may follow.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;

use anyhow::Context as _;
use orch::author;
use orch::git::Repository;
use orch::project::config::{RecordPatterns, Recorded};
use orch::project::environment::Environment;
use orch::project::policy::{OnPolicyError, PolicyRun};
use orch::project::stack::StackIndex;
use orch::run::begun::BegunRun;
use orch::run::evaluated::{Evaluated, TurnState};
use orch::run::execute::Task;
use orch::run::following::PreparedFollowUp;
use orch::run::order::Direction;
use orch::run::request::{PreparedRun, TaskFinder};
use orch::run::run_command::RunCommand;
use orch::run::workflow::{
    self, CommitInput, FollowedPolicy, Follower, RunFacts, SessionInput, StackInput, StackNames,
    Workflow, WorkflowTurn, turn_id,
};

use super::RunArgs;
use super::command;
use crate::program::commands::Loaded;
use crate::program::commands::policy_files::LoadedPolicies;
use crate::program::error::{ErrorKind, ProgramError, Result};

/// What it takes to let policies follow a run.
pub(super) struct FollowedRun {
    follower: Follower,
    followups: Vec<PreparedFollowUp>,
    /// The command of what follows.
    pub(super) command: RunCommand,
}

/// Returns what the turns of a run are to policies.
///
/// # Errors
///
/// If the flags contradict each other, or policies cannot follow such a run.
pub(super) fn mode(
    loaded: &Loaded,
    args: &RunArgs,
    run: &PreparedRun,
    command: &[OsString],
) -> Result<PolicyRun> {
    let is_reverse = run.direction() == Direction::Reverse;
    let flags = &args.policies;
    let kind = recorded(loaded, args, command)?;
    let mode = match flags.policies {
        Some(policies) => policies.into(),
        None if kind == Some(Recorded::Apply) && !is_reverse => {
            loaded.project.settings.policies.run
        }
        None => PolicyRun::Off,
    };
    if mode == PolicyRun::Off {
        let useless = [
            ("--followup", flags.followup.is_some()),
            ("--metadata", !flags.metadata.is_empty()),
        ];
        let useless = useless.iter().find(|(_, is_given)| *is_given);
        return match useless {
            None => Ok(mode),
            Some((flag, _)) => Err(ProgramError::usage(format!(
                "`{flag}` has no effect without `--policies`"
            ))),
        };
    }
    if is_reverse || kind == Some(Recorded::Destroy) {
        let what = if is_reverse {
            "`--reverse`"
        } else {
            "a command that destroys"
        };
        return Err(ProgramError::usage(format!(
            "policies cannot follow {what}: they may ask for stacks that are not selected, and these would be destroyed"
        ))
        .hint("leave out `--policies`"));
    }
    if mode == PolicyRun::Task && flags.followup.is_none() {
        return Err(ProgramError::usage(
            "`--policies=task` needs `--followup COMMAND`: what follows a task is a tracked run, which needs a command of its own",
        ));
    }
    Ok(mode)
}

/// Returns what the state records a command as, or would.
fn recorded(loaded: &Loaded, args: &RunArgs, command: &[OsString]) -> Result<Option<Recorded>> {
    if let Some(recorded) = args.settings().recording {
        return Ok(Some(recorded));
    }
    let host = |name: &str| std::env::var(name).ok();
    let patterns = match &loaded.project.settings.state {
        None => RecordPatterns::built_in(),
        Some(block) => match block.patterns(&host) {
            Ok(patterns) => patterns,
            Err(problems) => {
                crate::program::console::diagnostics(problems.iter(), &loaded.project.sources);
                let error = anyhow::anyhow!("the configuration of the state is wrong");
                return Err(ProgramError::new(ErrorKind::Configuration, error));
            }
        },
    };
    Ok(patterns
        .recorded(command, host)
        .map(|(recorded, _)| recorded))
}

impl FollowedRun {
    /// Prepares a run for its policies. What is wrong with these goes to the problems.
    pub(super) fn prepare(
        loaded: &mut Loaded,
        args: &RunArgs,
        mode: PolicyRun,
        run: &PreparedRun,
        command: &RunCommand,
        excluded: BTreeSet<StackIndex>,
    ) -> Result<Self> {
        let policies = loaded.load_policies(|attached, position| {
            attached.policies_of_stacks().contains(&position)
        })?;
        let facts = facts(loaded, args)?;
        let (command, followups) = followups(loaded, args, run, command)?;
        let project = &loaded.project;
        let names = StackNames::new(&project.stacks, excluded);
        let at = workflow::now();
        let turns = run.sequence.iter().enumerate().map(|(number, &stack)| {
            let path = project.stacks[stack].path.clone();
            WorkflowTurn {
                is_task: mode == PolicyRun::Task,
                ..WorkflowTurn::new(turn_id(&run.id, number), Some(stack), path, at)
            }
        });
        let settings = project.settings.policies;
        let workflow = Workflow::new(run.id.clone(), names, settings, Vec::new(), turns.collect());
        let inputs = project.stacks.iter().map(|(_, stack)| {
            let input = StackInput::new(stack, &facts, &project.settings);
            (workflow::id(stack), input)
        });
        let inputs = inputs.collect();
        Ok(FollowedRun {
            follower: follower(loaded, policies, facts, inputs, workflow),
            followups,
            command,
        })
    }

    /// Returns the commands of what may follow.
    pub(super) fn tasks_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        let followups = self.followups.iter_mut();
        followups.filter_map(|followup| followup.task.as_mut().ok())
    }

    /// Returns the command of a follow-up of a stack, if it can be run.
    pub(super) fn task(&self, stack: StackIndex) -> Option<&Task> {
        self.followups[stack.get()].task.as_ref().ok()
    }

    /// Returns the turns of the run and what follows from them if all succeed, in the sequence of a serial run,
    /// and what went wrong with the policies.
    pub(super) fn foreseen(mut self, run: &PreparedRun) -> (Vec<WorkflowTurn>, Vec<Evaluated>) {
        let mut schedule = run.schedule();
        let (mut sequence, mut told) = (Vec::new(), Vec::new());
        while let Some(turn) = schedule.start_next() {
            let position = self.follower.workflow().position(turn);
            sequence.push(self.follower.workflow().turns()[position].clone());
            self.follower.reaches(position, TurnState::Finished);
            schedule.finish(turn, true);
            let (evaluated, consequences) = self.follower.ended(position, Some(turn), || false);
            for follow in &consequences.queued {
                let position = self.follower.workflow().position(follow.turn);
                let stack = self.follower.workflow().turns()[position].stack;
                let stack = stack.expect("only stacks of the tree follow");
                let rank = self.followups[stack.get()].rank;
                schedule.add(stack.get(), rank, false);
            }
            schedule.settle(turn, true);
            told.push(evaluated);
        }
        (sequence, told)
    }

    /// Lets the policies follow a run that has begun.
    pub(super) fn follow(self, begun: BegunRun) -> Result<BegunRun> {
        let followed: io::Result<BegunRun> = begun.follow(self.follower, self.followups);
        Ok(followed.context("failed to start the thread that asks policies")?)
    }
}

fn follower(
    loaded: &Loaded,
    loaded_policies: LoadedPolicies,
    facts: RunFacts,
    stacks: Vec<(String, StackInput)>,
    workflow: Workflow,
) -> Follower {
    let LoadedPolicies {
        worker,
        attached,
        policies,
    } = loaded_policies;
    let blocks = loaded.project.policies.iter().zip(policies);
    let policies = blocks.map(|(block, policy)| {
        Some(FollowedPolicy {
            name: block.name.value.clone(),
            file: block.file.value.relative().to_owned(),
            number: policy?.number,
            timeout: block.timeout,
            is_ignored: block.on_error == OnPolicyError::Ignore,
        })
    });
    let all = loaded.project.stacks.iter();
    let attached = all.map(|(stack, _)| attached.to_stack(stack).to_vec());
    Follower::new(
        worker,
        policies.collect(),
        attached.collect(),
        facts,
        stacks,
        workflow,
    )
}

/// Returns what a follow-up of each stack is made of, and its command.
fn followups(
    loaded: &mut Loaded,
    args: &RunArgs,
    run: &PreparedRun,
    command: &RunCommand,
) -> Result<(RunCommand, Vec<PreparedFollowUp>)> {
    let words = match &args.policies.followup {
        None => command.given().to_vec(),
        Some(followup) => {
            let words = shell_words::split(followup)
                .ok()
                .filter(|words| !words.is_empty());
            let words = words.ok_or_else(|| {
                ProgramError::usage(format!("in --followup: `{followup}` is not a command"))
            })?;
            words.into_iter().map(OsString::from).collect()
        }
    };
    let all: Vec<StackIndex> = loaded
        .project
        .stacks
        .iter()
        .map(|(stack, _)| stack)
        .collect();
    let evaluated = command::evaluated(loaded, &words, command.is_evaluated(), &all)?;
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
    for knot in loaded.graph.cycles() {
        for &stack in &knot.stacks {
            wrong.insert(
                stack,
                "it is part of a cycle (see `orch validate`)".to_owned(),
            );
        }
    }
    let project = &loaded.project;
    let settings = run.settings();
    let mut finder = TaskFinder::new(project, &run.id);
    let mut prepared = Vec::with_capacity(all.len());
    for stack in all {
        let attempts = settings.attempts(project, &command, &[stack]);
        let environment = environments.remove(&stack).unwrap_or_default();
        let task = match (wrong.remove(&stack), &attempts) {
            (Some(problem), _) => Err(problem),
            (None, Err(_)) => Err("nothing says which failures of it to retry".to_owned()),
            (None, Ok(_)) => {
                let found = finder.find(stack, command.of(stack), environment);
                found.map_err(|error| error.to_string())
            }
        };
        let attempts = attempts.unwrap_or_default().pop();
        prepared.push(PreparedFollowUp {
            stack: project.stacks[stack].path.clone(),
            task,
            attempts: attempts.unwrap_or_default(),
            rank: run.rank(stack),
        });
    }
    Ok((command, prepared))
}

/// Returns what policies are told of a run.
fn facts(loaded: &mut Loaded, args: &RunArgs) -> Result<RunFacts> {
    let uncommitted = loaded.uncommitted();
    let mut facts = RunFacts {
        is_dirty: uncommitted.is_some_and(|files| !files.is_empty()),
        metadata: args.policies.metadata.clone(),
        ..RunFacts::default()
    };
    let repository = Repository::open(&loaded.project.root).ok();
    let user = author::user(repository.as_ref());
    let teams = std::env::var("ORCH_TEAMS").unwrap_or_default();
    let teams = teams
        .split(',')
        .map(str::trim)
        .filter(|team| !team.is_empty());
    let name = user.split(" <").next().unwrap_or_default().to_owned();
    facts.session = SessionInput {
        login: author::account(),
        name,
        teams: teams.map(str::to_owned).collect(),
        machine: std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&&*value)),
        ..SessionInput::default()
    };
    let Some(repository) = repository else {
        return Ok(facts);
    };
    let remote = loaded.project.settings.default_remote.as_deref();
    let url = repository.config(&format!("remote.{}.url", remote.unwrap_or("origin")));
    let url = url.ok().flatten().unwrap_or_default();
    (facts.namespace, facts.repository) = names_in(&url);
    if let Some(head) = repository.commit("HEAD").context("failed to ask git")? {
        let text = repository.commit_text(&head).context("failed to ask git")?;
        let branch = repository.branch().ok().flatten();
        facts.commit = CommitInput {
            author: text.author,
            branch: branch.unwrap_or_else(built_branch),
            created_at: text.committed_at.saturating_mul(1_000_000_000),
            hash: head.to_string(),
            message: text.message,
        };
    }
    Ok(facts)
}

/// Returns the branch that a CI job is about; jobs usually have no branch checked out.
fn built_branch() -> String {
    let names = [
        "GITHUB_HEAD_REF",
        "GITHUB_REF_NAME",
        "CI_COMMIT_REF_NAME",
        "BUILDKITE_BRANCH",
        "BRANCH_NAME",
    ];
    let mut names = names.iter().filter_map(|name| std::env::var(name).ok());
    names.find(|name| !name.is_empty()).unwrap_or_default()
}

/// Returns the owner and the name of a repository with this address; never what the address says of a user.
fn names_in(url: &str) -> (String, String) {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => url.split_once(':').map_or(url, |(_, path)| path),
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    match path.rsplit_once('/') {
        Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
        None => (String::new(), path.to_owned()),
    }
}
