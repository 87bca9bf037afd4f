//! `orch job` and `orch finish`

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser as _};
use orch::command::apply::{PlanPart, WorkLeft};
use orch::command::export::sha256_of;
use orch::command::job::{self, SECRET, TurnProgress};
use orch::command::load::KeptProject;
use orch::command::order_followups::EndedOrder;
use orch::command::running_jobs::await_others;
use orch::error::ErrorKind;
use orch::exit::{ExitStatus, is_success, worse};
use orch::export::{OrderedJob, OrderedTask, OrderedTurn, WorkOrder};
use orch::path::StackPath;
use orch::printable::{count, printable};
use orch::project::host::host_variable;
use orch::record::journal::{StackRecord, StackState};
use orch::report::ShownRun;
use orch::run::schedule::OnError;
use orch::workspace::LocatedProject;

use super::apply::PartOfFile;
use super::command_line::Late;
use super::command_line::LateCli;
use super::reports::{ReportArgs, Reports};
use super::run::{CommandJobs, RunArgs};
use super::runs::shown_in;
use super::{Command, CommandContext, Reads, find_project, working_directory};
use crate::program::error::{ProgramError, Result};
use crate::program::{console, notices};

/// Run one job of a work order
///
/// `orch export` writes the work order beside the pipeline, whose jobs call this command. Before each
/// stack, `orch` checks that the work order and the inputs are unchanged, and that the order holds the
/// lock. Every stack before it must have succeeded, or only ended with `--on-error continue`. If a check
/// fails, the stack is skipped, and the exit status is 1. A job that runs again skips stacks that are done.
/// With `--on-error stop`, it runs its own failed stacks again, but starts no others while a stack of
/// another job is failed. If the result of a destroy cannot be sent, the stack counts as failed, and
/// the next run of the job destroys it again. A job never runs twice at the same time on machines that
/// share a state or, without one, in one checkout; but a command that runs while its machine cannot
/// reach the store for 2 minutes continues. In one checkout, jobs of the same work order can run at the
/// same time if they have no stack in common. No other run can start there meanwhile. See `orch help
/// engines`.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The id of the job
    #[arg(value_name = "JOB")]
    id: String,

    /// The work order, a file that `orch export` wrote
    #[arg(long, value_name = "FILE")]
    work_order: PathBuf,

    /// How long to wait for other runs and for the state lock, as in 10m
    ///
    /// Jobs of the same work order share the lock. They wait for other runs, and for an earlier run of
    /// the same job, including its commands.
    #[arg(long, value_name = "DURATION", value_parser = orch::duration::parse)]
    lock_timeout: Option<Duration>,
}

/// Take the next stack of a work order, until none is left
///
/// For pipelines of equal workers (`orch export --workers N`). Each takes a stack that may run and that no
/// other worker has, applies it, and records the result. If a worker dies, its stack counts as interrupted:
/// it is not run again, and neither is anything that runs after it. At the end, the worker lists stacks that
/// have failed or cannot run, and exits with 1 if there are any. See `orch help engines`.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// The work order, a file that `orch export` wrote
    #[arg(long, value_name = "FILE")]
    work_order: PathBuf,

    /// How long to wait for the state lock, as in 10m
    #[arg(long, value_name = "DURATION", value_parser = orch::duration::parse)]
    lock_timeout: Option<Duration>,
}

/// End the jobs of a work order
///
/// The last job of a pipeline calls this command, whether or not the others have succeeded. It frees the
/// lock of the order, runs the follow-ups of policies, lists the stacks that are not done, and writes
/// reports of all jobs. A stack whose command failed is not done until its job or a follow-up runs it
/// again successfully. It exits with 1 if a stack is not done, or a follow-up has failed or may be
/// missing; with `--detailed-exitcode` in the work order, with 2 if there are changes. It is refused
/// while a job may be running on a machine that shares the state or, without a shared state, in this
/// checkout. It is also refused while a command of a killed job is still running in this checkout.
/// Without it, the last job that succeeds frees the lock, and nothing follows. See `orch help engines`.
#[derive(Debug, Args)]
pub(crate) struct FinishArgs {
    /// The work order, a file that `orch export` wrote
    #[arg(long, value_name = "FILE")]
    work_order: PathBuf,

