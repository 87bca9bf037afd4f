//! `orch apply` and `orch destroy`

mod terminal;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use orch::command::apply::{
    AllowedChanges, Apply, ApplyTerminal as _, Approval, PlanPart, WorkLeft, before_planning,
};
use orch::command::load::KeptProject;
use orch::command::order_followups::EndedOrder;
use orch::context::{MARK_ROOT, RollbackFlags};
use orch::exit::ExitStatus;
use orch::export::WorkOrder;
use orch::notice::Notices;
use orch::path::StackPath;
use orch::plan::entry::{PlanMode, PlanOptions};
use orch::plan::planner::Commits;
use orch::plan::{SavedPlan, SavedPlanError, SavedPolicies};
use orch::printable::printable;
use orch::run::safeguard::Disabled;
use orch::run::schedule::OnError;

use self::terminal::ConsoleApply;
use super::follow_flags::{FollowArg, FollowFlags};
use super::format::DetailsArg;
use super::plan::{LEAVE_OUT, ModeArgs, PlanOnErrorArg, PlanningArgs, PlanningRequest, planned};
use super::run::flags::SafeguardArgs;
use super::run::recorded::SELECTION;
use super::run::safeguards;
use super::selection_flags::{SEE_SELECTION, SelectArgs};
use super::show::unreadable;
use super::stray_path::directory_as_file;
use super::working_directory;
use crate::program::error::{ProgramError, Result};
use crate::program::{console, notices};

const APPLY_EXAMPLES: &str = "\
Examples:
  orch apply                           plan all stacks, ask, apply
  orch apply -j 8 --changed            only changed stacks
  orch apply plan                      apply the plan of `orch plan -o plan`
  orch apply plan --resume             continue after a failure or an interrupt
  orch apply plan --allow-destroy=2    approve two destroys
  orch apply --auto-approve --match 'prod/**'
  orch apply --replace prod/database";

/// Flags of planning that clap refuses beside a file, besides those that select stacks.
const OF_PLANNING: [&str; 7] = [
    "refresh_only",
    "destroy",
    "full",
    "replace",
    "extra",
    "allow_rollback",
    "no_removals",
];

/// Apply a plan
///
/// Without FILE, makes a plan, shows it, asks, and applies it. With FILE, applies exactly the plan
/// of `orch plan -o FILE`, or reports what has changed since and runs nothing. FILE decides which
/// stacks are planned and how: flags that select stacks, and most flags of `orch plan`, are refused
/// then.
///
/// A stack that runs after stacks with changes is planned again when these have ended, within the
/// limits of the shown plan. Removed stacks are destroyed. See `orch help apply` and `orch help
/// removal`.
#[derive(Debug, Args)]
#[command(after_help = APPLY_EXAMPLES, after_long_help = format!("{APPLY_EXAMPLES}\n\n{SEE_SELECTION}"))]
pub(crate) struct ApplyArgs {
    /// A plan of `orch plan -o FILE`
    #[arg(value_name = "FILE", conflicts_with_all = SELECTION, conflicts_with_all = OF_PLANNING)]
    pub(crate) file: Option<PathBuf>,

    /// Continue a FILE that was started
    ///
    /// Skips finished stacks, and plans the rest again within the limits of the plan.
    #[arg(long, requires = "file")]
    pub(crate) resume: bool,

    #[command(flatten)]
    pub(crate) modes: ModeArgs,

    /// Accept drift: update the states of the tools, and change no resources
    #[arg(long, conflicts_with_all = ["destroy", "replace"])]
    pub(crate) refresh_only: bool,

    #[command(flatten)]
    pub(crate) planning: PlanningArgs,

    #[command(flatten)]
    pub(crate) carrying: ExecutionArgs,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

const DESTROY_EXAMPLES: &str = "\
Examples:
  orch destroy --match sandbox                   plan, ask for the number of destroys, destroy
  orch destroy --match sandbox --auto-approve --allow-destroy=3
  orch plan --destroy --match sandbox            only show the plan
  orch plan --destroy --match sandbox -o plan    in a file, for `orch apply plan`";

/// Destroy the resources of stacks
///
/// The same as `orch apply --destroy`: makes a plan, shows it, asks for the number of destroys, and
/// destroys stacks in reverse order. Refused while a stack that is kept depends on a destroyed one.
/// Removed stacks are destroyed as well. The directories of the stacks are kept. See `orch help
/// apply`.
#[derive(Debug, Args)]
#[command(after_help = DESTROY_EXAMPLES, after_long_help = format!("{DESTROY_EXAMPLES}\n\n{SEE_SELECTION}"))]
pub(crate) struct DestroyArgs {
    #[command(flatten)]
    pub(crate) planning: PlanningArgs,

