//! The jobs of a work order whose command is that of `orch run`.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orch::command::apply::WorkLeft;
use orch::command::job::{self, OrderProgress, SECRET};
use orch::command::load::KeptProject;
use orch::command::order_followups::{EndedOrder, OpenFollowUps, OrderFollowUps};
use orch::command::run::{
    JobResults, LockedRun, PolicyOptions, Prepared, Resumed, RunOptions, SelectedRun,
};
use orch::context::Context;
use orch::exit::{ExitStatus, is_success};
use orch::export::{OrderedJob, WorkOrder};
use orch::project::config::RecordKind;
use orch::project::host::host_variable;
use orch::run::safeguard::Disabled;
use orch::selection::select::Selection;

use super::{OutputMode, RunArgs, execute, find, reads, safeguards};
use crate::program::commands::CommandContext;
use crate::program::error::{ProgramError, Result};

/// The jobs of a work order, and the project that they share.
pub(crate) struct CommandJobs<'a> {
    pub(crate) chdir: &'a [PathBuf],
    pub(crate) args: &'a RunArgs,
    pub(crate) order: &'a WorkOrder,
    pub(crate) lock_timeout: Option<Duration>,
    pub(crate) kept: KeptProject,
    /// The jobs that have succeeded, which the state does not have yet.
    pub(crate) succeeded: RefCell<Vec<String>>,
}