    /// How long to wait for running jobs and for the state lock, as in 10m
    #[arg(long, value_name = "DURATION", value_parser = orch::duration::parse)]
    lock_timeout: Option<Duration>,

    /// Evaluate the policies of killed runs again
    ///
    /// Follow-ups that a killed run already started may run twice. Without this flag, `orch finish` continues such a run
    /// only on its machine; elsewhere, it warns that follow-ups may be missing.
    #[arg(long)]
    retry_killed: bool,

    #[command(flatten)]
    reports: ReportArgs,
}

pub(super) fn job(chdir: &[PathBuf], args: &JobArgs) -> Result<ExitStatus> {
    let order = read(chdir, &args.work_order)?;
    let found = job::find(&order, &args.id)?;
    // Before the gate, which then sees what those have done.
    let lock_timeout = args.lock_timeout.map(|wait| {
        let LocatedProject { root, .. } = find_project(chdir)?;
        let left = await_others(&root, &notices::of(&root), &order, found, wait);
        Ok::<_, ProgramError>(left)
    });
    let lock_timeout = lock_timeout.transpose()?;
    if let Some(jobs) = plan_jobs(chdir, &args.work_order, &order, lock_timeout)? {
        return jobs.apply.with(|parts| {
            let part = jobs.part(Some(found));
            let status = parts.apply(&part)?;
            parts.complete(&part)?;
            Ok(status)
        });
    }
    let run = command_of(&args.work_order, &order)?;
    let jobs = command_jobs(chdir, &run, &order, lock_timeout);
    jobs.check_policies()?;
    let status = jobs.run(found)?;
    jobs.complete()?;
    Ok(status)
}

/// The jobs of a work order that apply a plan file.
struct PlanJobs<'a> {
    order: &'a WorkOrder,
    secret: String,
    apply: PartOfFile<'a>,
}

/// Returns the jobs of a work order if it has a plan, which must be the exported one.
fn plan_jobs<'a>(
    chdir: &'a [PathBuf],
    named: &Path,
    order: &'a WorkOrder,
    lock_timeout: Option<Duration>,
) -> Result<Option<PlanJobs<'a>>> {
    let OrderedTask::Plan { sha256, file, .. } = &order.task else {
        return Ok(None);
    };
    let file = Path::new(&file.0);
    check_plan(chdir, file, sha256)?;
    let settings = order.run_settings().map_err(|why| unusable(named, &why))?;
    let apply = PartOfFile {
        chdir,
        file,
        jobs: settings.jobs(),
        on_error: settings.on_error(),
        lock_timeout,
        is_followed: order.policies.is_some(),
    };
    Ok(Some(PlanJobs {
        order,
        secret: secret(),
        apply,
    }))
}

impl PlanJobs<'_> {
    /// Returns the part of the plan that a job applies; see [`job::part`].
    fn part(&self, job: Option<&OrderedJob>) -> PlanPart {
        let stops = self.apply.on_error == OnError::Stop;
        job::part(self.order, job, &self.secret, stops)
    }
}

/// Returns the jobs of a work order that run a command.
fn command_jobs<'a>(
    chdir: &'a [PathBuf],
    args: &'a RunArgs,
    order: &'a WorkOrder,
    lock_timeout: Option<Duration>,
) -> CommandJobs<'a> {
    CommandJobs {
        chdir,
        args,
        order,
        lock_timeout,
        kept: KeptProject::default(),
        succeeded: RefCell::default(),
    }
}