    #[command(flatten)]
    pub(crate) carrying: ExecutionArgs,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// How a plan is applied.
#[derive(Debug, Default, Args)]
pub(crate) struct ExecutionArgs {
    /// Do not ask; destroys need --allow-destroy as well
    ///
    /// With FILE, only destroys are asked about. Without FILE, this also allows changes that turn
    /// up only during the apply, as with `--new-changes=apply`.
    #[arg(long)]
    pub(crate) auto_approve: bool,

    /// Destroy up to N stacks without asking
    ///
    /// Each delete and each replace counts. A plan in a file may have a number of its own, from
    /// `orch plan --allow-destroy`; the larger one counts.
    #[arg(long, value_name = "N")]
    pub(crate) allow_destroy: Option<usize>,

    /// Destroy resources inside stacks without asking
    ///
    /// An update of a stack may destroy or replace some of its resources. Without this flag,
    /// `--auto-approve` refuses such a plan, unless the configuration has `config { apply {
    /// resource_destroy = "allow" } }`. With FILE, the shown resources are destroyed.
    #[arg(long)]
    pub(crate) allow_resource_destroy: bool,

    /// How to handle changes that the plan does not show [default: fail]
    ///
    /// They may turn up in stacks that are planned again after their dependencies have changed.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) new_changes: Option<NewChangesArg>,

    /// How to continue after a stack has failed [default: skip-dependents]
    ///
    /// By default, nothing is applied if a stack fails to plan. With `skip-dependents` or
    /// `continue`, such stacks and their dependents are left out, and the rest is applied.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) on_error: Option<PlanOnErrorArg>,

    /// How long to wait for the state lock, as in 10m
    ///
    /// The tools wait as long for the locks of their own states. With `--auto-approve`, the plan is
    /// made under the lock; with FILE, or after a prompt, it is checked under the lock.
    #[arg(long, value_name = "DURATION", value_parser = orch::duration::parse)]
    pub(crate) lock_timeout: Option<Duration>,

    /// How much of each stack to show before the plan is approved [default: resources]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) details: Option<DetailsArg>,

    /// How to show the output of the tools
    #[arg(
        long,
        value_enum,
        default_value_t = ToolOutputArg::Auto,
        value_name = "HOW"
    )]
    pub(crate) output: ToolOutputArg,

    #[command(flatten)]
    pub(crate) policies: FollowFlags,