impl CommandJobs<'_> {
    /// Returns how the state records the command, if it does.
    pub(crate) fn recorded(&self) -> Result<Option<RecordKind>> {
        let settings = self.order.run_settings().map_err(ProgramError::refused)?;
        self.with(|context| Ok(context.records(&self.args.command, &settings)?))
    }

    /// Refuses if `orch finish` could not load the policies.
    pub(crate) fn check_policies(&self) -> Result<()> {
        if self.order.policies.is_none() {
            return Ok(());
        }
        self.with(|context| {
            context.check_commit(self.order)?;
            Ok(context.check_policies()?)
        })
    }

    /// Returns the state of each turn.
    pub(crate) fn progress(&self, recorded: Option<RecordKind>) -> Result<OrderProgress> {
        self.with(|context| Ok(context.progress(self.order, recorded)?))
    }

    /// Returns what a worker can do next.
    pub(crate) fn look(&self, recorded: Option<RecordKind>) -> Result<WorkLeft> {
        let progress = self.progress(recorded)?;
        Ok(job::next_turn(self.order, &progress.turns)?)
    }

    /// Frees the lock of the work order, whose jobs have ended.
    pub(crate) fn free(&self, secret: &str) -> Result<()> {
        let wait = self.lock_timeout.unwrap_or_default();
        self.with(|context| {
            context.check_commit(self.order)?;
            Ok(context.free_order(self.order, secret, wait)?)
        })
    }

    /// Runs the command in the stacks of a job.
    pub(crate) fn run(&self, job: &OrderedJob) -> Result<ExitStatus> {
        self.with(|context| self.run_in(context, job))
    }

    /// Evaluates the policies of all jobs, which have ended, and runs the follow-ups.
    pub(crate) fn follow(&self, ended: EndedOrder<'_>) -> Result<ExitStatus> {
        let wait = self.lock_timeout.unwrap_or_default();
        self.with(|context| {
            let mut before = None;
            loop {
                let found = context.order_follow_ups(ended, wait)?;
                let Some(OrderFollowUps { open, remarks }) = found else {
                    return Ok(ExitStatus::Success);
                };
                let has_run = open.is_some();
                let status = match open {
                    Some(follow_ups) => self.follow_in(context, follow_ups)?,
                    None => Some(before.unwrap_or(ExitStatus::Success)),
                };
                // Else another `orch finish` was faster, and may have left nothing.
                if let Some(status) = status {
                    let has_succeeded = is_success(status.number());
                    if before.is_none() && has_run && has_succeeded && remarks.is_any_held() {
                        // A follow-up may have run the stacks that the other policies wait for.
                        before = Some(status);
                        continue;
                    }
                    let is_incomplete = remarks.show(&context.notices);
                    return Ok(match status.number() {
                        _ if has_succeeded && is_incomplete => ExitStatus::Run(1),
                        _ => status,
                    });
                }
            }
        })
    }

    /// Runs the follow-ups; `None` if another run has claimed them.
    fn follow_in(
        &self,
        context: &mut CommandContext,
        follow_ups: OpenFollowUps,
    ) -> Result<Option<ExitStatus>> {
        let CommandJobs { chdir, args, .. } = *self;
        let options = RunOptions {
            lock_timeout: self.lock_timeout.unwrap_or_default(),
            ..args.options(args.kind(), self.disabled()?)
        };
        let (resumed, claim) = Resumed::follow_ups(self.order, follow_ups)?;
        let selection = resumed.run.selection();
        let (locked, how) = match self.lock(context, &options, selection, Some(resumed))? {
            Prepared::Run(locked) => locked,
            Prepared::Nothing(_) => return Ok(Some(ExitStatus::Success)),
        };
        let run = locked.id().to_owned();
        // Later, the step summary shows them with all jobs.
        let reports = args.reports.check(chdir, None)?;
        if !claim.put(&run)? {
            return Ok(None);
        }
        let ended = execute::execute(chdir, args, context, locked, how, None, &reports);
        let claimed = claim.end(context, &run);
        let status = ended?;
        claimed?;
        if !is_success(status.number()) {
            let again = "run `orch finish` again to continue";
            context.notices.note(again);
        }
        Ok(Some(status))
    }

    /// Prepares a run, and locks the state if it is recorded there.
    fn lock(
        &self,
        context: &mut CommandContext,
        options: &RunOptions,
        selection: Selection,
        resumed: Option<Resumed>,
    ) -> Result<Prepared<(LockedRun, OutputMode)>> {
        let selected = match SelectedRun::new(context, options, selection, None, resumed)? {
            Prepared::Run(selected) => selected,
            Prepared::Nothing(nothing) => return Ok(Prepared::Nothing(nothing)),
        };
        let run = selected.run();
        let how = OutputMode::new(self.args, run.jobs(), &run.attempts)?;
        selected.check(context)?;
        Ok(match selected.lock(context)? {
            Prepared::Run(locked) => Prepared::Run((locked, how)),
            Prepared::Nothing(nothing) => Prepared::Nothing(nothing),
        })
    }

    /// Records in the state that the jobs so far have succeeded.
    pub(crate) fn complete(&self) -> Result<()> {
        let code = job::code(self.order, &host_variable(SECRET).unwrap_or_default());
        let succeeded = self.succeeded.take();
        self.with(|context| Ok(context.complete_jobs(&code, &succeeded)?))
    }

    fn disabled(&self) -> Result<Disabled> {
        Ok(safeguards::of_run(self.args)?.of_job())
    }

    /// Calls a function with the project, which is loaded once.
    fn with<T>(&self, act: impl FnOnce(&mut CommandContext) -> Result<T>) -> Result<T> {
        let mut context = CommandContext {
            context: self.kept.load(|| self.load())?,
            document: None,
            is_about_changes: false,
        };
        let result = act(&mut context)?;
        self.kept.keep(context.context);
        Ok(result)
    }

    fn load(&self) -> Result<Context> {
        let found = find(self.chdir, self.args)?;
        let disabled = self.disabled()?;
        let mut context =
            CommandContext::of(found, None, reads(self.args, self.args.kind(), &disabled))?;
        context.check(None)?;
        Ok(context.context)
    }

    fn run_in(&self, context: &mut CommandContext, job: &OrderedJob) -> Result<ExitStatus> {
        let CommandJobs { chdir, args, .. } = *self;
        let settings = self.order.run_settings().map_err(ProgramError::refused)?;
        let secret = host_variable(SECRET).unwrap_or_default();
        let recorded = context.records(&args.command, &settings)?;
        let lease = match recorded {
            None => context.lease(self.order, job, self.lock_timeout.unwrap_or_default())?,
            Some(_) => None,
        };
        let open = context.open_turns(self.order, job, &secret, recorded)?;
        let order_job = open.job.order.clone();
        let options = RunOptions {
            settings,
            policies: PolicyOptions::off(),
            lock_timeout: self.lock_timeout.unwrap_or_default(),
            job: recorded.is_some().then_some(open.job),
            results: Some(JobResults {
                outline: Arc::new(self.order.outline(recorded.is_some())),
                seen: open.seen,
                lease: lease.map(Arc::new),
            }),
            ..args.options(args.kind(), self.disabled()?)
        };
        let selection = Selection::recorded(open.stacks);
        let status = match self.lock(context, &options, selection, None)? {
            Prepared::Run((locked, how)) => {
                let reports = args.reports.check(chdir, None)?.with_step_summary();
                execute::execute(chdir, args, context, locked, how, None, &reports)?
            }
            Prepared::Nothing(_) => {
                if open.skipped.is_empty() {
                    context
                        .notices
                        .note("nothing to do: all stacks of the job are done");
                }
                ExitStatus::Success
            }
        };
        for (stack, reason) in &open.skipped {
            context.notices.warning(&reason.warning(stack));
        }
        // With `--detailed-exitcode`, 2 is a success with changes.
        let has_changes = options.settings.detailed_exit_code && status.number() == 2;
        if status.number() != 0 && !has_changes {
            return Ok(status);
        }
        if !open.skipped.is_empty() {
            return Ok(ExitStatus::Run(1));
        }
        if recorded.is_some() {
            self.succeeded.borrow_mut().push(order_job.job);
        }
        // To an engine, 2 would be a failure. `orch finish` returns it.
        Ok(ExitStatus::Success)
    }
}