/// Returns the secret of the pipeline; empty if it has none.
fn secret() -> String {
    host_variable(SECRET).unwrap_or_default()
}

/// Returns the arguments of `orch run` with the command of a work order.
fn command_of(named: &Path, order: &WorkOrder) -> Result<Late<RunArgs, true>> {
    let OrderedTask::Command {
        words,
        eval,
        reverse,
        allow_rollback,
    } = &order.task
    else {
        return Err(unusable(named, "it has a plan"));
    };
    let flags = [
        (*eval, "--eval"),
        (*reverse, "--reverse"),
        (*allow_rollback, "--allow-rollback"),
        (true, "--output=grouped"),
    ];
    let flags = flags.iter().filter(|(is_given, _)| *is_given);
    let mut line: Vec<OsString> = vec!["orch".into(), "run".into()];
    line.extend(flags.map(|(_, flag)| (*flag).into()));
    line.push("--".into());
    line.extend(words.iter().map(|word| word.0.clone()));
    match LateCli::try_parse_from(line).map(|cli| cli.command) {
        Ok(Command::Run(run)) => Ok(run),
        _ => Err(unusable(named, "its command is none of `orch run`")),
    }
}

/// How long a worker waits before it looks again: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

pub(super) fn work(chdir: &[PathBuf], args: &WorkArgs) -> Result<ExitStatus> {
    let order = read(chdir, &args.work_order)?;
    if !order.jobs.is_empty() {
        return Err(
            ProgramError::refused("the work order has jobs, so workers cannot share it")
                .hint("run each job with `orch job`, or add `--workers` to `orch export`"),
        );
    }
    if let Some(jobs) = plan_jobs(chdir, &args.work_order, &order, args.lock_timeout)? {
        let all = jobs.part(Some(&job::all_turns(&order)));
        let apply = &jobs.apply;
        return apply.with(|parts| {
            let start = |job: &OrderedJob| parts.apply(&jobs.part(Some(job)));
            let status = share(|failed| parts.look(&all, failed), start);
            let completed = parts.complete(&all);
            let status = status?;
            completed?;
            with_unfinished(&order, status, || parts.unfinished(&all))
        });
    }
    let run = command_of(&args.work_order, &order)?;
    let jobs = command_jobs(chdir, &run, &order, args.lock_timeout);
    let recorded = jobs.recorded()?;
    if recorded.is_none() {
        return Err(ProgramError::refused(
            "workers share stacks by the state, which does not record this command",
        )
        .hint("export jobs instead of workers, or add `--record` to `orch export`"));
    }
    jobs.check_policies()?;
    let status = share(|_| jobs.look(recorded), |job| jobs.run(job));
    let completed = jobs.complete();
    let status = status?;
    completed?;
    with_unfinished(&order, status, || {
        let progress = jobs.progress(recorded)?.turns;
        let left = order.turns.iter().zip(progress).filter_map(|(turn, it)| {
            let is_left = !matches!(it, TurnProgress::Done | TurnProgress::Running);
            is_left.then(|| (turn.stack.clone(), it != TurnProgress::Left))
        });
        Ok(left.collect())
    })
}

/// Returns the exit status of a worker. Notes the unfinished stacks, which no worker can start.
fn with_unfinished(
    order: &WorkOrder,
    status: ExitStatus,
    unfinished: impl FnOnce() -> Result<BTreeMap<StackPath, bool>>,
) -> Result<ExitStatus> {
    if !lets_others_run(status) {
        return Ok(status);
    }
    let unfinished = unfinished()?;
    if unfinished.is_empty() {
        return Ok(status);
    }
    note_unfinished(order, &unfinished);
    Ok(worse_status(status, ExitStatus::Run(1)))
}

/// Returns whether a worker continues after a turn: not after a signal, or if the state cannot be written. Status 4
/// means that an old generation is kept.
fn lets_others_run(status: ExitStatus) -> bool {
    is_success(status.number()) || matches!(status.number(), 1 | 4)
}