    #[command(flatten)]
    pub(crate) safeguards: SafeguardArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NewChangesArg {
    /// The stack fails
    Fail,
    /// They are applied
    Apply,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolOutputArg {
    /// Prefixed if one tool runs at a time, outside CI; else grouped
    #[default]
    Auto,
    /// The output of each stack in one piece, when it has ended; failures are repeated at the end
    Grouped,
    /// Each line as it comes, after the path of the stack
    Prefixed,
    /// Like grouped, but failed stacks only
    Errors,
    /// No output of tools
    None,
}

impl ExecutionArgs {
    fn on_error(&self) -> OnError {
        match self.on_error {
            None | Some(PlanOnErrorArg::SkipDependents) => OnError::SkipDependents,
            Some(PlanOnErrorArg::Continue) => OnError::Continue,
            Some(PlanOnErrorArg::Stop) => OnError::Stop,
        }
    }

    fn allows_new_changes(&self) -> bool {
        self.new_changes == Some(NewChangesArg::Apply)
    }
}

pub(super) fn apply(chdir: &[PathBuf], args: &ApplyArgs) -> Result<ExitStatus> {
    if let Some(file) = &args.file {
        let flags = FileFlags {
            is_job: false,
            resumes: args.resume,
            fetches: args.select.fetch,
            planning: &args.planning,
            execution: &args.carrying,
        };
        return with_file(chdir, file, &flags, |apply| {
            Ok(apply.execute(Commits::default(), None)?)
        });
    }
    let mode = PlanMode::of_flags(args.modes.destroy, args.refresh_only);
    let options = PlanOptions {
        mode,
        is_full: args.modes.full,
    };
    let flags = (&args.select, &args.planning, &args.carrying);
    plan_and_apply(chdir, flags, options, &args.modes.replace)
}

pub(super) fn destroy(chdir: &[PathBuf], args: &DestroyArgs) -> Result<ExitStatus> {
    let options = PlanOptions {
        mode: PlanMode::Destroy,
        is_full: false,
    };
    let flags = (&args.select, &args.planning, &args.carrying);
    plan_and_apply(chdir, flags, options, &[])
}

/// Plans, shows the plan, asks for approval, and applies it.
fn plan_and_apply(
    chdir: &[PathBuf],
    (select, planning, args): (&SelectArgs, &PlanningArgs, &ExecutionArgs),
    options: PlanOptions,
    replace: &[String],
) -> Result<ExitStatus> {
    let disabled = safeguards::disabled(&args.safeguards, std::iter::empty(), false)?;
    let policies = args.policies.saved();
    let request = PlanningRequest {
        select,
        planning,
        options,
        replace,
        is_kept: true,
        file: None,
        guard: Some(&disabled),
        policies: Some(&policies),
        only: None,
        document: None,
        leaves_out_failed: args.on_error.is_some_and(PlanOnErrorArg::leaves_out_failed),
        lock_timeout: args.lock_timeout,
    };
    let terminal = ConsoleApply {
        chdir,
        args,
        planning,
    };
    let has_prompt = !args.auto_approve;
    let held = before_planning(&terminal, args.lock_timeout, options.mode, has_prompt)?;
    let mut planned = planned(chdir, &request)?;
    terminal.show(&planned)?;
    if !planned.saved.plan.failed.is_empty() && !request.leaves_out_failed {
        console::note("nothing was applied because a stack failed to plan");
        console::help(LEAVE_OUT);
        return Ok(ExitStatus::Run(1));
    }
    let commits = std::mem::take(&mut planned.commits);
    let release_samples = std::mem::take(&mut planned.context.release_samples);
    let notices = planned.context.notices.clone();
    let (saved, archive) = planned.without_names()?;
    let apply = Apply {
        archive: archive.as_ref(),
        resumes: false,
        approval: Approval {
            is_given: args.auto_approve,
            destroys: args.allow_destroy.unwrap_or_default(),
            is_of_job: false,
        },
        allows: AllowedChanges {
            new_changes: args.allows_new_changes()
                || args.auto_approve && args.new_changes.is_none(),
            resource_destroy: args.allow_resource_destroy,
        },
        rollback: RollbackFlags {
            allows: planning.allow_rollback,
            fetches: select.fetch,
        },
        policies: policies.clone(),
        release_samples,
        ..terminal.apply(notices, &saved, &disabled)
    };
    Ok(apply.execute(commits, held)?)
}

/// The apply of a plan file in parts, for the jobs of a work order.
pub(super) struct PartOfFile<'a> {
    pub(super) chdir: &'a [PathBuf],
    pub(super) file: &'a Path,
    pub(super) jobs: NonZeroUsize,
    pub(super) on_error: OnError,
    pub(super) lock_timeout: Option<Duration>,
    /// Whether policies follow the jobs.
    pub(super) is_followed: bool,
}

impl PartOfFile<'_> {
    /// Reads the file, and applies parts of it.
    pub(super) fn with<T>(&self, act: impl FnOnce(&PartsOfFile<'_>) -> Result<T>) -> Result<T> {
        let flags = FileFlags {
            is_job: true,
            resumes: true,
            fetches: false,
            planning: &PlanningArgs {
                parallel: Some(self.jobs),
                ..PlanningArgs::default()
            },
            execution: &ExecutionArgs {
                on_error: Some(PlanOnErrorArg::of(self.on_error)),
                lock_timeout: self.lock_timeout,
                policies: FollowFlags {
                    policies: (!self.is_followed).then_some(FollowArg::Off),
                    ..FollowFlags::default()
                },
                ..ExecutionArgs::default()
            },
        };
        with_file(self.chdir, self.file, &flags, |whole| {
            act(&PartsOfFile {
                whole,
                kept: KeptProject::default(),
                succeeded: RefCell::default(),
            })
        })
    }
}

/// A plan file that was read, and the project that its parts share.
pub(super) struct PartsOfFile<'a> {
    whole: &'a Apply<'a>,
    kept: KeptProject,
    /// The jobs that have succeeded, which the state does not have yet.
    succeeded: RefCell<Vec<String>>,
}