/// Returns the worse of two statuses.
fn worse_status(a: ExitStatus, b: ExitStatus) -> ExitStatus {
    if worse(a.number(), b.number()) == a.number() {
        a
    } else {
        b
    }
}

/// Starts the next turn until none is left, each once. Returns the worst exit status.
fn share(
    look: impl Fn(&BTreeSet<usize>) -> Result<WorkLeft>,
    start: impl Fn(&OrderedJob) -> Result<ExitStatus>,
) -> Result<ExitStatus> {
    // Workers that look at the same time should choose differently.
    let number = RandomState::new().hash_one(());
    let (shortest, longest) = PAUSES;
    let mut pause = shortest;
    let mut worst = ExitStatus::Success;
    let mut failed = BTreeSet::new();
    loop {
        let mut left = look(&failed)?;
        left.open.retain(|turn| !failed.contains(turn));
        let Some(turn) = chosen(&left.open, number) else {
            if !left.is_waiting {
                return Ok(worst);
            }
            std::thread::sleep(pause);
            pause = longest.min(pause * 2);
            continue;
        };
        pause = shortest;
        match start(&job::turn_job(turn)) {
            Ok(status) if is_success(status.number()) => {}
            Ok(status) if lets_others_run(status) => {
                failed.insert(turn);
                worst = worse_status(worst, status);
            }
            Ok(status) => return Ok(status),
            Err(error) => {
                // Another worker may have taken it.
                if look(&failed)?.open.contains(&turn) {
                    return Err(error);
                }
            }
        }
    }
}

/// Returns the turn that a worker with this number starts: one of the first.
fn chosen(open: &[usize], number: u64) -> Option<usize> {
    const MOST: usize = 16;
    let choice = number.checked_rem(open.len().min(MOST) as u64)?;
    open.get(usize::try_from(choice).ok()?).copied()
}

pub(super) fn finish(chdir: &[PathBuf], args: &FinishArgs) -> Result<ExitStatus> {
    let order = read(chdir, &args.work_order)?;
    let reports = args.reports.check(chdir, None)?.with_step_summary();
    let ended = EndedOrder {
        order: &order,
        retries_killed: args.retry_killed,
    };
    let jobs = plan_jobs(chdir, &args.work_order, &order, args.lock_timeout)?;
    let (status, mut unfinished, followed) = if let Some(jobs) = jobs {
        let part = jobs.part(None);
        jobs.apply.with(|parts| {
            let status = parts.apply(&part)?;
            parts.finish(&part, &order, &jobs.secret)?;
            // It may run a stack again that has failed.
            let followed = shown_status(parts.follow(ended));
            Ok((status, parts.unfinished(&part)?, followed))
        })?
    } else {
        let run = command_of(&args.work_order, &order)?;
        let jobs = command_jobs(chdir, &run, &order, args.lock_timeout);
        let recorded = jobs.recorded()?;
        if recorded.is_none() {
            return finish_unrecorded(&jobs, ended, &reports);
        }
        jobs.free(&secret())?;
        let of_jobs = jobs.progress(recorded)?.turns;
        let followed = shown_status(jobs.follow(ended));
        // A follow-up may have run a stack again that had failed.
        let states = of_jobs.into_iter().zip(jobs.progress(recorded)?.turns);
        let left = order.turns.iter().zip(states);
        let left = left.filter(|(_, (then, now))| ![*then, *now].contains(&TurnProgress::Done));
        let left = left.map(|(turn, (then, _))| (turn.stack.clone(), then != TurnProgress::Left));
        (ExitStatus::Success, left.collect(), followed)
    };
    let (run, reported) = match report(chdir, &order, &reports) {
        Ok((run, reported)) => (run, reported),
        Err(error) => (None, shown_status(Err(error))),
    };
    let by_stack = states_of(&order, run.as_ref());
    unfinished.retain(|stack, has_failed| {
        let state = by_stack.get(stack.as_str());
        *has_failed |= state.is_some_and(|it| has_failed_in(it));
        // Another run may have changed it since it succeeded.
        *has_failed || !state.is_some_and(|it| it.is_success())
    });
    note_unfinished(&order, &unfinished);
    // As on one machine, blocked stacks count only if everything else has succeeded.
    let of_jobs = match (status, status_of_jobs(&order, &unfinished, &by_stack)) {
        (ExitStatus::Success | ExitStatus::Run(0), of_jobs)
        | (ExitStatus::Refused, of_jobs @ ExitStatus::Run(_)) => of_jobs,
        (status, _) => status,
    };
    Ok(whole_status(of_jobs, followed, reported))
}

/// Ends the jobs of a command that the state does not record. Beside the state, it finds their results.
fn finish_unrecorded(
    jobs: &CommandJobs<'_>,
    ended: EndedOrder<'_>,
    reports: &Reports,
) -> Result<ExitStatus> {
    let CommandJobs { chdir, order, .. } = *jobs;
    let mut context = CommandContext::new(chdir, None, Reads::CONFIGURATION)?;
    context.check(None)?;
    if !context.has_results() {
        console::note("nothing marks the root of this project, so the engine has the results");
        return Ok(ExitStatus::Success);
    }
    context.check_jobs_ended(&order.run, jobs.lock_timeout.unwrap_or_default())?;
    context.end_order(&order.run)?;
    let followed = shown_status(jobs.follow(ended));
    let (run, reported) = match report(chdir, order, reports) {
        Ok((run, reported)) => (run, reported),
        Err(error) => {
            // Without results, the stacks that are not done are unknown.
            let reported = shown_status(Err(error));
            return Ok(whole_status(ExitStatus::Success, followed, reported));
        }
    };
    let mut unfinished = BTreeMap::new();
    let by_stack = states_of(order, run.as_ref());
    for turn in &order.turns {
        let state = by_stack.get(turn.stack.as_str()).copied();
        if !state.is_some_and(StackState::is_success) {
            unfinished.insert(turn.stack.clone(), state.is_some_and(has_failed_in));
        }
    }
    note_unfinished(order, &unfinished);
    let of_jobs = status_of_jobs(order, &unfinished, &by_stack);
    Ok(whole_status(of_jobs, followed, reported))
}

/// Returns the exit status of the jobs, given the stacks that are not done and the states of all.
fn status_of_jobs(
    order: &WorkOrder,
    unfinished: &BTreeMap<StackPath, bool>,
    by_stack: &HashMap<&str, &StackState>,
) -> ExitStatus {
    let state = |turn: &OrderedTurn| by_stack.get(turn.stack.as_str());
    let has_changes = |turn| state(turn).is_some_and(|it| it.has_changes());
    if !unfinished.is_empty() {
        ExitStatus::Run(1)
    } else if order.settings.detailed_exit_code && order.turns.iter().any(has_changes) {
        ExitStatus::Run(2)
    } else {
        ExitStatus::Success
    }
}

/// Returns the exit status of a command. Shows its error, which must hide none of another one.
fn shown_status(ended: Result<ExitStatus>) -> ExitStatus {
    ended.unwrap_or_else(|error| {
        error.show();
        error.status()
    })
}

/// Returns the exit status of a whole work order: that of its reports only if nothing else has failed.
fn whole_status(of_jobs: ExitStatus, followed: ExitStatus, reported: ExitStatus) -> ExitStatus {
    let status = worse_status(of_jobs, followed);
    if is_success(status.number()) && !is_success(reported.number()) {
        return reported;
    }
    status
}