impl PartsOfFile<'_> {
    /// Applies a part.
    pub(super) fn apply(&self, part: &PlanPart) -> Result<ExitStatus> {
        let apply = Apply {
            policies: self.whole.policies.clone(),
            ..self.whole.of_part(part, &self.kept)
        };
        let status = apply.execute(Commits::default(), None)?;
        if status.number() == 0 {
            self.succeeded.borrow_mut().push(part.job.job.clone());
        }
        Ok(status)
    }

    /// Records in the state that the parts so far have succeeded; `part` is any of them.
    pub(super) fn complete(&self, part: &PlanPart) -> Result<()> {
        let apply = self.whole.of_part(part, &self.kept);
        let succeeded = self.succeeded.take();
        if succeeded.is_empty() {
            return Ok(());
        }
        Ok(apply.complete_jobs(&part.job.code, &succeeded)?)
    }

    /// Returns what a worker can do next, after operations that have failed for it.
    pub(super) fn look(&self, part: &PlanPart, failed: &BTreeSet<usize>) -> Result<WorkLeft> {
        Ok(self.whole.of_part(part, &self.kept).look(failed)?)
    }

    /// Frees the lock of the work order after its jobs. `part` is that of `orch finish`.
    pub(super) fn finish(&self, part: &PlanPart, order: &WorkOrder, secret: &str) -> Result<()> {
        let apply = self.whole.of_part(part, &self.kept);
        Ok(apply.free_order(part, order, secret)?)
    }

    /// Runs the follow-ups of a work order whose jobs have ended.
    pub(super) fn follow(&self, ended: EndedOrder<'_>) -> Result<ExitStatus> {
        if ended.order.policies.is_none() {
            return Ok(ExitStatus::Success);
        }
        let apply = self.whole.of_follow_ups(ended);
        Ok(apply.execute(Commits::default(), None)?)
    }

    /// Returns the stacks of all jobs that are not done, each with whether it has failed.
    pub(super) fn unfinished(&self, part: &PlanPart) -> Result<BTreeMap<StackPath, bool>> {
        Ok(self.whole.of_part(part, &self.kept).unfinished()?)
    }
}

/// The flags for the apply of a plan file.
struct FileFlags<'a> {
    is_job: bool,
    resumes: bool,
    fetches: bool,
    planning: &'a PlanningArgs,
    execution: &'a ExecutionArgs,
}

/// Reads a plan file, to apply it or parts of it.
fn with_file<T>(
    chdir: &[PathBuf],
    named: &Path,
    flags: &FileFlags<'_>,
    act: impl FnOnce(&Apply<'_>) -> Result<T>,
) -> Result<T> {
    let carrying = flags.execution;
    let file = working_directory(chdir)?.join(named);
    let disabled = safeguards::disabled(&carrying.safeguards, std::iter::empty(), false)?;
    let disabled = if flags.is_job {
        disabled.of_job()
    } else {
        disabled
    };
    let explained = |error: SavedPlanError| unreadable(named, error);
    let (saved, archive) = match SavedPlan::read(&file) {
        Ok(read) => read,
        Err(error) => {
            return Err(directory_as_file(chdir, named)?.unwrap_or_else(|| explained(error)));
        }
    };
    // A damaged file must not be applied even partially.
    archive.verify().map_err(|error| explained(error.into()))?;
    let allowed = saved.allow_destroy.max(carrying.allow_destroy);
    let found = super::find_project(chdir)?;
    if !found.is_marked() {
        return Err(ProgramError::refused(
            "nothing marks the root of a project here, so orch could not record the progress of this plan",
        )
        .hint(MARK_ROOT));
    }
    if !saved.has_progress() {
        let by = printable(&saved.orch);
        return Err(ProgramError::refused(format!(
            "this plan was written by orch {by}, which did not record its progress"
        ))
        .hint("make a new plan"));
    }
    let terminal = ConsoleApply {
        chdir,
        args: carrying,
        planning: flags.planning,
    };
    let apply = Apply {
        archive: Some(&archive),
        file: Some(named),
        resumes: flags.resumes,
        approval: Approval {
            is_given: true,
            destroys: allowed.unwrap_or_default(),
            is_of_job: flags.is_job,
        },
        rollback: RollbackFlags {
            allows: saved.plan.options.allow_rollback,
            fetches: flags.fetches,
        },
        policies: carrying.policies.or_saved(&saved.policies),
        ..terminal.apply(notices::of(&found.root), &saved, &disabled)
    };
    act(&apply)
}

impl ConsoleApply<'_> {
    /// Returns the apply of a plan, with the settings that depend only on flags.
    fn apply<'a>(
        &'a self,
        notices: Notices,
        saved: &'a SavedPlan,
        disabled: &'a Disabled,
    ) -> Apply<'a> {
        let ConsoleApply { args, planning, .. } = self;
        Apply {
            terminal: self,
            notices,
            saved,
            archive: None,
            file: None,
            resumes: false,
            part: None,
            ended_order: None,
            kept: None,
            approval: Approval {
                is_given: false,
                destroys: 0,
                is_of_job: false,
            },
            allows: AllowedChanges {
                new_changes: args.allows_new_changes(),
                resource_destroy: args.allow_resource_destroy,
            },
            rollback: RollbackFlags {
                allows: false,
                fetches: false,
            },
            disabled,
            policies: SavedPolicies::default(),
            release_samples: Vec::new(),
            init: planning.init,
            jobs: planning.jobs(),
            on_error: args.on_error(),
            lock_timeout: args.lock_timeout,
        }
    }
}