/// Returns the states of the stacks in the run of a work order, by path. A success before the last turn of a stack is
/// left out: a replaced stack may be destroyed, and not yet recreated.
fn states_of<'r>(order: &WorkOrder, run: Option<&'r ShownRun>) -> HashMap<&'r str, &'r StackState> {
    let mut n_turns: HashMap<&str, u32> = HashMap::new();
    for turn in &order.turns {
        *n_turns.entry(turn.stack.as_str()).or_default() += 1;
    }
    let stacks = run.into_iter().flat_map(|run| &run.record.stacks);
    let is_last = |it: &&StackRecord| {
        let n_turns = n_turns.get(it.path.as_str());
        !it.state.is_success() || n_turns.is_none_or(|n_turns| it.turn() >= *n_turns)
    };
    let stacks = stacks.filter(is_last);
    stacks.map(|it| (it.path.as_str(), &it.state)).collect()
}

/// Returns whether a stack has failed, or was killed with its job.
fn has_failed_in(state: &StackState) -> bool {
    state.is_failure() || matches!(state, StackState::Started { .. })
}

/// Brings the run of a work order to this machine, and writes its reports. Returns the run, if any job has begun, and
/// the status of the reports.
fn report(
    chdir: &[PathBuf],
    order: &WorkOrder,
    reports: &Reports,
) -> Result<(Option<ShownRun>, ExitStatus)> {
    let mut context = CommandContext::new(chdir, None, Reads::CONFIGURATION)?;
    context.check(None)?;
    if !context.fetch_order_run(order)? {
        if !reports.is_empty() {
            console::note("there is nothing to report: no job has run a stack");
        }
        return Ok((None, ExitStatus::Success));
    }
    let (shown, logs) = shown_in(&context.project.root, &order.run)?;
    let status = if reports.write(&shown, &logs) {
        ExitStatus::Success
    } else {
        ExitStatus::External
    };
    Ok((Some(shown), status))
}

/// Notes the stacks of a work order that are not done, each with whether it has failed.
fn note_unfinished(order: &WorkOrder, unfinished: &BTreeMap<StackPath, bool>) {
    let stacks: BTreeSet<_> = order.turns.iter().map(|turn| &turn.stack).collect();
    let total = count(stacks.len(), "stack");
    if unfinished.is_empty() {
        console::note(&format!("{total} done"));
        return;
    }
    console::note(&format!("{} of {total} not done:", unfinished.len()));
    for (stack, has_failed) in unfinished {
        let stack = printable(stack.as_str());
        let why = if *has_failed { "failed" } else { "not run" };
        console::note(&format!("{stack}: {why}"));
    }
}

const GIVE_FILE: &str = "give the file that `orch export` wrote beside the pipeline";

fn unusable(named: &Path, why: &str) -> ProgramError {
    let shown = named.to_string_lossy();
    let shown = printable(&shown);
    ProgramError::refused(format!("the work order `{shown}` cannot be used: {why}")).hint(GIVE_FILE)
}

/// Reads a work order.
fn read(chdir: &[PathBuf], named: &Path) -> Result<WorkOrder> {
    let path = working_directory(chdir)?.join(named);
    let bytes = fs::read(path).map_err(|error| {
        let shown = named.to_string_lossy();
        let what = format!("failed to read the work order `{}`", printable(&shown));
        ProgramError::new(ErrorKind::External, anyhow::Error::new(error).context(what))
            .hint(GIVE_FILE)
    })?;
    WorkOrder::parse(&bytes).map_err(|error| unusable(named, &error.to_string()))
}

/// Checks that a plan is the one that was exported.
fn check_plan(chdir: &[PathBuf], named: &Path, sha256: &str) -> Result<()> {
    let path = working_directory(chdir)?.join(named);
    if sha256_of(&path)? == sha256 {
        return Ok(());
    }
    let shown = named.to_string_lossy();
    Err(ProgramError::refused(format!(
        "`{}` is not the plan that the work order was written for",
        printable(&shown)
    ))
    .hint("run `orch export` again with this plan, and start the new pipeline"))
}
